// Which operators of two dumps stand against each other: by name and by fusion rules.

#ifndef PLUMBLINE_OPERATORS_PAIR_OPERATORS_H_
#define PLUMBLINE_OPERATORS_PAIR_OPERATORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/acl/fusion_rule.h"
#include "load/operator_dumps.h"
#include "operators/measure_operator.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

// Pairs the operators of two recordings that need no rule file: by name.

// Operators of equal name (and thread, where an operator was split), the first execution with the
// first. In the order of my timestamps; those of the golden side alone come last.
std::vector<PairedOperator> PairByName(load::OperatorDumps target, load::OperatorDumps golden);

// Operators of a rule file that stand together for the same operators of the framework.

enum class FusionRelation : uint8_t {
  kOneToOne,
  kMultiToOne,  // several originals became one operator
  kOneToMulti,
  kMultiToMulti,
  kL1Fusion,
};

struct FusionGroup {
  FusionRelation relation = FusionRelation::kOneToOne;
  std::vector<const fusion::Operator*> operators;
};

// In the order of their first operators; the rule must outlive them.
std::vector<FusionGroup> GroupsOf(const fusion::Rule& rule);

// An output of the framework's graph.
struct OriginalOutput {
  std::string name;
  size_t index = 0;
  std::string format;  // empty: not said
  std::vector<int64_t> shape;
};

// A rule with its operators by name.
class RuleIndex {
 public:
  explicit RuleIndex(const fusion::Rule& rule);

  [[nodiscard]] const fusion::Operator* Find(std::string_view name) const;
  // What an output stands for. Nothing: no original.
  [[nodiscard]] static std::optional<OriginalOutput> OriginOf(const fusion::Operator& op,
                                                              size_t output);
  // What an input stands for: the original of the output that feeds it, through Cast and TransData.
  [[nodiscard]] std::optional<OriginalOutput> OriginOf(const fusion::InputRef& input) const;
  // The operator that computes an original output, and which of its outputs that is.
  [[nodiscard]] std::optional<std::pair<const fusion::Operator*, size_t>> HolderOf(
      const std::string& original, size_t index) const;
  // Whether all that use the operator's outputs are in `names`; false if nothing does.
  [[nodiscard]] bool FeedsOnly(const fusion::Operator& op,
                               const std::set<std::string_view>& names) const;
  // Whether the operator computes with quantised values: behind a quantising operator and before
  // the one that takes it back.
  [[nodiscard]] bool IsBetweenQuantAndDequant(const fusion::Operator& op) const;

 private:
  std::map<std::string_view, const fusion::Operator*> by_name_;
  std::map<std::string_view, std::vector<const fusion::Operator*>> users_;
  std::map<std::pair<std::string, size_t>, std::pair<const fusion::Operator*, size_t>> holders_;
};

// Whether an operator quantises (to int8), or takes that back.
bool Quantises(const fusion::Operator& op);
bool Dequantises(const fusion::Operator& op);

// Pairs the operators of a device with those of a framework (or of the same model compiled
// otherwise) by the rule file that the compiler wrote.

struct RuleInputs {
  const fusion::Rule& rule;
  const fusion::Rule* quant_rule = nullptr;    // original operators of the quantised model
  const fusion::Rule* unfused_rule = nullptr;  // of the golden model, compiled without fusion
  const load::OperatorDumps& target;
  const load::OperatorDumps& golden;
};

struct RulePairs {
  std::vector<PairedOperator> pairs;     // in the order of groups, then of the file
  std::vector<std::string> input_nodes;  // operators of type Data
  std::vector<std::string> notes;
  bool has_target_file = false;  // some operator of the rule file has one
};

// Of several executions the newest is compared. Operators without a file on my side are pairs only
// if the golden side has what they stand for; those of my side that the rule file lacks are pairs
// with a reason.
RulePairs PairByRule(const RuleInputs& inputs);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_PAIR_OPERATORS_H_

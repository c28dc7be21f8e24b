// Operators of a rule file that stand together for the same operators of the framework.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_FUSION_GROUPS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_FUSION_GROUPS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/fusion_rule.h"
#include "tensor/device_format.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_FUSION_GROUPS_H_

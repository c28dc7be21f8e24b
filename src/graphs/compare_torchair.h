// Compares the dump of a compiled graph with that of the uncompiled run, or of one compiled without
// fusion (docs/reference/torchair.md).

#ifndef PLUMBLINE_GRAPHS_COMPARE_TORCHAIR_H_
#define PLUMBLINE_GRAPHS_COMPARE_TORCHAIR_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "load/torchair_dump.h"
#include "measure/dump_algorithms.h"
#include "report/tensor_answer.h"

namespace plumbline::graphs {

// One tensor of a row, cells of the report.
struct TorchairTensor {
  std::string path, operator_type, dtype, shape;
  std::array<std::string, 3> statistics;  // max, min, mean
};

struct TorchairRow {
  int64_t token = 0;
  TorchairTensor golden, target;
  std::optional<measure::TorchairMetrics> metrics;
  std::string fail_reason;
  report::JudgedTensor judged;
  std::tuple<int64_t, bool, size_t> order{};  // time, is output, position
};

struct TorchairComparison {
  std::optional<int64_t> rank;
  bool is_golden_fx = false;
  std::vector<TorchairRow> rows;  // as they were computed
  uint64_t without_name = 0;      // operators that the golden run has no name for
  report::TensorAnswer answer;
};

struct TorchairRequest {
  std::string target, golden;
  std::vector<int64_t> ranks;  // empty: all that both have
  int threads = 0;
};

// One comparison per rank; one where the dumps have none. kNotFound: no graph text below the
// target, no dump of an operator, no rank that both have, or not that one. kInvalidArgument: ranks
// asked of dumps that have none. kCorrupt: a graph text. A tensor file that is damaged is a row.
Result<std::vector<TorchairComparison>> CompareTorchair(const TorchairRequest& request);

// msprobe_cmp_report[_rank{n}]_<time>.csv in `directory`; its path.
Result<std::string> WriteTorchairReport(const TorchairComparison& comparison,
                                        const std::string& directory);
std::string TorchairText(const TorchairComparison& comparison);

// Which operators of a compiled graph's dump stand against which of the golden run.

// A golden operator of the graph, of which a fused one has several.
struct GoldenPart {
  std::string name;
  std::string path;                // empty: not dumped
  std::vector<std::string> feeds;  // operators that its inputs come from
};

struct OperatorPair {
  enum class Against : uint8_t { kNothing, kItself, kFx, kGe };
  int64_t token = 0;
  std::string operation;
  load::GeFile target;
  Against against = Against::kNothing;
  const load::FxOperator* fx_inputs = nullptr;   // kFx; null: not dumped
  const load::FxOperator* fx_outputs = nullptr;  // likewise
  std::vector<GoldenPart> parts;                 // kGe: at least one
  bool is_fused = false;                         // kGe
};

struct OperatorPairs {
  std::vector<OperatorPair> pairs;
  // Operators that the compiler added: of no known name, or of no tensor of the golden run.
  uint64_t without_name = 0;
};

// Of one token. The result refers to `golden`.
void PairWithFx(const load::OperatorGraph& graph, const load::GeOperators& target,
                const load::FxOperators& golden, int64_t token, OperatorPairs& result);
void PairWithGe(const load::OperatorGraph& graph, const load::GeOperators& target,
                const load::GeOperators& golden, int64_t token, OperatorPairs& result);

}  // namespace plumbline::graphs

#endif  // PLUMBLINE_GRAPHS_COMPARE_TORCHAIR_H_

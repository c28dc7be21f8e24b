// Which operators of a compiled graph's dump stand against which of the golden run.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_TORCHAIR_PAIRS_H_
#define PLUMBLINE_PIPELINE_GRAPHS_TORCHAIR_PAIRS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "load/torchair_dump.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_TORCHAIR_PAIRS_H_

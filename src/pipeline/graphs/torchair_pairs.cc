#include "pipeline/graphs/torchair_pairs.h"

#include <string_view>
#include <utility>

namespace plumbline::pipeline {
namespace {

using load::FxOperator;
using load::GeOperators;
using load::GraphOperator;
using load::OperatorGraph;

constexpr std::string_view kFusedType = "AutomaticBufferFusionOp";

// A fused operator is called by the names of its parts in a row. A longer beginning that was dumped
// without being in the graph says that the cut would be wrong.
std::vector<std::string> PartsOf(std::string_view name, const OperatorGraph& graph,
                                 const GeOperators& target, const GeOperators& golden) {
  std::vector<std::string> parts;
  while (!name.empty()) {
    size_t length = name.size();
    while (length > 0 && !graph.contains(name.substr(0, length))) {
      const std::string_view start = name.substr(0, length);
      const bool whole = length == name.size();
      if (!whole && (target.contains(start) || golden.contains(start))) return parts;
      --length;
    }
    if (length == 0) return parts;
    parts.emplace_back(name.substr(0, length));
    name.remove_prefix(length);
  }
  return parts;
}

// The operator of the uncompiled run that made the last dumped one of these tensors.
const FxOperator* FxOf(const GraphOperator& one, const load::FxOperators& golden) {
  const FxOperator* found = nullptr;
  for (const std::string& name : one.fx_tensors) {
    const auto at = golden.find(name);
    if (at != golden.end()) found = &at->second;
  }
  return found;
}

bool MovesValues(std::string_view type) {
  return type.find("Cast") != type.npos || type.find("TransData") != type.npos;
}

}  // namespace

void PairWithFx(const OperatorGraph& graph, const GeOperators& target,
                const load::FxOperators& golden, int64_t token, OperatorPairs& result) {
  for (const auto& [name, file] : target) {
    OperatorPair pair{token, name, file, OperatorPair::Against::kFx, nullptr, nullptr, {}, false};
    const std::vector<std::string> parts = PartsOf(name, graph, target, target);
    if (parts.empty()) {
      if (!MovesValues(file.type)) {
        ++result.without_name;
        continue;
      }
      pair.against = OperatorPair::Against::kItself;
      result.pairs.push_back(std::move(pair));
      continue;
    }
    const GraphOperator& first = graph.find(parts.front())->second;
    const GraphOperator& last = graph.find(parts.back())->second;
    if (first.fx_tensors.empty() && last.fx_tensors.empty()) {
      ++result.without_name;
      continue;
    }
    pair.fx_inputs = FxOf(first, golden);
    pair.fx_outputs = FxOf(last, golden);
    if (pair.fx_inputs == nullptr && pair.fx_outputs == nullptr) {
      pair.against = OperatorPair::Against::kNothing;
    }
    result.pairs.push_back(std::move(pair));
  }
}

void PairWithGe(const OperatorGraph& graph, const GeOperators& target, const GeOperators& golden,
                int64_t token, OperatorPairs& result) {
  for (const auto& [name, file] : target) {
    OperatorPair pair{token,   name,    file, OperatorPair::Against::kNothing,
                      nullptr, nullptr, {},   false};
    pair.is_fused = file.type.starts_with(kFusedType);
    std::vector<std::string> parts{name};
    if (pair.is_fused) parts = PartsOf(name, graph, target, golden);
    bool any = false;
    for (const std::string& part : parts) {
      GoldenPart& one = pair.parts.emplace_back();
      one.name = part;
      if (const auto at = golden.find(part); at != golden.end()) one.path = at->second.path;
      if (const auto at = graph.find(part); at != graph.end()) one.feeds = at->second.inputs;
      any = any || !one.path.empty();
    }
    if (any) pair.against = OperatorPair::Against::kGe;
    result.pairs.push_back(std::move(pair));
  }
}

}  // namespace plumbline::pipeline

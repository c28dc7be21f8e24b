#include "pipeline/culprit/judging_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// "x.0" of its gradient "x_grad.0", "x.0.debug" of "x_grad.0.debug"; empty for other names.
std::string SavedValueOf(std::string_view name) {
  constexpr std::string_view kGradient = "_grad.";
  const size_t at = name.rfind(kGradient);
  if (at == std::string_view::npos) return {};
  return fmt::format("{}.{}", name.substr(0, at), name.substr(at + kGradient.size()));
}

}  // namespace

std::vector<uint32_t> JudgingOrder(const Comparison& comparison) {
  std::unordered_set<std::string> saved;
  if (comparison.of_saves) {
    for (const ComparedCall& call : comparison.calls) saved.insert(call.name());
  }
  std::vector<uint32_t> order, late;
  auto step = comparison.earlier.begin();
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    if (step != comparison.earlier.end() && step->calls_end == i) {
      order.insert(order.end(), late.begin(), late.end());
      late.clear();
      ++step;
    }
    const std::string& name = comparison.calls[i].name();
    const bool is_gradient = comparison.of_saves ? saved.contains(SavedValueOf(name))
                                                 : KindOfCall(name) == CallKind::kParametersGrad;
    (is_gradient ? late : order).push_back(i);
  }
  if (comparison.of_saves) std::ranges::reverse(late);
  order.insert(order.end(), late.begin(), late.end());
  return order;
}

}  // namespace plumbline::pipeline

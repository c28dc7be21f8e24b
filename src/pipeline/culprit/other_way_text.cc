#include "pipeline/culprit/other_way_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "measure/compared_row.h"
#include "record/call_name.h"
#include "report/other_ways.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kMostNames = 3;

// Whether a frame is in a file or directory of optimizers: torch/optim/adam.py.
bool IsOfOptimizer(std::string_view frame) {
  const std::string_view path = frame.substr(0, frame.find(','));
  for (const std::string_view part : {"/optim/", "/optimizer", "/optimization", "/optimisation"}) {
    if (path.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// "Functional.linear" of "Functional.linear.0.forward"; of a module its class.
std::string ApiOf(const std::string& call_name) {
  const std::optional<CallName> name = ParseCallName(call_name);
  if (!name) return call_name;
  if (name->form != CallName::Form::kApi) return std::string(name->class_name);
  return call_name.substr(0, call_name.find(name->path) + name->path.size());
}

// The calls of one side.
struct Group {
  size_t count = 0;
  std::vector<std::string> names;  // of APIs, in order of appearance

  void Add(const std::string& call) {
    ++count;
    std::string api = ApiOf(call);
    if (std::ranges::find(names, api) == names.end()) names.push_back(std::move(api));
  }
  [[nodiscard]] std::string Names() const {
    const size_t shown = std::min(names.size(), kMostNames);
    return fmt::format("{}{}", fmt::join(std::span(names).first(shown), ", "),
                       shown < names.size() ? ", ..." : "");
  }
};

std::string Calls(size_t count) { return fmt::format("{} call{}", count, count == 1 ? "" : "s"); }

std::string PlainText(const Group& target, const Group& golden) {
  if (target.count == 0 && golden.count == 0) return {};
  if (golden.count == 0) {
    return fmt::format("{} of the target alone ({})", Calls(target.count), target.Names());
  }
  if (target.count == 0) {
    return fmt::format("{} of golden alone ({})", Calls(golden.count), golden.Names());
  }
  return fmt::format("{} of the target ({}) for {} of golden ({})", Calls(target.count),
                     target.Names(), golden.count, golden.Names());
}

std::string OptimizerText(size_t target, size_t golden) {
  if (target == 0 || golden == 0) {
    return target + golden == 0 ? "" : Calls(target + golden) + " of the optimizer";
  }
  return fmt::format("{} of the target's optimizer for {} of golden's", Calls(target), golden);
}

}  // namespace

std::string OtherWayText(const Run& target, const Run& golden, const Comparison& comparison) {
  Group groups[2];
  size_t of_optimizer[2] = {};
  for (const ComparedCall& call : comparison.calls) {
    if (call.unmatched_reason != report::kOtherWay) continue;
    for (const bool of_target : {true, false}) {
      const std::string& name = measure::NameOn(call, of_target);
      if (name.empty()) continue;
      const std::vector<std::string>& stack = (of_target ? target : golden).StackOf(name);
      if (std::any_of(stack.begin(), stack.end(), IsOfOptimizer)) {
        ++of_optimizer[of_target ? 0 : 1];
      } else {
        groups[of_target ? 0 : 1].Add(name);
      }
    }
  }
  std::string text = PlainText(groups[0], groups[1]);
  const std::string optimizer = OptimizerText(of_optimizer[0], of_optimizer[1]);
  if (!text.empty() && !optimizer.empty()) text += ", ";
  return text + optimizer;
}

}  // namespace plumbline::pipeline

#include "load/operator_slices.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text/text_parts.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kSlice = "_lxslice", kGraph = "sgt_graph_";

// How many digits `text` starts with.
size_t DigitsIn(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// The name that all parts of one operator share.
std::string SharedName(const OperatorDump& dump) {
  const std::optional<SliceName> slice = ParseSliceName(dump.op_name);
  return slice ? slice->whole : dump.op_name;
}

// The parts of one execution.
struct Execution {
  std::vector<size_t> parts;  // which dumps, by time
  std::set<int64_t> numbers;

  [[nodiscard]] std::shared_ptr<const std::vector<int64_t>> SharedNumbers() const {
    return std::make_shared<const std::vector<int64_t>>(numbers.begin(), numbers.end());
  }
};

// By time, as the dumps are.
std::vector<Execution> FindExecutions(const std::vector<OperatorDump>& dumps) {
  std::vector<Execution> executions;
  std::map<std::string, size_t> open;  // the last execution of each operator
  for (size_t i = 0; i < dumps.size(); ++i) {
    if (dumps[i].slices.files.empty()) continue;
    const int64_t number = dumps[i].slices.files.front().number;
    const auto [last, is_first] = open.try_emplace(SharedName(dumps[i]), executions.size());
    if (is_first || executions[last->second].numbers.contains(number)) {
      last->second = executions.size();
      executions.emplace_back();
    }
    executions[last->second].parts.push_back(i);
    executions[last->second].numbers.insert(number);
  }
  return executions;
}

}  // namespace

std::optional<SliceName> ParseSliceName(std::string_view op_name) {
  const size_t at = op_name.rfind(kSlice);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::optional<int64_t> number = ParseNatural(op_name.substr(at + kSlice.size()));
  if (!number) return std::nullopt;
  return SliceName{std::string(op_name.substr(0, at)), *number};
}

std::string NameInModel(std::string_view op_name) {
  const std::optional<SliceName> slice = ParseSliceName(op_name);
  std::string name = slice ? slice->whole : std::string(op_name);
  for (size_t at = name.rfind(kGraph); at != std::string::npos && at > 0;
       at = name.rfind(kGraph, at - 1)) {
    const std::string_view behind = std::string_view(name).substr(at + kGraph.size());
    const size_t digits = DigitsIn(behind);
    if (digits == 0) continue;
    // The graph itself keeps its name.
    if (digits + 1 < behind.size()) return std::string(behind.substr(digits + 1));
    break;
  }
  return name;
}

void JoinSlices(OperatorDumps& dumps) {
  std::vector<bool> is_behind(dumps.files.size(), false);  // in the entry of another dump
  for (const Execution& execution : FindExecutions(dumps.files)) {
    OperatorSlices slices;
    slices.are_joined = true;
    slices.numbers = execution.SharedNumbers();
    for (const size_t part : execution.parts) {
      slices.files.push_back(std::move(dumps.files[part].slices.files.front()));
      is_behind[part] = part != execution.parts.front();
    }
    std::ranges::sort(slices.files, {}, &OperatorSlice::number);
    OperatorDump& whole = dumps.files[execution.parts.front()];
    whole.path = slices.files.front().path;
    whole.slices = std::move(slices);
    whole.thread_id.reset();
  }
  std::vector<OperatorDump> joined;
  joined.reserve(dumps.files.size());
  for (size_t i = 0; i < dumps.files.size(); ++i) {
    if (is_behind[i]) continue;
    dumps.files[i].op_name = NameInModel(dumps.files[i].op_name);
    joined.push_back(std::move(dumps.files[i]));
  }
  dumps.files = std::move(joined);
}

void CountSlices(OperatorDumps& dumps) {
  for (const Execution& execution : FindExecutions(dumps.files)) {
    const auto numbers = execution.SharedNumbers();
    for (const size_t part : execution.parts) dumps.files[part].slices.numbers = numbers;
  }
}

}  // namespace plumbline::load

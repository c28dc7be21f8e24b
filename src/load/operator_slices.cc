#include "load/operator_slices.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/text_parts.h"

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

// Parts of one execution, as far as they were seen.
struct Execution {
  size_t entry = 0;  // of the result
  std::vector<int64_t> numbers;

  [[nodiscard]] bool Has(int64_t number) const {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  }
};

void SortByNumber(OperatorSlices& slices) {
  std::stable_sort(slices.files.begin(), slices.files.end(),
                   [](const auto& a, const auto& b) { return a.number < b.number; });
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
  std::vector<OperatorDump> joined;
  std::map<std::string, Execution> open;
  for (OperatorDump& dump : dumps.files) {  // by time
    const std::string shared = SharedName(dump);
    const bool is_part = !dump.slices.files.empty();
    dump.op_name = NameInModel(dump.op_name);
    if (!is_part) {
      joined.push_back(std::move(dump));
      continue;
    }
    const int64_t number = dump.slices.files.front().number;
    Execution& execution = open[shared];
    if (execution.numbers.empty() || execution.Has(number)) {
      execution = {joined.size(), {}};
      dump.thread_id.reset();
      dump.slices.are_joined = true;
      joined.push_back(std::move(dump));
    } else {
      joined[execution.entry].slices.files.push_back(std::move(dump.slices.files.front()));
    }
    execution.numbers.push_back(number);
  }
  for (OperatorDump& dump : joined) {
    if (dump.slices.files.empty()) continue;
    SortByNumber(dump.slices);
    dump.path = dump.slices.files.front().path;
  }
  dumps.files = std::move(joined);
}

}  // namespace plumbline::load

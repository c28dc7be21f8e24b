#include "pipeline/graphs/keep_mapped.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/number_text.h"
#include "match/mapping_file.h"

namespace plumbline::pipeline {
namespace {

using Names = std::unordered_set<std::string_view>;

void Keep(const Names& names, std::string_view side, std::vector<match::CallItems>& calls,
          std::vector<std::string>& warnings) {
  const size_t before = calls.size();
  for (match::CallItems& call : calls) {
    std::erase_if(call.items, [&](const Item& item) { return !names.contains(item.name); });
  }
  std::erase_if(calls, [](const match::CallItems& call) { return call.items.empty(); });
  const size_t left_out = before - calls.size();
  if (left_out == 0) return;
  warnings.push_back(
      fmt::format("{} of the {} of the {} are not in the data mapping and not compared", left_out,
                  CountText(before, "call"), side));
}

Names NamesOf(const std::vector<match::CallItems>& calls) {
  Names names;
  for (const match::CallItems& call : calls) {
    for (const Item& item : call.items) names.insert(item.name);
  }
  return names;
}

}  // namespace

Result<uint64_t> KeepMapped(const std::string& mapping_path, std::vector<match::CallItems>& target,
                            std::vector<match::CallItems>& golden,
                            std::vector<std::string>& warnings) {
  PL_TRY_ASSIGN(const match::TextPairs mapping, match::ReadDataMapping(mapping_path));
  Names targets, goldens;
  for (const auto& [ours, theirs] : mapping) {
    targets.insert(ours);
    goldens.insert(theirs);
  }
  Keep(targets, "target", target, warnings);
  Keep(goldens, "golden side", golden, warnings);
  if (target.empty() || golden.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: names no value of the {} (expected names as in the result "
                             "tables, such as Default_MatMul-op0.MatMul.0.forward.output.0)",
                             mapping_path, target.empty() ? "target" : "golden side"));
  }
  const Names ours = NamesOf(target), theirs = NamesOf(golden);
  return static_cast<uint64_t>(std::ranges::count_if(mapping, [&](const auto& line) {
    return !ours.contains(line.first) && !theirs.contains(line.second);
  }));
}

}  // namespace plumbline::pipeline

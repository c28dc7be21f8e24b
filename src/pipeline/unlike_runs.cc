#include "pipeline/unlike_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text_parts.h"

namespace plumbline::pipeline {
namespace {

// Whether a directory of `path` is called one of `words`, alone or as a part between '_', '-', '.'.
bool Says(std::string_view path, std::span<const std::string_view> words) {
  size_t begin = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    const bool is_end = i == path.size() || std::string_view("/_-.").find(path[i]) != path.npos;
    if (!is_end) continue;
    if (std::ranges::count(words, path.substr(begin, i - begin)) > 0) return true;
    begin = i + 1;
  }
  return false;
}

// The two without the directories that both lie in.
void DropCommon(std::string_view& a, std::string_view& b) {
  size_t common = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '/') common = i + 1;
  }
  a.remove_prefix(common);
  b.remove_prefix(common);
}

// By this program's own words for the two sides, and upstream's.
std::string SwappedText(const Comparison& comparison) {
  constexpr std::string_view kTarget[] = {"target", "npu"};
  constexpr std::string_view kGolden[] = {"golden", "bench"};
  std::string_view target = comparison.target_path, golden = comparison.golden_path;
  DropCommon(target, golden);
  const bool are_swapped = Says(target, kGolden) && Says(golden, kTarget) &&
                           !Says(target, kTarget) && !Says(golden, kGolden);
  if (!are_swapped) return {};
  return fmt::format(
      "the first path is the run under test (got {}), the second the reference (got {}): are they "
      "swapped?",
      comparison.target_path, comparison.golden_path);
}

std::string LevelText(const Run& target, const Run& golden) {
  const std::string& left = target.header().level;
  const std::string& right = golden.header().level;
  if (left.empty() || right.empty() || left == right) return {};
  return fmt::format(
      "target was recorded at level {}, golden at level {}: only calls of both levels can be "
      "compared. Record both at one level",
      left, right);
}

// The number of the last directory step{number} of a path.
std::optional<int64_t> StepOf(std::string_view path) {
  std::optional<int64_t> step;
  for (const std::string_view part : SplitAt(path, '/')) {
    if (!part.starts_with("step")) continue;
    if (const auto number = ParseNatural(part.substr(4))) step = number;
  }
  return step;
}

std::string StepText(const Comparison& comparison) {
  const auto target = StepOf(comparison.target_path), golden = StepOf(comparison.golden_path);
  if (!target || !golden || *target == *golden) return {};
  return fmt::format("target is step {}, golden is step {}: other steps have other numbers",
                     *target, *golden);
}

// Calls without any counterpart, not those that differ from it.
std::string ModelText(const Comparison& comparison) {
  uint64_t paired = 0, target = 0, golden = 0;
  for (const ComparedCall& call : comparison.calls) {
    paired += call.paired() ? 1 : 0;
    target += call.unmatched_reason == "no-golden" ? 1 : 0;
    golden += call.unmatched_reason == "no-target" ? 1 : 0;
  }
  const uint64_t all = paired + std::max(target, golden);
  if (target == 0 || golden == 0 || 2 * paired >= all) return {};
  return fmt::format("{} of {} calls paired: are these the same model?", paired, all);
}

}  // namespace

void WarnOfUnlikeRuns(const Run& target, const Run& golden, Comparison& comparison) {
  if (comparison.of_saves || target.header().of_graphs || golden.header().of_graphs) return;
  std::vector<std::string> said = {SwappedText(comparison), LevelText(target, golden),
                                   StepText(comparison)};
  // Levels that differ say why so few calls pair.
  if (said[1].empty()) said.push_back(ModelText(comparison));
  std::erase(said, std::string());
  comparison.warnings.insert(comparison.warnings.begin(), said.begin(), said.end());
}

}  // namespace plumbline::pipeline

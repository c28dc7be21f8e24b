#include "compare/graph_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "load/graph_dump.h"
#include "load/statistic_values.h"
#include "match/mapping_file.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"

namespace plumbline::compare {

namespace {

void FillAsTable(const TensorView& view, Item& item) {
  static const std::vector<std::string> kItems = {"max", "min", "avg", "l2norm"};
  constexpr int kAllDigits = 17;
  const std::vector<std::string> texts = load::StatisticTexts(view, kItems, kAllDigits);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (const auto number = ParseReal(texts[i])) item.statistics[i] = Recorded(*number);
  }
}

void FillFromFile(const std::string& path, bool as_table, Item& item) {
  const Result<npy::NpyFile> file = npy::NpyFile::Open(path);
  if (!file) return;  // the row says so when its tensors are measured
  const TensorView view = file->view();
  if (as_table) return FillAsTable(view, item);
  measure::TakeStatistics(view, item);
}

void LendFrom(const std::vector<match::CallItems>& lender, std::vector<match::CallItems>& calls) {
  std::unordered_map<std::string_view, const Item*> known;
  for (const match::CallItems& call : lender) {
    for (const Item& item : call.items) known.emplace(item.name, &item);
  }
  for (match::CallItems& call : calls) {
    for (Item& item : call.items) {
      if (item.dtype != load::kUnreadableDType) continue;
      const auto found = known.find(item.name);
      if (found == known.end()) continue;
      item.dtype = found->second->dtype;
      item.shape = found->second->shape;
      item.shape_text = found->second->shape_text;
    }
  }
}

}  // namespace

void FillGraphStatistics(const Run& run, std::vector<match::CallItems>& calls, bool as_table) {
  if (run.header().task != "tensor") return;
  std::vector<Item*> items;
  for (match::CallItems& call : calls) {
    for (Item& item : call.items) items.push_back(&item);
  }
  ParallelFor(items.size(), [&](size_t i) {
    FillFromFile(run.TensorPath(items[i]->data_name), as_table, *items[i]);
  });
}

void LendShapes(std::vector<match::CallItems>& target, std::vector<match::CallItems>& golden) {
  LendFrom(golden, target);
  LendFrom(target, golden);
}

void AddPrintedPrecision(const Comparison& comparison, std::vector<double>& noise) {
  if (comparison.mode != CompareMode::kStatistics) return;
  noise.resize(comparison.rows.size(), 0);
  for (double& each : noise) each = std::max(each, measure::kSixDigitError / measure::kNoiseFactor);
}

namespace {

using NameSet = std::unordered_set<std::string_view>;

void Keep(const NameSet& names, std::string_view side, std::vector<match::CallItems>& calls,
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

NameSet NamesOf(const std::vector<match::CallItems>& calls) {
  NameSet names;
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
  NameSet targets, goldens;
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
  const NameSet ours = NamesOf(target), theirs = NamesOf(golden);
  return static_cast<uint64_t>(std::ranges::count_if(mapping, [&](const auto& line) {
    return !ours.contains(line.first) && !theirs.contains(line.second);
  }));
}

}  // namespace plumbline::compare

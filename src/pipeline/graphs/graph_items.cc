#include "pipeline/graphs/graph_items.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/parallel.h"
#include "base/text_parts.h"
#include "formats/npy.h"
#include "load/graph_dump.h"
#include "measure/recorded_statistics.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "pipeline/graphs/statistic_values.h"

namespace plumbline::pipeline {
namespace {

void FillAsTable(const TensorView& view, Item& item) {
  static const std::vector<std::string> kItems = {"max", "min", "avg", "l2norm"};
  constexpr int kAllDigits = 17;
  const std::vector<std::string> texts = StatisticTexts(view, kItems, kAllDigits);
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

}  // namespace plumbline::pipeline

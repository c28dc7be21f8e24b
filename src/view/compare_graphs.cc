#include "view/compare_graphs.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "report/certainty.h"
#include "report/newest_table.h"

namespace plumbline::view {
namespace {

using tree::LevelOf;
using vis::Level;

// What a row says in upstream's columns "Result" and "Err_message".
struct RowAnswer {
  std::string result, message;
};

std::string ReasonOf(const ComparedRow& row) {
  std::string text(row.reason.view());
  const std::string_view words = report::ReasonText(row.reason);
  if (!words.empty()) text += fmt::format(" ({})", words);
  if (std::isfinite(row.error)) {
    text += fmt::format(": relative error {:.3g}, explained {:.3g}", row.error, row.expected);
  }
  return text;
}

RowAnswer AnswerOf(const ComparedCall& call, const ComparedRow& row) {
  if (!call.paired()) {
    std::string text = call.unmatched_reason;
    if (!call.unmatched_detail.empty()) text += ": " + call.unmatched_detail;
    return {"not comparable", "not comparable: " + text};
  }
  if (!row.golden) return {"no counterpart", "no counterpart: the golden call has no such value"};
  const std::optional<Level> level = LevelOf(row.verdict);
  RowAnswer answer{level ? std::string(vis::LevelName(*level)) : "not comparable", ""};
  if (level != Level::kPass) answer.message = fmt::format("{}: {}", answer.result, ReasonOf(row));
  return answer;
}

constexpr std::string_view kNoNumber = "N/A";
constexpr std::string_view kDifferences[] = {"Max diff", "Min diff", "Mean diff", "L2norm diff"};
constexpr std::string_view kRelative[] = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
                                          "NormRelativeErr"};

std::string NumberText(const Metric& metric, std::string_view unit) {
  const double* const number = std::get_if<double>(&metric);
  if (number == nullptr) return std::string(kNoNumber);
  return std::isnan(*number) ? "Nan" : PythonFloat(*number).append(unit);
}

// Differences of integers are integers.
std::string DifferenceText(const Recorded& target, const Recorded& golden, const Metric& metric) {
  const auto* const a = std::get_if<int64_t>(&target);
  const auto* const b = std::get_if<int64_t>(&golden);
  const double* const number = std::get_if<double>(&metric);
  constexpr double kExact = 9007199254740992;  // 2^53: below it every integer is a double
  const bool is_whole = a != nullptr && b != nullptr && number != nullptr;
  if (!is_whole || !(std::abs(*number) < kExact)) return NumberText(metric, "");
  return fmt::format("{}", static_cast<int64_t>(*number));
}

// A number that is one, unlike those that are texts in a recording: .vis.db has all its digits.
std::string ShownMetric(std::string text, const ValueForm& form) {
  return form.is_vis ? ShownValue(text, form) : text;
}

// The differences of the statistics of a row, as upstream's graphs have them.
void AppendDifferences(const ComparedRow& row, const ValueForm& form, std::string& out) {
  const StatisticDifferences differences = row.statistics();
  for (size_t i = 0; i < std::size(kDifferences); ++i) {
    const std::string text = DifferenceText(row.target->statistics[i], row.golden->statistics[i],
                                            differences.difference[i]);
    AppendField(kDifferences[i], ShownMetric(text, form), false, out);
  }
  for (size_t i = 0; i < std::size(kRelative); ++i) {
    const std::string text = NumberText(differences.relative_percent[i], "%");
    AppendField(kRelative[i], ShownValue(text, form), false, out);
  }
}

// Puts the rows of a comparison on the nodes of one graph.
class RowPlacer {
 public:
  RowPlacer(const Comparison& comparison, const ValueForm& form)
      : comparison_(comparison), form_(form) {}

  void Place(const ComparedCall& call, Node& node) const {
    if (node.texts == nullptr) return;
    const NodeValues& values = node.texts->values;
    std::vector<std::string>& metrics = node.texts->metrics;
    metrics.resize(values.size());
    size_t next = 0;
    for (uint32_t i = 0; i < call.row_count; ++i) {
      const ComparedRow& row = comparison_.rows[call.first_row + i];
      if (!row.target) continue;
      const std::optional<size_t> at = Find(row.target->name, values, next);
      if (!at) continue;
      next = *at + 1;
      metrics[*at] = Metrics(call, row);
    }
  }

 private:
  // The parameter of that name; those of a call come nearly in the order of its rows.
  static std::optional<size_t> Find(std::string_view name, const NodeValues& values, size_t from) {
    for (size_t k = 0; k < values.size(); ++k) {
      const size_t i = (from + k) % values.size();
      if (IsNamed(name, values[i].name)) return i;
    }
    return std::nullopt;
  }
  // A transfer in a batch has the name of its place, its row that of the tensor in it.
  static bool IsNamed(std::string_view row, std::string_view parameter) {
    if (!row.starts_with(parameter)) return false;
    return row.size() == parameter.size() || row.substr(parameter.size()) == ".tensor";
  }

  [[nodiscard]] std::string Metrics(const ComparedCall& call, const ComparedRow& row) const {
    std::string out;
    if (row.golden) {
      if (comparison_.mode == CompareMode::kStatistics) AppendDifferences(row, form_, out);
      for (const auto& [column, text] : report::NewestMetricsOf(comparison_, row)) {
        AppendField(column, ShownMetric(text, form_), false, out);
      }
    }
    const RowAnswer answer = AnswerOf(call, row);
    AppendField("Result", answer.result, false, out);
    const std::string messages = answer.message.empty() ? "[]" : vis::ListJson({answer.message});
    AppendField("Err_message", messages, false, out);
    return out;
  }

  const Comparison& comparison_;
  const ValueForm& form_;
};

void PlaceCalls(const Comparison& comparison, const ValueForm& form,
                const std::vector<tree::NodeCalls>& nodes) {
  constexpr size_t kShare = 256;
  const RowPlacer placer(comparison, form);
  ParallelBlocks(nodes.size(), kShare, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      for (const ComparedCall* const call : nodes[i].calls) placer.Place(*call, *nodes[i].node);
    }
  });
}

}  // namespace

NodeCounts CompareGraphs(const Comparison& comparison, const ValueForm& form, ModelGraph& target,
                         ModelGraph& golden) {
  tree::LinkTrees(comparison, target, golden);
  PlaceCalls(comparison, form, tree::CallsByNode(comparison, target));
  tree::LevelTree(comparison, target);
  return tree::CountNodes(target, golden);
}

NodeCounts PairGraphs(ModelGraph& target, ModelGraph& golden) {
  tree::LinkTrees(target, golden);
  return tree::CountNodes(target, golden);
}

}  // namespace plumbline::view

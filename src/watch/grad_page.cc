// The page of watch/grad_similarity.h.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "report/html_report.h"
#include "report/result_json.h"
#include "watch/curve_page.h"
#include "watch/grad_similarity.h"
#include "watch/trend.h"

namespace plumbline {
namespace {

using report::ObjectWriter;

constexpr float kNoPoint = std::numeric_limits<float>::quiet_NaN();

// A curve of the page and what it is sorted by.
struct PageRow {
  const RankSimilarity* rank = nullptr;
  const SimilarityRow* row = nullptr;
  const SimilaritySuspect* suspect = nullptr;  // null: none
  double least = 1;
};

// The steps of all ranks, some to a point where there are many.
struct PageSteps {
  std::vector<int64_t> all, points;
  size_t per_point = 1;

  explicit PageSteps(const GradComparison& comparison) {
    std::set<int64_t> steps;
    for (const RankSimilarity& rank : comparison.ranks) {
      steps.insert(rank.steps.begin(), rank.steps.end());
    }
    all.assign(steps.begin(), steps.end());
    per_point = std::max<size_t>(1, (all.size() + kMostCurvePoints - 1) / kMostCurvePoints);
    for (size_t i = 0; i < all.size(); i += per_point) points.push_back(all[i]);
  }
  [[nodiscard]] size_t PointOf(int64_t step) const {
    return static_cast<size_t>(std::ranges::lower_bound(all, step) - all.begin()) / per_point;
  }
};

std::vector<PageRow> RowsOf(const GradComparison& comparison) {
  std::vector<PageRow> rows;
  for (const RankSimilarity& rank : comparison.ranks) {
    std::unordered_map<std::string_view, const SimilaritySuspect*> suspects;
    for (const SimilaritySuspect& one : rank.suspects) suspects.emplace(one.parameter, &one);
    const auto add = [&](const SimilarityRow& row) {
      PageRow page{&rank, &row, nullptr, 1};
      const auto suspect = suspects.find(row.parameter);
      if (suspect != suspects.end()) page.suspect = suspect->second;
      for (size_t i = 0; i < row.values.size(); ++i) {
        if (row.values[i] && row.elements[i] > 0) page.least = std::min(page.least, *row.values[i]);
      }
      rows.push_back(page);
    };
    add(rank.summary);
    for (const SimilarityRow& row : rank.rows) add(row);
  }
  std::ranges::stable_sort(rows, [](const PageRow& a, const PageRow& b) {
    if (a.suspect == nullptr || b.suspect == nullptr) {
      return a.suspect != nullptr || (b.suspect == nullptr && a.least < b.least);
    }
    return std::pair(a.suspect->step, a.suspect->value) <
           std::pair(b.suspect->step, b.suspect->value);
  });
  return rows;
}

void AppendSimilarityCurve(const PageRow& page, const PageSteps& steps, std::string& out) {
  std::vector<float> low(steps.points.size(), kNoPoint), high = low;
  for (size_t i = 0; i < page.row->values.size(); ++i) {
    if (!page.row->values[i]) continue;
    const auto value = static_cast<float>(*page.row->values[i]);
    const size_t point = steps.PointOf(page.rank->steps[i]);
    if (!(low[point] <= value)) low[point] = value;
    if (!(high[point] >= value)) high[point] = value;
  }
  out += "[[";
  AppendCurvePoints(high, out);
  if (steps.per_point > 1) {
    out += ',';
    AppendCurvePoints(low, out);
  }
  out += "]]";
}

void AppendPageRow(const PageRow& page, const PageSteps& steps, std::string& out) {
  ObjectWriter object(out);
  object.Text("kind", fmt::format("rank {}", page.rank->rank.value_or(0)));
  object.Text("name", page.row->parameter);
  object.Integer("stage", 0);
  object.Integer("micro_step", 0);
  object.Key("bad") += "[]";
  std::vector<int64_t> alerts;
  std::string remark;
  if (page.suspect != nullptr) {
    alerts.push_back(page.suspect->step);
    remark = fmt::format("step {}: {:.4g}, {}", page.suspect->step, page.suspect->value,
                         page.suspect->rule);
  }
  AppendCurveIntegers(alerts, object.Key("alerts"));
  object.Text("remark", remark);
  AppendSimilarityCurve(page, steps, object.Key("curves"));
  object.End();
}

// Words and what they mean on this page.
constexpr std::string_view kPageWords =
    R"([["similarity","the share of the elements of a gradient that have the same sign, above 0 or )"
    R"(not, in both trainings"],["gap","one side, or both, has no gradient there"],)"
    R"(["dashed line","the first step that a rule calls wrong: below 0.97 at the first step, or )"
    R"(more than 0.03 below the step before"],["summary","over the elements of all parameters"]])";

std::string GradPageData(const GradComparison& comparison) {
  std::string out;
  ObjectWriter object(out);
  const PageSteps steps(comparison);
  const std::string text = GradComparisonText(comparison);
  const std::vector<PageRow> rows = RowsOf(comparison);
  object.Text("page", "grad-compare");
  object.Text("answer", text.substr(0, text.find('\n')));
  object.Text("rest", text.substr(text.find('\n') + 1));
  const std::vector<std::string> warnings = WarningsOf(comparison);
  const bool is_bad = comparison.first || comparison.first_nonfinite;
  object.Text("state", is_bad ? "bad" : warnings.empty() ? "good" : "unknown");
  object.Text("data", comparison.target + " against " + comparison.golden);
  object.Integer("ranks", comparison.ranks.size());
  object.Integer("steps", steps.all.size());
  object.Integer("tensors", rows.size());
  object.Text("kind", "rank");
  object.Key("words") += kPageWords;
  object.Texts("statistics", {"similarity"});
  AppendCurveIntegers(steps.points, object.Key("point_steps"));
  object.Integer("last_step", static_cast<uint64_t>(steps.all.back()));
  object.Texts("notes", warnings);
  std::string& series = object.Key("series");
  series += '[';
  for (size_t i = 0; i < std::min(rows.size(), kMostTrendSeries); ++i) {
    if (i > 0) series += ',';
    AppendPageRow(rows[i], steps, series);
  }
  series += ']';
  object.End();
  return report::InScript(std::move(out));
}

}  // namespace

Status WriteGradPage(const GradComparison& comparison, const std::string& path) {
  return WriteCurvePage(path, GradComparisonText(comparison), GradPageData(comparison));
}

}  // namespace plumbline

// The page of watch/trend.h: its data as JSON, drawn by the scripts of html/.

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text/json.h"
#include "report/html_report.h"
#include "report/result_json.h"
#include "watch/curve_page.h"
#include "watch/trend.h"

namespace plumbline {

namespace {

using report::ObjectWriter;

bool AreSame(const TrendCurve& curve) {
  return std::ranges::equal(curve.low, curve.high, [](float low, float high) {
    return low == high || (std::isnan(low) && std::isnan(high));
  });
}

// [high] or, where ranks or steps differ, [high, low]; null: the tensor has no such statistic.
void AppendCurve(const TrendCurve& curve, std::string& out) {
  if (curve.high.empty()) {
    out += "null";
    return;
  }
  out += '[';
  AppendCurvePoints(curve.high, out);
  if (!AreSame(curve)) {
    out += ',';
    AppendCurvePoints(curve.low, out);
  }
  out += ']';
}

void AppendSeries(const TrendSeries& series, std::string& out) {
  ObjectWriter object(out);
  object.Text("kind", series.kind);
  object.Text("name", series.name);
  object.Integer("stage", static_cast<uint64_t>(series.vpp_stage));
  object.Integer("micro_step", static_cast<uint64_t>(series.micro_step));
  std::vector<size_t> bad;
  for (size_t i = 0; i < series.has_nonfinite.size(); ++i) {
    if (series.has_nonfinite[i]) bad.push_back(i);
  }
  AppendCurveIntegers(bad, object.Key("bad"));
  AppendCurveIntegers(series.alert_steps, object.Key("alerts"));
  object.Number("jump", series.jump);
  object.Integer("jump_step", static_cast<uint64_t>(series.jump_step));
  std::string& curves = object.Key("curves");
  curves += '[';
  for (size_t i = 0; i < series.curves.size(); ++i) {
    if (i > 0) curves += ',';
    AppendCurve(series.curves[i], curves);
  }
  curves += ']';
  object.End();
}

std::string TrendData(const Trend& trend) {
  std::string out;
  ObjectWriter object(out);
  object.Text("page", "trend");
  const std::string text = TrendText(trend);
  object.Text("answer", text.substr(0, text.find('\n')));
  object.Text("rest", text.substr(text.find('\n') + 1));
  const bool is_sure = trend.alerts + trend.uncertain == 0 && trend.damage.empty();
  object.Text("state", trend.first_nonfinite ? "bad" : is_sure ? "good" : "unknown");
  object.Text("data", trend.data);
  object.Integer("ranks", trend.ranks);
  object.Integer("steps", trend.steps);
  object.Integer("tensors", trend.series.size());
  object.Texts("statistics", trend.statistics);
  AppendCurveIntegers(trend.point_steps, object.Key("point_steps"));
  object.Integer("last_step", static_cast<uint64_t>(trend.last_step));
  object.Texts("notes", trend.warnings);
  std::string& series = object.Key("series");
  series += '[';
  const size_t shown = std::min(trend.series.size(), kMostTrendSeries);
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) series += ',';
    AppendSeries(trend.series[i], series);
  }
  series += ']';
  object.End();
  return report::InScript(std::move(out));
}

}  // namespace

Status WriteTrendPage(const Trend& trend, const std::string& path) {
  return WriteCurvePage(path, TrendText(trend), TrendData(trend));
}

}  // namespace plumbline

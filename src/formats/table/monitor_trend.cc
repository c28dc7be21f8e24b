#include "formats/table/monitor_trend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text/text_parts.h"

namespace plumbline::monitor_trend {

std::string_view MetricOf(std::string_view kind) {
  if (kind == "param") return "param_origin";
  const auto found = std::ranges::find(kMetrics, kind);
  return found == kMetrics.end() ? std::string_view() : *found;
}

bool IsStatistic(std::string_view name) {
  return std::ranges::find(kStatistics, name) != kStatistics.end();
}

trend_db::Form FormOf(const Contents& contents) {
  trend_db::Form form;
  form.has_rank_first = false;
  std::set<std::string_view> all;
  for (const std::string_view metric : kMetrics) {
    const auto found = contents.find(metric);
    if (found == contents.end()) continue;
    std::vector<std::string_view> own;
    for (const std::string_view name : kStatistics) {
      if (found->second.contains(name)) own.push_back(name);
    }
    all.insert(own.begin(), own.end());
    form.metrics.emplace_back(metric);
    form.statistics_of.push_back(fmt::format("{}", fmt::join(own, ",")));
  }
  for (const std::string_view name : kStatistics) {
    if (all.contains(name)) form.statistics.emplace_back(name);
  }
  return form;
}

std::vector<trend_db::Tag> TagsOf(const trend_db::Row& row) {
  const std::vector<std::string_view> parts = SplitAt(row.target, '.');
  std::vector<trend_db::Tag> tags;
  const auto add = [&](std::string name, std::string_view category) {
    trend_db::Tag tag{std::move(name), category};
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(std::move(tag));
  };
  for (size_t i = parts.size(); i-- > 0;) {
    if (!IsDigits(parts[i])) {
      add(std::string(parts[i]), "module");
    } else if (i > 0 && !IsDigits(parts[i - 1])) {
      add(fmt::format("{}.{}", parts[i - 1], parts[i]), "layer");
    }
  }
  return tags;
}

}  // namespace plumbline::monitor_trend

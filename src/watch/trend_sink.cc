#include "watch/trend_sink.h"

#include <algorithm>
#include <utility>

#include "base/file/file.h"
#include "formats/table/monitor_trend.h"

namespace plumbline::watch {
namespace {

// Metrics that the configuration watches, all of them with its statistics.
monitor_trend::Contents ContentsOf(const MonitorConfig& config) {
  std::set<std::string, std::less<>> statistics;
  for (const Op op : config.ops) {
    if (monitor_trend::IsStatistic(NameOf(op))) statistics.emplace(NameOf(op));
  }
  monitor_trend::Contents contents;
  const auto add = [&](bool is_watched, std::initializer_list<MonitorKind> kinds) {
    for (const MonitorKind kind : kinds) {
      if (is_watched) {
        contents.emplace(std::string(monitor_trend::MetricOf(InfoOf(kind).file)), statistics);
      }
    }
  };
  using enum MonitorKind;
  add(config.activations, {kActivation, kActivationGradient});
  add(config.moments, {kMomentum, kSecondMomentum});
  add(config.gradients, {kUnreducedGradient, kReducedGradient});
  add(config.parameters, {kParameterOrigin});
  add(config.parameters && config.updated_parameters, {kParameterUpdated});
  add(true, {kOther});  // the user's own rows among them
  return contents;
}

class TrendSink : public StepSink {
 public:
  TrendSink(trend_db::LiveWriter writer, const trend_db::Form& form, int64_t rank)
      : writer_(std::move(writer)), metrics_(form.metrics), rank_(rank) {
    for (const std::string& name : form.statistics) ops_.push_back(*OpNamed(name));
  }

  Status Write(const StepRows& rows) override {
    rows_.clear();
    for (const MonitorKindInfo& info : kMonitorKinds) {
      const auto metric = std::ranges::find(metrics_, monitor_trend::MetricOf(info.file));
      if (metric == metrics_.end()) continue;
      for (const Row& row : rows.of(info.kind)) {
        Add(static_cast<size_t>(metric - metrics_.begin()), rows.step, row);
      }
    }
    return rows_.empty() ? Status() : writer_.Write(rank_, rows_);
  }

  Status Close() override { return writer_.Close(); }

 private:
  void Add(size_t metric, int64_t step, const Row& row) {
    trend_db::Row out;
    out.rank = rank_;
    out.step = step;
    out.metric = metric;
    out.target = row.name->text;
    out.vpp_stage = row.name->vpp_stage;
    out.micro_step = row.micro_step;
    for (const Op op : ops_) out.values.push_back(trend_db::ValueOf(row.values.of(op)));
    rows_.push_back(std::move(out));
  }

  trend_db::LiveWriter writer_;
  std::vector<std::string> metrics_;
  std::vector<Op> ops_;  // of the columns
  int64_t rank_;
  std::vector<trend_db::Row> rows_;  // of the step
};

}  // namespace

Result<std::unique_ptr<StepSink>> NewTrendSink(const std::string& directory,
                                               const MonitorConfig& config, int64_t rank) {
  const trend_db::Form form = monitor_trend::FormOf(ContentsOf(config));
  auto writer = trend_db::LiveWriter::Open(JoinPath(directory, monitor_trend::kDatabase), form,
                                           &monitor_trend::TagsOf);
  if (!writer) return writer.error();
  return std::unique_ptr<StepSink>(std::make_unique<TrendSink>(std::move(*writer), form, rank));
}

Status TrimTrend(const std::string& directory, int64_t rank, int64_t step) {
  const std::string path = JoinPath(directory, monitor_trend::kDatabase);
  if (KindOf(path) != PathKind::kFile) return {};
  PL_TRY_ASSIGN(auto writer, trend_db::LiveWriter::Open(path, {}, &monitor_trend::TagsOf));
  PL_TRY(writer.Trim(rank, step));
  return writer.Close();
}

}  // namespace plumbline::watch

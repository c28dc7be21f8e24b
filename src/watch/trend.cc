#include "watch/trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/table/monitor_kinds.h"
#include "load/monitor_files.h"
#include "watch/anomalies.h"
#include "watch/rules/monitor_tensor.h"

namespace plumbline {
namespace {

using load::MonitorDirectory;
using load::MonitorFile;
using load::MonitorRow;

// Files that have curves, in the order in which a page offers them, and when they are written: 0
// forward, 1 backward, 2 optimizer.
constexpr std::array<std::pair<std::string_view, int>, 14> kTrendKinds = {
    {{"actv", 0},
     {"actv_grad", 1},
     {"grad_unreduced", 1},
     {"grad_reduced", 1},
     {"param", 2},
     {"param_origin", 2},
     {"param_updated", 2},
     {"exp_avg", 2},
     {"exp_avg_sq", 2},
     {"other", 2},
     {"attention_hook", 0},
     {"linear_hook", 2},
     {"moe_router_weight_hook", 2},
     {"moe_router_logit_hook", 0}}};

constexpr std::array<std::string_view, 10> kCurves = {"norm",
                                                      "max",
                                                      "min",
                                                      "mean",
                                                      "zeros",
                                                      "entropy",
                                                      "sr",
                                                      "kernel_norm",
                                                      "router_weight_similarity",
                                                      "per_token_expert_entropy"};

constexpr std::string_view kNans = "nans", kInfs = "infs";

const std::pair<std::string_view, int>* KindNamed(std::string_view kind) {
  const auto found = std::ranges::find(kTrendKinds, kind, &std::pair<std::string_view, int>::first);
  return found == kTrendKinds.end() ? nullptr : &*found;
}

std::string KeyOf(std::string_view kind, int64_t vpp_stage, std::string_view name,
                  int64_t micro_step) {
  return fmt::format("{}\n{}\n{}\n{}", kind, vpp_stage, name, micro_step);
}

// The tag of an alert -> the key of its curve. 1.2.2 gives activations and their gradients one tag.
std::string KeyOfTag(std::string_view tag) {
  const size_t end = tag.rfind('/');
  const std::string_view last = end == std::string_view::npos ? "param" : tag.substr(end + 1);
  const MonitorKindInfo* const known = MonitorKindOfTag(last);
  const std::string_view kind = known == nullptr ? last : known->file;
  std::string_view name = tag.substr(0, std::min(tag.find('/'), tag.size()));
  const size_t colon = name.find(':');
  const auto stage =
      colon == std::string_view::npos ? std::nullopt : ParseNatural(name.substr(0, colon));
  if (stage) name.remove_prefix(colon + 1);
  int64_t micro_step = 0;
  const size_t mark = name.rfind(':');
  if (mark != std::string_view::npos) {
    if (const auto number = ParseNatural(name.substr(mark + 1))) {
      micro_step = *number;
      name = name.substr(0, mark);
    }
  }
  return KeyOf(kind, stage.value_or(0), name, micro_step);
}

// Reads the files twice: what there is, then the values.
class TrendReader {
 public:
  TrendReader(const TrendOptions& options, Trend& trend) : options_(options), trend_(trend) {}

  Status Run(const std::string& data) {
    PL_TRY_ASSIGN(const auto directories, load::NeedMonitorDirectories(data));
    trend_.data = data;
    damage_.TakeBrokenLinks(data);
    List(directories);
    Scan();
    if (steps_.empty()) {
      if (damage_.first_error) return *damage_.first_error;
      return Error(ErrorCode::kNotFound, fmt::format("{}: no row in any csv file", data));
    }
    Prepare();
    ReadValues();
    ReadAlerts(data);
    trend_.damage = damage_.text();
    trend_.warnings = std::move(damage_.sentences);
    TellUncertain();
    Sort();
    return {};
  }

 private:
  struct InputFile {
    int64_t rank = 0;
    std::string kind, path;
    size_t directory = 0;
  };

  // The latest directory of a rank comes first.
  void List(const std::vector<MonitorDirectory>& directories) {
    std::set<int64_t> ranks;
    size_t place = 0;
    for (const MonitorDirectory& directory : directories) {
      ++place;
      ranks.insert(directory.rank);
      for (const MonitorFile& file : damage_.FilesOf(directory)) {
        if (KindNamed(file.kind) == nullptr) continue;
        files_.push_back({directory.rank, file.kind, file.path, place});
      }
    }
    trend_.ranks = ranks.size();
  }

  // Visits the rows that count: `visit(file, statistics, row)`.
  template <class Visit>
  void VisitRows(const Visit& visit, bool tells_damage) {
    load::ResumedRows resumed;
    for (const InputFile& file : files_) {
      if (options_.progress) options_.progress(done_++, 2 * files_.size());
      resumed.Begin(file.directory);
      const auto end = resumed.EndOf(file.rank, file.kind);
      const auto read = load::VisitMonitorFile(
          file.path, file.kind, [&](auto statistics, MonitorRow& row) -> Status {
            if (end && row.step >= *end) {
              trend_.left_out += tells_damage ? 1 : 0;
              return {};
            }
            resumed.Take(file.rank, file.kind, row.step);
            visit(file, statistics, row);
            return {};
          });
      if (tells_damage) damage_.Take(file.path, read);
    }
  }

  void Scan() {
    std::set<int64_t> steps;
    std::set<std::string, std::less<>> statistics;
    VisitRows(
        [&](const InputFile& file, std::span<const std::string> names, const MonitorRow& row) {
          steps.insert(row.step);
          statistics.insert(names.begin(), names.end());
          AddSeries(file, names, row);
        },
        /*tells_damage=*/true);
    steps_.assign(steps.begin(), steps.end());
    for (const std::string_view curve : kCurves) {
      if (statistics.contains(curve)) trend_.statistics.emplace_back(curve);
    }
  }

  void AddSeries(const InputFile& file, std::span<const std::string> names, const MonitorRow& row) {
    const auto [at, is_new] = places_.try_emplace(
        KeyOf(file.kind, row.vpp_stage, row.name, row.micro_step), trend_.series.size());
    if (is_new) {
      first_there_.push_back(std::numeric_limits<int64_t>::max());
      TrendSeries series;
      series.kind = file.kind;
      series.name = row.name;
      series.vpp_stage = row.vpp_stage;
      series.micro_step = row.micro_step;
      trend_.series.push_back(std::move(series));
    }
    int64_t& first = first_there_[at->second];
    const bool is_there = watch::TensorOf(names, row.values) == watch::RowTensor::kThere;
    if (is_there) first = std::min(first, row.step);
  }

  void Prepare() {
    const size_t curves = std::max<size_t>(1, trend_.series.size() * trend_.statistics.size());
    const size_t points = std::min(
        steps_.size(), std::clamp(kTrendPoints / curves, kFewestCurvePoints, kMostCurvePoints));
    for (size_t i = 0; i < steps_.size(); ++i) {
      const size_t point = i * points / steps_.size();
      if (trend_.point_steps.size() == point) trend_.point_steps.push_back(steps_[i]);
      point_of_.emplace(steps_[i], point);
    }
    trend_.last_step = steps_.back();
    trend_.steps = steps_.size();
    running_.resize(trend_.series.size());
    for (TrendSeries& series : trend_.series) {
      series.curves.resize(trend_.statistics.size());
      series.has_nonfinite.resize(trend_.point_steps.size());
    }
  }

  void ReadValues() {
    VisitRows([&](const InputFile& file, std::span<const std::string> names,
                         const MonitorRow& row) { Take(file, names, row); },
                     /*tells_damage=*/false);
  }

  void Take(const InputFile& file, std::span<const std::string> names, const MonitorRow& row) {
    const size_t place = places_.at(KeyOf(file.kind, row.vpp_stage, row.name, row.micro_step));
    TrendSeries& series = trend_.series[place];
    Running& running = running_[place];
    const size_t point = point_of_.at(row.step);
    const Finding finding = FindingIn(names, row);
    const bool was_there = first_there_[place] < row.step;
    if (finding.is_certain || (!finding.what.empty() && was_there)) {
      series.has_nonfinite[point] = true;
      TakeFirst(file, row, finding.what);
    } else if (!finding.what.empty()) {
      running.is_uncertain = true;
    }
    bool is_first = true;
    for (size_t i = 0; i < trend_.statistics.size(); ++i) {
      const auto found = std::ranges::find(names, trend_.statistics[i]);
      if (found == names.end()) continue;
      const auto value = row.values[static_cast<size_t>(found - names.begin())];
      if (value && std::isfinite(*value)) {
        Widen(series.curves[i], point, *value);
        if (is_first) FollowJump(file, row.step, *value, running, series);
      }
      is_first = false;
    }
  }

  void Widen(TrendCurve& curve, size_t point, double value) const {
    if (curve.low.empty()) {
      const float nothing = std::numeric_limits<float>::quiet_NaN();
      curve.low.assign(trend_.point_steps.size(), nothing);
      curve.high = curve.low;
    }
    constexpr double kMost = std::numeric_limits<float>::max();
    const auto number = static_cast<float>(std::clamp(value, -kMost, kMost));
    float &low = curve.low[point], &high = curve.high[point];
    if (std::isnan(low) || number < low) low = number;
    if (std::isnan(high) || number > high) high = number;
  }

  // What a row says of values that are no numbers; nothing: there are none, or there was no tensor.
  struct Finding {
    std::string what;
    bool is_certain = false;
  };
  static Finding FindingIn(std::span<const std::string> names, const MonitorRow& row) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (!row.values[i]) continue;
      const double value = *row.values[i];
      if (names[i] == kNans && value > 0) return {fmt::format("{} NaN", value), true};
      if (names[i] == kInfs && value > 0) return {fmt::format("{} Inf", value), true};
      if (std::isinf(value) && watch::TellsOfNaN(names[i])) {
        return {fmt::format("{} {}", names[i], value), true};
      }
    }
    const watch::RowTensor tensor = watch::TensorOf(names, row.values);
    const auto nan = watch::TellingNaN(names, row.values);
    if (!nan || tensor == watch::RowTensor::kNone) return {};
    return {names[*nan] + " NaN", tensor == watch::RowTensor::kThere};
  }

  // Of one tensor, while its rows go by.
  struct Running {
    std::vector<double> history;  // on one rank
    int64_t rank = -1;
    size_t directory = 0;
    bool is_uncertain = false;
  };

  static void FollowJump(const InputFile& file, int64_t step, double value, Running& running,
                         TrendSeries& series) {
    constexpr size_t kHistory = 16, kLeast = 3;
    std::vector<double>& history = running.history;
    if (running.rank != file.rank || running.directory != file.directory) history.clear();
    running.rank = file.rank;
    running.directory = file.directory;
    if (history.size() >= kLeast) {
      std::vector<double> sorted = history;
      const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
      std::ranges::nth_element(sorted, middle);
      const double factor = *middle > 0 ? value / *middle : 0;
      if (factor > series.jump) {
        series.jump = factor;
        series.jump_step = step;
        series.jump_rank = file.rank;
        series.jump_from = *middle;
        series.jump_to = value;
      }
    }
    history.push_back(value);
    if (history.size() > kHistory) history.erase(history.begin());
  }

  void TellUncertain() {
    for (size_t i = 0; i < running_.size(); ++i) {
      if (!running_[i].is_uncertain) continue;
      const TrendSeries& series = trend_.series[i];
      if (trend_.uncertain++ == 0) trend_.uncertain_example = series.kind + " " + series.name;
    }
  }

  void TakeFirst(const InputFile& file, const MonitorRow& row, const std::string& what) {
    const int stage = KindNamed(file.kind)->second;
    const std::tuple order(row.step, stage, file.rank);
    if (trend_.first_nonfinite && order >= first_order_) return;
    first_order_ = order;
    trend_.first_nonfinite = FirstNonfinite{row.step, file.rank, file.kind, row.name, what};
  }

  void ReadAlerts(const std::string& data) {
    const std::string directory = JoinPath(data, "anomaly_detected");
    if (KindOf(directory) != PathKind::kDirectory) return;
    const auto found = ReadAnomalies(directory);
    if (!found) return damage_.Take(found.error());
    damage_.sentences.insert(damage_.sentences.end(), found->warnings.begin(),
                             found->warnings.end());
    damage_.places += found->damaged;
    trend_.alerts = found->anomalies.size();
    if (!found->anomalies.empty()) trend_.first_alert = found->anomalies.front().message;
    for (const Anomaly& anomaly : found->anomalies) {
      const auto place = places_.find(KeyOfTag(anomaly.tag));
      if (place == places_.end()) continue;
      std::vector<int64_t>& steps = trend_.series[place->second].alert_steps;
      if (steps.empty() || steps.back() != anomaly.step) steps.push_back(anomaly.step);
    }
  }

  void Sort() {
    const auto order = [](const TrendSeries& series) {
      const auto& marks = series.has_nonfinite;
      const auto first = std::ranges::find(marks, true);
      const bool is_finite = first == marks.end();
      const int stage = is_finite ? 0 : KindNamed(series.kind)->second;
      return std::tuple(is_finite, first - marks.begin(), stage, series.alert_steps.empty(),
                        -series.jump);
    };
    std::ranges::stable_sort(trend_.series, {}, order);
  }

  const TrendOptions& options_;
  Trend& trend_;
  load::MonitorDamage damage_;
  std::vector<InputFile> files_;
  std::unordered_map<std::string, size_t> places_;  // of series, by key
  std::vector<int64_t> first_there_;  // of each series the first step with a tensor, on any rank
  std::vector<Running> running_;      // of each series
  std::vector<int64_t> steps_;
  std::unordered_map<int64_t, size_t> point_of_;
  std::tuple<int64_t, int, int64_t> first_order_;
  uint64_t done_ = 0;
};

}  // namespace

Result<Trend> ReadTrend(const std::string& data, const TrendOptions& options) {
  Trend trend;
  PL_TRY(TrendReader(options, trend).Run(data));
  return trend;
}

namespace {

std::string AnswerOf(const Trend& trend) {
  const std::string_view unsure = trend.damage.empty() ? "" : "not certain: ";
  if (trend.first_nonfinite) {
    const FirstNonfinite& first = *trend.first_nonfinite;
    return fmt::format("first NaN or infinity{}: step {}, rank {}, {} {}: {}", trend.damage,
                       first.step, first.rank, first.kind, first.name, first.what);
  }
  if (!trend.first_alert.empty()) {
    return fmt::format("{}no NaN or infinity{}; first of {}: {}", unsure, trend.damage,
                       CountText(trend.alerts, "alert"), trend.first_alert);
  }
  if (trend.uncertain > 0) {
    return fmt::format(
        "not certain: no NaN or infinity{}, but for tensors that are NaN from their first row on",
        trend.damage);
  }
  return fmt::format("{}no NaN or infinity, no alert{}", unsure, trend.damage);
}

}  // namespace

std::string TrendText(const Trend& trend) {
  std::string text;
  const auto add = [&](std::string_view line) { text += OneLine(line) + "\n"; };
  const TrendSeries* largest = nullptr;
  for (const TrendSeries& series : trend.series) {
    if (series.jump > (largest == nullptr ? 0 : largest->jump)) largest = &series;
  }
  add(AnswerOf(trend));
  add(fmt::format("  {}, {} ({} to {}), {}", CountText(trend.series.size(), "tensor"),
                  CountText(trend.steps, "step"), trend.point_steps.front(), trend.last_step,
                  CountText(trend.ranks, "rank")));
  if (trend.uncertain > 0) {
    add(fmt::format(
        "  NaN from the first row on: {} ({}{}): no tensor was there, or it was NaN; the "
        "op nans tells",
        CountText(trend.uncertain, "tensor"), trend.uncertain_example,
        trend.uncertain > 1 ? ", ..." : ""));
  }
  if (largest != nullptr && largest->jump > 1) {
    add(fmt::format("  largest jump: {} {} at step {}, rank {}: {:.4g} after {:.4g} ({:.3g} times)",
                    largest->kind, largest->name, largest->jump_step, largest->jump_rank,
                    largest->jump_to, largest->jump_from, largest->jump));
  }
  if (trend.left_out > 0) {
    add(fmt::format("  {} left out: a later directory of their rank begins at or before their step",
                    CountText(trend.left_out, "row")));
  }
  return text;
}

}  // namespace plumbline

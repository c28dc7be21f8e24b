#include "watch/live/rule_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "watch/live/step_files.h"
#include "watch/rules/monitor_tensor.h"

namespace plumbline::watch {
namespace {

constexpr size_t kShownOfStep = 8;     // hits of a step in the log
constexpr uint64_t kShownOfAll = 200;  // of a training

class LivePart : public StepPart {
 public:
  Result<std::vector<WatchedTensor>> Read() override { return std::vector<WatchedTensor>(); }
  Result<std::unique_ptr<HeldTensor>> Open(const WatchedTensor& tensor) override {
    return Error(ErrorCode::kUnsupported, tensor.name + ": a monitor keeps no elements");
  }
};

// The statistics without which a quantity is never known; empty: it is not known with all of them.
std::vector<Op> OpsFor(Quantity quantity) {
  switch (quantity) {
    case Quantity::kAbsMean:
      return {Op::kMin, Op::kMax, Op::kMean};
    case Quantity::kMean:
      return {Op::kMean};
    case Quantity::kMax:
      return {Op::kMax};
    case Quantity::kMin:
      return {Op::kMin};
    case Quantity::kMaxMin:
    case Quantity::kInfCount:
    case Quantity::kZeroPercentage:
      return {Op::kMin, Op::kMax};
    case Quantity::kL2Norm:
      return {Op::kNorm};
    case Quantity::kNanCount:
      return {Op::kNans};
    case Quantity::kOverflow:
      return {Op::kMin, Op::kMax, Op::kNans};
    default:
      return {};
  }
}

// What of a quantity statistics tell, where they do not tell it; empty: nothing at all.
std::string_view PartOf(Quantity quantity) {
  switch (quantity) {
    case Quantity::kUpdateRatio:
    case Quantity::kUnchanged:
      return "that a tensor changed much";
    case Quantity::kRangePercentage:
      return "that all elements are in a range, or none";
    case Quantity::kSd:
      return "that it is below half of max - min";
    default:
      return "";
  }
}

void TakeChecks(const Expression& expression, std::vector<const Check*>& checks) {
  for (const Expression& part : expression.parts) TakeChecks(part, checks);
  for (const Check& check : expression.checks) checks.push_back(&check);
}

}  // namespace

RuleWatch::RuleWatch(const MonitorConfig& config, RuleWatchPlace place)
    : config_(config), place_(std::move(place)), watch_(config_.watch, {}) {
  for (const Rule& rule : config_.watch.list()) kinds_ |= rule.kinds;
  counts_.resize(config_.watch.list().size());
}

std::string RuleWatch::LimitOf(const Rule& rule) const {
  const bool has_weights = config_.parameters;
  const bool has_gradients =
      config_.gradients || (config_.activations && !config_.forward_only);
  const TensorKinds known = static_cast<TensorKinds>(
      kAnyTensor | (has_weights ? kWeight : 0) | (has_gradients ? kGradient : 0));
  if ((rule.kinds & known) == 0) {
    if ((rule.kinds & kWeight) != 0) return "looks at weights: set param_distribution";
    if ((rule.kinds & kGradient) != 0) return "looks at gradients: set wg_distribution";
    return "looks at operators, which a monitor does not know: name modules in a rule for all "
           "tensors (\"on\": {\"nodes\": ...}), or record the tensors (PrecisionDebugger)";
  }
  if (!rule.on.ops.empty() || !rule.on.code.empty()) {
    return "a monitor knows no operators and no call stacks: name modules and parameters "
           "(\"on\": {\"nodes\": ...})";
  }
  std::vector<const Check*> checks;
  TakeChecks(rule.when, checks);
  const auto has = [&](Op op) { return std::ranges::find(config_.ops, op) != config_.ops.end(); };
  const bool shows_finite = has(Op::kMean) || has(Op::kNorm) || (has(Op::kMin) && has(Op::kMax));
  for (const Check* check : checks) {
    const std::vector<Op> needed = OpsFor(check->quantity);
    std::vector<std::string_view> missing;
    for (const Op op : needed) {
      if (!has(op)) missing.push_back(NameOf(op));
    }
    if (missing.empty() && !shows_finite && check->quantity != Quantity::kNanCount) {
      missing.push_back("norm (which tells that elements are finite)");
    }
    const std::string_view name = QuantityName(check->quantity);
    if (!missing.empty()) {
      return fmt::format("{} is not known without {} in \"ops\"", name,
                         fmt::join(missing, ", "));
    }
    if (!needed.empty()) continue;
    const std::string_view part = PartOf(check->quantity);
    return fmt::format("{} is not known from statistics{}{}: record the tensors "
                       "(PrecisionDebugger) and use plumb watch",
                       name, part.empty() ? "" : ", which tell only ", part);
  }
  return "";
}

std::vector<std::string> RuleWatch::Limits() const {
  std::vector<std::string> lines;
  for (const Rule& rule : config_.watch.list()) {
    const std::string limit = LimitOf(rule);
    if (!limit.empty()) lines.push_back(fmt::format("watch: {}: {}", rule.name, limit));
  }
  return lines;
}

std::vector<WatchedTensor> RuleWatch::TensorsOf(const StepRows& rows) {
  std::map<std::string_view, std::vector<MonitorKind>> files;  // in the order of their names
  for (const MonitorKindInfo& info : kMonitorKinds) {
    if (rows.of(info.kind).empty()) continue;
    if ((KindsOfMonitorFile(info.file) & kinds_) != 0) files[info.file].push_back(info.kind);
    if (!TellsOfTraining(info.file)) continue;
    for (const Row& row : rows.of(info.kind)) trained_.insert(row.name->text);
  }
  std::vector<WatchedTensor> tensors;
  for (const auto& [file, kinds] : files) {
    for (const MonitorKind kind : kinds) AddTensors(kind, rows.of(kind), tensors);
  }
  return tensors;
}

void RuleWatch::AddTensors(MonitorKind kind, const std::vector<Row>& rows,
                           std::vector<WatchedTensor>& tensors) const {
  const std::span<const Op> own = FeatureOps(kind);
  const std::span<const Op> ops = own.empty() ? std::span(config_.ops) : own;
  std::vector<std::string> statistics;
  for (const Op op : ops) statistics.emplace_back(NameOf(op));
  std::vector<std::optional<double>> values(ops.size());
  for (const Row* row : InFileOrder(rows)) {
    const bool is_there = row->values.dtype.has_value();
    for (size_t i = 0; i < values.size(); ++i) {
      const bool is_number = static_cast<size_t>(ops[i]) < kNumberOps;
      values[i] = is_number ? std::optional(row->values.of(ops[i])) : std::nullopt;
      if (!is_there) values[i] = std::numeric_limits<double>::quiet_NaN();
    }
    WatchedTensor& tensor = tensors.emplace_back(
        MonitorTensor({InfoOf(kind).file, row->name->text, row->name->vpp_stage, row->micro_step},
                      statistics, values));
    tensor.place = static_cast<int64_t>(tensors.size()) - 1;
    tensor.is_trained = (tensor.kinds & kWeight) != 0 && trained_.contains(tensor.name);
    if (!std::exchange(tensor.is_unclear, false)) continue;
    tensor.has_statistics = is_there;
    tensor.statistics.shows_nan = row->values.of(Op::kNans) > 0;
    tensor.statistics.shows_inf = row->values.of(Op::kInfs) > 0;
  }
}

Status RuleWatch::Look(const StepRows& rows, std::vector<std::string>* lines) {
  const auto part = std::make_shared<LivePart>();
  part->step = rows.step;
  part->rank = place_.rank;
  part->path = place_.directory;
  if (steps_++ == 0 && !place_.goes_on) watch_.set_first_step(rows.step);
  StepAnswer answer = watch_.Judge(part, TensorsOf(rows), nullptr);
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += answer.counts[i];
  std::erase_if(answer.rows, [](const WatchRow& row) { return row.verdict != Truth::kTrue; });
  Tell(answer.rows, lines);
  return Write(answer.rows);
}

void RuleWatch::Tell(const std::vector<WatchRow>& hits, std::vector<std::string>* lines) {
  if (told_ >= kShownOfAll) return;
  const size_t shown = std::min(hits.size(), kShownOfStep);
  for (const WatchRow& row : std::span(hits).first(shown)) {
    const Rule& rule = config_.watch.list()[row.rule];
    const std::string severity =
        rule.severity == Severity::kError ? "" : fmt::format("{}: ", SeverityName(rule.severity));
    lines->push_back(fmt::format("watch: {}{}", severity, HitText(rule, row)));
  }
  const std::string where =
      place_.directory.empty() ? "" : fmt::format(", all of them in {}", kHitsFile);
  if (hits.size() > shown) {
    lines->push_back(fmt::format("watch: step {}: and {}{}", hits[0].step,
                                 CountText(hits.size() - shown, "more hit"), where));
  }
  told_ += shown;
  if (told_ < kShownOfAll) return;
  lines->push_back(
      fmt::format("watch: {} hits are told; further ones are counted{}", told_, where));
}

Status RuleWatch::Write(const std::vector<WatchRow>& hits) {
  if (place_.directory.empty() || (hits.empty() && steps_ > 1)) return {};
  std::string text;
  for (const WatchRow& row : hits) {
    const auto cells = WatchCells(config_.watch.list()[row.rule], row);
    csv::AppendRow(std::span<const std::string>(cells), text);
  }
  std::string header;
  csv::AppendRow(std::span<const std::string_view>(kWatchColumns), header);
  return AppendToTable(JoinPath(place_.directory, kHitsFile), header, text);
}

uint64_t RuleWatch::hits() const {
  uint64_t hits = 0;
  for (const RuleCounts& counts : counts_) hits += counts.hits;
  return hits;
}

std::vector<std::string> RuleWatch::Summary() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < counts_.size() && steps_ > 0; ++i) {
    const RuleCounts& counts = counts_[i];
    lines.push_back(fmt::format(
        "watch: {}: {}, {}", config_.watch.list()[i].name, CountText(steps_, "step"),
        counts.selected == 0 ? "selected nothing" : CountsText(counts)));
  }
  return lines;
}

}  // namespace plumbline::watch

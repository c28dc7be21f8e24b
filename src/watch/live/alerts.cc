#include "watch/live/alerts.h"

#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <utility>

#include "base/file/file.h"
#include "base/text/number_text.h"

namespace plumbline::watch {
namespace {

json::Value Numbers(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(PythonFloat(number));
  return json::Value(texts);  // as text: JSON has no NaN
}

}  // namespace

Alerts::Alerts(const MonitorConfig& config, AlertPlace place)
    : rules_(config.alerts),
      is_latest_(config.is_latest),
      ops_(config.ops),
      place_(std::move(place)) {}

std::vector<std::string> Alerts::Check(const StepRows& rows) {
  std::vector<std::string> lines;
  if (rules_.empty()) return lines;
  for (const MonitorKindInfo& info : kMonitorKinds) {
    for (const Row& row : rows.of(info.kind)) CheckRow(info.kind, row, rows.step, &lines);
  }
  return lines;
}

bool Alerts::IsTurbulent(Op op, double value, double limit) const {
  if (!is_latest_) return limit > 0 ? value > limit : value < limit;
  return (op == Op::kNorm || op == Op::kMean) && std::abs(value) > limit;
}

void Alerts::Remember(double value, History& history) const {
  constexpr double kDecay = 0.99;  // of later releases
  const bool is_first = history.values++ == 0;
  if (!is_latest_) {
    history.mean += (value - history.mean) / static_cast<double>(history.values);
  } else {
    const double size = std::abs(value);
    history.mean = is_first ? size : kDecay * history.mean + (1 - kDecay) * size;
  }
}

std::string_view Alerts::Broken(Op op, const TensorValues& values, const History& history) const {
  const double value = values.of(op);
  const bool has_bad = values.of(Op::kNans) > 0 || values.of(Op::kInfs) > 0;
  if (!std::isfinite(value)) return has_bad && !history.was_bad ? "AnomalyNan" : "";
  for (const AlertRule& rule : rules_) {
    if (rule.kind == AlertRule::Kind::kNan) {
      if (rule.threshold && std::abs(value) > *rule.threshold) return "AnomalyNan";
      continue;
    }
    if (history.values == 0) continue;
    if (IsTurbulent(op, value, history.mean * (1 + *rule.threshold))) return "AnomalyTurbulence";
  }
  return "";
}

void Alerts::CheckRow(MonitorKind kind, const Row& row, int64_t step,
                      std::vector<std::string>* lines) {
  if (!row.values.dtype) return;
  const std::string tag = TagOf(kind, row, place_.rank);
  Finding finding{tag, {}, step, row.micro_step, row.name->vpp_stage, row.call, {}, {}, {}};
  const std::span<const Op> own = FeatureOps(kind);
  for (const Op op : own.empty() ? std::span<const Op>(ops_) : own) {
    if (static_cast<size_t>(op) >= kNumberOps) continue;
    const double value = row.values.of(op);
    History& history =
        histories_[{row.name, row.micro_step, static_cast<size_t>(kind), static_cast<size_t>(op)}];
    const std::string_view rule = Broken(op, row.values, history);
    if (!rule.empty()) {
      std::string line = fmt::format(
          "Rule {} reports anomaly signal in ('{}', '{}') at step {}, current value {}, history "
          "mean {}.",
          rule, tag, NameOf(op), step, PythonFloat(value), PythonFloat(history.mean));
      if (finding.message.empty()) finding.message = line;
      finding.ops.emplace_back(NameOf(op));
      finding.values.push_back(value);
      finding.histories.push_back(history.mean);
      lines->push_back(std::move(line));
    }
    history.was_bad = !std::isfinite(value);
    if (history.was_bad) continue;
    Remember(value, history);
  }
  if (!finding.ops.empty()) found_.push_back(std::move(finding));
}

json::Value Alerts::Document() const {
  json::Value document = json::Value::Object();
  for (const Finding& finding : found_) {
    json::Value record = json::Value::Object();
    record.Put("rank", json::Value(place_.rank));
    record.Put("step", json::Value(finding.step));
    record.Put("micro_step", json::Value(finding.micro_step));
    record.Put("pp_stage", json::Value(place_.pp_stage));
    record.Put("vpp_stage", json::Value(finding.vpp_stage));
    record.Put("call_id", json::Value(int64_t{finding.call}));
    record.Put("tag_name", json::Value(finding.tag));
    record.Put("message", json::Value(finding.message));
    record.Put("group_mates", json::Value(place_.group_mates));
    record.Put("ops", json::Value(finding.ops));
    record.Put("values", Numbers(finding.values));
    record.Put("histories", Numbers(finding.histories));
    document.Put(fmt::format("{}_step_{}_call_{}", finding.tag, finding.step, finding.call),
                 std::move(record));
  }
  return document;
}

namespace {

// What was found for one anomaly.json.
struct AlertFile {
  json::Value ended = json::Value::Object();  // by monitors that are closed
  std::map<const void*, json::Value> found;
};

struct AlertFiles {
  std::mutex mutex;
  std::map<std::string, AlertFile> files;
};
AlertFiles& TheAlertFiles() {
  static AlertFiles files;
  return files;
}

void PutAll(const json::Value& from, json::Value* to) {
  for (const std::string_view key : from.Keys()) to->Put(key, *from.Find(key));
}

}  // namespace

Status BeginAlertFile(const std::string& path) {
  AlertFiles& all = TheAlertFiles();
  const std::scoped_lock lock(all.mutex);
  if (!all.files.try_emplace(path).second) return {};
  return WriteFileAtomically(path, "{}", /*durable=*/false);
}

Status WriteAlertFile(const std::string& path, const void* owner, json::Value alerts) {
  AlertFiles& all = TheAlertFiles();
  const std::scoped_lock lock(all.mutex);
  AlertFile& file = all.files[path];
  file.found[owner] = std::move(alerts);
  if (file.found.size() == 1 && file.ended.Keys().empty()) {
    return WriteFileAtomically(path, file.found[owner].Text(1), /*durable=*/false);
  }
  json::Value document = file.ended;
  for (const auto& [_, found] : file.found) PutAll(found, &document);
  return WriteFileAtomically(path, document.Text(1), /*durable=*/false);
}

void EndAlertFile(const std::string& path, const void* owner) {
  AlertFiles& all = TheAlertFiles();
  const std::scoped_lock lock(all.mutex);
  AlertFile& file = all.files[path];
  const auto found = file.found.find(owner);
  if (found == file.found.end()) return;
  PutAll(found->second, &file.ended);
  file.found.erase(found);
}

}  // namespace plumbline::watch

#include "watch/anomalies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/table/monitor_kinds.h"

namespace plumbline {
namespace {

constexpr std::string_view kInputName = "anomaly.json";
constexpr std::string_view kOutputName = "anomaly_analyse.json";

// By what the tag ends with: "0:fc1.weight/rank0/post_grad".
TrainStage StageOf(std::string_view tag) {
  const size_t slash = tag.rfind('/');
  const MonitorKindInfo* kind =
      MonitorKindOfTag(slash == std::string_view::npos ? tag : tag.substr(slash + 1));
  return kind == nullptr ? TrainStage::kOptimizer : kind->stage;
}

auto OrderOf(const Anomaly& anomaly) {
  const TrainStage stage = StageOf(anomaly.tag);
  const int64_t sign = stage == TrainStage::kForward ? 1 : -1;
  return std::tuple(anomaly.step, anomaly.micro_step, stage, sign * anomaly.vpp_stage,
                    sign * anomaly.pp_stage, anomaly.call_id, anomaly.rank,
                    std::string_view(anomaly.tag));
}

// Nothing where a member is of another type; a number that is absent is 0.
std::optional<Anomaly> AnomalyOf(const json::Value& record) {
  Anomaly anomaly;
  if (!record.is_object()) return std::nullopt;
  const std::pair<const char*, int64_t*> numbers[] = {{"rank", &anomaly.rank},
                                                      {"step", &anomaly.step},
                                                      {"micro_step", &anomaly.micro_step},
                                                      {"pp_stage", &anomaly.pp_stage},
                                                      {"vpp_stage", &anomaly.vpp_stage},
                                                      {"call_id", &anomaly.call_id}};
  for (const auto& [key, to] : numbers) {
    const json::Value* const value = record.Find(key);
    if (value == nullptr) continue;
    const auto number = value->AsInteger();
    if (!number) return std::nullopt;
    *to = *number;
  }
  const json::Value* const tag = record.Find("tag_name");
  const json::Value* const message = record.Find("message");
  if (tag == nullptr || tag->AsText() == nullptr) return std::nullopt;
  anomaly.tag = *tag->AsText();
  if (message != nullptr && message->AsText() != nullptr) anomaly.message = *message->AsText();
  anomaly.record = record;
  return anomaly;
}

void ReadAnomalyFile(const std::string& path, AnomalyFiles& found) {
  ++found.files;
  const size_t told = found.warnings.size();
  const auto text = ReadFile(path);
  const auto document = text ? json::Value::Parse(*text) : text.error();
  if (!text) {
    found.warnings.push_back("left out: " + text.error().message());
  } else if (!document || !document->is_object()) {
    found.warnings.push_back(
        fmt::format("{}: left out: {}", path,
                    document ? std::string("no JSON object") : document.error().message()));
  }
  const bool is_object = document && document->is_object();
  for (const std::string_view key : is_object ? document->Keys() : decltype(document->Keys())()) {
    auto anomaly = AnomalyOf(*document->Find(key));
    if (anomaly) {
      found.anomalies.push_back(*std::move(anomaly));
    } else {
      found.warnings.push_back(fmt::format(
          "{}: \"{}\" is left out: no record of an anomaly (expected a tag_name and whole numbers)",
          path, key));
    }
  }
  if (found.warnings.size() > told) ++found.damaged;
}

// Records by upstream's key; of two ranks with one key (tags of 1.2.2's parameters name no rank)
// the later one gets its rank.
json::Value Document(const std::vector<Anomaly>& anomalies) {
  json::Value document = json::Value::Object();
  for (const Anomaly& anomaly : anomalies) {
    std::string key = fmt::format("{}_step_{}_call_{}", anomaly.tag, anomaly.step, anomaly.call_id);
    if (document.Find(key) != nullptr) key += fmt::format("_rank_{}", anomaly.rank);
    document.Put(key, anomaly.record);
  }
  return document;
}

}  // namespace

Result<AnomalyFiles> ReadAnomalies(const std::string& data) {
  if (KindOf(data) != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", data));
  }
  AnomalyFiles found;
  PL_TRY_ASSIGN(const auto names, ListDirectory(data));
  for (const std::string& name : names) {
    const std::string rank = JoinPath(data, name), path = JoinPath(rank, kInputName);
    // A link to nothing is one that should be there.
    if (Inspect(path) || KindOf(rank) == PathKind::kMissing) ReadAnomalyFile(path, found);
  }
  std::ranges::sort(found.anomalies, {}, OrderOf);
  return found;
}

Result<AnomalyReport> AnalyseAnomalies(const std::string& data, const std::string& output,
                                       const AnomalyOptions& options) {
  if (options.top < 1) {
    return Error(ErrorCode::kInvalidArgument, "The top k number must be greater than 0.");
  }
  PL_TRY_ASSIGN(AnomalyFiles found, ReadAnomalies(data));
  if (found.files == 0) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: no directory in it has an {} (expected rank0/{}, ...; the monitor "
                    "writes them where its alert has \"dump\": true)",
                    data, kInputName, kInputName));
  }
  AnomalyReport report;
  report.files = found.files;
  report.damaged = found.damaged;
  report.warnings = std::move(found.warnings);
  std::vector<Anomaly>& anomalies = found.anomalies;
  if (!options.steps.empty()) {
    std::erase_if(anomalies, [&](const Anomaly& anomaly) {
      return std::ranges::find(options.steps, anomaly.step) == options.steps.end();
    });
  }
  report.anomalies = anomalies.size();
  if (anomalies.size() > static_cast<uint64_t>(options.top)) {
    anomalies.resize(static_cast<size_t>(options.top));
  }
  const std::string& directory = output.empty() ? data : output;
  PL_TRY(MakeDirectories(directory));
  report.path = JoinPath(directory, kOutputName);
  if (KindOf(report.path) != PathKind::kMissing) {
    report.warnings.push_back(fmt::format("{}: the existing file was replaced", report.path));
  }
  PL_TRY(WriteFileAtomically(report.path, Document(anomalies).Text(1), false));
  for (Anomaly& anomaly : anomalies) report.messages.push_back(std::move(anomaly.message));
  return report;
}

std::string AnomalyAnswer(const AnomalyReport& report) {
  const std::string damage =
      report.damaged == 0
          ? ""
          : fmt::format(" in what could be read ({} of {} damaged)", report.damaged,
                        CountText(report.files, "file"));
  if (!report.messages.empty()) {
    return fmt::format("first of {}{}: {}", CountText(report.anomalies, "anomaly", "anomalies"),
                       damage, OneLine(report.messages.front()));
  }
  if (report.damaged > 0) return "not certain: no anomaly" + damage;
  return fmt::format("no anomaly in {}", CountText(report.files, "file"));
}

}  // namespace plumbline

#include "watch/black_box_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/table/monitor_kinds.h"
#include "load/monitor_files.h"
#include "watch/live/black_box.h"

namespace plumbline {
namespace {

using watch::Fault;
using watch::Finding;
using watch::Op;
using watch::StepRows;

// Steps that ranks must have been alike (or different) in before another relation says something.
constexpr uint64_t kAlikeBefore = 5, kDifferentBefore = 10, kSameInputs = 3;

// The steps of one rank, and what their rows are called.
struct RankSteps {
  std::deque<watch::WatchedName> names;
  std::map<std::pair<std::string, int64_t>, const watch::WatchedName*> known;
  std::map<int64_t, StepRows> steps;

  const watch::WatchedName* Name(const std::string& text, int64_t stage) {
    const watch::WatchedName*& name = known[{text, stage}];
    if (name == nullptr) {
      name = &names.emplace_back(watch::WatchedName{text, static_cast<int32_t>(stage), 0});
    }
    return name;
  }
};

// The value of each statistic of a row; those that are no op of a black box are left out.
watch::TensorValues ValuesOfRow(std::span<const std::string> statistics,
                                const load::MonitorRow& row) {
  watch::TensorValues values = watch::NoValues();
  values.dtype = DType::kFloat64;
  const std::vector<Op> ops = watch::BlackBoxOps();
  for (size_t i = 0; i < statistics.size() && i < row.values.size(); ++i) {
    const auto op =
        std::ranges::find_if(ops, [&](Op one) { return watch::NameOf(one) == statistics[i]; });
    if (op != ops.end() && row.values[i]) values.of(*op) = *row.values[i];
  }
  return values;
}

Status ReadSteps(const std::string& directory, RankSteps* out, std::vector<std::string>* warnings) {
  PL_TRY_ASSIGN(const auto files, load::ListMonitorFiles(directory));
  for (const load::MonitorFile& file : files) {
    const MonitorKindInfo* info = MonitorKindOfFile(file.kind);
    if (info == nullptr) continue;
    uint32_t call = 0;
    const auto visit = [&](std::span<const std::string> statistics,
                           load::MonitorRow& row) -> Status {
      StepRows& rows = out->steps[row.step];
      rows.step = row.step;
      rows.of(info->kind)
          .push_back({out->Name(row.name, row.vpp_stage), static_cast<int32_t>(row.micro_step),
                      call++, ValuesOfRow(statistics, row)});
      return {};
    };
    PL_TRY_ASSIGN(const load::MonitorFileFacts facts, load::VisitMonitorFile(file.path, file.kind, visit));
    for (std::string& damage : load::DamageOf(file.path, facts)) {
      warnings->push_back(std::move(damage));
    }
  }
  return {};
}

std::string EndOf(const std::string& directory) {
  const auto text = ReadFile(JoinPath(directory, watch::kBlackBoxFile));
  if (!text) return "";
  const auto state = json::Value::Parse(*text);
  const json::Value* ended = state ? state->Find("ended") : nullptr;
  return ended != nullptr && ended->AsText() != nullptr ? *ended->AsText() : "";
}

// The digests of the rows of a kind in one step, by name.
using Digests = std::map<std::string, double>;
Digests DigestsOf(const StepRows& rows, MonitorKind kind, std::string_view only = {}) {
  Digests digests;
  for (const watch::Row& row : rows.of(kind)) {
    if (only.empty() || row.name->text == only) {
      digests[row.name->text] = row.values.of(Op::kDigest);
    }
  }
  return digests;
}

// What one rank has otherwise than rank 0 of the same step.
class RankComparison {
 public:
  RankComparison(int64_t first, int64_t other) : first_(first), other_(other) {}

  void Look(const StepRows& one, const StepRows& other, std::vector<RankFinding>* found) {
    LookAtParameters(one, other, found);
    LookAtInputs(one, other, found);
    previous_ = one.step;
  }

 private:
  void LookAtParameters(const StepRows& one, const StepRows& other,
                        std::vector<RankFinding>* found) {
    const Digests mine = DigestsOf(one, MonitorKind::kParameter);
    const Digests theirs = DigestsOf(other, MonitorKind::kParameter);
    if (mine.empty() || mine.size() != theirs.size() || has_diverged_) return;
    const auto differing = std::ranges::mismatch(mine, theirs);
    if (differing.in1 == mine.end()) {
      ++alike_;
      return;
    }
    has_diverged_ = true;
    if (alike_ < kAlikeBefore) return;  // shards of one model, say
    const std::string& name = differing.in1->first;
    const size_t point = name.rfind('.');
    found->push_back(
        {other_,
         {Fault::kDiverged, previous_, name, name.substr(0, std::min(point, name.size())),
          fmt::format("ranks {} and {} had the same parameters in {} and have others "
                      "after step {} ({} and maybe more)",
                      first_, other_, CountText(alike_, "step"), previous_, name),
          0}});
  }

  void LookAtInputs(const StepRows& one, const StepRows& other, std::vector<RankFinding>* found) {
    const Digests mine = DigestsOf(one, MonitorKind::kOther, watch::kInputRow);
    const Digests theirs = DigestsOf(other, MonitorKind::kOther, watch::kInputRow);
    if (mine.empty() || theirs.empty()) return;
    if (mine != theirs) {
      same_inputs_ = 0;
      ++different_inputs_;
      return;
    }
    if (same_inputs_++ == 0) since_ = one.step;
    if (same_inputs_ != kSameInputs || different_inputs_ < kDifferentBefore) return;
    found->push_back({other_,
                      {Fault::kSameBatch, since_, std::string(watch::kInputRow), "",
                       fmt::format("ranks {} and {} get the same input, as they did not in {} "
                                   "before (one seed for both?)",
                                   first_, other_, CountText(different_inputs_, "step")),
                       0}});
  }

  int64_t first_, other_;
  int64_t previous_ = 0, since_ = 0;
  uint64_t alike_ = 0, same_inputs_ = 0, different_inputs_ = 0;
  bool has_diverged_ = false;
};

void CompareRanks(const std::vector<BlackBoxRank>& ranks, const std::vector<RankSteps>& steps,
                  std::vector<RankFinding>* found) {
  for (size_t i = 1; i < steps.size(); ++i) {
    RankComparison comparison(ranks[0].rank, ranks[i].rank);
    for (const auto& [step, rows] : steps[0].steps) {
      const auto other = steps[i].steps.find(step);
      if (other != steps[i].steps.end()) comparison.Look(rows, other->second, found);
    }
  }
}

std::map<int64_t, double> LossesOf(const RankSteps& steps) {
  std::map<int64_t, double> losses;
  for (const auto& [step, rows] : steps.steps) {
    const auto& other = rows.of(MonitorKind::kOther);
    const auto loss = std::ranges::find_if(
        other, [](const watch::Row& row) { return row.name->text == watch::kLossRow; });
    if (loss != other.end()) losses[step] = loss->values.of(Op::kMean);
  }
  return losses;
}

std::string LossText(const BlackBoxReport& report, const RankFinding& first) {
  const auto rank = std::ranges::find(report.ranks, first.rank, &BlackBoxRank::rank);
  if (rank == report.ranks.end()) return "";
  const int64_t step = first.finding.step;
  const auto before = rank->losses.find(step - 1);
  const auto now = rank->losses.find(step);
  if (before == rank->losses.end() || now == rank->losses.end()) return "";
  return fmt::format("  loss: {:.6g} at step {}, {:.6g} at step {}\n", before->second, step - 1,
                     now->second, step);
}

// What came of it: the first later finding of each other kind, in one line.
std::string Consequences(const BlackBoxReport& report) {
  std::set<Fault> told = {report.findings.front().finding.fault};
  std::string text;
  size_t lines = 0;
  for (const RankFinding& later : report.findings) {
    constexpr size_t kMost = 3;
    if (lines == kMost || !told.insert(later.finding.fault).second) continue;
    ++lines;
    text += fmt::format("  then step {}{}: {}\n", later.finding.step,
                        report.ranks.size() > 1 ? fmt::format(", rank {}", later.rank) : "",
                        later.finding.text);
  }
  return text;
}

std::string EndText(const BlackBoxReport& report) {
  const BlackBoxRank& rank = report.ranks.front();
  return fmt::format("  recorded: {} to {} of {}; {}\n", rank.first_step, rank.last_step,
                     CountText(report.ranks.size(), "rank"),
                     rank.ended.empty() ? std::string("the training was killed, or runs")
                                        : "ended: " + rank.ended);
}

std::string NextRecording(const Finding& finding) {
  const int64_t from = std::max<int64_t>(finding.step - 1, 0);
  const std::string list =
      finding.place.empty() ? ""
                            : fmt::format(", and \"list\": [\"{}\"] in config.json", finding.place);
  return fmt::format(
      "  next recording: PrecisionDebugger(step=[\"{}-{}\"], level=\"mix\", "
      "task=\"statistics\"){}\n",
      from, finding.step + 1, list);
}

}  // namespace

Result<BlackBoxReport> ExplainBlackBox(const std::string& path) {
  PL_TRY_ASSIGN(const auto directories, load::NeedMonitorDirectories(path));
  BlackBoxReport report;
  report.data = path;
  std::vector<RankSteps> steps;
  for (const load::MonitorDirectory& directory : directories) {
    if (!report.ranks.empty() && report.ranks.back().rank == directory.rank) {
      report.warnings.push_back(fmt::format("{}: not read, rank {} has a newer directory",
                                            directory.path, directory.rank));
      continue;
    }
    RankSteps read;
    PL_TRY(ReadSteps(directory.path, &read, &report.warnings));
    if (read.steps.empty()) {
      report.warnings.push_back(fmt::format("{}: no step in it", directory.path));
      continue;
    }
    report.ranks.push_back({directory.rank, directory.path, EndOf(directory.path),
                            read.steps.size(), read.steps.begin()->first,
                            read.steps.rbegin()->first, LossesOf(read)});
    watch::Diagnosis diagnosis;
    for (const auto& [step, rows] : read.steps) {
      for (Finding& finding : diagnosis.Look(rows)) {
        report.findings.push_back({directory.rank, std::move(finding)});
      }
    }
    for (Finding& finding : diagnosis.Finish()) {
      report.findings.push_back({directory.rank, std::move(finding)});
    }
    steps.push_back(std::move(read));
  }
  if (report.ranks.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no directory in it holds a step of a black box", path));
  }
  CompareRanks(report.ranks, steps, &report.findings);
  std::ranges::stable_sort(report.findings, [](const RankFinding& a, const RankFinding& b) {
    return watch::IsEarlier(a.finding, b.finding);
  });
  return report;
}

std::string BlackBoxText(const BlackBoxReport& report) {
  if (report.findings.empty()) {
    return fmt::format("nothing went wrong in steps {} to {}\n", report.ranks.front().first_step,
                       report.ranks.front().last_step) +
           EndText(report);
  }
  const RankFinding& first = report.findings.front();
  const Finding& finding = first.finding;
  std::string text =
      fmt::format("first bad step: {}{}: {} ({})\n", finding.step,
                  report.ranks.size() > 1 ? fmt::format(", rank {}", first.rank) : "", finding.text,
                  watch::NameOf(finding.fault));
  text += finding.place.empty() ? "  where: the training as a whole\n"
                                : fmt::format("  where: module {}\n", finding.place);
  const bool is_seen = finding.step > report.ranks.front().first_step;
  text += is_seen ? fmt::format("  last good step: {}\n", finding.step - 1)
                  : "  last good step: before the first one that is recorded\n";
  text += Consequences(report);
  text += LossText(report, first);
  text += EndText(report);
  text += fmt::format("  curves: plumb trend {}\n", report.data);
  return text + NextRecording(finding);
}

std::string BlackBoxJson(const BlackBoxReport& report) {
  std::vector<std::string> findings, ranks;
  for (const RankFinding& one : report.findings) {
    json::Value value = json::Value::Object();
    value.Put("rank", json::Value(one.rank));
    value.Put("step", json::Value(one.finding.step));
    value.Put("fault", json::Value(watch::NameOf(one.finding.fault)));
    value.Put("module", json::Value(std::string_view(one.finding.place)));
    value.Put("name", json::Value(std::string_view(one.finding.name)));
    value.Put("text", json::Value(std::string_view(one.finding.text)));
    findings.push_back(value.Text());
  }
  for (const BlackBoxRank& one : report.ranks) {
    json::Value value = json::Value::Object();
    value.Put("rank", json::Value(one.rank));
    value.Put("directory", json::Value(std::string_view(one.directory)));
    value.Put("first_step", json::Value(one.first_step));
    value.Put("last_step", json::Value(one.last_step));
    value.Put("ended",
              one.ended.empty() ? json::Value() : json::Value(std::string_view(one.ended)));
    ranks.push_back(value.Text());
  }
  return fmt::format("{{\"findings\": [{}],\n \"ranks\": [{}]}}\n", fmt::join(findings, ",\n"),
                     fmt::join(ranks, ",\n"));
}

}  // namespace plumbline

#include "watch/black_box_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
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
  uint64_t unread_tensors = 0, unread_rows = 0;
  std::string unread_example, unread_file;
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

// What cannot be read is told, not skipped without a word.
void ReadSteps(const load::MonitorFile& file, const MonitorKindInfo& info, RankSteps* out,
               std::vector<std::string>* warnings) {
  uint32_t call = 0;
  const auto visit = [&](std::span<const std::string> statistics, load::MonitorRow& row) -> Status {
    StepRows& rows = out->steps[row.step];
    rows.step = row.step;
    watch::TensorValues values = ValuesOfRow(statistics, row);
    if (std::isnan(values.of(Op::kNans)) && out->unread_tensors++ == 0) {
      out->unread_example = row.name;
    }
    rows.of(info.kind).push_back({out->Name(row.name, row.vpp_stage),
                                  static_cast<int32_t>(row.micro_step), call++, std::move(values)});
    return {};
  };
  const auto facts = load::VisitMonitorFile(file.path, file.kind, visit);
  if (!facts) {
    warnings->push_back(facts.error().message());
    ++out->unread_rows;
    out->unread_file = file.path;
    return;
  }
  if (facts->left_out + facts->odd_cells > 0) {
    out->unread_rows += facts->left_out + facts->odd_cells;
    out->unread_file = file.path;
  }
  for (std::string& damage : load::DamageOf(file.path, *facts)) {
    warnings->push_back(std::move(damage));
  }
}

// What the box said itself: how it ended, and what it did not see.
void TakeState(const json::Value& state, BlackBoxRank* rank) {
  const json::Value* ended = state.Find("ended");
  if (ended != nullptr && ended->AsText() != nullptr) rank->ended = *ended->AsText();
  const json::Value* interrupted = state.Find("interrupted");
  const bool* is_so = interrupted == nullptr ? nullptr : interrupted->AsBool();
  rank->is_interrupted = is_so != nullptr && *is_so;
  const auto number = [&](std::string_view key) {
    const json::Value* value = state.Find(key);
    const auto found = value == nullptr ? std::nullopt : value->AsInteger();
    return found.value_or(0);
  };
  rank->steps_run = std::max(number("steps"), rank->last_step + 1) - rank->first_step;
  if (const int64_t calls = number("calls_without_step"); calls > 0) {
    rank->unjudged.push_back(fmt::format(
        "the optimizer made no step any more after step {}, while the model was called {} more "
        "times",
        number("steps") - 1, calls));
  }
  const json::Value* messages = state.Find("messages");
  const json::Value::List* list = messages == nullptr ? nullptr : messages->AsList();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if ((*list)[i].AsText() != nullptr) rank->unjudged.push_back(*(*list)[i].AsText());
  }
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

std::string LossText(const BlackBoxRun& run, const RankFinding& first) {
  const auto rank = std::ranges::find(run.ranks, first.rank, &BlackBoxRank::rank);
  if (rank == run.ranks.end()) return "";
  const int64_t step = first.finding.step;
  const auto before = rank->losses.find(step - 1);
  const auto now = rank->losses.find(step);
  if (before == rank->losses.end() || now == rank->losses.end()) return "";
  return fmt::format("  loss: {:.6g} at step {}, {:.6g} at step {}\n", before->second, step - 1,
                     now->second, step);
}

// What came of it: the first later finding of each other kind, in one line.
std::string Consequences(const BlackBoxRun& run) {
  std::set<Fault> told = {run.findings.front().finding.fault};
  std::string text;
  size_t lines = 0;
  for (const RankFinding& later : run.findings) {
    constexpr size_t kMost = 2;
    if (lines == kMost || !told.insert(later.finding.fault).second) continue;
    ++lines;
    text += fmt::format("  then step {}{}: {}\n", later.finding.step,
                        run.ranks.size() > 1 ? fmt::format(", rank {}", later.rank) : "",
                        OneLine(later.finding.text));
  }
  return text;
}

// The rank whose end says most: one that was interrupted, or else the first.
const BlackBoxRank& EndOf(const BlackBoxRun& run) {
  const auto found = std::ranges::find(run.ranks, true, &BlackBoxRank::is_interrupted);
  return found == run.ranks.end() ? run.ranks.front() : *found;
}

std::string EndText(const BlackBoxRun& run) {
  const BlackBoxRank& rank = EndOf(run);
  const auto steps = static_cast<int64_t>(rank.steps);
  if (rank.steps == 0) return "";
  return fmt::format(
      "  recorded: {} to {} of {}{}; {}\n", rank.first_step, rank.last_step,
      CountText(run.ranks.size(), "rank"),
      steps < rank.steps_run ? fmt::format(", {} of {} steps", steps, rank.steps_run) : "",
      rank.ended.empty() ? "no end noted (killed, or still running)"
                         : "ended: " + OneLine(rank.ended));
}

// What the ranks cannot be judged by.
std::vector<std::string> UnjudgedOf(const BlackBoxRun& run) {
  std::vector<std::string> all;
  for (const BlackBoxRank& rank : run.ranks) {
    for (const std::string& one : rank.unjudged) {
      all.push_back(run.ranks.size() > 1 ? fmt::format("rank {}: {}", rank.rank, one) : one);
    }
  }
  return all;
}

std::string NothingText(const BlackBoxRun& run) {
  const auto missing = [](const BlackBoxRank& rank) {
    return rank.steps_run - static_cast<int64_t>(rank.steps);
  };
  const BlackBoxRank& worst = *std::ranges::max_element(run.ranks, {}, missing);
  std::string text =
      worst.steps == 0 ? std::string("no step was seen")
      : missing(worst) > 0
          ? fmt::format("nothing went wrong in the {} of {} steps that were looked at ({} to {})",
                        worst.steps, worst.steps_run, worst.first_step, worst.last_step)
          : fmt::format("nothing went wrong in steps {} to {}", worst.first_step, worst.last_step);
  const BlackBoxRank& end = EndOf(run);
  if (end.is_interrupted) text = fmt::format("ended by {}; before, {}", OneLine(end.ended), text);
  if (end.ended.empty()) text += "; no end is noted: killed, or still running";
  const std::vector<std::string> unjudged = UnjudgedOf(run);
  return unjudged.empty() ? text : fmt::format("not certain: {}; but {}", text, unjudged.front());
}

std::string FirstLine(const BlackBoxRun& run) {
  if (run.findings.empty()) return NothingText(run);
  const RankFinding& first = run.findings.front();
  const BlackBoxRank& end = EndOf(run);
  return fmt::format("first bad step: {}{}: {} ({}){}", first.finding.step,
                     run.ranks.size() > 1 ? fmt::format(", rank {}", first.rank) : "",
                     OneLine(first.finding.text), watch::NameOf(first.finding.fault),
                     end.is_interrupted ? "; then ended by " + OneLine(end.ended) : "");
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

// The other runs, in one line.
std::string OtherRuns(const BlackBoxReport& report, size_t shown) {
  if (report.runs.size() == 1) return "";
  std::vector<std::string> bad;
  size_t good = 0;
  for (size_t i = 0; i < report.runs.size(); ++i) {
    if (i == shown) continue;
    if (report.runs[i].findings.empty()) {
      ++good;
    } else {
      bad.push_back(fmt::format("first bad step {} in {}",
                                report.runs[i].findings.front().finding.step,
                                report.runs[i].ranks.front().directory));
    }
  }
  constexpr size_t kMost = 3;
  if (bad.size() > kMost) bad.resize(kMost);
  if (good > 0) bad.push_back(fmt::format("{} without a finding", good));
  return fmt::format("  {} of one rank, this one in {}; others: {}\n",
                     CountText(report.runs.size(), "run"),
                     report.runs[shown].ranks.front().directory, fmt::join(bad, "; "));
}

// What one directory holds, and the findings of its rank; nothing where it is no black box.
class DirectoryReader {
 public:
  explicit DirectoryReader(const load::MonitorDirectory& directory) : directory_(directory) {}

  Result<bool> Read(std::vector<std::string>* warnings) {
    const std::string path = JoinPath(directory_.path, watch::kBlackBoxFile);
    if (KindOf(path) == PathKind::kMissing) return false;
    PL_TRY_ASSIGN(const auto files, load::ListMonitorFiles(directory_.path));
    for (const load::MonitorFile& file : files) {
      const MonitorKindInfo* info = MonitorKindOfFile(file.kind);
      if (info != nullptr) ReadSteps(file, *info, &steps, warnings);
    }
    rank.rank = directory_.rank;
    rank.directory = directory_.name;
    rank.steps = steps.steps.size();
    if (rank.steps > 0) {
      rank.first_step = steps.steps.begin()->first;
      rank.last_step = steps.steps.rbegin()->first;
    }
    rank.losses = LossesOf(steps);
    TakeFile(path);
    TakeUnread();
    PL_TRY(TakeFindings());
    return true;
  }

  BlackBoxRank rank;
  RankSteps steps;
  std::vector<RankFinding> findings;

 private:
  void TakeFile(const std::string& path) {
    const auto text = ReadFile(path);
    const auto state = text ? json::Value::Parse(*text) : Result<json::Value>(text.error());
    TakeState(state ? *state : json::Value::Object(), &rank);
    if (!state) rank.unjudged.push_back(fmt::format("{} cannot be read", path));
  }

  void TakeUnread() {
    if (steps.unread_rows > 0) {
      rank.unjudged.push_back(
          fmt::format("{} cannot be read whole (see the warnings)", steps.unread_file));
    }
    if (steps.unread_tensors > 0) {
      rank.unjudged.push_back(fmt::format("{} could not be judged, {} first",
                                          CountText(steps.unread_tensors, "value"),
                                          steps.unread_example));
    }
  }

  // Those that the box had when it saw the steps, more of them than are there now; and what stands
  // in the files and is wrong whatever was before.
  Status TakeFindings() {
    std::set<std::pair<Fault, std::string>> known;
    const std::string path = JoinPath(directory_.path, watch::kFindingsFile);
    if (KindOf(path) != PathKind::kMissing) {
      PL_TRY_ASSIGN(const std::string text, ReadFile(path));
      PL_TRY_ASSIGN(std::vector<Finding> found, watch::ReadFindings(text));
      for (Finding& finding : found) {
        known.emplace(finding.fault, finding.name);
        findings.push_back({rank.rank, std::move(finding)});
      }
    }
    watch::Diagnosis diagnosis;
    const auto add = [&](std::vector<Finding> found) {
      for (Finding& finding : found) {
        if (finding.fault != Fault::kNonFinite) continue;
        if (!known.emplace(finding.fault, finding.name).second) continue;
        findings.push_back({rank.rank, std::move(finding)});
      }
    };
    for (const auto& [step, rows] : steps.steps) add(diagnosis.Look(rows));
    if (rank.ended.empty()) add(diagnosis.Finish());
    return {};
  }

  const load::MonitorDirectory& directory_;
};

void Sort(std::vector<RankFinding>* findings) {
  std::ranges::stable_sort(*findings, [](const RankFinding& a, const RankFinding& b) {
    return watch::IsEarlier(a.finding, b.finding);
  });
}

std::string RankJson(const BlackBoxRank& one, int64_t run) {
  json::Value value = json::Value::Object();
  value.Put("rank", json::Value(one.rank));
  value.Put("run", json::Value(run));
  value.Put("directory", json::Value(std::string_view(one.directory)));
  value.Put("first_step", json::Value(one.first_step));
  value.Put("last_step", json::Value(one.last_step));
  value.Put("looked_at", json::Value(static_cast<int64_t>(one.steps)));
  value.Put("steps", json::Value(one.steps_run));
  value.Put("ended", one.ended.empty() ? json::Value() : json::Value(std::string_view(one.ended)));
  value.Put("interrupted", json::Value(one.is_interrupted));
  value.Put("unjudged", json::Value(one.unjudged));
  return value.Text();
}

std::string FindingJson(const RankFinding& one, int64_t run) {
  json::Value value = json::Value::Object();
  value.Put("rank", json::Value(one.rank));
  value.Put("run", json::Value(run));
  value.Put("step", json::Value(one.finding.step));
  value.Put("fault", json::Value(watch::NameOf(one.finding.fault)));
  value.Put("module", json::Value(std::string_view(one.finding.place)));
  value.Put("name", json::Value(std::string_view(one.finding.name)));
  value.Put("text", json::Value(std::string_view(one.finding.text)));
  return value.Text();
}

}  // namespace

Result<BlackBoxReport> ExplainBlackBox(const std::string& path) {
  PL_TRY_ASSIGN(const auto directories, load::NeedMonitorDirectories(path));
  BlackBoxReport report;
  report.data = path;
  std::vector<std::vector<RankSteps>> steps;  // of each run, by rank
  std::map<int64_t, size_t> seen;             // runs of each rank
  for (const load::MonitorDirectory& directory : directories) {
    DirectoryReader reader(directory);
    PL_TRY_ASSIGN(const bool is_black_box, reader.Read(&report.warnings));
    if (!is_black_box) continue;
    const size_t run = seen[directory.rank]++;
    if (run == report.runs.size()) {
      report.runs.emplace_back();
      steps.emplace_back();
    }
    report.runs[run].ranks.push_back(std::move(reader.rank));
    std::ranges::move(reader.findings, std::back_inserter(report.runs[run].findings));
    steps[run].push_back(std::move(reader.steps));
  }
  if (report.runs.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no directory in it is one of a black box (expected files of "
                             "black_box(), with {}). For what TrainerMon wrote: plumb trend {}",
                             path, watch::kBlackBoxFile, path));
  }
  for (size_t run = 0; run < report.runs.size(); ++run) {
    CompareRanks(report.runs[run].ranks, steps[run], &report.runs[run].findings);
    Sort(&report.runs[run].findings);
  }
  return report;
}

std::string BlackBoxText(const BlackBoxReport& report) {
  const auto bad = std::ranges::find_if(
      report.runs, [](const BlackBoxRun& run) { return !run.findings.empty(); });
  const auto shown = bad == report.runs.end() ? 0 : static_cast<size_t>(bad - report.runs.begin());
  const BlackBoxRun& run = report.runs[shown];
  std::string text = FirstLine(run) + "\n";
  if (!run.findings.empty()) {
    const RankFinding& first = run.findings.front();
    const Finding& finding = first.finding;
    text += finding.place.empty() ? "  where: the training as a whole\n"
                                  : fmt::format("  where: module {}\n", finding.place);
    const bool is_seen = finding.step > run.ranks.front().first_step;
    text += is_seen ? fmt::format("  last good step: {}\n", finding.step - 1)
                    : "  last good step: before the first one that is recorded\n";
    text += Consequences(run);
    text += LossText(run, first);
  }
  text += EndText(run);
  text += OtherRuns(report, shown);
  const std::vector<std::string> unjudged = UnjudgedOf(run);
  if (!unjudged.empty()) text += fmt::format("  not judged: {}\n", fmt::join(unjudged, "; "));
  if (run.findings.empty()) return text;
  text += fmt::format("  curves: plumb trend {}\n", report.data);
  return text + NextRecording(run.findings.front().finding);
}

std::string BlackBoxJson(const BlackBoxReport& report) {
  std::vector<std::string> findings, ranks;
  for (size_t run = 0; run < report.runs.size(); ++run) {
    const auto number = static_cast<int64_t>(run);
    for (const RankFinding& one : report.runs[run].findings) {
      findings.push_back(FindingJson(one, number));
    }
    for (const BlackBoxRank& one : report.runs[run].ranks) ranks.push_back(RankJson(one, number));
  }
  return fmt::format("{{\"findings\": [{}],\n \"ranks\": [{}]}}\n", fmt::join(findings, ",\n"),
                     fmt::join(ranks, ",\n"));
}

}  // namespace plumbline

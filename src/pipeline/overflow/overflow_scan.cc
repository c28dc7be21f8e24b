#include "pipeline/overflow/overflow_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "formats/dump_json.h"
#include "load/detect.h"
#include "pipeline/overflow/bad_value.h"
#include "pipeline/ranks/comm_call.h"
#include "record/run_files.h"

namespace plumbline {
namespace {

// One entry while the dump is being read.
struct Scanned {
  std::string name;
  ValueJudgement input, output;
  size_t begin = 0, end = 0;
  bool recompute = false;
  bool flagged = false;       // by is_nan alone
  bool flag_decides = false;  // is_nan is 0 or 1, and some tensors have no statistics
  bool flag_unknown = false;
  bool lacks_output = false;
  std::optional<CommCall> call;
};

constexpr std::string_view kIsNan = "is_nan";  // task nan_check

// What these put out is not initialised, or is what the script asked for.
bool IsIgnored(std::string_view name) {
  return name.find("Torch.empty") != name.npos || name.find("Torch.fill") != name.npos;
}

// What is_nan says where statistics do not: nothing when it is null or no flag.
std::optional<bool> FlagOf(const Value& value) {
  if (const auto* truth = value.As<bool>()) return *truth;
  const auto* number = value.As<int64_t>();
  if (number == nullptr || (*number != 0 && *number != 1)) return std::nullopt;
  return *number == 1;
}

// Takes what is_nan says about the whole call for the tensors that have no statistics.
void ApplyFlag(const Value& value, Scanned& entry) {
  const uint64_t bare = entry.input.not_judged + entry.output.not_judged;
  if (entry.input.bad || entry.output.bad) return;
  if (bare == 0 && entry.input.tensors + entry.output.tensors > 0) return;
  const std::optional<bool> flag = FlagOf(value);
  entry.flag_unknown = !flag;
  if (!flag) return;
  entry.flag_decides = true;
  entry.flagged = *flag;
  entry.input.not_judged = entry.output.not_judged = 0;
  if (*flag) entry.output.bad = BadValue{.path = std::string(kIsNan), .what = "1"};
}

// Recorded with a data_mode of inputs alone. Gradients of parameters have neither.
bool LacksOutput(const Call& call) {
  const bool has_input = call.Find(dump_json::kInputArgs) != nullptr ||
                         call.Find(dump_json::kInputKwargs) != nullptr ||
                         call.Find(dump_json::kInput) != nullptr;
  return has_input && call.Find(dump_json::kOutput) == nullptr;
}

Scanned Reduce(dump_json::VisitedCall&& visited, std::vector<CommGroup>& groups) {
  Scanned entry;
  const Call& call = visited.call;
  for (const auto& [key, value] : call.members) {
    // Gradients and saved values have no inputs of their own; they count as given.
    const bool output = key == dump_json::kOutput;
    Judge(value, key.empty() ? "value" : key, output ? entry.output : entry.input);
  }
  // Numbers that come out are values; numbers among the arguments are the script's own.
  if (!entry.output.bad && !entry.output.number.empty()) {
    entry.output.bad = BadValue{.path = entry.output.number, .what = entry.output.number_text};
    entry.output.bad->only_negative = entry.output.number_text == "-Inf";
  }
  if (const Value* flag = call.Find(kIsNan)) ApplyFlag(*flag, entry);
  entry.lacks_output = LacksOutput(call) && !entry.flag_decides;
  const Value* recompute = call.Find(dump_json::kIsRecompute);
  const auto* flag = recompute != nullptr ? recompute->As<bool>() : nullptr;
  entry.recompute = flag != nullptr && *flag;
  if (const auto api = CommunicationApi(call.name)) entry.call = ReadCommCall(call, *api, groups);
  entry.begin = visited.begin;
  entry.end = visited.end;
  entry.name = std::move(visited.call.name);
  return entry;
}

// The entries of one dump, the last one of each name at the place of the first.
class EntryCollector {
 public:
  explicit EntryCollector(std::vector<CommGroup>& groups) : groups_(groups) {}

  void Add(dump_json::VisitedCall&& visited) {
    const auto [slot, is_new] = slots_.try_emplace(visited.call.name, entries_.size());
    Scanned entry = Reduce(std::move(visited), groups_);
    if (is_new) {
      entries_.push_back(std::move(entry));
    } else {
      ++repeated_;
      entries_[slot->second] = std::move(entry);
    }
  }
  std::vector<Scanned>& entries() { return entries_; }
  [[nodiscard]] uint64_t repeated() const { return repeated_; }

 private:
  std::vector<CommGroup>& groups_;
  std::vector<Scanned> entries_;
  std::unordered_map<std::string, size_t> slots_;
  uint64_t repeated_ = 0;
};

// How bad: masks are full of -Inf, which harms nobody by itself.
enum class Severity : uint8_t { kFine, kOnlyNegative, kBad };

Severity SeverityOf(const std::optional<BadValue>& bad) {
  if (!bad) return Severity::kFine;
  return bad->only_negative ? Severity::kOnlyNegative : Severity::kBad;
}

Suspect MakeSuspect(Scanned& entry, const EntryPlace& place, OverflowReason reason) {
  Suspect suspect;
  suspect.place = place;
  const bool given = reason == OverflowReason::kGiven;
  suspect.value = given ? *entry.input.bad : *entry.output.bad;
  suspect.reason = reason;
  suspect.argument = entry.input.number;
  suspect.harmless = given && !entry.output.bad && entry.output.tensors > 0;
  suspect.recompute = entry.recompute;
  suspect.name = entry.name;
  const bool asked = entry.input.number_text == "-Inf" && suspect.value.only_negative;
  if (reason == OverflowReason::kProduced && asked) suspect.reason = OverflowReason::kRequested;
  return suspect;
}

// Goes through the entries in dump order and keeps what matters.
class Selection {
 public:
  explicit Selection(RankScan& scan) : scan_(scan) {}

  void Add(Scanned& entry) {
    scan_.tensors += entry.input.tensors + entry.output.tensors;
    scan_.tensors_not_judged += entry.input.not_judged + entry.output.not_judged;
    scan_.flags += entry.flag_decides ? 1 : 0;
    scan_.flags_unknown += entry.flag_unknown ? 1 : 0;
    scan_.outputs_missing += entry.lacks_output && !entry.call ? 1 : 0;
    const bool ignored = IsIgnored(entry.name);
    const Severity in = SeverityOf(entry.input.bad), out = SeverityOf(entry.output.bad);
    if (in != Severity::kFine || (out != Severity::kFine && !ignored)) ++scan_.bad_entries;
    place_.begin = entry.begin;
    place_.end = entry.end;
    if (entry.call) {
      AddCall(entry, in);
    } else if (!ignored) {
      AddComputing(entry, in, out);
      ++place_.sub_layer;
    }
    if (!ignored) seen_output_ = std::max(seen_output_, out);
    ++place_.index;
  }

 private:
  // Nothing so bad has come out of an entry or been noted as an input before.
  [[nodiscard]] bool IsNew(Severity in) const { return in > seen_output_ && in > seen_given_; }

  void AddCall(Scanned& entry, Severity in) {
    entry.call->given = IsNew(in);
    seen_given_ = std::max(seen_given_, in);
    entry.call->place = place_;
    entry.call->flagged = entry.flagged;
    // What an earlier call put out goes in here; otherwise it may have come from another rank.
    if (entry.flagged && !IsNew(Severity::kBad)) entry.input.bad = entry.output.bad;
    entry.call->bad_input = std::move(entry.input.bad);
    entry.call->bad_output = std::move(entry.output.bad);
    scan_.calls.push_back(std::move(*entry.call));
    ++place_.calls_before;
    place_.sub_layer = 0;
  }

  void AddComputing(Scanned& entry, Severity in, Severity out) {
    if (entry.flagged) {
      // The flag of a later call tells no more than that the value was handed on.
      if (!IsNew(out)) return;
      scan_.suspects.push_back(MakeSuspect(entry, place_, OverflowReason::kFlagged));
    } else if (out > in) {
      const bool escalated = in != Severity::kFine;
      scan_.suspects.push_back(MakeSuspect(
          entry, place_, escalated ? OverflowReason::kEscalated : OverflowReason::kProduced));
    } else if (IsNew(in)) {
      const Suspect suspect = MakeSuspect(entry, place_, OverflowReason::kGiven);
      // One harmless input is enough, and must not hide one that does harm.
      if (!suspect.harmless || !seen_harmless_) scan_.suspects.push_back(suspect);
      seen_harmless_ = seen_harmless_ || suspect.harmless;
      if (!suspect.harmless) seen_given_ = in;
    }
  }

  RankScan& scan_;
  EntryPlace place_;
  Severity seen_output_ = Severity::kFine, seen_given_ = Severity::kFine;
  bool seen_harmless_ = false;
};

void Select(std::vector<Scanned>& entries, RankScan& scan) {
  Selection selection(scan);
  for (Scanned& entry : entries) selection.Add(entry);
  scan.entries = entries.size();
}

// Marks the suspects that are modules around other suspects.
Status MarkEnclosing(const std::string& construct_path, std::vector<Suspect>& suspects) {
  if (suspects.size() < 2) return {};
  PL_TRY_ASSIGN(const dump_json::ConstructTable rows, dump_json::ReadConstruct(construct_path));
  std::unordered_map<std::string_view, std::string_view> parents;
  for (const auto& [name, parent] : rows) parents.emplace(name, parent);
  std::unordered_set<std::string_view> enclosing;
  for (const Suspect& suspect : suspects) {
    auto found = parents.find(suspect.name);
    // A name met before has had its own parents added; this also ends cycles.
    while (found != parents.end() && !found->second.empty() &&
           enclosing.insert(found->second).second) {
      found = parents.find(found->second);
    }
  }
  for (Suspect& suspect : suspects) suspect.encloses = enclosing.contains(suspect.name);
  return {};
}

Status CheckFiles(const std::string& directory) {
  for (const std::string_view name :
       {run_files::kDumpJson, run_files::kConstructJson, run_files::kStackJson}) {
    const std::string path = JoinPath(directory, name);
    const Result<PathFacts> facts = Inspect(path);
    if (!facts || facts->kind == PathKind::kMissing) {
      return Error(
          ErrorCode::kNotFound,
          fmt::format("{}: no such file (expected dump.json, stack.json and construct.json "
                      "of every rank). Copy it from where the run was recorded.",
                      path));
    }
    if (facts->is_link) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: a symbolic link (expected a file). Copy the file it points to.", path));
    }
  }
  return {};
}

// A search records hits alone; the side files list the other calls too.
void CountSearched(const load::RankDirectory& directory, RankScan& scan) {
  if (scan.task != "overflow_check" || scan.entries > 0) return;
  const auto stacks = dump_json::ReadStack(JoinPath(directory.path, run_files::kStackJson));
  const auto parents =
      dump_json::ReadConstruct(JoinPath(directory.path, run_files::kConstructJson));
  if (!stacks) scan.notes.push_back(stacks.error().message());
  if (!parents) scan.notes.push_back(parents.error().message());
  scan.calls_searched = std::max(stacks ? stacks->size() : 0, parents ? parents->size() : 0);
}

// What the entries do not tell.
void NoteUnjudged(const load::RankDirectory& directory, RankScan& scan) {
  if (scan.entries == 0 && scan.calls_searched == 0) {
    scan.notes.push_back(fmt::format("{}: no entries, nothing to judge", directory.path));
  } else if (scan.task == "structure") {
    scan.notes.push_back(
        fmt::format("{}: recorded with task structure, which keeps no values", directory.path));
  }
  if (scan.outputs_missing > 0) {
    scan.notes.push_back(fmt::format(
        "{}: {} of {} entries have inputs and no output (recorded with data_mode input?)",
        directory.path, scan.outputs_missing, scan.entries));
  }
  if (scan.flags_unknown > 0) {
    scan.notes.push_back(fmt::format("{}: is_nan of {} of {} entries is neither 0 nor 1",
                                     directory.path, scan.flags_unknown, scan.entries));
  }
}

void NoteLosses(const load::RankDirectory& directory, RankScan& scan) {
  const load::RecordingState state = load::StateOf(directory.path);
  if (state.unfinished) {
    scan.notes.push_back(
        fmt::format("{}: the recording is unfinished; run plumb recover first", directory.path));
  }
  if (state.losses > 0) {
    scan.notes.push_back(fmt::format("{}: the recorder counted {} {}", directory.path, state.losses,
                                     state.losses == 1 ? "loss" : "losses"));
  }
}

}  // namespace

std::string_view OverflowReasonName(OverflowReason reason) {
  switch (reason) {
    case OverflowReason::kProduced:
      return "produced";
    case OverflowReason::kGiven:
      return "given";
    case OverflowReason::kEscalated:
      return "escalated";
    case OverflowReason::kRequested:
      return "requested";
    case OverflowReason::kFlagged:
      return "flagged";
  }
  return "produced";
}

Result<RankScan> ScanRank(const load::RankDirectory& directory) {
  PL_TRY(CheckFiles(directory.path));
  RankScan scan;
  scan.directory = directory;
  const std::string path = JoinPath(directory.path, run_files::kDumpJson);
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  EntryCollector collector(scan.groups);
  auto file = dump_json::VisitDump(text, /*salvage=*/true, [&](dump_json::VisitedCall&& visited) {
    collector.Add(std::move(visited));
  });
  if (!file) return file.error().In(path);
  scan.task = file->header.task;
  Select(collector.entries(), scan);
  if (file->loss.truncated) {
    scan.truncated = true;
    scan.notes.push_back(fmt::format("{}: cut or damaged at byte {}, {} complete entries were read",
                                     path, file->loss.byte_offset, scan.entries));
  }
  if (collector.repeated() > 0) {
    scan.notes.push_back(fmt::format("{}: {} entries occur again, the last of each name counts",
                                     path, collector.repeated()));
  }
  CountSearched(directory, scan);
  NoteUnjudged(directory, scan);
  NoteLosses(directory, scan);
  PL_TRY(MarkEnclosing(JoinPath(directory.path, run_files::kConstructJson), scan.suspects));
  return scan;
}

}  // namespace plumbline

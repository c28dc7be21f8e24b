#include "load/rank_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/file/file.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "load/detect.h"
#include "plumbline/tensor.h"
#include "record/call_name.h"
#include "record/run_files.h"

namespace plumbline {

namespace {

std::string_view KindOfNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (!std::isinf(value)) return {};
  return value > 0 ? "Inf" : "-Inf";
}

std::string TextOf(const Statistic& statistic) {
  if (const auto* real = std::get_if<double>(&statistic)) return PythonFloat(*real);
  if (const auto* integer = std::get_if<int64_t>(&statistic)) return std::to_string(*integer);
  if (const auto* truth = std::get_if<bool>(&statistic)) return *truth ? "true" : "false";
  return "null";
}

bool IsAbsent(const Statistic& statistic) {
  return std::holds_alternative<std::monostate>(statistic);
}

// Whether a tensor could hold NaN or Inf at all.
bool MayBeBad(const TensorRecord& tensor) {
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return false;
  const std::optional<DType> dtype = ParseDType(tensor.dtype_text);
  if (!dtype) return true;
  const DTypeKind kind = InfoOf(*dtype).kind;
  return kind == DTypeKind::kFloat || kind == DTypeKind::kComplex;
}

// "nan", "-Infinity", "1e400"; what is no number stays unknown.
Statistic StatisticOfText(const std::string& text) {
  if (text.empty()) return std::monostate();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) return std::monostate();
  return value;
}

void JudgeTensor(const TensorRecord& tensor, const std::string& path, ValueJudgement& judgement) {
  ++judgement.tensors;
  const std::string_view max = BadKindOf(tensor.max), min = BadKindOf(tensor.min);
  const bool nans = tensor.nan_count.value_or(0) > 0, infs = tensor.inf_count.value_or(0) > 0;
  if (max.empty() && min.empty() && !nans && !infs) {
    const bool counted = tensor.nan_count && tensor.inf_count;
    // One extreme alone says nothing about the other.
    const bool judged = (!IsAbsent(tensor.max) && !IsAbsent(tensor.min)) || counted;
    if (!judged && MayBeBad(tensor)) ++judgement.not_judged;
    return;
  }
  BadValue bad{.path = path, .what = {}, .max = TextOf(tensor.max), .min = TextOf(tensor.min)};
  bad.only_negative = !nans && max != "NaN" && min == "-Inf" && max != "Inf";
  if (nans || max == "NaN" || min == "NaN") {
    bad.what = "NaN";
  } else if (!max.empty()) {
    bad.what = max;
  } else {
    bad.what = min.empty() ? "Inf" : min;
  }
  // The first one, unless a later one is worse.
  const bool worse = judgement.bad && judgement.bad->only_negative && !bad.only_negative;
  if (!judgement.bad || worse) judgement.bad = std::move(bad);
}

}  // namespace

std::string_view BadKindOf(const Statistic& statistic) {
  const auto* real = std::get_if<double>(&statistic);
  return real != nullptr ? KindOfNumber(*real) : std::string_view();
}

// Statistics of something that lacks a tensor's "type" or "dtype": still Max and Min decide.
// Members of that name which are values of their own (keyword arguments) are no statistics.
std::optional<TensorRecord> UntypedTensor(const Value& value) {
  const auto statistic = [&](std::string_view key) -> std::optional<Statistic> {
    const Value* member = value.Find(key);
    if (member == nullptr) return std::nullopt;
    if (const auto* real = member->As<double>()) return *real;
    if (const auto* integer = member->As<int64_t>()) return *integer;
    if (const auto* truth = member->As<bool>()) return *truth;
    if (const auto* text = member->As<std::string>()) return StatisticOfText(*text);
    const bool nested = member->As<ValueMap>() != nullptr || member->As<ValueList>() != nullptr ||
                        member->As<TensorRecord>() != nullptr;
    return nested ? std::nullopt : std::optional<Statistic>(std::monostate());
  };
  const auto max = statistic("Max"), min = statistic("Min");
  const bool described = value.Find("shape") != nullptr && value.Find("dtype") != nullptr;
  if (!max && !min && !described) return std::nullopt;
  TensorRecord record;
  record.max = max.value_or(std::monostate());
  record.min = min.value_or(std::monostate());
  return record;
}

// Depth is bounded by the reader.
void Judge(const Value& value, const std::string& path, ValueJudgement& judgement) {
  if (const auto* tensor = value.As<TensorRecord>()) {
    JudgeTensor(*tensor, path, judgement);
  } else if (const auto* list = value.As<ValueList>()) {
    for (size_t i = 0; i < list->size(); ++i) {
      Judge((*list)[i], path + "." + std::to_string(i), judgement);
    }
  } else if (const auto untyped = UntypedTensor(value)) {
    JudgeTensor(*untyped, path, judgement);
  } else if (const auto* map = value.As<ValueMap>()) {
    // {"type": "float", "value": NaN} is named by its own path.
    const bool scalar = value.Find("type") != nullptr && value.Find("value") != nullptr;
    for (const auto& [key, member] : *map) {
      Judge(member, scalar && key == "value" ? path : path + "." + key, judgement);
    }
  } else if (const auto* number = value.As<double>()) {
    const std::string_view kind = KindOfNumber(*number);
    if (kind.empty() || !judgement.number.empty()) return;
    judgement.number = path;
    judgement.number_text = kind;
  }
}

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
  std::string recorded_class;  // overflow_origin
  std::optional<CommCall> call;
};

constexpr std::string_view kIsNan = "is_nan";                    // task nan_check
constexpr std::string_view kOverflowOrigin = "overflow_origin";  // task overflow_check

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
  const Value* const recorded = call.Find(kOverflowOrigin);
  if (recorded != nullptr && recorded->As<std::string>() != nullptr) {
    entry.recorded_class = *recorded->As<std::string>();
  }
  const Value* recompute = call.Find(dump_json::kIsRecompute);
  const auto* flag = recompute != nullptr ? recompute->As<bool>() : nullptr;
  entry.recompute = flag != nullptr && *flag;
  const auto api = CommunicationApi(call.name);
  if (api && !IsCallOfOthers(call)) entry.call = ReadCommCall(call, *api, groups);
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
    CountHit(entry, in != Severity::kFine || out != Severity::kFine);
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
    std::shift_right(place_.previous.begin(), place_.previous.end(), 1);
    place_.previous[0] = entry.begin;
  }

 private:
  // Nothing so bad has come out of an entry or been noted as an input before.
  [[nodiscard]] bool IsNew(Severity in) const { return in > seen_output_ && in > seen_given_; }

  void CountHit(const Scanned& entry, bool is_bad) {
    if (entry.recorded_class.empty()) return;
    uint64_t* const classes = entry.recorded_class == "origin"       ? &scan_.hits_origin
                              : entry.recorded_class == "propagated" ? &scan_.hits_propagated
                                                                     : &scan_.hits_unknown;
    ++*(is_bad ? classes : &scan_.hits_saturated);
  }

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
  PL_TRY_ASSIGN(const dump_json::CallTree tree, dump_json::ReadCallTree(construct_path));
  std::unordered_map<std::string_view, std::string_view> parents;
  for (const auto& row : tree.rows) parents.emplace(row.name, row.parent);
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
  const auto tree = dump_json::ReadCallTree(JoinPath(directory.path, run_files::kConstructJson));
  if (!stacks) scan.notes.push_back(stacks.error().message());
  if (!tree) scan.notes.push_back(tree.error().message());
  scan.calls_searched = std::max(stacks ? stacks->size() : 0, tree ? tree->rows.size() : 0);
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

namespace {

// Parts of the names of functions that communicate; barrier and monitored_barrier move no values.
constexpr std::array<std::string_view, 6> kMoves = {"send",   "recv",   "broadcast",
                                                    "reduce", "gather", "scatter"};
constexpr std::string_view kAllToAll = "all_to_all";
constexpr size_t kNoTag = 1;  // ints before the tag: the peer

std::optional<int64_t> IntOf(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->As<int64_t>()) return *number;
  const Value* member = value->Find("value");
  if (member == nullptr) return std::nullopt;
  const auto* number = member->As<int64_t>();
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::string TextOf(const Value& map, std::string_view key) {
  const Value* member = map.Find(key);
  const auto* text = member != nullptr ? member->As<std::string>() : nullptr;
  return text != nullptr ? *text : std::string();
}

bool IsGroup(const Value& value) {
  return value.Find("group_ranks") != nullptr || value.Find("group_id") != nullptr;
}

constexpr int64_t kNoMember = -100;  // in place of a group: GroupMember.NON_GROUP_MEMBER

// Arguments by position and by keyword.
class Arguments {
 public:
  explicit Arguments(const Call& call) {
    const Value* positional = call.Find(dump_json::kInputArgs);
    if (positional != nullptr) positional_ = positional->As<ValueList>();
    keyword_ = call.Find(dump_json::kInputKwargs);
    const Value* output = call.Find(dump_json::kOutput);
    if (output != nullptr) output_ = output->As<ValueList>();
  }
  [[nodiscard]] const Value* Keyword(std::string_view name) const {
    return keyword_ != nullptr ? keyword_->Find(name) : nullptr;
  }
  // The first of these keywords that is a whole number.
  [[nodiscard]] std::optional<int64_t> KeywordInt(std::string_view name) const {
    return IntOf(Keyword(name));
  }
  // Number `nth` (from 0) among the whole numbers given by position.
  [[nodiscard]] std::optional<int64_t> PositionalInt(size_t nth) const {
    if (positional_ == nullptr) return std::nullopt;
    for (const Value& value : *positional_) {
      const std::optional<int64_t> number = IntOf(&value);
      if (number && nth-- == 0) return number;
    }
    return std::nullopt;
  }
  [[nodiscard]] const Value* Group() const {
    const Value* group = Keyword("group");
    if (group != nullptr && IsGroup(*group)) return group;
    if (positional_ == nullptr) return nullptr;
    const auto found = std::find_if(positional_->begin(), positional_->end(), IsGroup);
    return found != positional_->end() ? &*found : nullptr;
  }
  [[nodiscard]] bool IsOfOthers() const {
    const auto is_no_member = [](const Value& value) { return IntOf(&value) == kNoMember; };
    if (const Value* group = Keyword("group")) return is_no_member(*group);
    return positional_ != nullptr && std::ranges::any_of(*positional_, is_no_member);
  }
  // The operations of batch_isend_irecv.
  [[nodiscard]] const ValueList* Operations() const {
    const Value* list = Keyword("p2p_op_list");
    if (list != nullptr) return list->As<ValueList>();
    // Recorded of its outputs alone, it has them there.
    for (const ValueList* const values : {positional_, output_}) {
      if (values == nullptr || values->empty()) continue;
      if (const auto* operations = values->front().As<ValueList>()) return operations;
    }
    return nullptr;
  }

 private:
  const ValueList* positional_ = nullptr;
  const Value* keyword_ = nullptr;
  const ValueList* output_ = nullptr;
};

int InternGroup(CommGroup group, std::vector<CommGroup>& groups) {
  const auto same = [&](const CommGroup& known) {
    return known.id == group.id && known.ranks == group.ranks && known.name == group.name;
  };
  const auto found = std::find_if(groups.begin(), groups.end(), same);
  if (found != groups.end()) return static_cast<int>(found - groups.begin());
  groups.push_back(std::move(group));
  return static_cast<int>(groups.size()) - 1;
}

int ReadGroup(const Value* value, std::vector<CommGroup>& groups) {
  if (value == nullptr) return -1;
  CommGroup group;
  group.id = TextOf(*value, "group_id");
  const Value* member = value->Find("group_ranks");
  const auto* ranks = member != nullptr ? member->As<ValueList>() : nullptr;
  if (ranks != nullptr) {
    for (const Value& rank : *ranks) {
      if (const std::optional<int64_t> number = IntOf(&rank)) group.ranks.push_back(*number);
    }
  }
  group.name = TextOf(*value, "group_name");
  group.in_order = std::ranges::is_sorted(group.ranks);
  std::ranges::sort(group.ranks);
  if (group.id.empty() && group.ranks.empty()) return -1;
  return InternGroup(std::move(group), groups);
}

// A rank given by one of the keywords for it, relative to the group or not, or by position.
std::optional<int64_t> RankArgument(const Arguments& arguments, std::string_view name,
                                    const CommGroup* group) {
  if (const auto rank = arguments.KeywordInt(name)) return rank;
  const std::string text(name);
  for (const std::string& relative : {"group_" + text, text + "_group"}) {
    const std::optional<int64_t> position = arguments.KeywordInt(relative);
    if (!position) continue;
    if (group == nullptr || group->ranks.empty()) return position;
    const auto index = static_cast<uint64_t>(*position);
    if (index >= group->ranks.size()) return std::nullopt;
    return group->ranks[index];
  }
  return arguments.PositionalInt(0);
}

bool IsSend(std::string_view api) {
  return api == "send" || api == "isend" || api == "send_object_list";
}
bool IsReceive(std::string_view api) {
  return api == "recv" || api == "irecv" || api == "recv_object_list";
}
// Whose values come out: those of one rank.
bool HasSource(std::string_view api) {
  return api.starts_with("broadcast") || api == "scatter" || api == "scatter_object_list";
}
// Who gets something: one rank.
bool HasDestination(std::string_view api) {
  return api == "gather" || api == "reduce" || api == "gather_object";
}

std::vector<PeerTransfer> BatchTransfers(const Arguments& arguments) {
  std::vector<PeerTransfer> transfers;
  const ValueList* operations = arguments.Operations();
  if (operations == nullptr) return transfers;
  for (const Value& operation : *operations) {
    const std::string op = TextOf(operation, "op");
    if (op.empty()) continue;
    PeerTransfer transfer;
    transfer.direction =
        op.find("send") != std::string::npos ? Transfer::kSend : Transfer::kReceive;
    transfer.peer = IntOf(operation.Find("peer"));
    transfer.tag = IntOf(operation.Find("tag")).value_or(0);
    transfers.push_back(transfer);
  }
  return transfers;
}

PeerTransfer OneTransfer(const Arguments& arguments, std::string_view api, const CommGroup* group) {
  PeerTransfer transfer;
  const bool sends = IsSend(api);
  transfer.direction = sends ? Transfer::kSend : Transfer::kReceive;
  transfer.peer = RankArgument(arguments, sends ? "dst" : "src", group);
  transfer.is_object = api.ends_with("_object_list");
  const auto tag = arguments.KeywordInt("tag");
  const auto positional = transfer.is_object ? std::nullopt : arguments.PositionalInt(kNoTag);
  transfer.tag = tag.value_or(positional.value_or(0));
  return transfer;
}

}  // namespace

std::optional<std::string_view> CommunicationApi(std::string_view call_name) {
  const std::optional<CallName> name = ParseCallName(call_name);
  if (!name || name->prefix != "Distributed" || name->kind != CallKind::kForward) {
    return std::nullopt;
  }
  const std::string_view api = name->path;
  const auto contains = [api](std::string_view part) { return api.find(part) != api.npos; };
  if (!contains(kAllToAll) && std::none_of(kMoves.begin(), kMoves.end(), contains)) {
    return std::nullopt;
  }
  return api;
}

std::string_view GroupName(std::span<const CommGroup> groups, int group) {
  if (group < 0) return kDefaultGroupName;
  return groups[static_cast<size_t>(group)].name;
}

bool IsCallOfOthers(const Call& call) { return Arguments(call).IsOfOthers(); }

CommCall ReadCommCall(const Call& call, std::string_view api, std::vector<CommGroup>& groups) {
  CommCall out;
  out.name = call.name;
  out.api = api;
  const Arguments arguments(call);
  out.group = ReadGroup(arguments.Group(), groups);
  const CommGroup* group = out.group >= 0 ? &groups[static_cast<size_t>(out.group)] : nullptr;
  if (api.starts_with("batch_")) {
    out.transfers = BatchTransfers(arguments);
    out.waits = false;
  } else if (IsSend(api) || IsReceive(api)) {
    out.transfers = {OneTransfer(arguments, api, group)};
    out.waits = !api.starts_with('i');
  } else if (HasSource(api)) {
    out.root = RankArgument(arguments, "src", group);
  } else if (HasDestination(api)) {
    out.root = RankArgument(arguments, "dst", group);
  }
  out.has_output = call.Find(dump_json::kOutput) != nullptr;
  return out;
}

}  // namespace plumbline

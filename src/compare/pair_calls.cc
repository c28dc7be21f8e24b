#include "compare/pair_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/text_parts.h"
#include "match/expand.h"
#include "match/layer_mapping.h"
#include "match/mapping_file.h"
#include "match/name_match.h"
#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "plumbline/tensor.h"
#include "verdict/call_rows.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"

namespace plumbline::compare {

namespace {

using match::CallItems;
using match::CallPair;

// Module and line of code of a call, without what differs from run to run: call numbers, wrappers,
// the path of the file and the line's number.
std::string SiteOf(const PairingSide& side, size_t index) {
  const std::string_view name = side.calls[index].name;
  const std::string_view parent = side.run.ParentOf(name);
  std::string site = match::WithoutCallNumber(match::UnwrappedName(parent));
  const std::vector<std::string>& stack = side.run.StackOf(name);
  if (stack.empty()) return site;
  const size_t code = stack.front().find(", in ");
  return site + '\n' + stack.front().substr(code == std::string::npos ? 0 : code);
}

// Empty: none.
std::string WarningOfNames(const PairingSide& side) {
  const auto is_odd = [](const CallItems& call) {
    return !call.items.empty() && !match::HasDirection(call.name);
  };
  const auto count = std::ranges::count_if(side.calls, is_odd);
  if (count == 0) return {};
  const auto first = std::ranges::find_if(side.calls, is_odd);
  return fmt::format(
      "{}: names without forward, backward or parameters_grad: {}, such as {}; compared "
      "by name alone",
      side.run.dump_json_path(), count, first->name);
}

Status ApplyNameMappings(const PairingSide& target, const PairingSide& golden,
                         const MappingFiles& files, Comparison& comparison) {
  if (files.cell) {
    match::TextPairs pairs;
    if (!files.cell->empty()) {
      PL_TRY_ASSIGN(pairs, match::ReadCellMapping(*files.cell));
    }
    match::MapCells(pairs, target.calls);
  }
  const bool to_torch =
      target.run.header().framework != "pytorch" && golden.run.header().framework == "pytorch";
  if (to_torch && (files.cell || files.api)) match::MapParameters(golden.calls, target.calls);
  if (!files.api) return {};
  if (target.run.header().framework == "pytorch") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: an API mapping needs a MindSpore recording on the target's side "
                             "(expected framework mindspore, got pytorch)",
                             target.run.dump_json_path()));
  }
  match::ApiRules rules;
  if (!files.api->empty()) {
    PL_TRY_ASSIGN(rules, match::ReadApiMapping(*files.api));
  }
  for (std::string& skipped : rules.skipped) comparison.warnings.push_back(std::move(skipped));
  match::MapApis(rules.rules, golden.calls, target.calls);
  return {};
}

Result<match::TextPairs> MapLayers(const PairingSide& target, const PairingSide& golden,
                                   const std::string& path) {
  std::vector<match::LayerRules> rules;
  if (!path.empty()) {
    PL_TRY_ASSIGN(rules, match::ReadLayerMapping(path));
  }
  const auto side_of = [](const PairingSide& side) {
    return match::LayerSide{side.calls, side.run.header().framework != "pytorch",
                            [&side](std::string_view name) { return side.run.ParentOf(name); },
                            [&side](std::string_view name) { return side.run.StackOf(name); }};
  };
  return match::DataMappingByLayers(side_of(target), side_of(golden), rules);
}

// The values of calls that a person paired, as lines of a data mapping: those of the same part.
match::TextPairs ValuesByHand(const match::TextPairs& by_hand, const std::vector<CallItems>& target,
                              const std::vector<CallItems>& golden) {
  match::TextPairs lines;
  if (by_hand.empty()) return lines;
  const auto by_name = [](const std::vector<CallItems>& calls) {
    std::unordered_map<std::string_view, const CallItems*> found;
    for (const CallItems& call : calls) found.emplace(call.name, &call);
    return found;
  };
  const auto targets = by_name(target), goldens = by_name(golden);
  for (const auto& [target_name, golden_name] : by_hand) {
    const auto ours = targets.find(target_name), theirs = goldens.find(golden_name);
    if (ours == targets.end() || theirs == goldens.end()) continue;
    for (const Item& item : ours->second->items) {
      if (!item.name.starts_with(target_name)) continue;
      std::string other =
          golden_name + std::string(std::string_view(item.name).substr(target_name.size()));
      const bool is_there =
          std::ranges::any_of(theirs->second->items,
                              [&](const Item& golden_item) { return golden_item.name == other; });
      if (is_there) lines.emplace_back(item.name, std::move(other));
    }
  }
  return lines;
}

// Of recordings of merged ranks, whole numbers, sizes and groups of ranks among the arguments are
// those of one rank's part.
void DropSizes(std::vector<CallItems>& calls) {
  constexpr std::string_view kSizes[] = {"<class 'int'>", "torch.Size", "slice",
                                         "torch.ProcessGroup"};
  const auto is_size = [&](const Item& item) {
    const bool is_argument = item.role == ItemRole::kInput && !item.is_tensor && item.dtype;
    return is_argument && std::ranges::any_of(kSizes, [&](std::string_view size) {
             return std::string_view(*item.dtype) == size;
           });
  };
  for (CallItems& call : calls) std::erase_if(call.items, is_size);
}

}  // namespace

Result<std::vector<CallPair>> PairCalls(const PairingSide& target, const PairingSide& golden,
                                        const CompareOptions& options,
                                        const match::TextPairs& by_hand, Comparison& comparison) {
  const MappingFiles& files = options.mappings;
  const bool across = target.run.header().framework != golden.run.header().framework;
  // The ranks of merged recordings number their calls on their own.
  const bool is_merged = target.run.header().is_merged || golden.run.header().is_merged;
  if (is_merged) {
    DropSizes(target.calls);
    DropSizes(golden.calls);
  }
  const match::MatchOptions rules{
      // Names of saved values hold no call number that could be ignored.
      .fuzzy = (options.fuzzy_match || is_merged) && !comparison.of_saves,
      .items = {.by_kind = across, .any_shape = is_merged},
      .target_site = [&](size_t i) { return SiteOf(target, i); },
      .golden_site = [&](size_t i) { return SiteOf(golden, i); },
  };
  if (!comparison.of_saves) {
    std::string of_target, of_golden;
    RunBoth([&] { of_target = WarningOfNames(target); },
            [&] { of_golden = WarningOfNames(golden); });
    for (std::string* warning : {&of_target, &of_golden}) {
      if (!warning->empty()) comparison.warnings.push_back(std::move(*warning));
    }
  }
  const int kinds =
      (files.data.empty() ? 0 : 1) + (files.layer ? 1 : 0) + (files.api || files.cell ? 1 : 0);
  if (kinds > 1) {
    return Error(ErrorCode::kInvalidArgument,
                 "a data or layer mapping stands alone (expected one of --data_mapping, "
                 "--layer_mapping, or --api_mapping and --cell_mapping)");
  }
  match::TextPairs mapping = ValuesByHand(by_hand, target.calls, golden.calls);
  const bool is_by_hand = !mapping.empty();
  if (!files.data.empty()) {
    PL_TRY_ASSIGN(const match::TextPairs lines, match::ReadDataMapping(files.data));
    mapping.insert(mapping.end(), lines.begin(), lines.end());
  } else if (files.layer) {
    PL_TRY_ASSIGN(comparison.data_mapping, MapLayers(target, golden, *files.layer));
    mapping.insert(mapping.end(), comparison.data_mapping.begin(), comparison.data_mapping.end());
  } else {
    PL_TRY(ApplyNameMappings(target, golden, files, comparison));
    if (!is_by_hand) return match::MatchCalls(target.calls, golden.calls, rules);
  }
  return match::MatchByValues(target.calls, golden.calls, mapping, rules, comparison.warnings);
}

namespace {

Error TaskError(const Run& run, std::string_view problem) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", run.dump_json_path(), problem));
}

// Tasks that look for something while recording, and keep no values of the other calls.
bool IsSearch(std::string_view task) {
  return task == "overflow_check" || task == "nan_check" || task == "diff_check";
}

std::string SearchAdvice(std::string_view task, const PairingSide& side) {
  const std::string_view directory = DirectoryOf(side.run.dump_json_path());
  const std::string answer =
      task == "diff_check"
          ? fmt::format("`plumb inspect {}` lists the tensors of the calls that differed",
                        directory)
          : fmt::format("`plumb overflow {}` names the first NaN or Inf", directory);
  return fmt::format(
      "was recorded with task {}, which has no values to compare of most calls (expected tensor or "
      "statistics). {}; to compare, record both sides with task statistics.",
      task, answer);
}

}  // namespace

namespace {

// Hashes of logs stand against hashes that were taken in the same way, and no checksums.
Status CheckLogs(const Run& target, const Run& golden) {
  for (const Run* run : {&target, &golden}) {
    if (run->header().log_form.empty() || !run->header().digest_kind.empty()) continue;
    return TaskError(*run,
                     fmt::format("{} without hashes (expected what it holds within "
                                 "DebugMode.log_tensor_hashes()): there is nothing to compare",
                                 run->header().log_form));
  }
  const auto name = [](const std::string& text) {
    return text.empty() ? std::string_view("a recording") : std::string_view(text);
  };
  if (target.header().log_form != golden.header().log_form) {
    return TaskError(target, fmt::format("{}, but {} is {}. Compare two of one form.",
                                         name(target.header().log_form), golden.dump_json_path(),
                                         name(golden.header().log_form)));
  }
  if (target.header().digest_kind == golden.header().digest_kind) return {};
  return TaskError(target, fmt::format("its hashes are {}, but those of {} are {}. Log both sides "
                                       "with the same hash_fn.",
                                       target.header().digest_kind, golden.dump_json_path(),
                                       golden.header().digest_kind));
}

}  // namespace

Result<CompareMode> ModeOf(const PairingSide& target, const PairingSide& golden,
                           bool has_data_mapping) {
  PL_TRY(CheckLogs(target.run, golden.run));
  for (const PairingSide* side : {&target, &golden}) {
    const std::string& task = side->run.header().task;
    if (task.empty()) return TaskError(side->run, "has no task (expected tensor or statistics)");
    if (IsSearch(task)) return TaskError(side->run, SearchAdvice(task, *side));
    if (task != "tensor" && task != "statistics") {
      return TaskError(side->run, fmt::format("task {} cannot be compared (expected tensor or "
                                              "statistics)",
                                              task));
    }
  }
  if (target.run.header().of_graphs != golden.run.header().of_graphs && !has_data_mapping) {
    const Run& run = target.run.header().of_graphs ? golden.run : target.run;
    return TaskError(run,
                     "no static-graph dump, as the other side is (expected two of one kind, or "
                     "-dm FILE, which says what stands against what)");
  }
  if (target.run.header().holds_saves() != golden.run.header().holds_saves()) {
    return TaskError(target.run,
                     fmt::format("level is {}, but {} has level {}; saved values cannot "
                                 "be compared with calls. Name two debug.json or two "
                                 "dump.json.",
                                 target.run.header().level, golden.run.dump_json_path(),
                                 golden.run.header().level));
  }
  const std::string& task = target.run.header().task;
  const bool same_task = task == golden.run.header().task;
  // Of two graphs both have statistics: FillGraphStatistics().
  const bool are_graphs = target.run.header().of_graphs && golden.run.header().of_graphs;
  if (!same_task && !are_graphs) {
    return TaskError(target.run,
                     fmt::format("task is {}, but {} has task {}. Record both sides "
                                 "with the same task.",
                                 task, golden.run.dump_json_path(), golden.run.header().task));
  }
  if (same_task && task == "tensor") return CompareMode::kTensor;
  const bool target_digests = match::HasDigests(target.calls);
  const bool golden_digests = match::HasDigests(golden.calls);
  if (target_digests != golden_digests && !target.calls.empty() && !golden.calls.empty()) {
    const PairingSide& with = target_digests ? target : golden;
    const PairingSide& without = target_digests ? golden : target;
    return TaskError(with.run, fmt::format("holds md5 digests, but {} does not. Record both sides "
                                           "with the same summary_mode.",
                                           without.run.dump_json_path()));
  }
  if (!target_digests || !golden_digests) return CompareMode::kStatistics;
  const std::string_view one = match::FirstDigest(target.calls),
                         other = match::FirstDigest(golden.calls);
  if (!measure::AreOfOneForm(one, other)) {
    return TaskError(target.run,
                     fmt::format("holds digests as {}, {} as {}. Record both sides with the same "
                                 "summary_mode.",
                                 one, golden.run.dump_json_path(), other));
  }
  return CompareMode::kDigest;
}

namespace {

// Whether it holds arguments of one side alone, of the pair before it.
bool IsDefault(const CallPair& pair) { return pair.reason == CallPair::kDefault; }

// "eps=1e-06", or "input.1=0.2" where it has a place only.
std::string ArgumentText(const Item& item, std::string_view call_name) {
  constexpr std::string_view kInput = "input.";
  std::string_view name = measure::ShortName(item, call_name);
  const bool has_keyword = name.starts_with(kInput) && name.size() > kInput.size() &&
                           (name[kInput.size()] < '0' || name[kInput.size()] > '9');
  if (has_keyword) name.remove_prefix(kInput.size());
  return fmt::format("{}={}", name, verdict::ShownValue(item.statistics[0]));
}

std::string DetailOf(const DefaultArguments& arguments, std::string_view call_name) {
  std::string list;
  for (const Item& item : arguments.items) {
    if (!list.empty()) list += ", ";
    list += ArgumentText(item, call_name);
  }
  return arguments.of_target
             ? fmt::format("only the target passes {}, which golden leaves to its default", list)
             : fmt::format("only golden passes {}, which the target leaves to its default", list);
}

// What calls of one side alone read and return: what is done there may stand for the argument.
class LoneValues {
 public:
  LoneValues(const std::vector<CallItems>& target, const std::vector<CallItems>& golden)
      : target_(target), golden_(golden) {}

  void AddCallsOf(const CallPair& pair) {
    if (pair.target != CallPair::kNone) Add(target_[pair.target], of_target_);
    if (pair.golden != CallPair::kNone) Add(golden_[pair.golden], of_golden_);
  }
  // Whether the pair reads what such a call made, or makes what one reads.
  [[nodiscard]] bool Meet(const CallPair& pair) const {
    return Meets(target_[pair.target], of_target_) || Meets(golden_[pair.golden], of_golden_);
  }

 private:
  struct Side {
    std::unordered_set<verdict::ContentKey, verdict::ContentKeyHash> read, made;
  };

  static void Add(const CallItems& call, Side& side) {
    if (call.kind != CallKind::kForward) return;
    for (const Item& item : call.items) {
      const auto key =
          item.is_tensor && verdict::IsTelling(item) ? verdict::KeyOf(item) : std::nullopt;
      if (key) (measure::IsInput(item) ? side.read : side.made).insert(*key);
    }
  }
  static bool Meets(const CallItems& call, const Side& side) {
    return std::ranges::any_of(call.items, [&](const Item& item) {
      const auto key =
          item.is_tensor && verdict::IsTelling(item) ? verdict::KeyOf(item) : std::nullopt;
      return key && (measure::IsInput(item) ? side.made : side.read).contains(*key);
    });
  }

  const std::vector<CallItems>& target_;
  const std::vector<CallItems>& golden_;
  Side of_target_, of_golden_;
};

// Parts a pair whose arguments are the next entry, into calls of another form.
CallPair PartCalls(const CallItems& target, const CallItems& golden, CallPair& pair,
                   CallPair& arguments) {
  const bool of_target = arguments.target != CallPair::kNone;
  const auto& [a, b] = arguments.links.front();
  const Item& first = of_target ? target.items[a] : golden.items[b];
  CallPair other;
  other.golden = pair.golden;
  other.counterpart = pair.target;
  pair.counterpart = pair.golden;
  pair.golden = CallPair::kNone;
  pair.rule = {};
  pair.links.clear();
  for (CallPair* each : {&pair, &other}) {
    each->reason = "structure-differs";
    each->detail = fmt::format("only {} has {}", of_target ? "target" : "golden", first.name);
    each->role = first.role;
  }
  return other;
}

// Pairs beside which one side makes calls of its own are parted: a sum instead of a mean is divided
// there, say.
void PartEquivalentCalls(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
                         std::vector<CallPair>& pairs) {
  LoneValues lone(target, golden);
  for (const CallPair& pair : pairs) {
    if (!pair.paired() && !IsDefault(pair) && pair.reason != "recomputed") lone.AddCallsOf(pair);
  }
  std::vector<CallPair> alone;
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 1; i < pairs.size(); ++i) {
      CallPair& pair = pairs[i - 1];
      if (!IsDefault(pairs[i]) || !pair.paired() || !lone.Meet(pair)) continue;
      alone.push_back(PartCalls(target[pair.target], golden[pair.golden], pair, pairs[i]));
      lone.AddCallsOf(pair);
      lone.AddCallsOf(alone.back());
      again = true;
    }
  }
  pairs.insert(pairs.end(), std::make_move_iterator(alone.begin()),
               std::make_move_iterator(alone.end()));
}

// The call of the arguments alone.
ComparedCall CallOf(const DefaultArguments& arguments, const ComparedCall& pair) {
  ComparedCall call;
  (arguments.of_target ? call.target_name : call.golden_name) =
      arguments.of_target ? pair.target_name : pair.golden_name;
  call.unmatched_reason = CallPair::kDefault;
  return call;
}

ComparedRow RowOf(const Item& item, bool of_target, CompareMode mode) {
  ComparedRow row;
  (of_target ? row.target : row.golden) = Item(item);
  row.result = mode == CompareMode::kTensor ? "None" : "N/A";
  row.reason = CallPair::kDefault;
  row.AddNote({std::string(CallPair::kDefault),
               "Only this side passes the argument; the other leaves it to its default."});
  return row;
}

std::vector<ComparedRow> RowsOf(const DefaultArguments& arguments, CompareMode mode) {
  std::vector<ComparedRow> rows;
  for (const Item& item : arguments.items) rows.push_back(RowOf(item, arguments.of_target, mode));
  return rows;
}

// Whether equal inputs give results that are not equal, be it by rounding, or statistics of narrow
// types cannot tell: then the argument may be another than the default, whose effect is as small.
bool MayDifferByItself(std::span<const ComparedRow> rows, CompareMode mode) {
  bool differs = false;
  for (const ComparedRow& row : rows) {
    if (!measure::HasTensors(row)) continue;
    const bool is_rounded = row.verdict == Verdict::kWithinNoise;
    if (is_rounded && measure::IsInput(row)) return false;
    const bool is_coarse =
        mode == CompareMode::kStatistics &&
        measure::RoundoffOf(*row.golden, *row.golden) > UnitRoundoff(DType::kFloat32);
    differs = differs || (!measure::IsInput(row) && (is_rounded || is_coarse));
  }
  return differs;
}

// How many of the arguments of a judged pair may act although nothing is wrong in what it returns.
size_t CountThatMayAct(const DefaultArguments& arguments, const ComparedCall& pair,
                       std::span<const ComparedRow> rows, CompareMode mode) {
  if (MayDifferByItself(rows, mode)) return arguments.items.size();
  return static_cast<size_t>(std::ranges::count_if(arguments.items, [&](const Item& item) {
    const ComparedRow row = RowOf(item, arguments.of_target, CompareMode::kStatistics);
    return verdict::MayActUnseen(row, measure::NameOn(pair, arguments.of_target), rows);
  }));
}

void WarnOf(const std::vector<std::string>& unsure, Comparison& comparison) {
  constexpr size_t kMostNamed = 5;
  for (size_t i = 0; i < std::min(unsure.size(), kMostNamed); ++i) {
    comparison.warnings.push_back(unsure[i] + "; what it does cannot be told from rounding");
  }
  if (unsure.size() > kMostNamed) {
    comparison.warnings.push_back(fmt::format("{} more calls take such arguments on one side alone",
                                              unsure.size() - kMostNamed));
  }
}

}  // namespace

std::vector<DefaultArguments> TakeDefaultArguments(std::vector<CallPair>& pairs,
                                                   const std::vector<CallItems>& target,
                                                   const std::vector<CallItems>& golden) {
  if (std::ranges::none_of(pairs, IsDefault)) return {};
  PartEquivalentCalls(target, golden, pairs);
  std::vector<DefaultArguments> taken;
  size_t kept = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    CallPair& pair = pairs[i];
    if (!IsDefault(pair) || kept == 0) {
      if (kept != i) pairs[kept] = std::move(pair);
      ++kept;
      continue;
    }
    if (!pairs[kept - 1].paired()) continue;
    DefaultArguments& arguments = taken.emplace_back();
    arguments.call = static_cast<uint32_t>(kept - 1);
    arguments.of_target = pair.target != CallPair::kNone;
    const CallItems& call = arguments.of_target ? target[pair.target] : golden[pair.golden];
    for (const auto& [a, b] : pair.links) {
      arguments.items.push_back(call.items[arguments.of_target ? a : b]);
    }
    pairs[kept - 1].detail = DetailOf(arguments, call.name);
  }
  pairs.resize(kept);
  return taken;
}

void AddDefaultArguments(std::vector<DefaultArguments> arguments, Comparison& comparison) {
  if (arguments.empty()) return;
  std::vector<ComparedCall> calls;
  std::vector<ComparedRow> rows;
  calls.reserve(comparison.calls.size() + arguments.size());
  const auto add = [&](ComparedCall call, auto begin, auto end) {
    call.first_row = static_cast<uint32_t>(rows.size());
    call.row_count = static_cast<uint32_t>(end - begin);
    rows.insert(rows.end(), std::move_iterator(begin), std::move_iterator(end));
    for (ComparedRow& row : std::span(rows).last(call.row_count)) {
      row.call = static_cast<uint32_t>(calls.size());
    }
    calls.push_back(std::move(call));
  };
  std::vector<std::string> unsure;
  auto next = arguments.begin();
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& pair = comparison.calls[i];
    for (auto each = next; each != arguments.end() && each->call == i; ++each) {
      const auto own = measure::RowsOf(comparison, pair);
      const size_t count = CountThatMayAct(*each, pair, own, comparison.mode);
      comparison.counts.missing_values += count;
      if (count > 0) unsure.push_back(pair.name() + ": " + pair.unmatched_detail);
    }
    const auto own = comparison.rows.begin() + pair.first_row;
    add(pair, own, own + pair.row_count);
    for (; next != arguments.end() && next->call == i; ++next) {
      std::vector<ComparedRow> alone = RowsOf(*next, comparison.mode);
      add(CallOf(*next, pair), alone.begin(), alone.end());
    }
  }
  comparison.calls = std::move(calls);
  comparison.rows = std::move(rows);
  WarnOf(unsure, comparison);
}

namespace {

// Whether a directory of `path` is called one of `words`, alone or as a part between '_', '-', '.'.
bool Says(std::string_view path, std::span<const std::string_view> words) {
  size_t begin = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    const bool is_end = i == path.size() || std::string_view("/_-.").find(path[i]) != path.npos;
    if (!is_end) continue;
    if (std::ranges::count(words, path.substr(begin, i - begin)) > 0) return true;
    begin = i + 1;
  }
  return false;
}

// The two without the directories that both lie in.
void DropCommon(std::string_view& a, std::string_view& b) {
  size_t common = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '/') common = i + 1;
  }
  a.remove_prefix(common);
  b.remove_prefix(common);
}

// By this program's own words for the two sides, and upstream's.
std::string SwappedText(const Comparison& comparison) {
  constexpr std::string_view kTarget[] = {"target", "npu"};
  constexpr std::string_view kGolden[] = {"golden", "bench"};
  std::string_view target = comparison.target_path, golden = comparison.golden_path;
  DropCommon(target, golden);
  const bool are_swapped = Says(target, kGolden) && Says(golden, kTarget) &&
                           !Says(target, kTarget) && !Says(golden, kGolden);
  if (!are_swapped) return {};
  return fmt::format(
      "the first path is the run under test (got {}), the second the reference (got {}): are they "
      "swapped?",
      comparison.target_path, comparison.golden_path);
}

std::string LevelText(const Run& target, const Run& golden) {
  const std::string& left = target.header().level;
  const std::string& right = golden.header().level;
  if (left.empty() || right.empty() || left == right) return {};
  return fmt::format(
      "target was recorded at level {}, golden at level {}: only calls of both levels can be "
      "compared. Record both at one level",
      left, right);
}

// The number of the last directory step{number} of a path.
std::optional<int64_t> StepOf(std::string_view path) {
  std::optional<int64_t> step;
  for (const std::string_view part : SplitAt(path, '/')) {
    if (!part.starts_with("step")) continue;
    if (const auto number = ParseNatural(part.substr(4))) step = number;
  }
  return step;
}

std::string StepText(const Comparison& comparison) {
  const auto target = StepOf(comparison.target_path), golden = StepOf(comparison.golden_path);
  if (!target || !golden || *target == *golden) return {};
  return fmt::format("target is step {}, golden is step {}: other steps have other numbers",
                     *target, *golden);
}

// Calls without any counterpart, not those that differ from it.
std::string ModelText(const Comparison& comparison) {
  uint64_t paired = 0, target = 0, golden = 0;
  for (const ComparedCall& call : comparison.calls) {
    paired += call.paired() ? 1 : 0;
    target += call.unmatched_reason == "no-golden" ? 1 : 0;
    golden += call.unmatched_reason == "no-target" ? 1 : 0;
  }
  const uint64_t all = paired + std::max(target, golden);
  if (target == 0 || golden == 0 || 2 * paired >= all) return {};
  return fmt::format("{} of {} calls paired: are these the same model?", paired, all);
}

}  // namespace

void WarnOfUnlikeRuns(const Run& target, const Run& golden, Comparison& comparison) {
  if (comparison.of_saves || target.header().of_graphs || golden.header().of_graphs) return;
  std::vector<std::string> said = {SwappedText(comparison), LevelText(target, golden),
                                   StepText(comparison)};
  // Levels that differ say why so few calls pair.
  if (said[1].empty()) said.push_back(ModelText(comparison));
  std::erase(said, std::string());
  comparison.warnings.insert(comparison.warnings.begin(), said.begin(), said.end());
}

}  // namespace plumbline::compare

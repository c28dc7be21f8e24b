#include "ranks/collective_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "load/detect.h"
#include "load/rank_scan.h"
#include "match/comm_graph.h"
#include "ranks/comm_values.h"
#include "record/run_files.h"

namespace plumbline::ranks {

namespace {

constexpr std::string_view kNoPartner =
    "a rank that takes part recorded another number of these calls, or is not in the recording";
constexpr std::string_view kNoStatistics = "no statistics that could tell";
constexpr std::string_view kSameSlices =
    "slices of one constant value, of few elements or whole numbers, or of the same inputs, may "
    "be equal";
constexpr std::string_view kLeftOut = "not every rank of the step was compared";
constexpr std::string_view kNoOrder =
    "the ranks of the group were recorded in another order than ascending, so whose a part is is "
    "not known";

// What should hold. kGathered and kGatheredWhole: one tensor of each rank, or one of all together.
enum class RuleKind : uint8_t {
  kEqual,
  kCopies,
  kGathered,
  kGatheredWhole,
  kSlices,
  kScattered,
  kParts,
  kTogether
};

struct CollectiveRule {
  std::string_view api;
  RuleKind kind;
  TransferArguments arguments;
};

constexpr std::array<CollectiveRule, 13> kRules = {{
    {"all_reduce", RuleKind::kEqual, {"tensor", {}}},
    {"broadcast", RuleKind::kCopies, {"tensor", "tensor", 0}},
    {"all_gather", RuleKind::kGathered, {"tensor_list", "tensor"}},
    {"all_gather_into_tensor", RuleKind::kGatheredWhole, {"output_tensor", "input_tensor"}},
    {"all_gather_single", RuleKind::kGatheredWhole, {"output_tensor", "input_tensor"}},
    {"_all_gather_base", RuleKind::kGatheredWhole, {"output_tensor", "input_tensor"}},
    {"scatter", RuleKind::kScattered, {"tensor", "scatter_list"}},
    {"reduce_scatter", RuleKind::kSlices, {"output", "input_list"}},
    {"reduce_scatter_tensor", RuleKind::kSlices, {"output", "input"}},
    {"reduce_scatter_single", RuleKind::kSlices, {"output", "input"}},
    {"_reduce_scatter_base", RuleKind::kSlices, {"output", "input"}},
    {"all_to_all", RuleKind::kParts, {"output_tensor_list", "input_tensor_list"}},
    {"all_to_all_single", RuleKind::kTogether, {"output", "input"}},
}};

constexpr std::string_view kMessageRule = "what arrives is what was sent";
constexpr std::string_view kSourceRule = "every rank has what its source gave";

std::string_view RuleText(RuleKind kind) {
  switch (kind) {
    case RuleKind::kEqual:
    case RuleKind::kCopies:
    case RuleKind::kGathered:
    case RuleKind::kGatheredWhole:
      return "the outputs are equal on all ranks of the group";
    case RuleKind::kSlices:
      return "each rank has a slice of its own";
    case RuleKind::kScattered:
    case RuleKind::kParts:
      return "each part is what its sender addressed to the rank";
    case RuleKind::kTogether:
      return "all ranks together have what all of them sent";
  }
  return "";
}

const CollectiveRule* RuleOf(std::string_view api) {
  const auto* const found = std::ranges::find(kRules, api, &CollectiveRule::api);
  return found == kRules.end() ? nullptr : found;
}

// The calls of one step.

struct ScannedRank {
  RankScan scan;
  std::vector<CallValues> values;  // as scan.calls
};

Status ReadRank(const load::RankDirectory& directory, ScannedRank& rank) {
  rank.scan.directory = directory;
  const bool is_file = KindOf(directory.path) == PathKind::kFile;
  const std::string folder = is_file ? std::string(DirectoryOf(directory.path)) : directory.path;
  const std::string path =
      is_file ? directory.path : JoinPath(directory.path, run_files::kDumpJson);
  const bool is_ours = KindOf(JoinPath(folder, run_files::kRunMark)) == PathKind::kFile;
  std::unordered_map<std::string, size_t> slots;
  const auto visit = [&](dump_json::VisitedCall&& visited) {
    const auto api = CommunicationApi(visited.call.name);
    if (!api || IsCallOfOthers(visited.call)) return;
    CommCall comm = ReadCommCall(visited.call, *api, rank.scan.groups);
    const CollectiveRule* const rule = RuleOf(comm.api);
    CallValues values = ValuesOf(visited.call, comm,
                                 rule == nullptr ? TransferArguments{} : rule->arguments, is_ours);
    if (!visited.problem.empty()) values.unjudged = kNotComplete;
    const auto [slot, is_new] = slots.try_emplace(visited.call.name, rank.scan.calls.size());
    if (is_new) {
      rank.scan.calls.push_back(std::move(comm));
      rank.values.push_back(std::move(values));
    } else {
      rank.scan.calls[slot->second] = std::move(comm);
      rank.values[slot->second] = std::move(values);
    }
  };
  PL_TRY_ASSIGN(const dump_json::DumpFile file, dump_json::VisitDumpFile(path, true, visit));
  rank.scan.truncated = file.loss.truncated;
  if (load::StateOf(folder).unfinished) {
    rank.scan.notes.push_back(fmt::format("{}: {}", path, load::UnfinishedText(folder)));
  }
  return {};
}

class StepCheck {
 public:
  StepCheck(std::span<const load::RankDirectory> ranks, std::optional<int64_t> step,
            CollectiveReport& report)
      : step_(step), report_(report) {
    for (const load::RankDirectory& directory : ranks) {
      if (!directory.rank) {
        report.notes.push_back(directory.path + ": a process without a rank");
        continue;
      }
      ScannedRank rank;
      const Status read = ReadRank(directory, rank);
      if (!read) {
        // It stays a member of its groups, without calls.
        rank = {};
        rank.scan.directory = directory;
        report.notes.push_back(read.error().message());
      } else if (rank.scan.truncated) {
        report.notes.push_back(directory.path + ": dump.json is cut or damaged");
      }
      std::ranges::move(rank.scan.notes, std::back_inserter(report.notes));
      scans_.push_back(std::move(rank.scan));
      values_.push_back(std::move(rank.values));
    }
    if (ranks.empty()) return;
    const auto all = load::ListRankDirectories(std::string(DirectoryOf(ranks.front().path)));
    lacks_ranks_ = (all && all->size() > ranks.size()) || LacksRanks();
    graph_ = BuildCommGraph(scans_);
  }

  void Run() {
    CountMessages();
    FindUneven();
    FindOrders();
    for (const CommLink& link : graph_.links) {
      if (link.is_message) {
        JudgeMessage(link);
      } else if (const CollectiveRule* rule = RuleOf(link.api)) {
        JudgeCollective(link, *rule);
      }
    }
  }

 private:
  // Ranks that are there tell of others: numbers up to theirs are missing, or a list with a tensor
  // of every rank is longer than the recording has ranks.
  [[nodiscard]] bool LacksRanks() const {
    const auto count = static_cast<int64_t>(scans_.size());
    for (size_t rank = 0; rank < scans_.size(); ++rank) {
      if (*scans_[rank].directory.rank >= count) return true;
      for (size_t call = 0; call < scans_[rank].calls.size(); ++call) {
        const CommNode node{rank, call};
        const std::string_view api = CallOf(node).api;
        if (!IsOfAll(node) || (api != "all_gather" && api != "all_to_all")) continue;
        if (ValuesOfNode(node).received.size() > scans_.size()) return true;
      }
    }
    return false;
  }
  [[nodiscard]] const CommCall& CallOf(const CommNode& node) const {
    return scans_[node.rank].calls[node.call];
  }
  [[nodiscard]] const CallValues& ValuesOfNode(const CommNode& node) const {
    return values_[node.rank][node.call];
  }
  [[nodiscard]] int64_t RankOf(const CommNode& node) const {
    return *scans_[node.rank].directory.rank;
  }
  [[nodiscard]] std::string PlaceText(const CommNode& node) const {
    return fmt::format("{}rank {} {}", step_ ? fmt::format("step {} ", *step_) : "", RankOf(node),
                       CallOf(node).name);
  }
  // "rank 0 Distributed.send.0.forward input_args.0"
  [[nodiscard]] std::string SourceText(const CommNode& node, const std::string& item) const {
    return fmt::format("rank {} {} {}", RankOf(node), CallOf(node).name, item);
  }
  // Null: all ranks, or a group of which the ranks are not known.
  [[nodiscard]] const CommGroup* GroupOf(const CommNode& node) const {
    const int group = CallOf(node).group;
    return group < 0 ? nullptr : &scans_[node.rank].groups[static_cast<size_t>(group)];
  }
  [[nodiscard]] std::vector<int64_t> MembersOf(const CommNode& node) const {
    const CommGroup* const group = GroupOf(node);
    if (group != nullptr && !group->ranks.empty()) return group->ranks;
    std::vector<int64_t> all;
    for (const RankScan& scan : scans_) all.push_back(*scan.directory.rank);
    return all;
  }
  [[nodiscard]] bool IsOfAll(const CommNode& node) const {
    const CommGroup* const group = GroupOf(node);
    return group == nullptr || group->ranks.empty();
  }
  [[nodiscard]] std::string KeyOf(const CommLink& link) const {
    return fmt::format("{} {}", link.api, fmt::join(MembersOf(link.to.front()), ","));
  }

  void AddUnjudged(std::string_view reason, const CommNode& first, uint64_t calls = 1) {
    report_.not_judged += calls;
    const auto known = std::ranges::find(report_.reasons, reason, &UnjudgedCollectives::reason);
    if (known != report_.reasons.end()) {
      known->calls += calls;
    } else {
      report_.reasons.push_back({std::string(reason), calls, PlaceText(first)});
    }
  }

  // Messages.

  struct Ends {
    uint64_t sends = 0, receives = 0;
    CommNode first;
  };
  [[nodiscard]] std::string MessageKey(const CommNode& node, const PeerTransfer& transfer) const {
    const bool receives = transfer.direction == Transfer::kReceive;
    const int64_t self = RankOf(node);
    return fmt::format("{} {} {} {}", receives ? *transfer.peer : self,
                       receives ? self : *transfer.peer, transfer.tag, transfer.is_object);
  }

  void CountEnds(const CommNode& node) {
    for (const PeerTransfer& transfer : CallOf(node).transfers) {
      if (!transfer.peer) {
        AddUnjudged(kNoPartner, node);
        continue;
      }
      Ends& ends =
          messages_.try_emplace(MessageKey(node, transfer), Ends{0, 0, node}).first->second;
      ++(transfer.direction == Transfer::kSend ? ends.sends : ends.receives);
    }
  }

  // Where one end recorded more than the other, which belong together is not known.
  void CountMessages() {
    for (size_t rank = 0; rank < scans_.size(); ++rank) {
      for (size_t call = 0; call < scans_[rank].calls.size(); ++call) CountEnds({rank, call});
    }
    for (const auto& [key, ends] : messages_) {
      if (ends.sends == ends.receives) continue;
      AddUnjudged(kNoPartner, ends.first, std::max(ends.sends, ends.receives));
    }
  }

  void JudgeMessage(const CommLink& link) {
    const CommNode from = link.from.front(), to = link.to.front();
    const PeerTransfer& transfer = CallOf(from).transfers[link.from_transfer];
    const Ends& ends = messages_.at(MessageKey(from, transfer));
    if (ends.sends != ends.receives) return;  // counted already
    const CallValues& at_receiver = ValuesOfNode(to);
    if (!at_receiver.unjudged.empty()) return AddUnjudged(at_receiver.unjudged, to);
    const auto& sent = ValuesOfNode(from).transfers[link.from_transfer].before;
    const auto& received = at_receiver.transfers[link.to_transfer].after;
    if (!sent || !received) return AddUnjudged(kNoStatistics, to);
    Mismatch mismatch;
    const Agreement agreement = CompareRecords(sent->record, received->record, mismatch);
    if (agreement == Agreement::kUnknown) return AddUnjudged(kNoStatistics, to);
    if (agreement == Agreement::kAgree) {
      ++report_.held;
      return;
    }
    CollectiveViolation& wrong = AddViolation(kMessageRule, to, {RankOf(from), RankOf(to)});
    wrong.ranks = {RankOf(to)};
    Describe(mismatch, received->path, SourceText(from, sent->path), wrong);
  }

  // Collectives.

  void FindUneven() {
    for (const CommLink& link : graph_.links) {
      if (link.is_message || RuleOf(link.api) == nullptr) continue;
      if (link.to.size() < MembersOf(link.to.front()).size()) uneven_[KeyOf(link)] = true;
    }
  }

  void JudgeCollective(const CommLink& link, const CollectiveRule& rule) {
    const CommNode first = link.to.front();
    if (IsOfAll(first) && lacks_ranks_) return AddUnjudged(kLeftOut, first);
    if (uneven_.contains(KeyOf(link)) || (IsOfAll(first) && link.to.size() < 2)) {
      return AddUnjudged(kNoPartner, first);
    }
    for (const CommNode& node : link.to) {
      const CallValues& values = ValuesOfNode(node);
      if (!values.unjudged.empty()) return AddUnjudged(values.unjudged, node);
      if (values.received.empty()) return AddUnjudged(kNoStatistics, node);
    }
    switch (rule.kind) {
      case RuleKind::kEqual:
      case RuleKind::kCopies:
      case RuleKind::kGathered:
      case RuleKind::kGatheredWhole:
        return JudgeEqual(link, rule);
      case RuleKind::kSlices:
        return JudgeSlices(link, rule);
      case RuleKind::kScattered:
        return JudgeScattered(link, rule);
      case RuleKind::kParts:
        return JudgeParts(link, rule);
      case RuleKind::kTogether:
        return JudgeTogether(link, rule);
    }
  }

  CollectiveViolation& AddViolation(std::string_view rule, const CommNode& node,
                                    std::vector<int64_t> group) {
    ++report_.violated;
    CollectiveViolation& wrong = report_.violations.emplace_back();
    wrong.step = step_;
    wrong.group = std::move(group);
    if (const CommGroup* named = GroupOf(node)) wrong.group_id = named->id;
    wrong.rule = rule;
    wrong.name = CallOf(node).name;
    return wrong;
  }
  CollectiveViolation& AddViolation(const CollectiveRule& rule, const CommNode& node) {
    return AddViolation(RuleText(rule.kind), node, MembersOf(node));
  }
  static void Describe(const Mismatch& mismatch, const std::string& item, std::string source,
                       CollectiveViolation& wrong) {
    wrong.item = item;
    wrong.statistic = mismatch.statistic;
    wrong.expected = mismatch.expected;
    wrong.got = mismatch.got;
    wrong.source = std::move(source);
  }

  void JudgeEqual(const CommLink& link, const CollectiveRule& rule) {
    const size_t items = ValuesOfNode(link.to.front()).received.size();
    for (const CommNode& node : link.to) {
      const size_t own = ValuesOfNode(node).received.size();
      if (own == items) continue;
      CollectiveViolation& wrong = AddViolation(rule, node);
      wrong.ranks = {RankOf(node)};
      Describe({"number of tensors", std::to_string(items), std::to_string(own)}, "output",
               SourceText(link.to.front(), "output"), wrong);
      return;
    }
    bool all_told = true;
    for (size_t item = 0; item < items; ++item) {
      if (const auto source = SourceOf(link, rule, item)) {
        const NamedTensor& given = ValuesOfNode(source->node).sent[source->item];
        if (FindDifferent(link, item, {kSourceRule, source->node, given}, all_told)) return;
        continue;
      }
      const CommNode expected = MostCommon(link, item);
      const NamedTensor& right = ValuesOfNode(expected).received[item];
      if (FindDifferent(link, item, {RuleText(rule.kind), expected, right}, all_told)) return;
    }
    if (!all_told) return AddUnjudged(kNoStatistics, link.to.front());
    if (rule.kind == RuleKind::kGatheredWhole && IsOtherThanGiven(link)) return;
    ++report_.held;
  }

  struct Expectation {
    std::string_view rule;
    CommNode node;  // whose value is expected
    const NamedTensor& value;
  };

  // Whether the item is not the expected one on some ranks, which are told together then. Clears
  // `all_told` where statistics cannot tell.
  bool FindDifferent(const CommLink& link, size_t item, const Expectation& expected,
                     bool& all_told) {
    CollectiveViolation* wrong = nullptr;
    for (const CommNode& node : link.to) {
      const NamedTensor& own = ValuesOfNode(node).received[item];
      Mismatch mismatch;
      const Agreement agreement = CompareRecords(expected.value.record, own.record, mismatch);
      all_told = all_told && agreement != Agreement::kUnknown;
      if (agreement != Agreement::kDiffer) continue;
      if (wrong == nullptr) {
        wrong = &AddViolation(expected.rule, node, MembersOf(node));
        Describe(mismatch, own.path, SourceText(expected.node, expected.value.path), *wrong);
      }
      wrong->ranks.push_back(RankOf(node));
    }
    return wrong != nullptr;
  }

  struct Source {
    CommNode node;
    size_t item = 0;  // of CallValues::sent
  };
  // Whose input this item of the output has to be, where that was recorded and can tell.
  [[nodiscard]] std::optional<Source> SourceOf(const CommLink& link, const CollectiveRule& rule,
                                               size_t item) const {
    std::optional<Source> source;
    if (rule.kind == RuleKind::kCopies && link.from.size() == 1) {
      source = {link.from.front(), item};
    } else if (rule.kind == RuleKind::kGathered && IsInOrder(link) &&
               ValuesOfNode(link.to.front()).received.size() == link.to.size() &&
               ValuesOfNode(link.to[item]).sent.size() == 1) {
      source = {link.to[item], 0};
    }
    if (!source || source->item >= ValuesOfNode(source->node).sent.size()) return std::nullopt;
    const TensorRecord& given = ValuesOfNode(source->node).sent[source->item].record;
    const auto can_tell = [&](const CommNode& node) {
      return CanBe(given, ValuesOfNode(node).received[item].record);
    };
    if (!std::ranges::all_of(link.to, can_tell)) return std::nullopt;
    return source;
  }

  // Whether what was given, in this form, can be compared with what arrived.
  static bool CanBe(const TensorRecord& given, const TensorRecord& got) {
    Mismatch unused;
    return given.dtype_text == got.dtype_text && ElementsOf(given) == ElementsOf(got) &&
           CompareRecords(given, got, unused) != Agreement::kUnknown;
  }

  // Position in the group is known of each rank.
  [[nodiscard]] bool IsInOrder(const CommLink& link) const {
    return std::ranges::all_of(link.to, [&](const CommNode& node) {
      const CommGroup* const group = GroupOf(node);
      return group == nullptr || group->in_order;
    });
  }

  // One tensor, equal on all ranks, of what each of them gave.
  bool IsOtherThanGiven(const CommLink& link) {
    const NamedTensor& got = ValuesOfNode(link.to.front()).received.front();
    Together sent, all;
    all.Add(got.record);
    for (const CommNode& node : link.to) {
      const std::vector<NamedTensor>& own = ValuesOfNode(node).sent;
      if (own.size() != 1 || own.front().record.dtype_text != got.record.dtype_text) return false;
      sent.Add(own.front().record);
    }
    if (sent.elements != all.elements || !sent.tells || !all.tells) return false;
    return !AreSame(sent, all, link, kSourceRule);
  }

  void JudgeScattered(const CommLink& link, const CollectiveRule& rule) {
    if (!IsInOrder(link)) return AddUnjudged(kNoOrder, link.to.front());
    if (link.from.size() != 1) return AddUnjudged(kNoStatistics, link.to.front());
    const std::vector<NamedTensor>& given = ValuesOfNode(link.from.front()).sent;
    for (size_t i = 0; i < link.to.size(); ++i) {
      const std::vector<NamedTensor>& got = ValuesOfNode(link.to[i]).received;
      if (given.size() != link.to.size() || got.size() != 1 ||
          !CanBe(given[i].record, got.front().record)) {
        return AddUnjudged(kNoStatistics, link.to[i]);
      }
    }
    for (size_t i = 0; i < link.to.size(); ++i) {
      const NamedTensor& got = ValuesOfNode(link.to[i]).received.front();
      Mismatch mismatch;
      if (CompareRecords(given[i].record, got.record, mismatch) != Agreement::kDiffer) continue;
      CollectiveViolation& wrong = AddViolation(rule, link.to[i]);
      wrong.ranks = {RankOf(link.to[i])};
      Describe(mismatch, got.path, SourceText(link.from.front(), given[i].path), wrong);
      return;
    }
    ++report_.held;
  }

  // Of the values that the ranks have, the one of most ranks; of several such the first.
  [[nodiscard]] CommNode MostCommon(const CommLink& link, size_t item) const {
    std::vector<std::pair<CommNode, size_t>> kinds;
    for (const CommNode& node : link.to) {
      const TensorRecord& own = ValuesOfNode(node).received[item].record;
      const auto same = [&](const std::pair<CommNode, size_t>& kind) {
        const TensorRecord& other = ValuesOfNode(kind.first).received[item].record;
        Mismatch unused;
        return CompareRecords(other, own, unused) != Agreement::kDiffer;
      };
      const auto known = std::ranges::find_if(kinds, same);
      if (known != kinds.end()) {
        ++known->second;
      } else {
        kinds.emplace_back(node, 1);
      }
    }
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    return std::ranges::max_element(kinds, less)->first;
  }

  // Whether what went in for these two ranks is the same on every rank, as far as it is told.
  [[nodiscard]] bool HaveSameInputs(const CommLink& link, size_t a, size_t b) const {
    return std::ranges::all_of(link.to, [&](const CommNode& node) {
      const std::vector<NamedTensor>& sent = ValuesOfNode(node).sent;
      if (sent.size() != link.to.size()) return false;  // one tensor, whose parts are not told
      return TextOfNumbers(sent[a].record) == TextOfNumbers(sent[b].record);
    });
  }

  void JudgeSlices(const CommLink& link, const CollectiveRule& rule) {
    std::map<std::string, size_t> seen;  // numbers -> index in link.to
    bool all_told = true;
    std::string_view reason = kNoStatistics;
    for (size_t i = 0; i < link.to.size(); ++i) {
      const NamedTensor& own = ValuesOfNode(link.to[i]).received.front();
      const int64_t elements = ElementsOf(own.record);
      const std::string numbers = TextOfNumbers(own.record);
      if (numbers.empty() && elements != 0) all_told = false;
      if (numbers.empty() || elements == 0) continue;
      const auto [first, is_new] = seen.try_emplace(numbers, i);
      if (is_new) continue;
      if (MayBeSoByChance(own.record) || HaveSameInputs(link, first->second, i)) {
        all_told = false;
        reason = kSameSlices;
        continue;
      }
      const CommNode other = link.to[first->second];
      CollectiveViolation& wrong = AddViolation(rule, link.to[i]);
      wrong.ranks = {RankOf(link.to[i])};
      Describe({"statistics", "others than " + numbers, numbers}, own.path,
               SourceText(other, own.path), wrong);
      return;
    }
    if (!all_told) return AddUnjudged(reason, link.to.front());
    ++report_.held;
  }

  void JudgeParts(const CommLink& link, const CollectiveRule& rule) {
    if (!IsInOrder(link)) return AddUnjudged(kNoOrder, link.to.front());
    const size_t members = link.to.size();
    bool all_told = true;
    for (size_t to = 0; to < members; ++to) {
      for (size_t from = 0; from < members; ++from) {
        const std::vector<NamedTensor>& got = ValuesOfNode(link.to[to]).received;
        const std::vector<NamedTensor>& sent = ValuesOfNode(link.to[from]).sent;
        if (got.size() != members || sent.size() != members) {
          return AddUnjudged(kNoStatistics, link.to[to]);
        }
        Mismatch mismatch;
        const Agreement agreement = CompareRecords(sent[to].record, got[from].record, mismatch);
        all_told = all_told && agreement != Agreement::kUnknown;
        if (agreement != Agreement::kDiffer) continue;
        CollectiveViolation& wrong = AddViolation(rule, link.to[to]);
        wrong.ranks = {RankOf(link.to[to])};
        Describe(mismatch, got[from].path, SourceText(link.to[from], sent[to].path), wrong);
        return;
      }
    }
    if (!all_told) return AddUnjudged(kNoStatistics, link.to.front());
    ++report_.held;
  }

  // One tensor of which parts go to all ranks: their statistics over all ranks.
  struct Together {
    bool tells = true;
    int64_t elements = 0;
    double max = -INFINITY, min = INFINITY, sum = 0, squares = 0;

    void Add(const TensorRecord& record) {
      const int64_t own = ElementsOf(record);
      elements += own;
      if (own == 0) return;
      const std::optional<double> high = RealOf(record.max), low = RealOf(record.min);
      const std::optional<double> mean = RealOf(record.mean), norm = RealOf(record.norm);
      const auto is_finite = [](const std::optional<double>& number) {
        return number && std::isfinite(*number);
      };
      tells = tells && own > 0 && is_finite(high) && is_finite(low) && is_finite(mean) &&
              is_finite(norm);
      if (!tells) return;
      max = std::max(max, *high);
      min = std::min(min, *low);
      sum += *mean * static_cast<double>(own);
      squares += *norm * *norm;
    }
  };

  void JudgeTogether(const CommLink& link, const CollectiveRule& rule) {
    Together sent, got;
    for (const CommNode& node : link.to) {
      const CallValues& values = ValuesOfNode(node);
      if (values.sent.size() != 1 || values.received.size() != 1) {
        return AddUnjudged(kNoStatistics, node);
      }
      sent.Add(values.sent.front().record);
      got.Add(values.received.front().record);
    }
    if (!AreSame(sent, got, link, RuleText(rule.kind))) return;
    if (!sent.tells || !got.tells) return AddUnjudged(kNoStatistics, link.to.front());
    ++report_.held;
  }

  // Whether two sets of tensors may hold the same numbers; adds a violation where not.
  bool AreSame(const Together& sent, const Together& got, const CommLink& link,
               std::string_view rule) {
    const CommNode first = link.to.front();
    const NamedTensor& one = ValuesOfNode(first).received.front();
    const double unit = SumSlackOf(one.record);
    const auto same = [&](std::string_view name, Statistic expected, Statistic found,
                          double slack = 0) {
      if (CompareStatistic(expected, found, slack) != Agreement::kDiffer) return true;
      CollectiveViolation& wrong = AddViolation(rule, first, MembersOf(first));
      Describe({std::string(name), SpelledStatistic(expected), SpelledStatistic(found)}, one.path,
               fmt::format("{} of all ranks together", ValuesOfNode(first).sent.front().path),
               wrong);
      return false;
    };
    if (!same("element count", sent.elements, got.elements)) return false;
    if (!sent.tells || !got.tells) return true;
    const auto count = static_cast<double>(std::max<int64_t>(sent.elements, 1));
    const double typical = std::sqrt(sent.squares / count);
    return same("Max", sent.max, got.max) && same("Min", sent.min, got.min) &&
           same("Mean", sent.sum / count, got.sum / count, unit * typical) &&
           same("Norm", std::sqrt(sent.squares), std::sqrt(got.squares),
                unit * std::sqrt(sent.squares));
  }

  // Calls of groups with the same members that ranks start in another order.

  void FindOrders() {
    std::map<std::string, std::vector<std::vector<size_t>>> calls;  // by members: of each rank
    for (size_t rank = 0; rank < scans_.size(); ++rank) {
      for (size_t call = 0; call < scans_[rank].calls.size(); ++call) {
        const CommNode node{rank, call};
        if (!CallOf(node).transfers.empty() || NameOf(node).empty()) continue;
        auto& of_ranks = calls[fmt::format("{}", fmt::join(MembersOf(node), ","))];
        of_ranks.resize(scans_.size());
        of_ranks[rank].push_back(call);
      }
    }
    for (const auto& [members, of_ranks] : calls) {
      size_t first = 0;
      while (of_ranks[first].empty()) ++first;
      for (size_t rank = first + 1; rank < scans_.size(); ++rank) {
        if (AddOrder(members, {first, of_ranks[first]}, {rank, of_ranks[rank]})) break;
      }
    }
  }

  struct RankCalls {
    size_t rank;
    const std::vector<size_t>& calls;
  };
  // Whether the two start them in another order, as far as both recorded them.
  bool AddOrder(const std::string& members, const RankCalls& a, const RankCalls& b) {
    for (size_t i = 0; i < std::min(a.calls.size(), b.calls.size()); ++i) {
      const CommNode one{a.rank, a.calls[i]}, other{b.rank, b.calls[i]};
      if (NameOf(one) == NameOf(other)) continue;
      report_.orders.push_back(
          fmt::format("groups of ranks {} with the same members: {} is of group {}, {} of group {}",
                      members, PlaceText(one), NameOf(one), PlaceText(other), NameOf(other)));
      return true;
    }
    return false;
  }
  [[nodiscard]] std::string_view NameOf(const CommNode& node) const {
    return GroupName(scans_[node.rank].groups, CallOf(node).group);
  }

  std::optional<int64_t> step_;
  CollectiveReport& report_;
  std::vector<RankScan> scans_;
  std::vector<std::vector<CallValues>> values_;  // by scan and call
  bool lacks_ranks_ = false;
  CommGraph graph_;
  std::map<std::string, Ends> messages_;  // by MessageKey()
  std::map<std::string, bool> uneven_;    // by KeyOf(): a rank recorded another number of them
};

constexpr size_t kMaxViolationLines = 16;  // on a terminal; the machine form has all

std::string RanksText(const std::vector<int64_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

std::string ViolationLine(const CollectiveViolation& wrong) {
  const std::string step = wrong.step ? fmt::format("step {} ", *wrong.step) : "";
  const std::string where = wrong.ranks.empty() ? "all ranks together" : RanksText(wrong.ranks);
  return fmt::format("{}{} of {}{}: {}, but on {} {} {} is {} (expected {}, as {})", step,
                     wrong.name, RanksText(wrong.group),
                     wrong.group_id.empty() ? "" : fmt::format(", group {}", wrong.group_id),
                     wrong.rule, where, wrong.item, wrong.statistic, wrong.got, wrong.expected,
                     wrong.source);
}

}  // namespace

void CheckCollectives(std::span<const load::RankDirectory> ranks, std::optional<int64_t> step,
                      CollectiveReport& report) {
  StepCheck(ranks, step, report).Run();
}

std::string CollectiveLines(const CollectiveReport& report) {
  const bool has_any = report.held + report.violated + report.not_judged > 0;
  if (!has_any && report.notes.empty()) {
    return fmt::format("collectives of {}: none were recorded\n", report.side);
  }
  std::string text =
      fmt::format("collectives of {}: {} as they should be, {} violated, {} not judged\n",
                  report.side, report.held, report.violated, report.not_judged);
  for (size_t i = 0; i < std::min(report.violations.size(), kMaxViolationLines); ++i) {
    text += fmt::format("  violated: {}\n", OneLine(ViolationLine(report.violations[i])));
  }
  if (report.violations.size() > kMaxViolationLines) {
    text += fmt::format("  and {} more\n", report.violations.size() - kMaxViolationLines);
  }
  for (const UnjudgedCollectives& unjudged : report.reasons) {
    text += fmt::format("  not judged: {}: {}; first {}\n", unjudged.calls, unjudged.reason,
                        OneLine(unjudged.first));
  }
  for (const std::string& order : report.orders) {
    text += fmt::format("  started in another order: {}\n", OneLine(order));
  }
  for (const std::string& note : report.notes) {
    text += fmt::format("  not read: {}\n", OneLine(note));
  }
  return text;
}

void AddCollectives(const CollectiveReport& report, json::Document& out) {
  const auto add_ranks = [&](std::string_view key, const std::vector<int64_t>& ranks) {
    out.Key(key);
    out.Open('[');
    for (const int64_t rank : ranks) out.Raw(std::to_string(rank));
    out.Close(']');
  };
  out.Open('{');
  out.Member("side", report.side);
  out.Number("held", report.held);
  out.Number("violated", report.violated);
  out.Number("not_judged", report.not_judged);
  out.Key("violations");
  out.Open('[');
  for (const CollectiveViolation& wrong : report.violations) {
    out.Open('{');
    out.Key("step");
    out.Raw(wrong.step ? std::to_string(*wrong.step) : "null");
    add_ranks("group", wrong.group);
    out.Member("group_id", wrong.group_id);
    out.Member("rule", wrong.rule);
    add_ranks("ranks", wrong.ranks);
    out.Member("name", wrong.name);
    out.Member("item", wrong.item);
    out.Member("statistic", wrong.statistic);
    out.Member("expected", wrong.expected);
    out.Member("got", wrong.got);
    out.Member("source", wrong.source);
    out.Close('}');
  }
  out.Close(']');
  out.Key("reasons");
  out.Open('[');
  for (const UnjudgedCollectives& unjudged : report.reasons) {
    out.Open('{');
    out.Member("reason", unjudged.reason);
    out.Number("calls", unjudged.calls);
    out.Member("first", unjudged.first);
    out.Close('}');
  }
  out.Close(']');
  out.Texts("orders", report.orders);
  out.Texts("notes", report.notes);
  out.Close('}');
}

}  // namespace plumbline::ranks

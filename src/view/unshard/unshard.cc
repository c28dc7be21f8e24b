#include "view/unshard/unshard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "load/rank_directories.h"
#include "load/rank_scan.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "view/merge/merged_dump.h"
#include "view/merge/merged_values.h"
#include "view/merge/parallel_layout.h"
#include "view/merge/partial_sums.h"
#include "view/merge/rank_tree.h"
#include "view/unshard/gather_plan.h"
#include "view/unshard/layout_hint.h"
#include "view/unshard/parallel_run.h"
#include "view/unshard/shard_fold.h"
#include "view/unshard/shard_places.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kPlaceOfParameters = "parameters";
// What a reduction of gradients left on a rank, beside its own gradient.
constexpr std::string_view kReduced = ".reduced";

bool IsCommunication(std::string_view name) { return name.starts_with("Distributed."); }

class Unsharder {
 public:
  Unsharder(RankTree golden, RankTree out, std::vector<RankTree> ranks, LayoutHint hint)
      : golden_(std::move(golden)),
        out_(std::move(out)),
        ranks_(std::move(ranks)),
        hint_(std::move(hint)) {}

  // Also compare elements.
  void GatherTensors(TensorPlaces places) { gather_.emplace(std::move(places)); }

  // kInvalidArgument: ranks or parameters are missing, no plan fits, or the hint does not.
  Status Run() {
    PL_TRY(FindPlaces());
    groups_ = SummingGroups(ranks_);
    if (gather_) gather_->SumIn(groups_);
    sums_ = PartialSums(ranks_, groups_);
    golden_.task = out_.task = kTaskOfStatistics;
    out_.level = ranks_.front().level;
    out_.framework = ranks_.front().framework;
    const auto out_places = PartsByPlace(out_, {});
    golden_places_ = PartsByPlace(golden_, {});
    for (const auto& [place, part] : golden_places_) place_of_.emplace(part, place);
    std::vector<Call> calls;
    for (Part* const part : PartsBelow(golden_.root())) {
      const auto place = place_of_.find(part);
      // Entries of one place are one call that was recorded twice: the first counts.
      if (place == place_of_.end()) continue;
      calls.push_back({part, out_places.at(std::string(place->second)), PeersAt(place->second)});
      for (const auto& [rank, peer] : calls.back().peers) used_.insert(peer);
    }
    PL_TRY(CheckParameters(calls));
    FindInput(calls);
    PL_TRY(CheckInput());
    FindLoops();
    FindStages(calls);
    FindGradientScale(calls);
    for (Call& call : calls) Fold(call);
    if (gather_) {
      gather_->Finish(golden_, out_);
      std::erase_if(summands_, [&](const std::string& name) { return gather_->Compares(name); });
    }
    return CheckHint(hint_, Found());
  }

  Status Write(const std::string& directory, UnshardReport& report) {
    report.target = JoinPath(directory, "target");
    report.golden = JoinPath(directory, "golden");
    PL_TRY(WriteMergedDump(out_, report.target));
    PL_TRY(WriteMergedDump(golden_, report.golden));
    return {};
  }

  void Describe(UnshardReport& report) {
    report.ranks = ranks_.size();
    if (hint_.is_given()) {
      report.plan.push_back(
          fmt::format("told by --layout: {}; what was found does not contradict it", hint_.Text()));
    }
    std::vector<int64_t> numbers;
    for (const RankTree& rank : ranks_) numbers.push_back(rank.rank);
    for (std::string& line : TextsOfLists(offsets_, numbers, StageOrderText())) {
      report.plan.push_back(std::move(line));
    }
    DescribeParameters(report);
    DescribeActivations(report);
    DescribeStages(report);
    if (parameters_ == 0) {
      report.plan.emplace_back(
          "proof: none, as no parameters were recorded (levels L0 and mix do): shapes alone");
    } else {
      report.plan.push_back(fmt::format(
          "proof: {} of {} parameters have golden's statistics{}", proven_, parameters_,
          proven_ == parameters_ ? "" : "; the others differ, or the layout is another one"));
    }
    if (gather_) report.plan.push_back(gather_->Text());
    if (!summands_.empty()) {
      report.plan.push_back(
          fmt::format("not judged: {} values of which each rank has its own, such as a summand: {}",
                      summands_.size(), Shortened(summands_)));
    }
    if (!incomplete_.empty()) {
      report.plan.push_back(
          fmt::format("not judged: {} calls that only some of their ranks made: {}",
                      incomplete_.size(), Shortened(incomplete_)));
    }
    if (loop_calls_ > 0) {
      report.plan.push_back(fmt::format(
          "not judged: {} calls by which {} loop{} over what the ranks share", loop_calls_,
          Shortened({loops_.begin(), loops_.end()}), loops_.size() == 1 ? "s" : ""));
    }
    if (!unknown_.empty()) {
      report.plan.push_back(fmt::format("not judged: {} values that fit in no way: {}",
                                        unknown_.size(), Shortened(unknown_)));
    }
    DescribeLeftOut(report);
  }

 private:
  struct Divided {
    uint64_t count = 0;
    int64_t parts = 1;
  };
  using DividedBy = std::map<std::vector<size_t>, Divided>;  // by dimensions

  using Peers = std::vector<std::pair<size_t, Part*>>;  // rank and its call

  // One of golden's calls, where it goes, and the same call on those ranks that make it.
  struct Call {
    Part* golden;
    Part* out;
    Peers peers;
  };

  Peers PeersAt(std::string_view place) const {
    Peers peers;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const auto found = places_[i].find(std::string(place));
      if (found != places_[i].end()) peers.emplace_back(i, found->second);
    }
    return peers;
  }

  static std::vector<size_t> HoldersOf(const Peers& peers) {
    std::vector<size_t> ranks;
    for (const auto& [rank, part] : peers) ranks.push_back(rank);
    return ranks;
  }

  // The values of a call at golden's places, with those of the ranks.
  struct Value {
    PlacedValue golden;
    std::vector<TensorRecord*> parts;  // of the first one that makes the call, and so on
    bool is_reduced = false;           // gradients, as a reduction left them
  };

  static std::vector<Value> ValuesOf(const Call& call) {
    std::vector<std::unordered_map<std::string, TensorRecord*>> tensors(call.peers.size());
    for (size_t i = 0; i < call.peers.size(); ++i) {
      for (PlacedValue& value : PlacedValuesOf(*call.peers[i].second)) {
        if (value.tensor != nullptr) tensors[i].emplace(std::move(value.place), value.tensor);
      }
    }
    std::vector<Value> values;
    for (PlacedValue& value : PlacedValuesOf(*call.golden)) {
      if (value.tensor == nullptr || tensors.empty()) continue;
      if (!tensors.front().contains(value.place)) continue;
      const std::string reduced = value.place + std::string(kReduced);
      const bool is_reduced =
          std::ranges::all_of(tensors, [&](const auto& own) { return own.contains(reduced); });
      Value found{std::move(value), {}, is_reduced};
      for (const auto& own : tensors) {
        const auto part = own.find(is_reduced ? reduced : found.golden.place);
        if (part != own.end()) found.parts.push_back(part->second);
      }
      values.push_back(std::move(found));
    }
    return values;
  }

  static FoldedTensor FoldedOf(const Value& value) {
    const std::vector<const TensorRecord*> parts(value.parts.begin(), value.parts.end());
    return FoldShards(*value.golden.tensor, parts,
                      IsParameter(value.golden) ? TensorKind::kParameter : TensorKind::kValue);
  }

  static bool IsParameter(const PlacedValue& value) {
    return value.place.starts_with(kPlaceOfParameters);
  }

  static bool IsBackward(const Part& part) {
    const auto name = ParseCallName(part.name);
    return name && name->kind == CallKind::kBackward;
  }

  // Which call of a rank is which of golden's.
  Status FindPlaces() {
    for (const RankTree& rank : ranks_) offsets_.push_back(FindOffsets(golden_, rank));
    if (hint_.is_given()) {
      PL_TRY_ASSIGN(HintedGroups groups, GroupsOf(hint_, static_cast<int64_t>(ranks_.size())));
      const std::vector<ListOffsets> found = offsets_;
      for (size_t i = 0; i < ranks_.size(); ++i) {
        PL_TRY_ASSIGN(offsets_[i], FindOffsets(golden_, ranks_[i],
                                               AheadOf(groups, found, static_cast<int64_t>(i))));
      }
      PL_TRY_ASSIGN(stages_in_order_, CheckStageOrder(groups.pipeline, ranks_, offsets_));
      told_tensor_groups_ = std::move(groups.tensor);
    }
    for (size_t i = 0; i < ranks_.size(); ++i) {
      places_.push_back(PartsByPlace(ranks_[i], offsets_[i]));
      // Of a call that is known to construct.json alone nothing was recorded.
      std::erase_if(places_.back(),
                    [](const auto& place) { return place.second->members.empty(); });
    }
    return {};
  }

  [[nodiscard]] FoundLayout Found() const {
    FoundLayout found{.sequence = sequence_parts_, .input = input_.parts};
    if (parameters_ > 0) found.tensor = tensor_parts_;
    if (stage_sets_.empty()) return found;
    found.pipeline = static_cast<int64_t>(stage_sets_.size());
    found.expert = ExpertParts();
    return found;
  }

  // Into how many parts the modules are divided that only some ranks of a stage have.
  [[nodiscard]] int64_t ExpertParts() const {
    int64_t most = 1;
    for (const std::vector<size_t>& stage : stage_sets_) {
      most = std::max(most, std::ranges::count_if(stages_, [&](const auto& entry) {
                        return entry.first.size() < stage.size() &&
                               std::ranges::includes(stage, entry.first);
                      }));
    }
    return most;
  }

  // What the first module gets: whether the ranks share the batch, or the sequence.
  void FindInput(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      if (!call.golden->is_module()) continue;
      for (const Value& value : ValuesOf(call)) {
        if (value.golden.is_output || IsParameter(value.golden)) continue;
        if (value.golden.tensor->shape.empty()) continue;
        input_ = FoldedOf(value);
        if (gather_) gather_->SetInput(GatheredOf(call, value, input_.share), input_);
        input_name_ = fmt::format("{}.{}", call.golden->name, value.golden.place);
        input_holders_ = call.peers.size();
        return;
      }
    }
  }

  // Golden's parameters have to come together from what the ranks have.
  Status CheckParameters(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      const std::vector<Value> values = ValuesOf(call);
      for (const PlacedValue& golden : PlacedValuesOf(*call.golden)) {
        if (golden.tensor == nullptr || !IsParameter(golden)) continue;
        const auto own = std::ranges::find_if(
            values, [&](const Value& value) { return value.golden.place == golden.place; });
        const FoldedTensor folded = own == values.end() ? FoldedTensor() : FoldedOf(*own);
        if (folded.share == Share::kShards) {
          tensor_parts_ = std::max(tensor_parts_, folded.parts);
          PL_TRY(CheckToldGroups(call, *own, folded));
        }
        if (folded.share != Share::kUnknown) continue;
        return Error(
            ErrorCode::kInvalidArgument,
            fmt::format("golden's parameter {} of {} {}{} (expected all ranks of one run of that "
                        "model, with lists of layers that can be told apart by their parameters)",
                        golden.place.substr(kPlaceOfParameters.size() + 1), call.golden->name,
                        own == values.end() ? "is on no rank"
                                            : "does not come together from the ranks' shapes",
                        hint_.is_given() ? fmt::format(" with --layout {}", hint_.Text()) : ""));
      }
    }
    return {};
  }

  // Where all ranks together have golden's parameter, those that were said to share it have it too.
  Status CheckToldGroups(const Call& call, const Value& value, const FoldedTensor& folded) const {
    const bool is_told = hint_.SizeOr("tp", 1) == folded.parts;
    if (!is_told || value.parts.size() != call.peers.size()) return {};
    if (!HasStatisticsOf(*value.golden.tensor, folded.tensor)) return {};
    std::vector<int64_t> ranks;
    for (const auto& [rank, part] : call.peers) ranks.push_back(ranks_[rank].rank);
    return CheckShardGroups(told_tensor_groups_, *value.golden.tensor, ranks, value.parts);
  }

  // So has what the first module gets, and no rank may have two parts in it.
  Status CheckInput() const {
    const bool has_room =
        !SharesInput() || input_.parts * tensor_parts_ <= static_cast<int64_t>(input_holders_);
    if (has_room && (input_name_.empty() || input_.share != Share::kUnknown)) return {};
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} does not come together from the ranks (expected one step of one "
                             "batch on both sides: no rank missing, no micro batches, no padding)",
                             input_name_));
  }

  [[nodiscard]] bool SharesInput() const { return input_.share == Share::kShards; }

  // Modules with lists of which several ranks run their parts on one input, as those of experts:
  // what they call themselves they call once for each module of the list that is there.
  void FindLoops() {
    std::set<std::string> lists;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      for (const auto& [list, found] : offsets_[i]) lists.insert(list);
    }
    for (const std::string& list : lists) {
      const std::string module = list.substr(0, std::min(list.rfind('.'), list.size()));
      const std::string place = module + " forward 0";
      const auto golden = golden_places_.find(place);
      if (module.size() == list.size() || golden == golden_places_.end()) continue;
      const Call call{golden->second, nullptr, PeersAt(place)};
      if (!HaveOwnParts(call.peers, list)) continue;
      for (const Value& value : ValuesOf(call)) {
        if (FoldedOf(value).share == Share::kWhole) {
          loops_.insert(module);
          loop_lists_.insert(list);
        }
        break;
      }
    }
  }

  // Whether several ranks make a call, and not all with the same modules of the list.
  [[nodiscard]] bool HaveOwnParts(const Peers& peers, const std::string& list) const {
    std::set<int64_t> firsts;
    for (const auto& [rank, part] : peers) {
      const auto own = offsets_[rank].find(list);
      if (own != offsets_[rank].end()) firsts.insert(own->second.first);
    }
    return firsts.size() > 1;
  }

  // Whether a call is made by the module of such a list itself.
  [[nodiscard]] bool IsInLoop(const Part& part) const {
    if (part.is_module() || part.parent == nullptr) return false;
    const auto module = ParseCallName(part.parent->name);
    return module && module->form == CallName::Form::kModule &&
           loops_.contains(std::string(module->path));
  }

  // Which ranks have which modules. Those without modules inside are on all ranks of a stage or on
  // none; experts are on their own.
  void FindStages(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      if (!call.golden->is_module() || IsInList(call.golden->name)) continue;
      const bool is_inner = std::ranges::any_of(
          call.golden->children, [](const Part* child) { return child->is_module(); });
      if (!is_inner && !call.peers.empty()) stage_sets_.insert(HoldersOf(call.peers));
    }
    // Of a set and one within it the larger one is a stage.
    const std::set<std::vector<size_t>> all = stage_sets_;
    std::erase_if(stage_sets_, [&](const std::vector<size_t>& set) {
      return std::ranges::any_of(all, [&](const std::vector<size_t>& other) {
        return other.size() > set.size() && std::ranges::includes(other, set);
      });
    });
  }

  // Whether a module is in a list that a loop runs over.
  [[nodiscard]] bool IsInList(std::string_view name) const {
    const auto module = ParseCallName(name);
    return module && std::ranges::any_of(loop_lists_, [&](const std::string& list) {
             return module->path.starts_with(list + ".");
           });
  }

  // Whether all ranks made the call that should have: those of a stage, or of the module it is in.
  [[nodiscard]] bool IsComplete(const Call& call) const {
    const std::vector<size_t> own = HoldersOf(call.peers);
    if (own.size() == ranks_.size()) return true;
    const Part* module = call.golden;
    while (module != nullptr && !ParseCallName(module->name)) module = module->parent;
    while (module != nullptr && !module->is_module()) module = module->parent;
    if (module != nullptr && IsInList(module->name)) {
      const auto name = ParseCallName(module->name);
      const auto forward = PeersAt(fmt::format("{} forward 0", name->path));
      return forward.empty() || own == HoldersOf(forward);
    }
    return std::ranges::any_of(stage_sets_,
                               [&](const std::vector<size_t>& set) { return set == own; });
  }

  // Ranks that share the batch take the mean over their own part each: their gradients are larger
  // by their number, until they are averaged. Told by what most gradients look like.
  void FindGradientScale(const std::vector<Call>& calls) {
    constexpr double kNear = 0.1;
    if (!SharesInput()) return;
    const auto times = static_cast<double>(input_.parts);
    uint64_t larger = 0, equal = 0;
    for (const Call& call : calls) {
      if (!IsBackward(*call.golden)) continue;
      for (const Value& value : ValuesOf(call)) {
        const FoldedTensor folded = FoldedOf(value);
        const auto own = NumberOf(folded.tensor.norm), norm = NumberOf(value.golden.tensor->norm);
        if (folded.share != Share::kShards || !own || !norm || *norm == 0) continue;
        larger += std::abs(*own / *norm - times) < kNear * times ? 1 : 0;
        equal += std::abs(*own / *norm - 1) < kNear ? 1 : 0;
      }
    }
    if (larger > equal) gradient_scale_ = times;
  }

  // Golden's, without numbers.
  void LeaveUnjudged(Call& call, bool is_incomplete) {
    for (PlacedValue& value : PlacedValuesOf(*call.out)) {
      if (value.tensor != nullptr) TakeStatistics(TensorRecord(), *value.tensor);
    }
    if (is_incomplete) {
      incomplete_.push_back(call.golden->name);
    } else {
      ++loop_calls_;
    }
  }

  void Fold(Call& call) {
    Part& golden = *call.golden;
    Part& out = *call.out;
    const bool is_incomplete = !call.peers.empty() && !IsComplete(call);
    if (IsInLoop(golden) || is_incomplete) {
      LeaveUnjudged(call, is_incomplete);
      return;
    }
    out.members.clear();
    out.frames = {};
    if (call.peers.empty()) return;
    if (golden.is_module() && call.peers.size() < ranks_.size()) {
      ++stages_[HoldersOf(call.peers)];
    }
    bool has_parameters = false, has_shards = false;  // of parameters
    std::optional<FoldedTensor> input;
    std::vector<std::pair<std::string, TensorRecord>> folds;
    for (Value& value : ValuesOf(call)) {
      FoldedTensor folded = FoldedOf(value);
      const Share own = folded.share;
      const bool is_whole = own == Share::kWhole;  // on every rank, without a sum
      if (folded.share == Share::kSummands) Sum(value, call, folded);
      if (gradient_scale_ != 1 && IsBackward(golden) && !is_whole) {
        Divide(folded.tensor, gradient_scale_);
      }
      if (gather_) gather_->Add(GatheredOf(call, value, own, folded.share), folded);
      if (IsParameter(value.golden)) {
        has_parameters = true;
        has_shards = has_shards || folded.share != Share::kWhole;
      } else if (!value.golden.is_output && !input) {
        input = folded;
      }
      Count(golden, value.golden, folded);
      reduced_ += value.is_reduced ? 1 : 0;
      folds.emplace_back(value.golden.place, std::move(folded.tensor));
    }
    // Of modules whose parameters are whole, such as norms.
    const bool is_everywhere = call.peers.size() == ranks_.size();
    if (is_everywhere && has_parameters && !has_shards && input && input->share == Share::kShards) {
      sequence_parts_ = std::max(sequence_parts_, input->parts);
    }
    Part& shown = *Shown(call);
    std::unordered_map<std::string, TensorRecord*> places;
    for (PlacedValue& value : PlacedValuesOf(shown)) {
      if (value.tensor != nullptr) places.emplace(std::move(value.place), value.tensor);
    }
    for (auto& [place, tensor] : folds) {
      const auto found = places.find(place);
      if (found != places.end()) *found->second = std::move(tensor);
    }
    out.members = std::move(shown.members);
    std::erase_if(out.members, [](const auto& member) { return member.first.ends_with(kReduced); });
    out.frames = shown.frames;
  }

  // A value whose elements may be compared too: `own` as the ranks hold it, `found` with a sum.
  [[nodiscard]] GatherPlan::Value GatheredOf(const Call& call, const Value& value, Share own,
                                             Share found = Share::kUnknown) const {
    GatherPlan::Value gathered{.place = value.golden.place, .golden = call.golden, .out = call.out};
    gathered.tensor = value.golden.tensor;
    gathered.kind = fmt::format("{} {}", WithStars(place_of_.at(call.golden)), value.golden.place);
    // Parts of unknown ranks have no order.
    if (value.parts.size() == call.peers.size()) {
      gathered.ranks = HoldersOf(call.peers);
      gathered.parts.assign(value.parts.begin(), value.parts.end());
    }
    gathered.share = own;
    gathered.is_summed = own == Share::kSummands && found != own && found != Share::kUnknown;
    const bool is_scaled = IsBackward(*call.golden) && own != Share::kWhole;
    gathered.divisor = is_scaled ? gradient_scale_ : 1;
    gathered.is_parameter = IsParameter(value.golden);
    return gathered;
  }

  // The first rank whose arguments that are no tensors differ from golden's, where another rank has
  // golden's; else the first one.
  static Part* Shown(const Call& call) {
    const std::string golden = ArgumentsOf(call.golden->members);
    Part* other = nullptr;
    bool is_golden_met = false;
    for (const auto& [rank, part] : call.peers) {
      if (ArgumentsOf(part->members) == golden) {
        is_golden_met = true;
      } else if (other == nullptr) {
        other = part;
      }
    }
    return is_golden_met && other != nullptr ? other : call.peers.front().second;
  }

  // Summands whose sum was recorded where it was made are compared by it, group by group.
  void Sum(const Value& value, const Call& call, FoldedTensor& folded) {
    if (value.parts.size() != call.peers.size()) return;
    std::vector<TensorRecord> sums;
    std::set<int64_t> summed;
    for (const std::vector<int64_t>& group : groups_) {
      std::vector<TensorRecord> parts;
      for (size_t i = 0; i < call.peers.size(); ++i) {
        const int64_t rank = ranks_[call.peers[i].first].rank;
        if (std::ranges::find(group, rank) != group.end() && !summed.contains(rank)) {
          parts.push_back(*value.parts[i]);
        }
      }
      if (parts.size() != group.size()) continue;
      TensorsAt at{value.golden.place, {}};
      for (TensorRecord& part : parts) at.tensors.push_back(&part);
      if (sums_.Replace(at).empty()) continue;
      sums.push_back(std::move(parts.front()));
      summed.insert(group.begin(), group.end());
    }
    if (summed.size() != call.peers.size()) return;
    std::vector<const TensorRecord*> pointers;
    for (const TensorRecord& sum : sums) pointers.push_back(&sum);
    FoldedTensor whole = FoldShards(*value.golden.tensor, pointers);
    if (whole.share == Share::kUnknown || whole.share == Share::kSummands) return;
    folded = std::move(whole);
    ++summed_;
  }

  void Count(const Part& part, const PlacedValue& value, const FoldedTensor& folded) {
    if (IsParameter(value) && counted_parameters_.insert(ParameterOf(part, value.place)).second) {
      ++parameters_;
      const bool is_compared = folded.share != Share::kSummands && folded.share != Share::kUnknown;
      if (is_compared && folded.share != Share::kDivided &&
          HasStatisticsOf(*value.tensor, folded.tensor)) {
        ++proven_;
      }
      if (folded.share == Share::kShards) {
        Add(divided_parameters_[folded.dimensions], folded.parts);
      } else if (folded.share == Share::kWhole) {
        ++whole_parameters_;
      }
    }
    const std::string name = fmt::format("{}.{}", part.name, value.place);
    if (folded.share == Share::kSummands) summands_.push_back(name);
    if (folded.share == Share::kUnknown) unknown_.push_back(name);
    if (IsParameter(value) || part.name.find(".parameters_grad") != part.name.npos) return;
    if (folded.share == Share::kShards) Add(divided_[folded.dimensions], folded.parts);
    if (folded.share == Share::kWhole) ++whole_;
    if (folded.share == Share::kPacked) Add(packed_, folded.parts);
  }

  // What shows that the stages are in the order that was told; empty: nothing.
  [[nodiscard]] std::string StageOrderText() const {
    if (stages_in_order_ == 0) return {};
    const auto stages = static_cast<size_t>(hint_.SizeOr("pp", 1));
    return fmt::format("ranks that get what the stage ahead gives: {} of {}", stages_in_order_,
                       ranks_.size() - ranks_.size() / stages);
  }

  static std::string ParameterOf(const Part& part, std::string_view place) {
    const auto name = ParseCallName(part.name);
    return fmt::format("{} {}", name ? name->path : std::string_view(part.name), place);
  }

  static void Add(Divided& divided, int64_t parts) {
    ++divided.count;
    divided.parts = std::max(divided.parts, parts);
  }

  static std::vector<std::string> WaysOf(const DividedBy& all) {
    std::vector<std::string> ways;
    for (const auto& [dimensions, divided] : all) {
      ways.push_back(
          fmt::format("{} along dimension {}", divided.count, fmt::join(dimensions, " and ")));
    }
    return ways;
  }

  void DescribeParameters(UnshardReport& report) {
    if (divided_parameters_.empty()) return;
    int64_t parts = 1;
    for (const auto& [dimensions, divided] : divided_parameters_) {
      parts = std::max(parts, divided.parts);
    }
    report.layout.push_back(fmt::format("tensor parallel {}", parts));
    report.plan.push_back(fmt::format("parameters: shards of {}: {}; whole: {}", parts,
                                      fmt::join(WaysOf(divided_parameters_), ", "),
                                      whole_parameters_));
  }

  void DescribeActivations(UnshardReport& report) {
    if (SharesInput()) {
      DescribeInput(report);
    } else if (sequence_parts_ > 1) {
      report.layout.push_back(fmt::format("sequence parallel {}", sequence_parts_));
    }
    if (gradient_scale_ != 1) {
      report.plan.push_back(fmt::format(
          "gradients inside are {} times golden's, as each rank takes the mean over its "
          "own part: compared after division",
          gradient_scale_));
    }
    if (reduced_ > 0) {
      report.plan.push_back(fmt::format(
          "gradients: {} are compared by the shards that a reduction left on the ranks", reduced_));
    }
    if (summed_ > 0) {
      report.plan.push_back(fmt::format(
          "summands: {} values are compared by the sum that a reduction made of them", summed_));
    }
    std::vector<std::string> ways = WaysOf(divided_);
    if (packed_.count > 0) {
      report.layout.emplace_back("other dimensions of one batch");
      ways.push_back(fmt::format("{} with other dimensions", packed_.count));
    }
    if (ways.empty()) return;
    report.plan.push_back(
        fmt::format("values of calls: shards: {}; whole: {}", fmt::join(ways, ", "), whole_));
  }

  // What was said tells the names of the dimensions, of which the shapes know the order alone.
  void DescribeInput(UnshardReport& report) {
    const bool is_batch = input_.dimensions.front() == 0;
    const bool is_data_said = hint_.Has("dp") || hint_.Has("fsdp");
    int64_t data = is_batch ? input_.parts : 1;
    if (is_data_said) data = hint_.SizeOr("dp", 1) * hint_.SizeOr("fsdp", 1);
    if (hint_.Has("cp")) data = input_.parts / hint_.SizeOr("cp", 1);
    const int64_t context = input_.parts / data;
    if (input_.dimensions.size() == 1 && (data > 1) != is_batch) {
      report.plan.push_back(fmt::format(
          "dimension {} of the first module's input is {}: told by --layout, not proven",
          input_.dimensions.front(), is_batch ? "the sequence" : "the batch"));
    }
    if (context > 1) report.layout.push_back(fmt::format("context parallel {}", context));
    if (data > 1) {
      report.layout.push_back(
          fmt::format("{}data parallel {}", reduced_ > 0 ? "fully sharded " : "", data));
    }
  }

  void DescribeStages(UnshardReport& report) {
    for (const auto& [holders, count] : stages_) {
      std::vector<int64_t> numbers;
      for (const size_t rank : holders) numbers.push_back(ranks_[rank].rank);
      report.plan.push_back(fmt::format("calls of modules on rank{} {} alone: {}",
                                        numbers.size() == 1 ? "" : "s", fmt::join(numbers, ", "),
                                        count));
    }
    if (stage_sets_.size() > 1) {
      report.layout.push_back(fmt::format("pipeline parallel {}", stage_sets_.size()));
    }
    const int64_t experts = ExpertParts();
    if (experts > 1) report.layout.push_back(fmt::format("expert parallel {}", experts));
  }

  void DescribeLeftOut(UnshardReport& report) {
    std::vector<std::string> left_out;
    uint64_t communication = 0;
    for (RankTree& rank : ranks_) {
      for (Part* const part : PartsBelow(rank.root())) {
        if (part == &rank.root() || used_.contains(part) || IsInLoop(*part)) continue;
        if (!ParseCallName(part->name)) continue;  // what a graph puts around calls
        if (IsCommunication(part->name)) {
          ++communication;
        } else {
          left_out.push_back(fmt::format("rank {} {}", rank.rank, part->name));
        }
      }
    }
    if (communication > 0) {
      report.plan.push_back(fmt::format(
          "left out: {} calls that communicate (plumb compare TARGET TARGET --check_collectives "
          "looks at them)",
          communication));
    }
    if (!left_out.empty()) {
      report.plan.push_back(fmt::format("left out: {} calls that golden does not make: {}",
                                        left_out.size(), Shortened(left_out)));
    }
  }

  RankTree golden_, out_;
  std::vector<RankTree> ranks_;
  LayoutHint hint_;
  int64_t stages_in_order_ = 0;  // ranks whose input shows it
  RankGroups told_tensor_groups_;
  std::vector<ListOffsets> offsets_;                            // of each rank
  std::vector<std::unordered_map<std::string, Part*>> places_;  // of each rank
  std::unordered_map<std::string, Part*> golden_places_;
  std::unordered_map<const Part*, std::string_view> place_of_;  // of golden's calls
  std::optional<GatherPlan> gather_;
  std::unordered_set<const Part*> used_;

  RankGroups groups_;
  PartialSums sums_;
  std::set<std::string> loops_, loop_lists_;  // paths of modules, and of their lists
  std::set<std::vector<size_t>> stage_sets_;
  std::string input_name_;
  size_t input_holders_ = 0;
  std::vector<std::string> incomplete_;
  FoldedTensor input_;
  double gradient_scale_ = 1;
  int64_t sequence_parts_ = 1, tensor_parts_ = 1;  // tensor_parts_: most shards of a parameter
  uint64_t loop_calls_ = 0, summed_ = 0, reduced_ = 0;

  std::set<std::string> counted_parameters_;
  uint64_t parameters_ = 0, proven_ = 0, whole_parameters_ = 0, whole_ = 0;
  DividedBy divided_parameters_, divided_;
  Divided packed_;
  std::map<std::vector<size_t>, uint64_t> stages_;  // calls by those who make them
  std::vector<std::string> summands_, unknown_;
};

}  // namespace

std::string UnshardReport::Text() const {
  std::string text = fmt::format(
      "layout: {} rank{} as golden's one: {}\n", ranks, ranks == 1 ? "" : "s",
      layout.empty() ? "every rank does the same" : fmt::format("{}", fmt::join(layout, ", ")));
  for (const std::string& line : plan) text += fmt::format("  {}\n", line);
  return text;
}

Result<UnshardReport> Unshard(const UnshardRequest& request) {
  PL_TRY_ASSIGN(LayoutHint hint, ParseLayoutHint(request.layout));
  PL_TRY_ASSIGN(const std::vector<load::RankDirectory> golden, ListRanks(request.golden));
  PL_TRY_ASSIGN(const std::vector<load::RankDirectory> ranks, ListRanks(request.target));
  if (golden.size() != 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds {} ranks (expected the run on one rank, to which those of "
                             "{} are brought together)",
                             request.golden, golden.size(), request.target));
  }
  std::vector<std::optional<Result<RankTree>>> read(ranks.size() + 2);
  ParallelFor(read.size(), [&](size_t i) {
    const load::RankDirectory& rank = i < 2 ? golden.front() : ranks[i - 2];
    read[i] = ReadStatistics(rank, i < 2 ? 0 : rank.rank.value_or(static_cast<int64_t>(i - 2)));
  });
  std::vector<RankTree> trees;
  for (auto& each : read) {
    if (!*each) return each->error();
    trees.push_back(std::move(**each));
  }
  PL_TRY(CheckAllRanks(request.target, {trees.begin() + 2, trees.end()}));
  const bool have_tensors =
      std::ranges::all_of(trees, [](const RankTree& tree) { return tree.task == kTaskOfTensors; });
  RankTree first = std::move(trees[0]), second = std::move(trees[1]);
  trees.erase(trees.begin(), trees.begin() + 2);
  Unsharder unsharder(std::move(first), std::move(second), std::move(trees), std::move(hint));
  const auto places = have_tensors
                          ? FindTensors(request.golden, request.target, ranks, golden.front())
                          : std::nullopt;
  if (places) unsharder.GatherTensors(*places);
  if (Status fits = unsharder.Run(); !fits) return fits.error().In(request.target);
  UnshardReport report;
  unsharder.Describe(report);
  PL_TRY(unsharder.Write(request.output_dir, report));
  return report;
}

}  // namespace plumbline::view

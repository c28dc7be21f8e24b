#include "match/name_match.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "base/memory/name_table.h"
#include "base/process/parallel.h"
#include "match/call_align.h"
#include "match/item_match.h"

namespace plumbline::match {

namespace {

using IndexList = std::vector<size_t>;
// Calls whose items are matched before any is paired, and how many of them by one thread at a time.
constexpr size_t kBlock = 16'384, kShare = 512;

struct CallGroup {
  IndexList target, golden;
};

struct Aligned {
  CallGroup group;
  std::string_view rule;
};

// Numbers texts: equal texts get equal numbers, from 1.
class Interner {
 public:
  uint32_t Of(const std::string& text) {
    return ids_.try_emplace(text, static_cast<uint32_t>(ids_.size() + 1)).first->second;
  }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
};

class Matcher {
 public:
  Matcher(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
          const MatchOptions& options)
      : target_(target),
        golden_(golden),
        options_(options),
        partner_(target.size(), kUnpaired),
        counterpart_(golden.size(), kUnpaired),
        rule_(target.size()) {}

  std::vector<CallPair> Run() {
    JoinByName();
    if (options_.fuzzy || HasLeftovers() || RecomputationDiffers()) {
      PairByOrder();
      if (!aligned_.empty()) AlignAgain();
      PairLeftovers(&UnwrappedKey, "unwrapped");
      PairByPlace();
      PairByArguments();
    }
    for (const auto& [i, j] : PairsInAnotherOrder(target_, golden_, partner_)) {
      Pair(i, j, "renumbered");
    }
    return Pairs();
  }

 private:
  static std::string UnwrappedKey(std::string_view name) {
    return WithoutCallNumber(UnwrappedName(name));
  }

  void Pair(size_t i, size_t j, std::string_view rule) {
    partner_[i] = j;
    counterpart_[j] = i;
    rule_[i] = RuleOf(i, j, rule);
  }

  std::string_view RuleOf(size_t i, size_t j, std::string_view rule) const {
    if (target_[i].name == golden_[j].name) return {};
    return target_[i].key() == golden_[j].name ? "mapped" : rule;
  }

  // Pairs all if the same calls stand in the same order, as two runs of one model have them.
  bool JoinInOrder() {
    if (target_.size() != golden_.size()) return false;
    std::atomic<bool> is_same{true};
    ParallelBlocks(target_.size(), kBlock, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end && is_same; ++i) {
        if (target_[i].key() != golden_[i].name ||
            target_[i].items.empty() != golden_[i].items.empty()) {
          is_same = false;
        } else if (!target_[i].items.empty()) {
          Pair(i, i, {});
        }
      }
    });
    if (is_same) return true;
    std::ranges::fill(partner_, kUnpaired);
    std::ranges::fill(counterpart_, kUnpaired);
    return false;
  }

  void JoinByName() {
    if (JoinInOrder()) return;
    NameTable by_name(golden_.size());
    const auto name_at = [&](size_t j) { return std::string_view(golden_[j].name); };
    for (size_t j = golden_.size(); j-- > 0;) {  // of equal names the last one counts
      if (!golden_[j].items.empty()) by_name.Add(j, name_at);
    }
    for (size_t i = 0; i < target_.size(); ++i) {
      if (target_[i].items.empty()) continue;
      const auto found = by_name.Find(target_[i].key(), name_at);
      // A mapping may lead two calls to one name; the first has it.
      if (found && counterpart_[*found] == kUnpaired) Pair(i, *found, {});
    }
  }

  bool IsAlone(size_t i) const { return partner_[i] == kUnpaired && !target_[i].items.empty(); }
  bool IsAloneInGolden(size_t j) const {
    return counterpart_[j] == kUnpaired && !golden_[j].items.empty();
  }

  // Whether a side has calls without partner. One side is enough: its calls may belong to pairs
  // that the names have joined wrongly.
  bool HasLeftovers() const {
    for (size_t i = 0; i < target_.size(); ++i) {
      if (IsAlone(i)) return true;
    }
    for (size_t j = 0; j < golden_.size(); ++j) {
      if (IsAloneInGolden(j)) return true;
    }
    return false;
  }

  bool RecomputationDiffers() const {
    for (size_t i = 0; i < target_.size(); ++i) {
      if (partner_[i] == kUnpaired) continue;
      if (target_[i].recomputed != golden_[partner_[i]].recomputed) return true;
    }
    return false;
  }

  // --- calls of one name without number -------------------------------------------------------

  void PairByOrder() {
    std::unordered_map<std::string, CallGroup> groups;
    for (size_t i = 0; i < target_.size(); ++i) {
      target_bases_.push_back(WithoutCallNumber(target_[i].key()));
      if (!target_[i].items.empty()) groups[target_bases_[i]].target.push_back(i);
    }
    for (size_t j = 0; j < golden_.size(); ++j) {
      golden_bases_.push_back(WithoutCallNumber(golden_[j].name));
      if (!golden_[j].items.empty()) groups[golden_bases_[j]].golden.push_back(j);
    }
    for (const auto& entry : groups) {
      const CallGroup& group = entry.second;
      if (group.target.empty() || group.golden.empty()) continue;
      if (!options_.fuzzy && IsJoined(group)) continue;
      Unpair(group);
      for (const bool recomputed : {false, true}) {
        PairGroup(Part(group, recomputed), options_.fuzzy ? "fuzzy" : "renumbered");
      }
    }
  }

  // Once more, now that most of what stands around them is paired: in a loop every round has
  // neighbours of the same names, and a gradient belongs to its forward call. Forward calls first.
  void AlignAgain() {
    std::vector<Aligned> again;
    std::swap(again, aligned_);
    std::ranges::sort(again, {}, [&](const Aligned& each) {
      const size_t first = each.group.target.front();
      return std::pair(target_bases_[first].ends_with(".backward"), first);
    });
    const Surroundings surroundings(target_, golden_, partner_, counterpart_);
    for (const Aligned& each : again) {
      Unpair(each.group);
      Align(each.group, each.rule, &surroundings);
    }
  }

  // Every call of the group has its namesake, run for the same reason.
  bool IsJoined(const CallGroup& group) const {
    if (group.target.size() != group.golden.size()) return false;
    return std::ranges::all_of(group.target, [&](size_t i) {
      return partner_[i] != kUnpaired && target_[i].recomputed == golden_[partner_[i]].recomputed;
    });
  }

  void Unpair(const CallGroup& group) {
    for (const size_t i : group.target) partner_[i] = kUnpaired;
    for (const size_t j : group.golden) counterpart_[j] = kUnpaired;
  }

  CallGroup Part(const CallGroup& group, bool recomputed) const {
    CallGroup part;
    for (const size_t i : group.target) {
      if (target_[i].recomputed == recomputed) part.target.push_back(i);
    }
    for (const size_t j : group.golden) {
      if (golden_[j].recomputed == recomputed) part.golden.push_back(j);
    }
    return part;
  }

  void PairGroup(const CallGroup& group, std::string_view rule) {
    if (group.target.empty() || group.golden.empty()) return;
    if (group.target.size() != group.golden.size()) {
      Align(group, rule);
      aligned_.push_back({group, rule});
      return;
    }
    std::unordered_map<std::string_view, size_t> by_name;
    for (const size_t j : group.golden) by_name.emplace(golden_[j].name, j);
    const bool same_names = !options_.fuzzy && std::ranges::all_of(group.target, [&](size_t i) {
      return by_name.contains(target_[i].key());
    });
    for (size_t k = 0; k < group.target.size(); ++k) {
      const size_t i = group.target[k];
      Pair(i, same_names ? by_name.at(target_[i].key()) : group.golden[k], rule);
    }
  }

  void Align(const CallGroup& group, std::string_view rule,
             const Surroundings* surroundings = nullptr) {
    std::vector<AlignedCall> a =
        Described(target_, target_bases_, group.target, options_.target_site);
    std::vector<AlignedCall> b =
        Described(golden_, golden_bases_, group.golden, options_.golden_site);
    if (surroundings != nullptr) surroundings->Describe(a, b);
    for (const auto& [i, j] : AlignCalls(a, b)) Pair(i, j, rule);
    // SameNamedCalls that are left differ in structure; that is worth saying.
    std::unordered_map<std::string_view, size_t> by_name;
    for (const size_t j : group.golden) {
      if (counterpart_[j] == kUnpaired) by_name.emplace(golden_[j].name, j);
    }
    for (const size_t i : group.target) {
      const auto found = by_name.find(target_[i].key());
      if (partner_[i] == kUnpaired && found != by_name.end()) Pair(i, found->second, rule);
    }
  }

  std::vector<AlignedCall> Described(const std::vector<CallItems>& calls,
                                     const std::vector<std::string>& bases, const IndexList& group,
                                     const std::function<std::string(size_t)>& site) {
    std::vector<AlignedCall> described;
    described.reserve(group.size());
    for (const size_t i : group) {
      AlignedCall& call = described.emplace_back();
      call.index = i;
      call.structure = ids_.Of(StructureOf(calls[i], options_.items));
      call.name = ids_.Of(calls[i].key());
      call.before = i > 0 ? ids_.Of(bases[i - 1]) : 0;
      call.after = i + 1 < bases.size() ? ids_.Of(bases[i + 1]) : 0;
      const std::string arguments = ArgumentsOf(calls[i]);
      call.arguments = arguments.empty() ? 0 : ids_.Of(arguments);
      const std::string place = site ? site(i) : std::string();
      call.site = place.empty() ? 0 : ids_.Of(place);
    }
    return described;
  }

  // --- calls that are left --------------------------------------------------------------------

  // Groups of the calls without partner, by a text made of each name.
  std::unordered_map<std::string, CallGroup> Leftovers(std::string (*key)(std::string_view)) const {
    std::unordered_map<std::string, CallGroup> groups;
    for (size_t i = 0; i < target_.size(); ++i) {
      if (IsAlone(i)) groups[key(target_[i].key())].target.push_back(i);
    }
    for (size_t j = 0; j < golden_.size(); ++j) {
      if (IsAloneInGolden(j)) groups[key(golden_[j].name)].golden.push_back(j);
    }
    return groups;
  }

  void PairLeftovers(std::string (*key)(std::string_view), std::string_view rule) {
    for (const auto& entry : Leftovers(key)) {
      for (const bool recomputed : {false, true}) {
        PairGroup(Part(entry.second, recomputed), rule);
      }
    }
  }

  // Calls of one kind between the same two paired calls are the same call under another name.
  void PairByPlace() {
    std::unordered_map<std::string, CallGroup> groups;
    std::array<size_t, 2> anchor = {kUnpaired, kUnpaired};  // of calls run once, and recomputed
    for (size_t i = 0; i < target_.size(); ++i) {
      size_t& place = anchor[target_[i].recomputed ? 1 : 0];
      if (partner_[i] != kUnpaired) place = partner_[i];
      if (IsAlone(i)) groups[PlaceKey(target_[i], place)].target.push_back(i);
    }
    anchor = {kUnpaired, kUnpaired};
    for (size_t j = 0; j < golden_.size(); ++j) {
      size_t& place = anchor[golden_[j].recomputed ? 1 : 0];
      if (counterpart_[j] != kUnpaired) place = j;
      if (IsAloneInGolden(j)) groups[PlaceKey(golden_[j], place)].golden.push_back(j);
    }
    for (const auto& entry : groups) {
      const CallGroup& group = entry.second;
      if (!group.target.empty() && !group.golden.empty()) Align(group, "renamed");
    }
  }

  void PairByArguments() {
    const auto moved = PairedByArguments(target_, golden_, partner_);
    for (const auto& [i, j] : moved) Leave(i, j);
    for (const auto& [i, j] : moved) {
      if (i != kUnpaired && j != kUnpaired) Pair(i, j, "renumbered");
    }
  }

  // Takes the partners of both away.
  void Leave(size_t i, size_t j) {
    if (i != kUnpaired && partner_[i] != kUnpaired) {
      counterpart_[partner_[i]] = kUnpaired;
      partner_[i] = kUnpaired;
    }
    if (j != kUnpaired && counterpart_[j] != kUnpaired) {
      partner_[counterpart_[j]] = kUnpaired;
      counterpart_[j] = kUnpaired;
    }
  }

  static std::string PlaceKey(const CallItems& call, size_t anchor) {
    return KindName(call.key()) + (call.recomputed ? " again " : " ") + std::to_string(anchor);
  }

  // --- result ---------------------------------------------------------------------------------

  // Of the calls from `begin` on that have partners.
  std::vector<ItemMatch> MatchBlock(size_t begin, size_t end) const {
    std::vector<ItemMatch> matches(end - begin);
    ParallelBlocks(matches.size(), kShare, [&](size_t from, size_t to) {
      for (size_t i = begin + from; i < begin + to; ++i) {
        if (partner_[i] == kUnpaired) continue;
        matches[i - begin] = MatchItems(target_[i], golden_[partner_[i]], options_.items);
      }
    });
    return matches;
  }

  std::vector<CallPair> Pairs() const {
    std::vector<CallPair> pairs;
    pairs.reserve(target_.size());
    std::unordered_map<size_t, CallPair> alone;  // golden calls that have a namesake
    for (size_t begin = 0; begin < target_.size(); begin += kBlock) {
      const size_t end = std::min(begin + kBlock, target_.size());
      std::vector<ItemMatch> matches = MatchBlock(begin, end);
      for (size_t i = begin; i < end; ++i) AddPair(i, std::move(matches[i - begin]), alone, pairs);
    }
    AddGoldenOnly(alone, pairs);
    return pairs;
  }

  // `items` is how the items of the call and its partner match, if it has one.
  void AddPair(size_t i, ItemMatch items, std::unordered_map<size_t, CallPair>& alone,
               std::vector<CallPair>& pairs) const {
    if (target_[i].items.empty()) return;
    CallPair& pair = pairs.emplace_back();
    pair.target = i;
    const size_t j = partner_[i];
    if (j == kUnpaired) {
      pair.reason = target_[i].recomputed ? "recomputed" : "no-golden";
      return;
    }
    pair.links = std::move(items.links);
    pair.rule = rule_[i];
    if (!items.mismatch) {
      pair.golden = j;
      AddLeftOut(i, j, items, pairs);
      return;
    }
    pair.links.clear();
    pair.reason = items.mismatch->reason;
    pair.detail = items.mismatch->detail;
    pair.role = items.mismatch->role;
    pair.counterpart = j;
    CallPair& other = alone[j] = pair;
    other.target = kUnpaired;
    other.golden = j;
    other.counterpart = i;
  }

  // Items that a mapping leaves without counterpart, and arguments left to their defaults.
  static void AddLeftOut(size_t i, size_t j, const ItemMatch& items, std::vector<CallPair>& pairs) {
    if (!items.alone_target.empty()) {
      CallPair& alone = pairs.emplace_back();
      alone.target = i;
      alone.reason = items.are_defaults ? CallPair::kDefault : "no-golden";
      for (const size_t k : items.alone_target) alone.links.emplace_back(k, kUnpaired);
    }
    if (!items.alone_golden.empty()) {
      CallPair& alone = pairs.emplace_back();
      alone.golden = j;
      alone.reason = items.are_defaults ? CallPair::kDefault : "no-target";
      for (const size_t k : items.alone_golden) alone.links.emplace_back(kUnpaired, k);
    }
  }

  void AddGoldenOnly(std::unordered_map<size_t, CallPair>& alone,
                     std::vector<CallPair>& pairs) const {
    for (size_t j = 0; j < golden_.size(); ++j) {
      const auto found = alone.find(j);
      if (found != alone.end()) {
        pairs.push_back(std::move(found->second));
      } else if (IsAloneInGolden(j)) {
        CallPair& pair = pairs.emplace_back();
        pair.golden = j;
        pair.reason = golden_[j].recomputed ? "recomputed" : "no-target";
      }
    }
  }

  const std::vector<CallItems>& target_;
  const std::vector<CallItems>& golden_;
  const MatchOptions& options_;
  IndexList partner_;      // golden index per target call, or kUnpaired
  IndexList counterpart_;  // target index per golden call, or kUnpaired
  std::vector<std::string_view> rule_;
  std::vector<Aligned> aligned_;
  std::vector<std::string> target_bases_, golden_bases_;  // names without numbers
  Interner ids_;
};

}  // namespace

std::vector<CallPair> MatchCalls(const std::vector<CallItems>& target,
                                 const std::vector<CallItems>& golden,
                                 const MatchOptions& options) {
  return Matcher(target, golden, options).Run();
}

namespace {

struct Entry {
  std::string_view operator_name;
  std::string_view torch_name;
};

// Sorted by operator name. Where an operator serves several functions, the most used one.
constexpr auto kEntries = std::to_array<Entry>({
    {"_adaptive_avg_pool2d", "adaptive_avg_pool2d"},
    {"_adaptive_avg_pool3d", "adaptive_avg_pool3d"},
    {"_cdist_forward", "cdist"},
    {"_embedding_bag", "embedding_bag"},
    {"_linalg_det", "det"},
    {"_linalg_eigh", "eigh"},
    {"_linalg_slogdet", "slogdet"},
    {"_linalg_svd", "svd"},
    {"_log_softmax", "log_softmax"},
    {"_native_batch_norm_legit", "batch_norm"},
    {"_native_batch_norm_legit_functional", "batch_norm"},
    {"_pdist_forward", "pdist"},
    {"_reshape_alias", "reshape"},
    {"_scaled_dot_product_efficient_attention", "scaled_dot_product_attention"},
    {"_scaled_dot_product_flash_attention", "scaled_dot_product_attention"},
    {"_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention"},
    {"_softmax", "softmax"},
    {"_to_copy", "to"},
    {"_unsafe_view", "view"},
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arcsin", "asin"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"bitwise_left_shift", "lshift"},
    {"bitwise_right_shift", "rshift"},
    {"constant_pad_nd", "pad"},
    {"convolution", "conv2d"},
    {"cudnn_batch_norm", "batch_norm"},
    {"divide", "div"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"grid_sampler_2d", "grid_sample"},
    {"grid_sampler_3d", "grid_sample"},
    {"index", "getitem"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"linalg_vector_norm", "norm"},
    {"log_sigmoid_forward", "logsigmoid"},
    {"max_pool2d_with_indices", "max_pool2d"},
    {"max_pool3d_with_indices", "max_pool3d"},
    {"multiply", "mul"},
    {"native_batch_norm", "batch_norm"},
    {"native_dropout", "dropout"},
    {"native_group_norm", "group_norm"},
    {"native_layer_norm", "layer_norm"},
    {"negative", "neg"},
    {"nll_loss2d_forward", "nll_loss"},
    {"nll_loss_forward", "nll_loss"},
    {"not_equal", "ne"},
    {"rrelu_with_noise", "rrelu"},
    {"split_with_sizes", "split"},
    {"subtract", "sub"},
    {"t", "transpose"},
    {"unsafe_split", "split"},
    {"upsample_bicubic2d", "interpolate"},
    {"upsample_bilinear2d", "interpolate"},
    {"upsample_nearest1d", "interpolate"},
    {"upsample_nearest2d", "interpolate"},
    {"upsample_nearest3d", "interpolate"},
});
static_assert(std::ranges::is_sorted(kEntries, {}, &Entry::operator_name));

}  // namespace

std::string_view TorchNameOfAten(std::string_view operator_name) {
  const auto at = std::ranges::lower_bound(kEntries, operator_name, {}, &Entry::operator_name);
  return at != kEntries.end() && at->operator_name == operator_name ? at->torch_name
                                                                    : operator_name;
}

namespace {

// Of the normalisations and of Embedding. The running statistics are buffers in PyTorch's own
// modules, but parameters in some of other people.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"gamma", "weight"},
    {"beta", "bias"},
    {"embedding_table", "weight"},
    {"moving_mean", "running_mean"},
    {"moving_variance", "running_var"}};

bool HasPart(const CallItems& call, std::string_view part) {
  return std::ranges::any_of(
      call.items, [&](const Item& item) { return ItemPart(item.name, call.name) == part; });
}

constexpr std::string_view kParametersPrefix = "parameters.";  // gradients have the bare name
constexpr std::string_view kBuffers = "buffers.";

// Parameters that the call wrote into, as buffers under PyTorch's names, where the golden module
// has them so: both are recorded behind the call.
void TakeForBuffers(const CallItems& golden, std::vector<Item>& items,
                    std::vector<std::string>& parts) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (!parts[i].starts_with(kParametersPrefix) || HasPart(golden, parts[i])) continue;
    std::string buffer = std::string(kBuffers).append(parts[i].substr(kParametersPrefix.size()));
    if (!HasPart(golden, buffer)) continue;
    parts[i] = std::move(buffer);
    items[i].role = ItemRole::kBuffer;
  }
}

// What a cell that no mapping names is called in PyTorch, where it has the same place.
std::string ModuleOf(std::string_view cell) {
  constexpr std::string_view kCell = "Cell.";
  if (!cell.starts_with(kCell)) return std::string(cell);
  return std::string("Module.").append(cell.substr(kCell.size()));
}

}  // namespace

std::optional<std::string> ParameterInTorch(std::string_view part) {
  const std::string_view prefix =
      part.starts_with(kParametersPrefix) ? kParametersPrefix : std::string_view();
  for (const auto& [ours, theirs] : kNames) {
    if (part.substr(prefix.size()) == ours) return std::string(prefix).append(theirs);
  }
  return std::nullopt;
}

void MapParameters(const std::vector<CallItems>& golden, std::vector<CallItems>& target) {
  std::unordered_map<std::string_view, const CallItems*> by_name;
  for (const CallItems& call : golden) by_name.emplace(call.name, &call);
  for (CallItems& call : target) {
    if (!IsModuleCall(call.name)) continue;
    const auto other = by_name.find(ModuleOf(call.key()));
    if (other == by_name.end() || !call.mapped_parts.empty()) continue;
    std::vector<std::string> parts;
    bool is_renamed = false;
    for (const Item& item : call.items) {
      const std::string_view part = ItemPart(item.name, call.name).value_or(item.name);
      const auto renamed = ParameterInTorch(part);
      const bool is_so = renamed && !HasPart(*other->second, part);
      parts.push_back(is_so ? *renamed : std::string(part));
      is_renamed = is_renamed || is_so;
    }
    if (!is_renamed) continue;
    TakeForBuffers(*other->second, call.items, parts);
    call.mapped_parts = std::move(parts);
  }
}

}  // namespace plumbline::match

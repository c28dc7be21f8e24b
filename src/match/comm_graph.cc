#include "match/comm_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace plumbline {
namespace {

// Numbers for texts, in order of first use.
class Interner {
 public:
  // The number, and whether it is new.
  std::pair<uint32_t, bool> Number(const std::string& text) {
    const auto [at, is_new] = numbers_.try_emplace(text, static_cast<uint32_t>(numbers_.size()));
    return {at->second, is_new};
  }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
};

// Counts what has one key on one rank. Ranks come one after the other.
class PartCounter {
 public:
  explicit PartCounter(size_t keys) : counts_(keys, 0), ranks_(keys, SIZE_MAX) {}
  uint32_t Next(uint32_t key, size_t rank) {
    if (ranks_[key] != rank) counts_[key] = 0;
    ranks_[key] = rank;
    return counts_[key]++;
  }

 private:
  std::vector<uint32_t> counts_;
  std::vector<size_t> ranks_;
};

// Where lists of `sizes` elements begin in one list of them all, and its end.
std::vector<uint32_t> BeginsOf(const std::vector<uint32_t>& sizes) {
  std::vector<uint32_t> begins(sizes.size() + 1, 0);
  for (size_t i = 0; i < sizes.size(); ++i) begins[i + 1] = begins[i] + sizes[i];
  return begins;
}

}  // namespace

// One call's part in one collective or message; no key: in none that is known.
struct CommOrder::Part {
  size_t rank = 0;
  uint32_t call = 0;
  size_t kind = 0;
  bool is_message = false;
  uint32_t key = kNone;
  uint32_t count = 0;     // n-th with this key on this rank
  uint32_t transfer = 0;  // of Kind::transfers
};

// Finds what calls must have in common to belong together.
class CommOrder::KeyFinder {
 public:
  explicit KeyFinder(CommOrder& order) : order_(order) {
    for (const CommSide& side : order.sides_) {
      if (side.rank) all_.push_back(*side.rank);
    }
    everyone_ = fmt::format("{}", fmt::join(all_, ","));
  }

  void Find() {
    ForEachKind([&](size_t rank, const CommTrace::Kind& kind, KindKeys& /*keys*/) {
      const CommSide& side = order_.sides_[rank];
      if (!side.rank || kind.IsMessage()) return;
      Told& told = told_[CollectiveKey(kind)];
      told.ids = told.ids && kind.group >= 0 && !GroupOf(side, kind).id.empty();
      told.names = told.names && !GroupName(side.groups, kind.group).empty();
    });
    ForEachKind([&](size_t rank, const CommTrace::Kind& kind, KindKeys& keys) {
      const CommSide& side = order_.sides_[rank];
      keys.transfers.assign(kind.transfers.size(), kNone);
      if (!side.rank) return;
      if (kind.IsMessage()) {
        AddTransfers(*side.rank, kind, keys);
      } else {
        AddCollective(side, kind, keys);
      }
    });
  }

 private:
  // By API and ranks: every call has a group_id, or a name of its group.
  struct Told {
    bool ids = true, names = true;
  };

  template <typename Visit>
  void ForEachKind(const Visit& visit) {
    order_.kinds_.resize(order_.sides_.size());
    for (size_t rank = 0; rank < order_.sides_.size(); ++rank) {
      const CommSide& side = order_.sides_[rank];
      const std::vector<CommTrace::Kind>& kinds = side.calls->kinds();
      order_.kinds_[rank].resize(kinds.size());
      rank_sets_.clear();
      for (const CommGroup& group : side.groups) rank_sets_.push_back(RankSetText(group));
      for (size_t i = 0; i < kinds.size(); ++i) visit(rank, kinds[i], order_.kinds_[rank][i]);
    }
  }

  void AddTransfers(int64_t self, const CommTrace::Kind& kind, KindKeys& keys) {
    for (size_t i = 0; i < kind.transfers.size(); ++i) {
      const PeerTransfer& transfer = kind.transfers[i];
      if (!transfer.peer) continue;
      const bool receives = transfer.direction == Transfer::kReceive;
      const auto [number, is_new] = messages_.Number(
          fmt::format("{} {} {} {}", receives ? *transfer.peer : self,
                      receives ? self : *transfer.peer, transfer.tag, transfer.is_object));
      if (is_new) order_.message_keys_.emplace_back();
      keys.transfers[i] = number;
    }
  }

  void AddCollective(const CommSide& side, const CommTrace::Kind& kind, KindKeys& keys) {
    std::string text = CollectiveKey(kind);
    const Told& told = told_[text];
    if (told.names) {
      text += fmt::format(" {}", GroupName(side.groups, kind.group));
    } else if (told.ids) {
      text += " " + GroupOf(side, kind).id;
    }
    const auto [number, is_new] = collectives_.Number(text);
    if (is_new) {
      order_.collectives_.push_back({.members = MembersOf(side, kind), .api = kind.api});
    }
    keys.collective = number;
    // Who puts values into it and who gets them.
    const bool is_root = kind.root && kind.root == side.rank;
    const bool from_root = kind.api.starts_with("broadcast") || kind.api.starts_with("scatter");
    keys.gives = !kind.root || !from_root || is_root;
    keys.takes = !kind.root || from_root || is_root;
  }

  // How many ranks take part in a collective call.
  [[nodiscard]] uint32_t MembersOf(const CommSide& side, const CommTrace::Kind& kind) const {
    const bool is_everyone = kind.group < 0 || GroupOf(side, kind).ranks.empty();
    return static_cast<uint32_t>(is_everyone ? all_.size() : GroupOf(side, kind).ranks.size());
  }
  static const CommGroup& GroupOf(const CommSide& side, const CommTrace::Kind& kind) {
    return side.groups[static_cast<size_t>(kind.group)];
  }
  [[nodiscard]] std::string RankSetText(const CommGroup& group) const {
    if (!group.ranks.empty()) return fmt::format("{}", fmt::join(group.ranks, ","));
    return everyone_;
  }
  [[nodiscard]] std::string CollectiveKey(const CommTrace::Kind& kind) const {
    return kind.api + " " +
           (kind.group < 0 ? everyone_ : rank_sets_[static_cast<size_t>(kind.group)]);
  }

  CommOrder& order_;
  std::vector<int64_t> all_;  // ranks with a number, ascending
  std::string everyone_;
  std::vector<std::string> rank_sets_;  // of the groups of the rank that is looked at
  std::unordered_map<std::string, Told> told_;
  Interner collectives_, messages_;
};

CommOrder::CommOrder(std::vector<CommSide> sides) : sides_(std::move(sides)) {
  std::vector<uint32_t> sizes;
  for (const CommSide& side : sides_) sizes.push_back(static_cast<uint32_t>(side.calls->size()));
  first_ = BeginsOf(sizes);
  KeyFinder(*this).Find();
  Count();
  PlaceParts();
  CountUnpaired();
}

// Of a call without any part, `visit` sees one without key.
template <typename Visit>
void CommOrder::ForEachPart(const Visit& visit) const {
  // Both ends of messages count on their own: a rank may send to itself.
  PartCounter collectives(collectives_.size()), sends(message_keys_.size()),
      receives(message_keys_.size());
  for (size_t rank = 0; rank < sides_.size(); ++rank) {
    Part part{.rank = rank, .call = first_[rank]};
    sides_[rank].calls->ForEach([&](const CommTrace::Record& record) {
      const CommTrace::Kind& kind = sides_[rank].calls->kinds()[record.kind];
      const KindKeys& keys = kinds_[rank][record.kind];
      part.kind = record.kind;
      part.is_message = kind.IsMessage();
      part.key = keys.collective;
      part.transfer = 0;
      if (part.key != kNone) part.count = collectives.Next(part.key, rank);
      if (keys.transfers.empty()) visit(part);
      for (; part.transfer < keys.transfers.size(); ++part.transfer) {
        part.key = keys.transfers[part.transfer];
        const bool is_send = kind.transfers[part.transfer].direction == Transfer::kSend;
        if (part.key != kNone) part.count = (is_send ? sends : receives).Next(part.key, rank);
        visit(part);
      }
      ++part.call;
    });
  }
}

void CommOrder::Count() {
  ForEachPart([&](const Part& part) {
    if (part.key == kNone) return;
    Key& key = part.is_message ? message_keys_[part.key] : collectives_[part.key];
    key.count = std::max(key.count, part.count + 1);
  });
  for (std::vector<Key>* const keys : {&collectives_, &message_keys_}) {
    uint32_t begin = 0;
    for (Key& key : *keys) {
      key.begin = begin;
      begin += key.count;
    }
  }
}

void CommOrder::PlaceParts() {
  parts_.assign(collectives_.empty() ? 0 : collectives_.back().begin + collectives_.back().count,
                0);
  messages_.resize(message_keys_.empty() ? 0
                                         : message_keys_.back().begin + message_keys_.back().count);
  ForEachPart([&](const Part& part) {
    if (part.key == kNone) return;
    if (!part.is_message) {
      ++parts_[collectives_[part.key].begin + part.count];
      return;
    }
    const CommTrace::Kind& kind = sides_[part.rank].calls->kinds()[part.kind];
    Message& message = messages_[message_keys_[part.key].begin + part.count];
    if (message.parts < 3) ++message.parts;
    if (kind.transfers[part.transfer].direction == Transfer::kSend) {
      message.from = part.call;
      message.from_transfer = part.transfer;
      message.sender_kind = static_cast<uint32_t>(part.kind);
    } else {
      message.to = part.call;
      message.to_transfer = part.transfer;
      message.waits = kind.waits;
    }
  });
}

void CommOrder::CountUnpaired() {
  size_t paired = 0;  // transfers of the call so far
  ForEachPart([&](const Part& part) {
    const size_t transfers = sides_[part.rank].calls->kinds()[part.kind].transfers.size();
    if (part.transfer == 0) paired = 0;
    if (part.key != kNone && part.is_message) {
      paired += messages_[message_keys_[part.key].begin + part.count].paired() ? 1 : 0;
    } else if (part.key != kNone) {
      const Key& key = collectives_[part.key];
      paired += parts_[key.begin + part.count] >= key.members ? 1 : 0;
    }
    const size_t needed = std::max<size_t>(transfers, 1);
    if (part.transfer + 1 < needed || paired >= needed) return;
    if (unpaired_++ == 0) first_unpaired_ = {part.rank, part.call - first_[part.rank]};
  });
}

CommNode CommOrder::NodeOf(uint32_t call) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), call);
  const auto rank = static_cast<size_t>(after - first_.begin()) - 1;
  return {rank, call - first_[rank]};
}

void CommOrder::Order() {
  FindMembers();
  FindEdges();
  OrderUnits();
  SetLayers();
}

void CommOrder::FindMembers() {
  auto units = static_cast<uint32_t>(parts_.size());
  unit_of_.assign(first_.back(), kNone);
  gives_.assign(first_.back(), false);
  takes_.assign(first_.back(), false);
  ForEachPart([&](const Part& part) {
    if (part.transfer > 0) return;
    const KindKeys& keys = kinds_[part.rank][part.kind];
    gives_[part.call] = keys.gives;
    takes_[part.call] = keys.takes;
    const bool is_alone = part.is_message || part.key == kNone;
    unit_of_[part.call] = is_alone ? units++ : collectives_[part.key].begin + part.count;
  });
  std::vector<uint32_t> sizes(units, 0);
  for (const uint32_t unit : unit_of_) ++sizes[unit];
  member_begin_ = BeginsOf(sizes);
  members_.resize(unit_of_.size());
  std::vector<uint32_t>& next = sizes;
  std::copy(member_begin_.begin(), member_begin_.end() - 1, next.begin());
  for (uint32_t call = 0; call < unit_of_.size(); ++call) members_[next[unit_of_[call]]++] = call;
}

// A receive that waits cannot end before its message was sent.
void CommOrder::FindEdges() {
  const auto for_each_edge = [&](const auto& visit) {
    for (const Message& message : messages_) {
      if (!message.paired() || !message.waits) continue;
      const uint32_t from = unit_of_[message.from], to = unit_of_[message.to];
      if (from != to) visit(from, to);
    }
  };
  const size_t units = member_begin_.size() - 1;
  waits_for_.assign(units, 0);
  std::vector<uint32_t> sizes(units, 0);
  for_each_edge([&](uint32_t from, uint32_t to) {
    ++sizes[from];
    ++waits_for_[to];
  });
  receiver_begin_ = BeginsOf(sizes);
  receivers_.resize(receiver_begin_.back());
  std::copy(receiver_begin_.begin(), receiver_begin_.end() - 1, sizes.begin());
  for_each_edge([&](uint32_t from, uint32_t to) { receivers_[sizes[from]++] = to; });
}

// Units by their earliest call: its position on its rank, then the rank.
template <typename Visit>
void CommOrder::ForEachByPosition(const Visit& visit) const {
  std::vector<size_t> ranks;  // that have so many calls
  for (size_t rank = 0; rank < sides_.size(); ++rank) ranks.push_back(rank);
  for (uint32_t position = 0; !ranks.empty(); ++position) {
    std::erase_if(ranks, [&](size_t rank) { return first_[rank] + position >= first_[rank + 1]; });
    for (const size_t rank : ranks) {
      const uint32_t call = first_[rank] + position;
      const uint32_t unit = unit_of_[call];
      if (members_[member_begin_[unit]] == call) visit(unit);
    }
  }
}

// Longest path from the start; where the recorded order is a circle, the earliest call goes first.
void CommOrder::OrderUnits() {
  const size_t units = member_begin_.size() - 1;
  for (uint32_t call = 0; call < unit_of_.size(); ++call) ++waits_for_[unit_of_[call]];
  for (size_t rank = 0; rank < sides_.size(); ++rank) {
    if (first_[rank] < first_[rank + 1]) --waits_for_[unit_of_[first_[rank]]];
  }
  unit_layers_.assign(units, 0);
  std::vector<bool> done(units, false);
  ForEachByPosition([&](uint32_t unit) {
    if (waits_for_[unit] == 0) ready_.push(unit);
  });
  ForEachByPosition([&](uint32_t unit) {
    Drain(done);
    if (done[unit]) return;
    ++disordered_;
    ready_.push(unit);
  });
  Drain(done);
}

void CommOrder::Drain(std::vector<bool>& done) {
  for (; !ready_.empty(); ready_.pop()) {
    const uint32_t unit = ready_.front();
    if (done[unit]) continue;
    done[unit] = true;
    for (uint32_t i = member_begin_[unit]; i < member_begin_[unit + 1]; ++i) {
      const uint32_t next = members_[i] + 1;
      if (std::binary_search(first_.begin(), first_.end(), next)) continue;  // of another rank
      Release(unit_of_[next], unit_layers_[unit] + 1, done);
    }
    for (uint32_t i = receiver_begin_[unit]; i < receiver_begin_[unit + 1]; ++i) {
      Release(receivers_[i], unit_layers_[unit], done);
    }
  }
}

void CommOrder::Release(uint32_t unit, uint32_t layer, const std::vector<bool>& done) {
  if (done[unit]) return;
  unit_layers_[unit] = std::max(unit_layers_[unit], layer);
  if (waits_for_[unit] > 0 && --waits_for_[unit] == 0) ready_.push(unit);
}

void CommOrder::SetLayers() {
  layers_.resize(unit_of_.size());
  for (size_t call = 0; call < layers_.size(); ++call) layers_[call] = unit_layers_[unit_of_[call]];
  // What was received without waiting belongs to the time of its message at the earliest.
  for (const Message& message : messages_) {
    if (!message.paired() || message.waits) continue;
    layers_[message.to] = std::max(layers_[message.to], unit_layers_[unit_of_[message.from]]);
  }
  // Only the links are asked for from now on.
  receiver_begin_ = receivers_ = waits_for_ = unit_layers_ = unit_of_ = {};
}

std::vector<uint64_t> CommOrder::LayersOf(size_t rank) const {
  return {layers_.begin() + first_[rank], layers_.begin() + first_[rank + 1]};
}

void CommOrder::ForEachLink(const std::function<void(const CommLink&)>& visit) const {
  CommLink link;
  for (const Key& key : collectives_) {
    link.api = key.api;
    for (uint32_t unit = key.begin; unit < key.begin + key.count; ++unit) {
      link.from.clear();
      link.to.clear();
      for (uint32_t i = member_begin_[unit]; i < member_begin_[unit + 1]; ++i) {
        const CommNode node = NodeOf(members_[i]);
        if (gives_[members_[i]]) link.from.push_back(node);
        if (takes_[members_[i]]) link.to.push_back(node);
      }
      visit(link);
    }
  }
  link.is_message = true;
  for (const Message& message : messages_) {
    if (!message.paired()) continue;
    const CommNode from = NodeOf(message.from);
    link.api = sides_[from.rank].calls->kinds()[message.sender_kind].api;
    link.from = {from};
    link.to = {NodeOf(message.to)};
    link.from_transfer = message.from_transfer;
    link.to_transfer = message.to_transfer;
    visit(link);
  }
}

CommGraph BuildCommGraph(std::span<const RankScan> scans) {
  std::vector<CommTrace> traces;
  traces.reserve(scans.size());
  std::vector<CommSide> sides;
  for (const RankScan& scan : scans) {
    traces.emplace_back(scan.calls);
    sides.push_back({scan.directory.rank, scan.groups, &traces.back()});
  }
  CommOrder order(std::move(sides));
  order.Order();
  CommGraph graph;
  order.ForEachLink([&](const CommLink& link) { graph.links.push_back(link); });
  for (size_t rank = 0; rank < scans.size(); ++rank) graph.layers.push_back(order.LayersOf(rank));
  graph.unpaired = order.unpaired();
  graph.first_unpaired = order.first_unpaired();
  graph.disordered = order.disordered();
  return graph;
}

uint64_t LayerBetween(std::span<const uint64_t> layers, size_t calls_before) {
  if (layers.empty() || calls_before == 0) return 0;
  return calls_before < layers.size() ? layers[calls_before] : layers.back() + 1;
}

}  // namespace plumbline

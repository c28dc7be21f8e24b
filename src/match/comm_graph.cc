#include "match/comm_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace plumbline {
namespace {

constexpr size_t kNoUnit = SIZE_MAX;

// Numbers for texts, in order of first use.
class Interner {
 public:
  size_t Number(const std::string& text) {
    return numbers_.try_emplace(text, numbers_.size()).first->second;
  }

 private:
  std::unordered_map<std::string, size_t> numbers_;
};

// One call's part in one collective or message.
struct Part {
  size_t key = 0;      // what must agree
  uint64_t count = 0;  // n-th with this key on this rank
  bool receives = false;
  CommNode node;
  size_t transfer = 0;  // of CommCall::transfers
};

bool SameLink(const Part& a, const Part& b) { return a.key == b.key && a.count == b.count; }

// Finds the parts of all calls that belong together.
class Pairing {
 public:
  explicit Pairing(std::span<const RankScan> scans) : scans_(scans) {
    for (const RankScan& scan : scans) {
      if (scan.directory.rank) all_.push_back(*scan.directory.rank);
    }
    everyone_ = fmt::format("{}", fmt::join(all_, ","));
    for (const RankScan& scan : scans) {
      std::vector<std::string>& texts = rank_sets_.emplace_back();
      for (const CommGroup& group : scan.groups) texts.push_back(RankSetText(group));
    }
  }

  std::vector<Part> Messages() {
    std::vector<Part> parts;
    ForEachCall([&](const CommNode& node, const RankScan& scan, const CommCall& call) {
      for (size_t i = 0; i < call.transfers.size(); ++i) {
        const PeerTransfer& transfer = call.transfers[i];
        if (!scan.directory.rank || !transfer.peer) continue;
        const bool receives = transfer.direction == Transfer::kReceive;
        const int64_t self = *scan.directory.rank;
        const std::string key =
            fmt::format("{} {} {} {}", receives ? *transfer.peer : self,
                        receives ? self : *transfer.peer, transfer.tag, transfer.is_object);
        // Both ends count on their own: a rank may send to itself.
        parts.push_back(Numbered(keys_.Number(key), receives, node));
        parts.back().transfer = i;
      }
    });
    return parts;
  }

  std::vector<Part> Collectives() {
    // By API and ranks: every call has a group_id, or a name of its group.
    std::unordered_map<std::string, Told> told_of;
    ForEachCall([&](const CommNode& node, const RankScan& scan, const CommCall& call) {
      if (!scan.directory.rank || IsMessage(call)) return;
      Told& told = told_of[CollectiveKey(node, call)];
      told.ids = told.ids && call.group >= 0 && !GroupOf(scan, call).id.empty();
      told.names = told.names && !GroupName(scan, call).empty();
    });
    std::vector<Part> parts;
    ForEachCall([&](const CommNode& node, const RankScan& scan, const CommCall& call) {
      if (!scan.directory.rank || IsMessage(call)) return;
      std::string key = CollectiveKey(node, call);
      const Told& told = told_of[key];
      if (told.names) {
        key += fmt::format(" {}", GroupName(scan, call));
      } else if (told.ids) {
        key += " " + GroupOf(scan, call).id;
      }
      parts.push_back(Numbered(keys_.Number(key), false, node));
    });
    return parts;
  }

  static bool IsMessage(const CommCall& call) { return !call.transfers.empty() || !call.waits; }

  // How many ranks take part in a collective call.
  [[nodiscard]] size_t MembersOf(const CommNode& node) const {
    const RankScan& scan = scans_[node.rank];
    const CommCall& call = scan.calls[node.call];
    if (call.group < 0 || GroupOf(scan, call).ranks.empty()) return all_.size();
    return GroupOf(scan, call).ranks.size();
  }

 private:
  struct Told {
    bool ids = true, names = true;
  };

  template <class F>
  void ForEachCall(const F& f) {
    for (size_t rank = 0; rank < scans_.size(); ++rank) {
      for (size_t call = 0; call < scans_[rank].calls.size(); ++call) {
        f(CommNode{rank, call}, scans_[rank], scans_[rank].calls[call]);
      }
    }
  }

  static const CommGroup& GroupOf(const RankScan& scan, const CommCall& call) {
    return scan.groups[static_cast<size_t>(call.group)];
  }
  [[nodiscard]] std::string RankSetText(const CommGroup& group) const {
    if (!group.ranks.empty()) return fmt::format("{}", fmt::join(group.ranks, ","));
    return everyone_;
  }
  [[nodiscard]] std::string CollectiveKey(const CommNode& node, const CommCall& call) const {
    const std::string& ranks =
        call.group < 0 ? everyone_ : rank_sets_[node.rank][static_cast<size_t>(call.group)];
    return call.api + " " + ranks;
  }
  Part Numbered(size_t key, bool receives, const CommNode& node) {
    const uint64_t count = counts_[{key, node.rank, receives}]++;
    return {.key = key, .count = count, .receives = receives, .node = node};
  }

  std::span<const RankScan> scans_;
  std::vector<int64_t> all_;  // ranks with a number, ascending
  std::string everyone_;
  std::vector<std::vector<std::string>> rank_sets_;  // by scan and group
  Interner keys_;
  std::map<std::tuple<size_t, size_t, bool>, uint64_t> counts_;
};

const CommCall& CallOf(std::span<const RankScan> scans, const CommNode& node) {
  return scans[node.rank].calls[node.call];
}

// Who puts values into a collective call and who gets them.
void AddMember(std::span<const RankScan> scans, const CommNode& node, CommLink& link) {
  const CommCall& call = CallOf(scans, node);
  const bool is_root = call.root && call.root == scans[node.rank].directory.rank;
  const bool from_root = call.api.starts_with("broadcast") || call.api.starts_with("scatter");
  if (!call.root || !from_root || is_root) link.from.push_back(node);
  if (!call.root || from_root || is_root) link.to.push_back(node);
}

class GraphBuilder {
 public:
  explicit GraphBuilder(std::span<const RankScan> scans) : scans_(scans), pairing_(scans) {
    for (const RankScan& scan : scans) {
      graph_.layers.emplace_back(scan.calls.size(), 0);
      units_.emplace_back(scan.calls.size(), kNoUnit);
      paired_.emplace_back(scan.calls.size(), 0);
    }
  }

  CommGraph Build() {
    AddCollectives();
    AddMessages();
    CountUnpaired();
    AddSingleUnits();
    OrderUnits();
    RaiseReceivers();
    return std::move(graph_);
  }

 private:
  template <class F>
  static void ForEachLink(std::vector<Part> parts, const F& f) {
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return std::tie(a.key, a.count, a.receives, a.node) <
             std::tie(b.key, b.count, b.receives, b.node);
    });
    for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
      while (end < parts.size() && SameLink(parts[begin], parts[end])) ++end;
      f(std::span<const Part>(parts).subspan(begin, end - begin));
    }
  }

  void AddCollectives() {
    ForEachLink(pairing_.Collectives(), [&](std::span<const Part> parts) {
      CommLink link{.api = CallOf(scans_, parts[0].node).api, .from = {}, .to = {}};
      const size_t unit = NewUnit();
      const bool complete = parts.size() >= pairing_.MembersOf(parts[0].node);
      for (const Part& part : parts) {
        AddMember(scans_, part.node, link);
        units_[part.node.rank][part.node.call] = unit;
        if (complete) paired_[part.node.rank][part.node.call] = 1;
      }
      graph_.links.push_back(std::move(link));
    });
  }

  void AddMessages() {
    ForEachLink(pairing_.Messages(), [&](std::span<const Part> parts) {
      if (parts.size() != 2 || parts[0].receives || !parts[1].receives) return;
      const CommNode sender = parts[0].node, receiver = parts[1].node;
      graph_.links.push_back({.api = CallOf(scans_, sender).api,
                              .from = {sender},
                              .to = {receiver},
                              .is_message = true,
                              .from_transfer = parts[0].transfer,
                              .to_transfer = parts[1].transfer});
      ++paired_[sender.rank][sender.call];
      ++paired_[receiver.rank][receiver.call];
    });
  }

  void CountUnpaired() {
    for (size_t rank = 0; rank < scans_.size(); ++rank) {
      for (size_t call = 0; call < scans_[rank].calls.size(); ++call) {
        const size_t needed = std::max<size_t>(scans_[rank].calls[call].transfers.size(), 1);
        if (paired_[rank][call] >= needed) continue;
        if (graph_.unpaired++ == 0) graph_.first_unpaired = {rank, call};
      }
    }
  }

  size_t NewUnit() {
    members_.emplace_back();
    return members_.size() - 1;
  }

  // Units are what has one place in the order: the calls of a collective together, others alone.
  void AddSingleUnits() {
    for (size_t rank = 0; rank < units_.size(); ++rank) {
      for (size_t call = 0; call < units_[rank].size(); ++call) {
        size_t& unit = units_[rank][call];
        if (unit == kNoUnit) unit = NewUnit();
        members_[unit].push_back({rank, call});
      }
    }
  }

  [[nodiscard]] size_t UnitOf(const CommNode& node) const { return units_[node.rank][node.call]; }

  // A receive that waits cannot end before its message was sent.
  void AddMessageEdges() {
    for (const CommLink& link : graph_.links) {
      if (!link.is_message || !CallOf(scans_, link.to[0]).waits) continue;
      const size_t from = UnitOf(link.from[0]), to = UnitOf(link.to[0]);
      if (from == to) continue;
      sent_to_[from].push_back(to);
      ++waits_for_[to];
    }
  }

  // Longest path from the start; where the recorded order is a circle, the earliest call goes
  // first.
  void OrderUnits() {
    waits_for_.assign(members_.size(), 0);
    sent_to_.assign(members_.size(), {});
    unit_layers_.assign(members_.size(), 0);
    for (size_t unit = 0; unit < members_.size(); ++unit) {
      for (const CommNode& node : members_[unit]) waits_for_[unit] += node.call > 0 ? 1 : 0;
    }
    AddMessageEdges();
    std::vector<size_t> by_position(members_.size());
    for (size_t unit = 0; unit < members_.size(); ++unit) by_position[unit] = unit;
    std::stable_sort(by_position.begin(), by_position.end(), [&](size_t a, size_t b) {
      const CommNode &x = members_[a].front(), &y = members_[b].front();
      return std::tie(x.call, x.rank) < std::tie(y.call, y.rank);
    });
    std::vector<bool> done(members_.size(), false);
    std::queue<size_t> ready;
    for (const size_t unit : by_position) {
      if (waits_for_[unit] == 0) ready.push(unit);
    }
    for (const size_t unit : by_position) {
      Drain(ready, done);
      if (done[unit]) continue;
      ++graph_.disordered;
      ready.push(unit);
    }
    Drain(ready, done);
    for (size_t unit = 0; unit < members_.size(); ++unit) {
      for (const CommNode& node : members_[unit]) {
        graph_.layers[node.rank][node.call] = unit_layers_[unit];
      }
    }
  }

  void Drain(std::queue<size_t>& ready, std::vector<bool>& done) {
    for (; !ready.empty(); ready.pop()) {
      const size_t unit = ready.front();
      if (done[unit]) continue;
      done[unit] = true;
      for (const CommNode& node : members_[unit]) {
        if (node.call + 1 == units_[node.rank].size()) continue;
        Release(units_[node.rank][node.call + 1], unit_layers_[unit] + 1, done, ready);
      }
      for (const size_t receiver : sent_to_[unit]) {
        Release(receiver, unit_layers_[unit], done, ready);
      }
    }
  }

  void Release(size_t unit, uint64_t layer, const std::vector<bool>& done,
               std::queue<size_t>& ready) {
    if (done[unit]) return;
    unit_layers_[unit] = std::max(unit_layers_[unit], layer);
    if (waits_for_[unit] > 0 && --waits_for_[unit] == 0) ready.push(unit);
  }

  // What was received without waiting belongs to the time of its message at the earliest.
  void RaiseReceivers() {
    for (const CommLink& link : graph_.links) {
      if (!link.is_message || CallOf(scans_, link.to[0]).waits) continue;
      uint64_t& layer = graph_.layers[link.to[0].rank][link.to[0].call];
      layer = std::max(layer, unit_layers_[UnitOf(link.from[0])]);
    }
  }

  std::span<const RankScan> scans_;
  Pairing pairing_;
  CommGraph graph_;
  std::vector<std::vector<size_t>> units_;   // by rank and call
  std::vector<std::vector<size_t>> paired_;  // transfers with a partner, by rank and call
  std::vector<std::vector<CommNode>> members_;
  std::vector<std::vector<size_t>> sent_to_;
  std::vector<size_t> waits_for_;
  std::vector<uint64_t> unit_layers_;
};

}  // namespace

CommGraph BuildCommGraph(std::span<const RankScan> scans) { return GraphBuilder(scans).Build(); }

uint64_t LayerBetween(std::span<const uint64_t> layers, size_t calls_before) {
  if (layers.empty() || calls_before == 0) return 0;
  return calls_before < layers.size() ? layers[calls_before] : layers.back() + 1;
}

}  // namespace plumbline

// Which communication calls of different ranks belong together, and in what order they happened.

#ifndef PLUMBLINE_MATCH_COMM_GRAPH_H_
#define PLUMBLINE_MATCH_COMM_GRAPH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "load/rank_scan.h"
#include "match/comm_trace.h"

namespace plumbline {

// One communication call of one rank: positions in the scans and in RankScan::calls.
struct CommNode {
  size_t rank = 0;
  size_t call = 0;
  friend auto operator<=>(const CommNode&, const CommNode&) = default;
};

// Values that moved together: one collective call of a group, or one message.
struct CommLink {
  std::string api;
  std::vector<CommNode> from;  // whose inputs went in, in order of rank
  std::vector<CommNode> to;    // whose outputs came out
  bool is_message = false;     // sends and receives; otherwise a collective call
  // Of a message: which of CommCall::transfers sent and which received it.
  size_t from_transfer = 0, to_transfer = 0;
};

struct CommGraph {
  std::vector<CommLink> links;
  // layers[rank][call]: how many communication calls must have come before, on any rank. Calls of
  // one collective have one layer; a receiver's is not below its sender's.
  std::vector<std::vector<uint64_t>> layers;
  // Calls without all of their partners: a rank is not in the dump, or recorded fewer calls.
  uint64_t unpaired = 0;
  CommNode first_unpaired;  // in order of rank and call; valid when unpaired > 0
  uint64_t disordered = 0;  // calls whose order contradicts that of their partners
};

// The calls of one rank. What it points to must outlive the order that it is given to.
struct CommSide {
  std::optional<int64_t> rank;
  std::span<const CommGroup> groups;
  const CommTrace* calls = nullptr;
};

// Pairs the calls of all ranks. Collective calls: the n-th of an API on a set of ranks is one call
// of all of them, counted per name of the group where every rank recorded one, else per group_id.
// Messages: the n-th send from
// a rank to a rank with a tag is received by the n-th receive; send and isend, recv and irecv and
// the operations of batch_isend_irecv count together. Deterministic and linear. Takes up to 40
// bytes per call. Requires: fewer than 2^32 calls.
class CommOrder {
 public:
  explicit CommOrder(std::vector<CommSide> sides);

  // As in CommGraph.
  [[nodiscard]] uint64_t unpaired() const { return unpaired_; }
  [[nodiscard]] CommNode first_unpaired() const { return first_unpaired_; }

  // Puts the calls in order; what is below needs it. Once.
  void Order();
  [[nodiscard]] uint64_t disordered() const { return disordered_; }
  [[nodiscard]] std::vector<uint64_t> LayersOf(size_t rank) const;
  // Calls `visit` with each link, which is valid during the call; collectives come first.
  void ForEachLink(const std::function<void(const CommLink&)>& visit) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The collective calls, or the messages, that must agree in all but their number: they have the
  // places `begin`, `begin + 1`, ...
  struct Key {
    uint32_t begin = 0, count = 0;
    uint32_t members = 0;  // ranks that take part
    std::string api;       // of a collective
  };
  // What a call of a kind takes part in, by number of the key; kNone where it is not known.
  struct KindKeys {
    uint32_t collective = kNone;
    std::vector<uint32_t> transfers;
    bool gives = true, takes = true;  // of a collective
  };
  struct Message {
    uint32_t from = kNone, to = kNone;  // calls
    uint32_t from_transfer = 0, to_transfer = 0, sender_kind = 0;
    uint8_t parts = 0;  // more than two ends belong to no message
    bool waits = true;  // the receiver
    [[nodiscard]] bool paired() const { return parts == 2 && from != kNone && to != kNone; }
  };
  struct Part;
  class KeyFinder;

  template <typename Visit>
  void ForEachPart(const Visit& visit) const;
  void Count();
  void PlaceParts();
  void CountUnpaired();
  void FindMembers();
  void FindEdges();
  void OrderUnits();
  void Drain(std::vector<bool>& done);
  void Release(uint32_t unit, uint32_t layer, const std::vector<bool>& done);
  template <typename Visit>
  void ForEachByPosition(const Visit& visit) const;
  void SetLayers();
  [[nodiscard]] CommNode NodeOf(uint32_t call) const;

  std::vector<CommSide> sides_;
  std::vector<uint32_t> first_;  // of each rank; calls of all ranks count on
  std::vector<Key> collectives_, message_keys_;
  std::vector<std::vector<KindKeys>> kinds_;  // by rank and kind
  std::vector<uint32_t> parts_;               // ranks that made each collective
  std::vector<Message> messages_;
  uint64_t unpaired_ = 0, disordered_ = 0;
  CommNode first_unpaired_;

  // What has one place in the order is a unit: a collective, or any other call alone.
  std::vector<uint32_t> unit_of_;                     // of each call
  std::vector<uint32_t> member_begin_, members_;      // calls of each unit
  std::vector<bool> gives_, takes_;                   // of each call: whether in `from` and `to`
  std::vector<uint32_t> receiver_begin_, receivers_;  // units that wait for each unit's messages
  std::vector<uint32_t> waits_for_, unit_layers_, layers_;
  std::queue<uint32_t> ready_;
};

// CommOrder() of whole scans, with all links at once.
CommGraph BuildCommGraph(std::span<const RankScan> scans);

// The layer of what a rank does behind so many of its communication calls, whose layers are given:
// that of the next one, as nothing tells how long before it; 0 before the first one.
uint64_t LayerBetween(std::span<const uint64_t> layers, size_t calls_before);

}  // namespace plumbline

#endif  // PLUMBLINE_MATCH_COMM_GRAPH_H_

// Which communication calls of different ranks belong together, and in what order they happened.

#ifndef PLUMBLINE_MATCH_COMM_GRAPH_H_
#define PLUMBLINE_MATCH_COMM_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "load/rank_scan.h"

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

// Pairs the calls of all ranks. Collective calls: the n-th of an API on a set of ranks is one call
// of all of them, counted per name of the group where every rank recorded one, else per group_id.
// Messages: the n-th send from
// a rank to a rank with a tag is received by the n-th receive; send and isend, recv and irecv and
// the operations of batch_isend_irecv count together. Deterministic; linear but for sorting.
CommGraph BuildCommGraph(std::span<const RankScan> scans);

// The layer of what a rank does behind so many of its communication calls, whose layers are given:
// that of the next one, as nothing tells how long before it; 0 before the first one.
uint64_t LayerBetween(std::span<const uint64_t> layers, size_t calls_before);

}  // namespace plumbline

#endif  // PLUMBLINE_MATCH_COMM_GRAPH_H_

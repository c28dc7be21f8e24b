// Communication calls of different ranks that belong together, for viewers of graphs.

#ifndef PLUMBLINE_VIEW_RANK_LINKS_H_
#define PLUMBLINE_VIEW_RANK_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/rank_scan.h"
#include "match/comm_graph.h"
#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline::view {

// What one communication call gave away and got, as far as it was recorded.
struct MovedValues {
  std::vector<TensorRecord> sent, received;  // of a batch: one for each transfer
};

// The communication of one rank, in order of recording. A plain value.
struct RankCommunication {
  RankScan scan;                    // directory.rank, calls and groups; nothing else is filled
  std::vector<MovedValues> values;  // of each of scan.calls
};

// Takes `call` if it communicates. Calls come in order of recording.
void TakeCommunication(const Call& call, RankCommunication& communication);

// That of the rank in `directory`, of its dump.json. Errors of dump_json::VisitDumpFile().
Result<RankCommunication> ReadCommunication(const std::string& directory, int64_t rank);

enum class LinkRole : uint8_t { kSend, kReceive, kSendReceive };
std::string_view LinkRoleName(LinkRole role);  // "send", "receive", "send_receive"

// One call of a link.
struct LinkEnd {
  CommNode node;  // positions in the ranks and in scan.calls
  LinkRole role = LinkRole::kSendReceive;
  size_t transfer = 0;     // of a batch: which of its transfers
  std::string mismatch{};  // how its values differ from what they must be; empty: not, or unknown
};

// Calls in which values moved together: a message has the sender and the receiver.
struct RankLink {
  std::string api;  // "all_reduce"; of a message that of the sender
  bool is_message = false;
  uint64_t layer = 0;          // in time: links of a higher one come later
  std::optional<size_t> root;  // of `ends`: the one that sends to all, or receives from all
  std::vector<LinkEnd> ends;   // by rank; two or more

  // Whether values move between those two.
  [[nodiscard]] bool Joins(size_t end, size_t other) const;
};

// Which calls belong together says match/comm_graph: by order, whatever their values are. Values
// are then held against each other: what arrives equals what was sent, all ranks get the same of
// all_reduce, all_gather and broadcast, and types agree. In order of time.
std::vector<RankLink> LinkRanks(std::span<const RankCommunication> ranks);

// matched_distributed of the nodes of each rank, by name; those without a link are missing.
using TransferTexts = std::map<std::string, std::string, std::less<>>;
// What a link says of the call at its other end: its level or overflow, "Nan" without one.
using LevelOfCall = std::function<std::string(size_t rank, std::string_view name)>;
std::vector<TransferTexts> TransfersJson(std::span<const RankCommunication> ranks,
                                         const std::vector<RankLink>& links,
                                         const LevelOfCall& level_of);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_RANK_LINKS_H_

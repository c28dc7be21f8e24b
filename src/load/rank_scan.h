// One rank of a step, reduced to what the search for the first NaN or Inf needs: bad values and the
// communication between ranks.
//
// dump.json is read once, entry by entry; what stays are the communication calls and the entries
// whose output is bad (NaN or Inf) although their inputs are not. Max and Min decide, and
// plumbline's own counts; Mean and Norm do not: they overflow for finite tensors.

#ifndef PLUMBLINE_LOAD_RANK_SCAN_H_
#define PLUMBLINE_LOAD_RANK_SCAN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline {

// The first bad value of a call.
struct BadValue {
  std::string path;            // "output.0", "input_kwargs.mask"
  std::string what;            // "NaN", "Inf" or "-Inf"
  std::string max{}, min{};    // as Python spells them; empty for a number that is no tensor
  bool only_negative = false;  // -Inf and nothing else, as in masks
};

// Why an entry is a candidate for the first one.
enum class OverflowReason : uint8_t {
  kProduced,   // inputs fine, output bad
  kGiven,      // an input is bad, and no recorded call before it on this rank put out a bad value
  kEscalated,  // an input holds -Inf and nothing worse (a mask), the output NaN or Inf
  kRequested,  // like kProduced, but -Inf was an argument and nothing else came out (masks)
  kFlagged,    // is_nan of the call is 1, and nothing more is known about it (task nan_check)
};
std::string_view OverflowReasonName(OverflowReason reason);

// Where an entry stands: its number among all entries of the dump, among the computing entries
// since the last communication call, and how many communication calls precede it. The bytes of its
// value in dump.json, and where the values of the entries before it begin there, the nearest one
// first (0: there is none).
inline constexpr size_t kPreviousEntries = 3;
struct EntryPlace {
  uint64_t index = 0;
  uint64_t sub_layer = 0;
  size_t calls_before = 0;
  size_t begin = 0, end = 0;
  std::array<size_t, kPreviousEntries> previous = {};
};

// A computing entry that may be where bad values come from.
struct Suspect {
  std::string name;
  EntryPlace place;
  OverflowReason reason = OverflowReason::kProduced;
  BadValue value;
  std::string argument;    // path of a plain number among the arguments that is no finite one
  bool harmless = false;   // given, but the outputs are fine: masks, memory to be filled
  bool recompute = false;  // the forward of activation checkpointing, repeated
  bool encloses = false;   // a module around another suspect
};

enum class Transfer : uint8_t { kCollective, kSend, kReceive };

// One side of a transfer between two ranks.
struct PeerTransfer {
  Transfer direction = Transfer::kSend;
  std::optional<int64_t> peer;  // rank of the other side; unknown: receives from anyone
  int64_t tag = 0;
  bool is_object = false;  // send_object_list, recv_object_list
};

// One communication call of this rank.
struct CommCall {
  std::string name;
  std::string api;  // "all_reduce"
  EntryPlace place;
  int group = -1;                       // index in RankScan::groups; -1: all ranks
  std::optional<int64_t> root;          // of broadcast, scatter, gather and reduce
  std::vector<PeerTransfer> transfers;  // empty for collective calls
  bool waits = true;                    // false: started only (isend, irecv, batches)
  bool has_output = true;               // false: not known to be complete when the recording ended
  bool given = false;                   // the bad input has no recorded origin on this rank
  bool flagged = false;                 // known from is_nan alone
  std::optional<BadValue> bad_input, bad_output;
};

// Ranks that communicate with each other, as a call named them.
struct CommGroup {
  std::string id;              // empty: not recorded
  std::vector<int64_t> ranks;  // sorted; empty: not recorded
  // Of the framework, the same on all ranks; tells groups with the same members apart, which have
  // one id. Empty: not recorded.
  std::string name{};
  bool in_order = true;  // the ranks were recorded in ascending order: position in it is known
};
// The name of the group of calls that name none.
inline constexpr std::string_view kDefaultGroupName = "0";

struct RankScan {
  load::RankDirectory directory;
  std::vector<CommCall> calls;    // in dump order
  std::vector<Suspect> suspects;  // in dump order
  std::vector<CommGroup> groups;
  uint64_t entries = 0;
  uint64_t bad_entries = 0;  // with a bad value anywhere
  uint64_t tensors = 0;
  uint64_t tensors_not_judged = 0;  // may hold NaN, but have neither Max and Min nor counts
  uint64_t outputs_missing = 0;     // entries with inputs alone, communication left out
  uint64_t flags = 0;               // entries that is_nan decides
  uint64_t calls_searched = 0;      // by task overflow_check, when none of them was a hit
  uint64_t flags_unknown = 0;       // entries whose is_nan says neither 0 nor 1
  // Hits of task overflow_check by what the recorder said of them. Those that are saturated, and
  // neither NaN nor Inf, count as such alone.
  uint64_t hits_origin = 0, hits_propagated = 0, hits_unknown = 0, hits_saturated = 0;
  std::string task;                // of the header
  bool truncated = false;          // entries after the damage are missing
  std::vector<std::string> notes;  // what else could not be judged, one sentence each

  // There was something that can be good or bad.
  [[nodiscard]] bool judged() const { return tensors > 0 || flags > 0 || calls_searched > 0; }
};

// Reads dump.json, and construct.json where something was found. kNotFound names the missing one of
// dump.json, construct.json and stack.json; kInvalidArgument when one is a symbolic link; kCorrupt
// when dump.json is damaged other than cut, or construct.json is.
Result<RankScan> ScanRank(const load::RankDirectory& directory);

// NaN and Inf in the recorded statistics of one call.

// What was found in one part of a call.
struct ValueJudgement {
  std::optional<BadValue> bad;  // the first bad tensor; -Inf alone gives way to worse
  std::string number;           // path of the first plain number that is NaN or infinite
  std::string number_text;      // "NaN", "Inf" or "-Inf"
  uint64_t tensors = 0;
  uint64_t not_judged = 0;  // tensors that may hold NaN, but have neither statistics nor counts
};

// Adds what `value` (any nesting) holds; `path` is its name in messages.
void Judge(const Value& value, const std::string& path, ValueJudgement& judgement);

// "NaN", "Inf", "-Inf", or empty for a finite or absent one.
std::string_view BadKindOf(const Statistic& statistic);

// The arguments of a recorded torch.distributed call: who talks to whom.

// The API of a communication entry ("all_reduce" of Distributed.all_reduce.3.forward); nothing for
// every other entry.
std::optional<std::string_view> CommunicationApi(std::string_view call_name);

// Whether the calling process is no member of the group of a communication call, which did nothing
// then: PyTorch has -100 in place of the group (GroupMember.NON_GROUP_MEMBER).
bool IsCallOfOthers(const Call& call);

// Group, root and peers from the arguments of `call`. Groups are added to `groups` once each.
// Ranks given relative to a group are translated where the group's ranks are known.
CommCall ReadCommCall(const Call& call, std::string_view api, std::vector<CommGroup>& groups);

// The name of a group, by its index in `groups` (-1: all ranks); empty where it was not recorded.
std::string_view GroupName(std::span<const CommGroup> groups, int group);

}  // namespace plumbline

#endif  // PLUMBLINE_LOAD_RANK_SCAN_H_

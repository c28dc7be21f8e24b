// The communication calls of one rank, as much of them as pairs and orders them, in a few bytes
// each.

#ifndef PLUMBLINE_MATCH_COMM_TRACE_H_
#define PLUMBLINE_MATCH_COMM_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "load/rank_scan.h"

namespace plumbline {

// A plain value.
class CommTrace {
 public:
  // What many calls of a rank have in common, as CommCall has it.
  struct Kind {
    std::string api;
    int group = -1;
    std::optional<int64_t> root;
    std::vector<PeerTransfer> transfers;
    bool waits = true;

    // Sends and receives, or a batch of them; otherwise a collective call.
    [[nodiscard]] bool IsMessage() const { return !transfers.empty() || !waits; }
  };
  // One call; all of them and the kinds are what is stored of a trace.
  struct Record {
    uint64_t kind = 0;
    bool has_bad_input = false;
    // 0: the name is the next of other_names(). Else by how much the number in the name differs
    // from that of the last call of this kind, 0 at first: 2 n + 1 for n more, 2 n for n less.
    uint64_t step = 0;
  };

  CommTrace() = default;
  explicit CommTrace(std::span<const CommCall> calls);
  // From what is stored; calls are added with Add().
  CommTrace(std::vector<Kind> kinds, std::vector<std::string> other_names)
      : kinds_(std::move(kinds)), other_names_(std::move(other_names)) {}

  // False, and nothing is added, where there is no such kind.
  bool Add(const Record& record);

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] const std::vector<Kind>& kinds() const { return kinds_; }  // by first use
  [[nodiscard]] const std::vector<std::string>& other_names() const { return other_names_; }

  // Calls `visit(record)` for each call, in dump order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    size_t at = 0;
    while (at < bytes_.size()) {
      const uint64_t head = NextNumber(at);
      const uint64_t step = NextNumber(at);
      visit(Record{head >> 1, (head & 1) != 0, step});
    }
  }
  // Goes through the calls before it. Requires: call < size().
  [[nodiscard]] std::string NameOf(size_t call) const;

 private:
  void PutNumber(uint64_t number);
  uint64_t NextNumber(size_t& at) const {
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at++]);
      number |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return number;
    }
  }

  std::vector<Kind> kinds_;
  std::vector<std::string> other_names_;  // that do not follow from api and number, in order
  std::string bytes_;                     // two numbers per call, seven bits a byte
  size_t size_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_MATCH_COMM_TRACE_H_

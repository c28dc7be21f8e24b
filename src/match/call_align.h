// Aligning two sequences of calls that are called the same but differ in number.

#ifndef PLUMBLINE_MATCH_CALL_ALIGN_H_
#define PLUMBLINE_MATCH_CALL_ALIGN_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace plumbline::match {

// What is known about a call of the sequence; equal numbers mean equal things.
struct AlignedCall {
  size_t index = 0;        // the caller's
  uint32_t structure = 0;  // only calls of one structure pair
  uint32_t site = 0;       // module and line of code; 0: unknown
  uint32_t before = 0;     // what is called before
  uint32_t after = 0;      // and after
  uint32_t name = 0;       // the whole name with its number
  uint32_t arguments = 0;  // the values of its scalar arguments; 0: it has none
  // The golden calls that stand where these do, as far as they are paired already; 0: unknown.
  uint32_t pair_before = 0, pair_after = 0;  // next to it
  uint32_t pair_forward = 0;                 // of a gradient: its forward call
};

// Pairs that keep the order of both sequences: as many as possible, and among those the ones that
// agree best in site, neighbours, arguments and name. Sequences whose product exceeds 16 million
// pair by position as far as their structures agree.
std::vector<std::pair<size_t, size_t>> AlignCalls(const std::vector<AlignedCall>& a,
                                                  const std::vector<AlignedCall>& b);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_CALL_ALIGN_H_

// The iterations that a dump configuration selects: "all", or "0|5-8|100-120", counted from 0.

#ifndef PLUMBLINE_CONFIG_GRAPH_DUMP_ITERATIONS_H_
#define PLUMBLINE_CONFIG_GRAPH_DUMP_ITERATIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::graph_dump {

struct Iterations {
  bool all = false;
  // First and last of each item that can match, in the order of the text.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  std::vector<std::string> warnings;  // about items that can never match, one sentence each

  [[nodiscard]] bool Contains(uint64_t iteration) const;
};

// kInvalidArgument for an empty text and for any character but digits, '-' and '|', with its
// position (from 0). Items that MindSpore takes and that never match are warnings.
Result<Iterations> ParseIterations(std::string_view text);

// The text that selects these numbers: "all" for none. Neighbours become ranges when
// `with_ranges`, else every number is an item, as upstream writes it. Requires: ascending, unique.
std::string IterationText(std::span<const int64_t> numbers, bool with_ranges);

}  // namespace plumbline::graph_dump

#endif  // PLUMBLINE_CONFIG_GRAPH_DUMP_ITERATIONS_H_

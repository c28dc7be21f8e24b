// What a store takes from the entries of a recording while a comparison reads them.

#ifndef PLUMBLINE_VIEW_STORE_SEEN_ENTRIES_H_
#define PLUMBLINE_VIEW_STORE_SEEN_ENTRIES_H_

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "overflow/overflow_grade.h"
#include "plumbline/record.h"
#include "view/rank_links.h"

namespace plumbline::view {

// One side of one rank. Single-threaded.
struct SeenSide {
  std::vector<std::string> gradients;  // names of entries of parameter gradients
  std::unordered_map<std::string, OverflowLevel> overflow;  // calls with a level
  RankCommunication communication;
  // Of calls that ranks were merged into: how.
  std::unordered_map<std::string, std::vector<std::string>> merge_lines;

  void Take(const Call& call, bool grades_overflow);
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_SEEN_ENTRIES_H_

// Trees of one rank, and what a comparison says of their calls, put into a place of a store.

#ifndef PLUMBLINE_VIEW_STORE_FILL_PLACE_H_
#define PLUMBLINE_VIEW_STORE_FILL_PLACE_H_

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "match/expand.h"
#include "match/mapping_file.h"
#include "overflow/overflow_grade.h"
#include "plumbline/compare.h"
#include "plumbline/record.h"
#include "plumbline/run.h"
#include "view/model_graph.h"
#include "view/rank_links.h"
#include "view/store/store_writer.h"

namespace plumbline::view {

// What a store takes from the entries of a recording while a comparison reads them.

// One side of one rank. Single-threaded.
struct SeenSide {
  std::unordered_map<std::string, OverflowLevel> overflow;  // calls with a level
  RankCommunication communication;
  // Of calls that ranks were merged into: how, a line each.
  std::unordered_map<std::string, std::vector<std::string>> merge_lines;

  void Take(const Call& call, bool grades_overflow);
};

// One side: where its tree, frames and values come from. What is borrowed must outlive it.
struct PlaceSide {
  const Run* run = nullptr;
  const SeenSide* seen = nullptr;
  std::span<const match::CallItems> calls{};  // where nothing is compared
  ModelGraph graph{};
};

// Adds the nodes of both sides with their details. `golden` may have no run; `comparison` may be
// null: then nodes pair by name and there are no levels. `by_hand`: names of nodes that a person
// paired, which are told by a flag; returned are those that are paired now.
match::TextPairs FillPlace(PlaceSide& target, PlaceSide& golden, const Comparison* comparison,
                           const match::TextPairs& by_hand, PlaceBuilder& place);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_FILL_PLACE_H_

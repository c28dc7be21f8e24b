// Which call of a rank is which call of a run on one rank.

#ifndef PLUMBLINE_VIEW_UNSHARD_SHARD_PLACES_H_
#define PLUMBLINE_VIEW_UNSHARD_SHARD_PLACES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "view/merge/rank_tree.h"

namespace plumbline::view {

// A list of modules that a rank counts from another number on than golden: of a pipeline's layers
// or of experts.
struct ListOffset {
  std::string list;         // with golden's numbers: "model.layers", "layers.3.mlp.experts"
  int64_t count = 0;        // modules on the rank
  int64_t first = 0;        // golden's number of the first one
  int64_t offset = 0;       // golden's number is larger by this
  int64_t agreeing = 0;     // parameters that say so
  bool is_certain = false;  // no other offset agrees as well
};

// The lists of one rank of which golden has more modules.
using ListOffsets = std::map<std::string, ListOffset, std::less<>>;

// Tells the offsets by parameters, which need modules (levels L0 and mix) and equal weights in both
// runs: whole ones are equal, shards have their extremes within golden's.
ListOffsets FindOffsets(const RankTree& golden, const RankTree& rank);

// "layers.1.mlp" of a rank whose layers begin at 4 -> "layers.5.mlp".
std::string WithOffsets(std::string_view path, const ListOffsets& offsets);

// The calls by what they are in the model. Modules: path, direction and number of the call,
// whatever their class. Other calls: the module they are in, what is called, and the how manieth
// such call it is there, since ranks count calls on their own.
std::unordered_map<std::string, Part*> PartsByPlace(RankTree& tree, const ListOffsets& offsets);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_SHARD_PLACES_H_

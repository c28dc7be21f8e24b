// Which call of a rank is which call of a run on one rank.

#ifndef PLUMBLINE_VIEW_UNSHARD_SHARD_PLACES_H_
#define PLUMBLINE_VIEW_UNSHARD_SHARD_PLACES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plumbline/result.h"
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
  bool is_told = false;     // taken from the user, as parameters do not tell
};

// The lists of one rank of which golden has more modules.
using ListOffsets = std::map<std::string, ListOffset, std::less<>>;

// Tells the offsets by parameters, which need modules (levels L0 and mix) and equal weights in both
// runs: whole ones are equal, shards have their extremes within golden's.
ListOffsets FindOffsets(const RankTree& golden, const RankTree& rank);

// How many modules of a list (with golden's numbers) stand on other ranks ahead of this one, which
// has `count`, as the user says; nothing: not said.
using ToldAhead = std::function<std::optional<int64_t>(const std::string& list, int64_t count)>;

// The same with what the user says. kInvalidArgument: parameters tell otherwise, or golden has no
// such modules; the message has both.
Result<ListOffsets> FindOffsets(const RankTree& golden, const RankTree& rank,
                                const ToldAhead& told);

// "layers.*.mlp.experts" of "layers.3.mlp.experts": the same of all modules of a list.
std::string WithStars(std::string_view list);

// Which modules of golden's the ranks have, and what shows it: a line for each list; those of one
// name in several modules are told together. `numbers`: of the ranks; `proof`: what shows that
// lists of layers are where the user told, empty: nothing.
std::vector<std::string> TextsOfLists(std::span<const ListOffsets> offsets,
                                      std::span<const int64_t> numbers, std::string_view proof);

// "layers.1.mlp" of a rank whose layers begin at 4 -> "layers.5.mlp".
std::string WithOffsets(std::string_view path, const ListOffsets& offsets);

// The calls by what they are in the model. Modules: path, direction and number of the call,
// whatever their class. Other calls: the module they are in, what is called, and the how manieth
// such call it is there, since ranks count calls on their own.
std::unordered_map<std::string, Part*> PartsByPlace(RankTree& tree, const ListOffsets& offsets);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_SHARD_PLACES_H_

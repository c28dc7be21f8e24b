// What the user says about the layout of a parallel run (`plumb compare --unshard --layout`): used
// where the recordings do not tell, refused where they tell something else.

#ifndef PLUMBLINE_VIEW_UNSHARD_LAYOUT_HINT_H_
#define PLUMBLINE_VIEW_UNSHARD_LAYOUT_HINT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/result.h"
#include "view/merge/parallel_layout.h"
#include "view/merge/rank_tree.h"
#include "view/unshard/shard_places.h"

namespace plumbline::view {

// "tp=2,pp=2,order=tp-cp-ep-dp-pp". A size that was not said is nothing, not 1.
struct LayoutHint {
  std::map<std::string, int64_t, std::less<>>
      sizes{};  // "tp", "sp", "pp", "ep", "cp", "dp", "fsdp"
  std::string order = std::string(kDefaultOrder);

  [[nodiscard]] bool is_given() const { return !sizes.empty(); }
  [[nodiscard]] bool Has(std::string_view name) const { return sizes.contains(name); }
  [[nodiscard]] int64_t SizeOr(std::string_view name, int64_t otherwise) const;
  [[nodiscard]] std::string Text() const;  // "tp=2,pp=2", with an order that is not the usual one
};

// Of an empty text: nothing is said. kInvalidArgument for unknown fields, fields that stand twice
// and sizes that are no numbers above 0.
Result<LayoutHint> ParseLayoutHint(std::string_view text);

// What the recordings show. Nothing: they do not tell.
struct FoundLayout {
  std::optional<int64_t> tensor{}, pipeline{}, expert{};
  int64_t sequence = 1;
  int64_t input = 1;  // parts of what the first module gets
};

// kInvalidArgument: something else was said than is there; the message has both.
Status CheckHint(const LayoutHint& hint, const FoundLayout& found);

// The ranks' places in pipelines and among those that divide experts.
struct HintedGroups {
  RankGroups tensor{}, pipeline{}, experts{};  // empty: nothing was said of them
};
// kInvalidArgument: the sizes do not make up so many ranks, or the order lacks one of them.
Result<HintedGroups> GroupsOf(const LayoutHint& hint, int64_t ranks);

// How many modules of a list stand on the ranks ahead of this one. Experts are divided evenly;
// layers as the lists of the ranks ahead say. `found`: of each rank, by its number.
ToldAhead AheadOf(const HintedGroups& groups, std::span<const ListOffsets> found, int64_t rank);

// Whether each stage gets what the stage ahead of it gives, by what the first and the last module
// of its list of layers recorded: how many pairs show it. kInvalidArgument: a stage gets what
// another one gives that is not ahead of it. Requires: trees by rank, and their lists' offsets.
Result<int64_t> CheckStageOrder(const RankGroups& pipelines, std::span<RankTree> trees,
                                std::span<const ListOffsets> offsets);

// Whether each group that was said to share tensors has all shards of a parameter, where all ranks
// together have them. `ranks`: of the parts. kInvalidArgument: a group has others.
Status CheckShardGroups(const RankGroups& groups, const TensorRecord& golden,
                        std::span<const int64_t> ranks, std::span<TensorRecord* const> parts);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_LAYOUT_HINT_H_

// Which items of two calls pair, and which calls belong together by what they read.

#ifndef PLUMBLINE_MATCH_ITEM_MATCH_H_
#define PLUMBLINE_MATCH_ITEM_MATCH_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "match/expand.h"

namespace plumbline::match {

inline bool IsInputTensor(const Item& item) {
  return item.is_tensor && item.role == ItemRole::kInput;
}

// How far two calls are apart in what they read, as far as recorded statistics show it.

// Two inputs whose statistics differ by less than this are taken for one value of both runs.
inline constexpr double kSameValue = 0.02;

// The largest relative distance of the tensors that go in; infinity when none do or they do not
// pair.
double InputDistance(const CallItems& a, const CallItems& b);

// Calls that one side makes in another order, told apart by their arguments.

// Pairs (target, golden) in place of those of `partner` (golden index per target call, -1 for
// none): the forward calls of one name where some stand against others of another form or with
// other scalar arguments, although one side makes all calls of the other, form by form and argument
// by argument, and the tensors that they read agree. A lattice that is summed from its other end
// takes the same elements in another order. Of whole names only: each call of the side with fewer
// of them has a pair. And their gradients: -1 on one side where the other side's call has none.
std::vector<std::pair<size_t, size_t>> PairedByArguments(const std::vector<CallItems>& target,
                                                         const std::vector<CallItems>& golden,
                                                         const std::vector<size_t>& partner);

// Which item of a call pairs with which item of its counterpart.

// Item of the target, item of the golden call.
using ItemLinks = std::vector<std::pair<size_t, size_t>>;

// What keeps two calls apart: "shape-differs", "dtype-differs" or "structure-differs", where, and
// in which part of the call. `detail` is empty when only nulls are missing.
struct Mismatch {
  std::string reason;
  std::string detail;
  std::optional<ItemRole> role;
};

struct ItemMatch {
  std::optional<Mismatch> mismatch;
  // Empty when every item pairs with the one at the same position.
  ItemLinks links;
  std::vector<size_t> alone_target, alone_golden;  // items without counterpart in it
  bool are_defaults = false;  // these are arguments that the other side leaves to their defaults
};

struct ItemRules {
  // Between frameworks: dtypes agree when both are integers, floats, complex or truth values, and
  // nulls that one side alone has (behind all others, or without place in a mapping) are left out;
  // gradients of results in a container, which one side alone looks into, stay alone.
  bool by_kind = false;
  // Of merged recordings, whose tensors have the shapes of one rank's parts: shapes do not count.
  bool any_shape = false;
};

// Items pair in order where they are called the same behind the names of their calls; otherwise by
// that part of the name, and inputs that are left (passed by position on one side, by keyword on
// the other) in order. Shapes must be equal and dtypes agree. All items must pair, except where the
// target's call has mapped_parts: there each item goes where it is mapped to; and except for
// arguments without tensors of a forward call that one side alone passes, where all else pairs and
// the call returns something: that side spells out what the other leaves to its default.
ItemMatch MatchItems(const CallItems& target, const CallItems& golden, const ItemRules& rules = {});

// A text that is equal for two calls exactly if their items agree in number, role, shape and
// loosely in dtype, in order.
std::string StructureOf(const CallItems& call, const ItemRules& rules = {});
// A text that is equal for two calls of one structure exactly if their scalar arguments have equal
// values; empty without any.
std::string ArgumentsOf(const CallItems& call);

// Dtype texts that may stand against each other: one type in any framework's spelling, or both
// among float16, bfloat16 and float32.
bool DTypesAgree(const OptionalText& target, const OptionalText& golden,
                 const ItemRules& rules = {});

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_ITEM_MATCH_H_

// Which target call pairs with which golden call, and the names that one thing has in two
// frameworks.

#ifndef PLUMBLINE_MATCH_NAME_MATCH_H_
#define PLUMBLINE_MATCH_NAME_MATCH_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "match/call_align.h"
#include "match/expand.h"
#include "match/item_match.h"

namespace plumbline::match {

// A pair, or one call alone with the reason why.
struct CallPair {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  static constexpr std::string_view kDefault = "default-unknown";
  size_t target = kNone;  // index into the target's calls
  size_t golden = kNone;
  // Empty when paired. "no-golden", "no-target": no such call on the other side; "recomputed": none
  // because only this side runs it twice. "shape-differs", "dtype-differs", "structure-differs":
  // the name is there, but the call is not the same; `detail` says where (empty when only nulls are
  // missing), `role` which part of the call it is and `counterpart` the call of that name.
  // kDefault: arguments of a paired call that the other side leaves to their defaults.
  Text reason;
  Text detail;
  std::optional<ItemRole> role;
  size_t counterpart = kNone;
  // How a pair of calls with unlike names was found: "renumbered" (the same call by order),
  // "unwrapped" (a wrapper around the model or another framework's spelling), "renamed" (the same
  // kind of call at the same place), "mapped" (by a mapping file). Empty: by name.
  std::string_view rule;
  // Empty: item by item in order. kNone on one side: an item alone, in a pair of reason
  // "no-golden", "no-target" or kDefault; such a pair stands behind the one that the call's other
  // items are in.
  ItemLinks links;

  [[nodiscard]] bool paired() const { return reason.empty(); }
};

// Where an index into the calls of a side is wanted: there is none.
inline constexpr size_t kUnpaired = CallPair::kNone;

struct MatchOptions {
  // Call numbers do not count: the k-th call of a name pairs with the k-th.
  bool fuzzy = false;
  ItemRules items = {};
  // What tells calls of one name apart besides their structure, such as the enclosing module and
  // the line of code; asked for by index where the sides call something different numbers of times.
  // Equal texts: probably the same call. May be empty.
  std::function<std::string(size_t)> target_site = {}, golden_site = {};
};

// Pairs calls: by name; where one side has other numbers of a name (recomputation, an extra call)
// by order, aligned by structure, site and neighbours; then those left without the wrappers around
// their model; then those left by kind at the same place between pairs; then sums over ranks that
// were made in another order (PairsInAnotherOrder). Paired calls agree in their
// items (MatchItems). Order: the target's calls in file order, then golden calls without
// partner in theirs. Calls without items are left out. Time linear in the calls, and quadratic in
// the number of equally named calls where both sides have other numbers of them.
std::vector<CallPair> MatchCalls(const std::vector<CallItems>& target,
                                 const std::vector<CallItems>& golden,
                                 const MatchOptions& options = {});

// PyTorch's operators (ATen) against the functions that users call.

// The function that an operator is known by: "native_layer_norm" -> "layer_norm", "_softmax" ->
// "softmax", "_to_copy" -> "to"; the operator's own name where the two agree.
std::string_view TorchNameOfAten(std::string_view operator_name);

// Parameters that MindSpore's cells and PyTorch's modules call differently.

// PyTorch's name for a part of a call of MindSpore: "parameters.weight" for "parameters.gamma",
// "weight" for "gamma". Nothing for a part that is no such parameter.
std::optional<std::string> ParameterInTorch(std::string_view part);

// Sets mapped_parts of the target's cells whose parameters the golden module of that name has under
// PyTorch's names alone; a cell without mapped_name is the module of its place. Requires:
// mapped_name is set where it will be.
void MapParameters(const std::vector<CallItems>& golden, std::vector<CallItems>& target);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_NAME_MATCH_H_

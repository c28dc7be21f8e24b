// Which target call pairs with which golden call.

#ifndef PLUMBLINE_MATCH_NAME_MATCH_H_
#define PLUMBLINE_MATCH_NAME_MATCH_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "match/expand.h"

namespace plumbline::match {

// A pair, or one call alone with the reason why.
struct CallPair {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t target = kNone;  // index into the target's calls
  size_t golden = kNone;
  // Empty when paired. "no-golden", "no-target": no such name on the other side. "shape-differs",
  // "dtype-differs", "structure-differs": the name is there, but the call is not the same; `detail`
  // says where (empty when only nulls are missing), `role` which part of the call it is and
  // `counterpart` the call of that name.
  std::string reason;
  std::string detail;
  std::optional<ItemRole> role;
  size_t counterpart = kNone;

  [[nodiscard]] bool paired() const { return reason.empty(); }
};

// Pairs calls of equal name whose items agree in number, name, shape and (loosely) dtype. With
// `fuzzy` call numbers are ignored: the k-th call of a name pairs with the k-th on the other side,
// aligned by shapes where the numbers of calls differ. Order: the target's calls in file order,
// then golden calls without partner in theirs. Calls without items are left out. O(n).
std::vector<CallPair> MatchCalls(const std::vector<CallItems>& target,
                                 const std::vector<CallItems>& golden, bool fuzzy);

// Dtype texts that may stand against each other: equal, or both among float16, bfloat16 and
// float32 in any framework's spelling.
bool DTypesAgree(const std::optional<std::string>& target,
                 const std::optional<std::string>& golden);

// "Functional.linear.3.forward" -> "Functional.linear.forward";
// "Module.fc.Linear.forward.3" -> "Module.fc.Linear.forward".
std::string WithoutCallNumber(std::string_view call_name);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_NAME_MATCH_H_

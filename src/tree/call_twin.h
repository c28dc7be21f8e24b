// The other direction of a call, by its name.

#ifndef PLUMBLINE_TREE_CALL_TWIN_H_
#define PLUMBLINE_TREE_CALL_TWIN_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::tree {

inline constexpr std::string_view kForward = "forward";
inline constexpr std::string_view kBackward = "backward";

// "Module.fc.Linear.forward.0" taken apart: "Module.fc.Linear", "forward", "0". Views of the name.
struct DirectedName {
  std::string_view stem, direction, number;

  [[nodiscard]] bool is_forward() const { return direction == kForward; }
  // The same call in that direction; with `call` that call.
  [[nodiscard]] std::string Turned(std::string_view to) const { return Turned(to, number); }
  [[nodiscard]] std::string Turned(std::string_view to, std::string_view call) const;
};

// Nothing: the name does not end in a direction and a number. APIs do not.
std::optional<DirectedName> ParseDirected(std::string_view name);

// The forward call of a backward call, of a module or an API. Nothing: the name is of none.
std::optional<std::string> ForwardOf(std::string_view name);
// The backward call of a forward call; the name as it is, if it is of none.
std::string BackwardOf(std::string_view name);

}  // namespace plumbline::tree

#endif  // PLUMBLINE_TREE_CALL_TWIN_H_

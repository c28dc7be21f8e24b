// What a store holds of one node besides its columns: the values of a call on both sides.

#ifndef PLUMBLINE_VIEW_STORE_NODE_DETAIL_H_
#define PLUMBLINE_VIEW_STORE_NODE_DETAIL_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace plumbline::view {

// Null, a truth value, an exact integer, a double, or a text.
using StoredScalar = std::variant<std::monostate, bool, int64_t, double, std::string_view>;

enum class ValueRole : uint8_t { kInput, kParameter, kOutput, kBuffer, kGradient };
inline constexpr size_t kValueRoles = 5;
std::string_view ValueRoleName(ValueRole role);  // "input", "parameter", "output", ...

// One value of a call as one side recorded it.
struct ValueSide {
  std::string_view type;                     // "torch.Tensor", "int"; empty: not known
  std::string_view dtype;                    // "torch.float32", "<class 'int'>"
  std::string_view shape;                    // "[2, 8]"
  std::array<StoredScalar, 4> statistics{};  // max, min, mean, norm
  StoredScalar value{};                      // of what is no tensor
  std::string_view md5{};
  std::optional<bool> requires_grad{};
  std::string_view data_name{};  // its file; empty: none
};

struct StoredValue {
  std::string_view name;  // without the call's: "input.0"
  ValueRole role = ValueRole::kInput;
  std::optional<ValueSide> target{}, golden{};
  std::string_view verdict{};      // as plumb compare has it: "within noise"; empty: none
  std::string_view reason{};       // stable code: "exceeds-noise"
  std::string_view reason_text{};  // the code in words
  // Relative error that the verdict is based on, and what of it is explained; NaN: none.
  double error = std::numeric_limits<double>::quiet_NaN();
  double explained = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::pair<std::string_view, double>> metrics{};
  std::vector<std::string_view> notes{};  // one sentence each
};

// Texts are borrowed: of a detail that is written, from the caller; of one that was read, from
// `owner`. Empty members: nothing is known.
struct NodeDetail {
  std::string_view pairing{};  // how a pair with unlike names was found: "renumbered"
  std::string_view verdict{};  // of the call
  std::string_view reason{};   // why it has no counterpart: "no-golden"
  std::string_view reason_text{};
  std::vector<std::string_view> merge{};  // what became of the values of merged ranks, line by line
  std::vector<StoredValue> values{};
  std::shared_ptr<const void> owner{};
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_NODE_DETAIL_H_

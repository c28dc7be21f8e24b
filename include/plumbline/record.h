// What one observed call looks like: Call, Value, TensorRecord. The same types describe what the
// recorder saw and what a reader finds in a dump directory of plumbline or of upstream.

#ifndef PLUMBLINE_RECORD_H_
#define PLUMBLINE_RECORD_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/tensor.h"

namespace plumbline {

// One statistic as it stands in a file: absent (null), a truth value (bool tensors), an exact
// integer, or a double. float and half statistics are the own-dtype value widened to double.
using Statistic = std::variant<std::monostate, bool, int64_t, double>;

// What was recorded about one tensor (docs/formats/dump_json.md, "tensor object").
struct TensorRecord {
  std::string type;        // "torch.Tensor", "mindspore.Tensor", "numpy.ndarray", ...
  std::string dtype_text;  // as the framework spells it: "torch.float32"
  Shape shape;
  Statistic max, min, mean, norm;  // norm: square root of the sum of squares
  std::optional<bool> requires_grad;
  // Over finite elements only; present when max (min) is NaN or infinite.
  std::optional<Statistic> max_finite, min_finite;
  // Digest text under upstream's key "md5": CRC-32 as 8 hex digits, or "0x" + 16 digits (xor).
  std::optional<std::string> digest;
  std::optional<std::string> data_name;  // file inside dump_tensor_data
  // plumbline's own keys, absent in upstream's files.
  std::optional<int64_t> nan_count, inf_count, zero_count;
};

class Value;
using ValueList = std::vector<Value>;
using ValueMap = std::vector<std::pair<std::string, Value>>;  // keeps file order

// Integer outside int64_t, as decimal text.
struct BigInt {
  std::string digits;
};

// One node of an argument tree: null, a JSON scalar, a list, a map, or a tensor. Scalars of a call
// are maps with a "type" member, e.g. {"type": "int", "value": 3}, exactly as in dump.json.
// A plain value type: copying copies the tree.
class Value {
 public:
  using Storage = std::variant<std::monostate, bool, int64_t, double, BigInt, std::string,
                               ValueList, ValueMap, TensorRecord>;

  Value() = default;  // null
  template <class T>
  requires std::is_constructible_v<Storage, T&&> &&
      (!std::is_same_v<std::decay_t<T>, Value>)Value(T&& v)
      : storage_(std::forward<T>(v)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(storage_); }
  // Null pointer if the value is of another kind.
  template <class T>
  [[nodiscard]] const T* As() const {
    return std::get_if<T>(&storage_);
  }
  template <class T>
  [[nodiscard]] T* As() {
    return std::get_if<T>(&storage_);
  }
  // Becomes an empty T, which the caller fills.
  template <class T>
  T& Emplace() {
    return storage_.emplace<T>();
  }
  [[nodiscard]] const Storage& storage() const { return storage_; }
  // Member of a map, or null pointer (also when this is not a map).
  [[nodiscard]] const Value* Find(std::string_view key) const;

 private:
  Storage storage_;
};

// Which event of a call an entry describes.
enum class CallKind : uint8_t { kForward, kBackward, kParametersGrad, kOther };

// One entry of dump.json: one direction of one call of an API or module, or the parameter
// gradients of a module. `members` keeps the order of the file: "input_args", "input_kwargs",
// "output", "parameters", "is_recompute"; for gradients "input", "output"; for parameters_grad one
// member per parameter.
struct Call {
  std::string name;  // "Functional.linear.0.forward"
  CallKind kind = CallKind::kOther;
  ValueMap members;

  [[nodiscard]] const Value* Find(std::string_view key) const;
};

}  // namespace plumbline

#endif  // PLUMBLINE_RECORD_H_

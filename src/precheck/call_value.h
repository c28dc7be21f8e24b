// What a call takes and what it returns, as the pre-check hands it to executors and gets it back:
// the argument trees of dump.json made concrete, with tensors in shared memory.

#ifndef PLUMBLINE_PRECHECK_CALL_VALUE_H_
#define PLUMBLINE_PRECHECK_CALL_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::precheck {

// A tensor whose contiguous elements lie in the memory of a call, `offset` bytes from its start.
struct TensorPlace {
  DType dtype = DType::kFloat32;
  Shape shape;
  size_t offset = 0;
  bool requires_grad = false;        // of arguments: its gradient is an output of the backward
  std::optional<DType> raised = {};  // of arguments: the type it has on the benchmark side
  std::string type = {};  // of results: what the framework calls it, if not its own tensor
};

// What JSON has no form for, by the framework's spelling: a dtype "torch.float16", a memory format
// "torch.contiguous_format", a device "cpu", "..." itself, a NumPy scalar ("numpy.float16", text).
enum class Special : uint8_t { kDType, kMemoryFormat, kDevice, kEllipsis, kNumpy, kOther };
struct SpecialValue {
  Special kind = Special::kOther;
  std::string type;  // kNumpy: "float16"; kOther: the name of the type of a result
  std::string text;
};

class CallValue;
enum class Sequence : uint8_t { kList, kTuple, kSize, kSlice };
struct CallSequence {
  Sequence kind = Sequence::kList;
  std::vector<CallValue> items;  // kSlice: start, stop, step
};
using CallMap = std::vector<std::pair<std::string, CallValue>>;

// One node: null, a plain value, a special one, a sequence, a map or a tensor. A plain value type.
class CallValue {
 public:
  using Storage = std::variant<std::monostate, bool, int64_t, double, std::string, SpecialValue,
                               CallSequence, CallMap, TensorPlace>;

  CallValue() = default;
  explicit CallValue(Storage storage) : storage_(std::move(storage)) {}

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(storage_); }
  template <class T>
  [[nodiscard]] const T* As() const {
    return std::get_if<T>(&storage_);
  }
  template <class T>
  [[nodiscard]] T* As() {
    return std::get_if<T>(&storage_);
  }
  [[nodiscard]] const Storage& storage() const { return storage_; }

 private:
  Storage storage_;
};

// Calls use(place) for every tensor of a CallValue, const or not, depth first, in order.
template <class Value, class Use>
void ForEachTensor(Value& value, const Use& use) {
  if (auto* tensor = value.template As<TensorPlace>()) use(*tensor);
  if (auto* sequence = value.template As<CallSequence>()) {
    for (auto& item : sequence->items) ForEachTensor(item, use);
  }
  if (auto* map = value.template As<CallMap>()) {
    for (auto& [key, item] : *map) ForEachTensor(item, use);
  }
}

// JSON of a value as executors read it (python/plumbline/precheck/values.py): plain values as
// themselves; a sequence {"list"|"tuple"|"size"|"slice": [...]}; a map {"dict": [[key, value],
// ...]}; a special value {"dtype"|"memory_format"|"device"|"ellipsis"|"other": text} or
// {"numpy": [type, text]}; a tensor {"tensor": [dtype, shape, offset, requires_grad, raised]} with
// dtypes by their plain names ("bfloat16"), raised null where the type stays. Floats that JSON has
// no form for are NaN, Infinity and -Infinity; 64-bit integers are exact.
void AppendJson(const CallValue& value, std::string& out);
// [[key, value], ...], as keyword arguments are sent.
void AppendJson(const CallMap& map, std::string& out);

// The same read back, from an executor. A tensor has a sixth member there, its type, or five.
// kCorrupt: something else stands there, such as an offset that is no multiple of 64;
// kUnsupported: nested too deep.
Result<CallValue> ParseCallValue(std::string_view json);

// Of its elements. kCorrupt: a negative or impossible size.
Result<size_t> BytesOf(const TensorPlace& place);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_CALL_VALUE_H_

// One call ready to run: what the executors are told, and how its input memory is filled.

#ifndef PLUMBLINE_PRECHECK_PREPARED_CALL_H_
#define PLUMBLINE_PRECHECK_PREPARED_CALL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "plumbline/tensor.h"
#include "precheck/call_value.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// The values between which a tensor's elements lay, by the dump's statistics. Where a statistic is
// NaN or infinite, upstream's recorders also note the extreme of the finite elements: NaN if every
// element is NaN, infinite if none is finite and not all are NaN.
struct ValueRange {
  double raw_low = 0, raw_high = 0;  // Min and Max
  double low = 0, high = 0;          // Min_except_inf_nan and Max_except_inf_nan, else the raw ones
};

// What generated elements are besides uniform in their range, so that a call makes sense with them.
enum class Pattern : uint8_t {
  kUniform,
  kAscending,      // sorted, as lengths that add up or boundaries
  kDistinct,       // along dimension `dimension`: no two equal, from 0 to `extent` - 1
  kStrictlyUpper,  // of a mask: true above the diagonal of the last two dimensions
};

// Elements drawn from the statistics of a dump (precheck/input_data.h).
struct GeneratedData {
  uint64_t key = 0;  // of the generator: StreamKey()
  ValueRange range;
  Pattern pattern = Pattern::kUniform;
  int64_t dimension = 0;  // of kDistinct
  int64_t extent = 0;     // of kDistinct
};

// Elements read from a recorded tensor file.
struct RecordedData {
  std::string directory, name;
  // What the file holds; the tensor's own type is another where the preparation of the API converts
  // it.
  DType dtype = DType::kFloat32;
};

// Elements that lie in memory which outlives the call.
struct HeldData {
  std::span<const std::byte> bytes;  // contiguous
  DType dtype = DType::kFloat32;     // as of RecordedData
};

// How the bytes of one tensor come about.
struct TensorFill {
  size_t offset = 0;  // as the TensorPlace that it belongs to
  DType dtype = DType::kFloat32;
  Shape shape;
  std::variant<GeneratedData, RecordedData, HeldData> source;
  // Rounded half up to 11 explicit bits of the significand, as the convolutions of some devices
  // take float32 (HF32): b' = (((b >> 11) + 1) >> 1) << 12 on the bit pattern.
  bool rounds_to_hf32 = false;
};

// A value type. The trees hold offsets into one memory of `input_bytes` bytes, which FillInputs()
// (precheck/input_data.h) fills; each is a multiple of kTensorAlignment.
inline constexpr size_t kTensorAlignment = 64;
struct PreparedCall {
  std::string name;  // "Functional.conv2d.0"
  std::string type;  // "Functional"
  std::string api;   // "conv2d"
  std::vector<CallValue> args;
  CallMap kwargs;
  // What comes into the backward, one per output of the forward in the order in which they were
  // recorded, null where nothing came in. Absent: no backward is run.
  std::optional<std::vector<CallValue>> grads;
  // Why a backward that was recorded is not run. Without it and without grads none was recorded.
  std::optional<Skip> backward_skip;
  // The device side runs under autocast of this type: the call was recorded inside a region of
  // mixed precision. Never on the benchmark side.
  std::optional<DType> autocast;
  // The backward gives the gradients of the inputs of the last autograd node, as recordings have
  // them, and not those of the arguments.
  bool wants_node_gradients = false;
  size_t input_bytes = 0;
  std::vector<TensorFill> fills;
};

// Calls use(place) for every tensor of the arguments of a PreparedCall, const or not, in order.
template <class Call, class Use>
void ForEachInput(Call& call, const Use& use) {
  for (auto& value : call.args) ForEachTensor(value, use);
  for (auto& [key, value] : call.kwargs) ForEachTensor(value, use);
}

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_PREPARED_CALL_H_

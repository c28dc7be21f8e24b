// Tensors that a user wants changed before they are compared (`plumb compare --postprocess`).

#ifndef PLUMBLINE_LOAD_PROCESSED_TENSOR_H_
#define PLUMBLINE_LOAD_PROCESSED_TENSOR_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pytorch/tensor_file.h"
#include "plumbline/result.h"

namespace plumbline::load {

struct ProcessingStep {
  enum class Kind : uint8_t {
    kKeepRows,     // all behind the first `rows` of dimension 0 become zeros
    kMultiply,     // by `matrix` from the right: x @ matrix
    kMultiplyLeft  // matrix @ x
  };
  Kind kind = Kind::kKeepRows;
  int64_t rows = 0;
  std::string matrix;  // path of a .npy, .pt or .pth file

  // "rows from 5 on are set to 0", "is multiplied by m.npy from the right"
  [[nodiscard]] std::string Text() const;
};

// A path as part of such names, which are no paths: slashes are spelled "%2F".
std::string SpelledPath(std::string_view path);
// The path that is spelled so; nothing if none is.
std::optional<std::string> PathSpelledAs(std::string_view text);

// The name under which OpenTensor() finds what the steps make of a tensor file, one after the
// other: "processed;x.pt;rows=5;right=m.npy". It is no path: slashes are spelled "%2F".
std::string ProcessedName(std::string_view file, std::span<const ProcessingStep> steps);

struct ProcessedTensor {
  std::string file;
  std::vector<ProcessingStep> steps;
};
// The parts of such a name; nothing if `name` is a file's own.
std::optional<ProcessedTensor> ParseProcessedName(std::string_view name);

// What the steps make of `view`. Products are those of NumPy's matmul with a matrix of two
// dimensions; their sums are taken in double and rounded once, to float32, or to float64 where one
// factor is float64 or an integer of 32 bits or more. Errors of TensorFile::Open();
// kInvalidArgument where shapes do not fit together; kUnsupported for complex numbers.
Result<TensorFile> Process(const TensorView& view, std::span<const ProcessingStep> steps);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_PROCESSED_TENSOR_H_

// Tensors that one side keeps in pieces or in another shape than the other side.

#ifndef PLUMBLINE_LOAD_DERIVED_TENSOR_H_
#define PLUMBLINE_LOAD_DERIVED_TENSOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pytorch/tensor_file.h"
#include "plumbline/result.h"

namespace plumbline::load {

// What is made of the files. Dimensions of size 1 are dropped first, everywhere.
enum class Derivation : uint8_t {
  kSame,     // one file
  kRows,     // one after the other along the first dimension
  kColumns,  // along the last one
  kSum,      // added up, element by element, rounded once
  kPairs,    // one file of three dimensions, the last two of them as one
};

// The name under which OpenTensor() finds it: "columns;q.pt;k.pt;v.pt". Requires: files.
std::string DerivedName(Derivation derivation, std::span<const std::string> files);

struct DerivedTensor {
  Derivation derivation = Derivation::kSame;
  std::vector<std::string> files;
};
// The parts of such a name; nothing if `name` is a file's own.
std::optional<DerivedTensor> ParseDerivedName(std::string_view name);

// `shape` without dimensions of size 1.
Shape WithoutOnes(std::span<const int64_t> shape);

// The shape that comes out, or nothing if the pieces do not fit together.
std::optional<Shape> DerivedShape(Derivation derivation, std::span<const Shape> pieces);

// Opens each file with `open` and makes the tensor. kCorrupt when the pieces do not fit together;
// kUnsupported for a sum of another type than float16, bfloat16, float32 and float64.
Result<TensorFile> MakeDerivedTensor(
    const DerivedTensor& derived,
    const std::function<Result<TensorFile>(const std::string&)>& open);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_DERIVED_TENSOR_H_

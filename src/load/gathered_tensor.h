// Tensors that the ranks of a parallel run hold in parts, put together when they are opened.

#ifndef PLUMBLINE_LOAD_GATHERED_TENSOR_H_
#define PLUMBLINE_LOAD_GATHERED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pytorch/tensor_file.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::load {

// How files make up one tensor. A plain value.
struct GatheredTensor {
  // A dimension along which the whole is cut into blocks of equal size.
  struct Axis {
    size_t dimension = 0;
    int64_t blocks = 1;
  };
  struct Piece {
    // Paths below one directory; several: added up, element by element.
    std::vector<std::string> files{};
    std::vector<std::vector<int64_t>> blocks{};  // along each axis: which ones it holds, in order
  };
  Shape shape{};
  std::vector<Axis> axes{};  // none: elements of the pieces follow each other
  std::vector<Piece> pieces{};
  double divisor = 1;         // of each element, rounded to its type
  bool is_ascending = false;  // elements in order of size, NaN last: of tensors in unlike orders
};

// The name under which OpenTensor() finds it: "gathered;shape=4x16;axis=1:4;at=0+3;file=...". It is
// no path: slashes are spelled "%2F".
std::string GatheredName(const GatheredTensor& gathered);

// The parts of such a name; nothing if `name` is a file's own.
std::optional<GatheredTensor> ParseGatheredName(std::string_view name);

// Opens each file with `open`. kInvalidArgument for paths that leave the directory; kCorrupt where
// files do not make up the shape; kUnsupported for sums and quotients of other types than floating
// ones, and for complex numbers by size.
Result<TensorFile> Gather(const GatheredTensor& gathered,
                          const std::function<Result<TensorFile>(const std::string&)>& open);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_GATHERED_TENSOR_H_

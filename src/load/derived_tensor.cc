#include "load/derived_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "tensor/element_value.h"

namespace plumbline::load {
namespace {

constexpr char kSeparator = ';';
constexpr std::array<std::string_view, 5> kNames = {"same", "rows", "columns", "sum", "pairs"};

using Bytes = std::vector<std::byte>;

// Contiguous elements of one file.
struct Piece {
  DType dtype = DType::kFloat32;
  Shape shape;
  Bytes bytes;
};

float FloatAt(DType dtype, const std::byte* at) {
  return dtype == DType::kFloat32 ? LoadAs<float>(at) : LoadNarrow(dtype, at);
}

void AddElement(DType dtype, const std::byte* term, std::byte* sum) {
  if (dtype == DType::kFloat64) {
    const double a = LoadAs<double>(sum) + LoadAs<double>(term);
    std::memcpy(sum, &a, sizeof(a));
    return;
  }
  const float total = FloatAt(dtype, sum) + FloatAt(dtype, term);
  if (dtype == DType::kFloat32) {
    std::memcpy(sum, &total, sizeof(total));
    return;
  }
  const auto bits = static_cast<uint16_t>(FloatToNarrow(*NarrowFormatOf(dtype), total));
  std::memcpy(sum, &bits, sizeof(bits));
}

Result<Bytes> Added(std::vector<Piece>& pieces) {
  const DType dtype = pieces.front().dtype;
  constexpr std::array kTypes = {DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                 DType::kFloat64};
  if (std::ranges::find(kTypes, dtype) == kTypes.end()) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("a sum of {} (expected a floating type)", InfoOf(dtype).name));
  }
  Bytes sum = std::move(pieces.front().bytes);
  const size_t width = InfoOf(dtype).size_bytes;
  for (size_t k = 1; k < pieces.size(); ++k) {
    for (size_t at = 0; at < sum.size(); at += width) {
      AddElement(dtype, pieces[k].bytes.data() + at, sum.data() + at);
    }
  }
  return sum;
}

// Row after row, the pieces of each row beside each other.
Bytes Joined(Derivation derivation, const std::vector<Piece>& pieces) {
  Bytes all;
  const Shape& shape = pieces.front().shape;
  const bool by_rows = derivation == Derivation::kRows || shape.empty();
  const int64_t rows =
      by_rows ? 1
              : std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
  for (int64_t row = 0; row < rows; ++row) {
    for (const Piece& piece : pieces) {
      const auto width = static_cast<std::ptrdiff_t>(piece.bytes.size()) / rows;
      const auto from = piece.bytes.begin() + row * width;
      all.insert(all.end(), from, from + width);
    }
  }
  return all;
}

Result<Piece> ReadPiece(const TensorView& view) {
  Piece piece{view.dtype, WithoutOnes(view.sizes), Bytes(view.size_bytes())};
  CopyContiguous(view, piece.bytes);
  return piece;
}

Error DoNotFit(const DerivedTensor& derived, std::string_view problem) {
  return Error(ErrorCode::kCorrupt, fmt::format("{}: {}", fmt::join(derived.files, ", "), problem));
}

}  // namespace

std::string DerivedName(Derivation derivation, std::span<const std::string> files) {
  return fmt::format("{};{}", kNames[static_cast<size_t>(derivation)], fmt::join(files, ";"));
}

std::optional<DerivedTensor> ParseDerivedName(std::string_view name) {
  const size_t first = name.find(kSeparator);
  if (first == std::string_view::npos) return std::nullopt;
  const auto* known = std::ranges::find(kNames, name.substr(0, first));
  if (known == kNames.end()) return std::nullopt;
  DerivedTensor derived;
  derived.derivation = static_cast<Derivation>(known - kNames.begin());
  name.remove_prefix(first + 1);
  for (;;) {
    const size_t end = name.find(kSeparator);
    derived.files.emplace_back(name.substr(0, end));
    if (end == std::string_view::npos) return derived;
    name.remove_prefix(end + 1);
  }
}

Shape WithoutOnes(std::span<const int64_t> shape) {
  Shape kept;
  std::ranges::copy_if(shape, std::back_inserter(kept), [](int64_t size) { return size != 1; });
  return kept;
}

std::optional<Shape> DerivedShape(Derivation derivation, std::span<const Shape> pieces) {
  if (pieces.empty()) return std::nullopt;
  Shape shape = WithoutOnes(pieces.front());
  if (derivation == Derivation::kPairs) {
    if (pieces.size() != 1 || shape.size() != 3) return std::nullopt;
    return Shape{shape[0], shape[1] * shape[2]};
  }
  const size_t axis = derivation == Derivation::kRows || shape.empty() ? 0 : shape.size() - 1;
  for (size_t k = 1; k < pieces.size(); ++k) {
    Shape other = WithoutOnes(pieces[k]);
    if (derivation == Derivation::kSum || derivation == Derivation::kSame) {
      if (other != shape || derivation == Derivation::kSame) return std::nullopt;
      continue;
    }
    if (shape.empty() || other.size() != shape.size()) return std::nullopt;
    const int64_t size = other[axis];
    other[axis] = shape[axis];
    if (other != shape) return std::nullopt;
    shape[axis] += size;
  }
  return shape;
}

Result<TensorFile> MakeDerivedTensor(
    const DerivedTensor& derived,
    const std::function<Result<TensorFile>(const std::string&)>& open) {
  std::vector<Piece> pieces;
  std::vector<Shape> shapes;
  for (const std::string& name : derived.files) {
    PL_TRY_ASSIGN(const TensorFile file, open(name));
    PL_TRY_ASSIGN(Piece piece, ReadPiece(file.view()));
    if (!pieces.empty() && piece.dtype != pieces.front().dtype) {
      return DoNotFit(derived, "pieces of unlike types");
    }
    shapes.push_back(piece.shape);
    pieces.push_back(std::move(piece));
  }
  const std::optional<Shape> shape = DerivedShape(derived.derivation, shapes);
  if (!shape) return DoNotFit(derived, "pieces whose shapes do not fit together");
  const DType dtype = pieces.front().dtype;
  Bytes bytes;
  if (derived.derivation == Derivation::kSum) {
    PL_TRY_ASSIGN(bytes, Added(pieces));
  } else {
    bytes = Joined(derived.derivation, pieces);
  }
  const std::vector<int64_t> strides = ContiguousStrides(*shape);
  PL_TRY_ASSIGN(Tensor tensor, Tensor::Copy({dtype, bytes.data(), *shape, strides}));
  return TensorFile::Of(std::move(tensor));
}

}  // namespace plumbline::load

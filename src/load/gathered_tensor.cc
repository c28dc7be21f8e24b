#include "load/gathered_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "base/text/text_parts.h"
#include "load/derived_tensor.h"
#include "load/processed_tensor.h"
#include "record/gathered_name.h"
#include "tensor/element_value.h"

namespace plumbline::load {
namespace {

constexpr size_t kMostPlaces = 1 << 24;  // blocks of all pieces: what a name can tell
constexpr size_t kUnlikeSizes = 64;      // how many times larger another rank's part may be

using Bytes = std::vector<std::byte>;

// Contiguous elements of one piece.
struct Part {
  DType dtype = DType::kFloat32;
  Bytes bytes;
};

Error DoesNotFit(const GatheredTensor& gathered, std::string_view problem) {
  const std::string first =
      gathered.pieces.empty() ? std::string("no file") : gathered.pieces.front().files.front();
  return Error(ErrorCode::kCorrupt, fmt::format("{} and the same of other ranks: {} (expected {})",
                                                first, problem, fmt::join(gathered.shape, " x ")));
}

using OpenFile = std::function<Result<TensorFile>(const std::string&)>;

// Whether a path stays below the directory that it is looked for in.
bool IsBelow(std::string_view path) {
  const std::vector<std::string_view> parts = SplitAt(path, '/');
  return std::ranges::none_of(
      parts, [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

Result<Part> ReadPart(const GatheredTensor::Piece& piece, const OpenFile& open) {
  for (const std::string& file : piece.files) {
    if (IsBelow(file)) continue;
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a file of the recording", file));
  }
  const auto contiguous = [](const TensorFile& file) {
    const TensorView view = file.view();
    Part part{view.dtype, Bytes(view.size_bytes())};
    CopyContiguous(view, part.bytes);
    return part;
  };
  if (piece.files.size() == 1) {
    PL_TRY_ASSIGN(const TensorFile file, open(piece.files.front()));
    return contiguous(file);
  }
  PL_TRY_ASSIGN(const TensorFile sum, MakeDerivedTensor({Derivation::kSum, piece.files}, open));
  return contiguous(sum);
}

// Where the elements of a piece go along one dimension.
std::vector<int64_t> IndicesOf(const GatheredTensor& gathered, const GatheredTensor::Piece& piece,
                               size_t dimension) {
  const int64_t size = gathered.shape[dimension];
  std::vector<int64_t> indices;
  for (size_t k = 0; k < gathered.axes.size(); ++k) {
    if (gathered.axes[k].dimension != dimension) continue;
    const int64_t length = size / gathered.axes[k].blocks;
    for (const int64_t block : piece.blocks[k]) {
      for (int64_t i = 0; i < length; ++i) indices.push_back(block * length + i);
    }
    return indices;
  }
  indices.resize(static_cast<size_t>(size));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Puts the elements of one piece where they belong.
class Placement {
 public:
  Placement(const GatheredTensor& gathered, const GatheredTensor::Piece& piece, size_t width,
            Bytes& whole)
      : whole_(whole), inner_(width) {
    size_t outer = 0;  // dimensions; behind them everything is contiguous on both sides
    for (const GatheredTensor::Axis& axis : gathered.axes) {
      outer = std::max(outer, axis.dimension + 1);
    }
    for (size_t i = outer; i < gathered.shape.size(); ++i) {
      inner_ *= static_cast<size_t>(gathered.shape[i]);
    }
    size_t stride = inner_;
    for (size_t i = outer; i-- > 0;) {
      strides_.insert(strides_.begin(), stride);
      indices_.insert(indices_.begin(), IndicesOf(gathered, piece, i));
      stride *= static_cast<size_t>(gathered.shape[i]);
    }
  }

  [[nodiscard]] size_t bytes() const {
    size_t count = inner_;
    for (const auto& indices : indices_) count *= indices.size();
    return count;
  }

  void Put(const std::byte* from) { PutFrom(0, 0, from); }

 private:
  void PutFrom(size_t dimension, size_t offset, const std::byte*& from) {
    if (dimension == indices_.size()) {
      std::memcpy(whole_.data() + offset, from, inner_);
      from += inner_;
      return;
    }
    for (const int64_t index : indices_[dimension]) {
      PutFrom(dimension + 1, offset + static_cast<size_t>(index) * strides_[dimension], from);
    }
  }

  Bytes& whole_;
  size_t inner_;
  std::vector<size_t> strides_;
  std::vector<std::vector<int64_t>> indices_;
};

Status Divide(DType dtype, double divisor, Bytes& bytes) {
  const size_t width = InfoOf(dtype).size_bytes;
  if (InfoOf(dtype).kind != DTypeKind::kFloat || width < 2) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("a quotient of {} (expected a floating type)", InfoOf(dtype).name));
  }
  for (size_t at = 0; at < bytes.size(); at += width) {
    std::byte* const element = bytes.data() + at;
    if (dtype == DType::kFloat64) {
      const double quotient = LoadAs<double>(element) / divisor;
      std::memcpy(element, &quotient, sizeof(quotient));
    } else if (dtype == DType::kFloat32) {
      const auto quotient = static_cast<float>(LoadAs<float>(element) / divisor);
      std::memcpy(element, &quotient, sizeof(quotient));
    } else {
      const auto quotient = static_cast<float>(LoadNarrow(dtype, element) / divisor);
      const auto bits = static_cast<uint16_t>(FloatToNarrow(*NarrowFormatOf(dtype), quotient));
      std::memcpy(element, &bits, sizeof(bits));
    }
  }
  return {};
}

Result<Bytes> Ascending(DType dtype, const Bytes& bytes) {
  if (InfoOf(dtype).kind == DTypeKind::kComplex) {
    return Error(ErrorCode::kUnsupported, "complex numbers have no order of size");
  }
  const size_t width = InfoOf(dtype).size_bytes;
  std::vector<std::pair<double, size_t>> order(bytes.size() / width);
  for (size_t i = 0; i < order.size(); ++i) {
    const double value = VisitElement(dtype, bytes.data() + i * width, [](auto... each) {
      return (static_cast<double>(each) + ...);
    });
    order[i] = {value, i};
  }
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    const bool is_nan = std::isnan(a.first), is_other = std::isnan(b.first);
    if (is_nan || is_other) return is_nan == is_other ? a.second < b.second : is_other;
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  });
  Bytes sorted(bytes.size());
  for (size_t i = 0; i < order.size(); ++i) {
    std::memcpy(sorted.data() + i * width, bytes.data() + order[i].second * width, width);
  }
  return sorted;
}

// The places of the whole that a piece takes, counted along all axes; nothing: too many.
std::optional<std::vector<uint64_t>> PlacesOf(const GatheredTensor& gathered,
                                              const GatheredTensor::Piece& piece) {
  std::vector<uint64_t> places = {0};
  for (size_t k = 0; k < piece.blocks.size(); ++k) {
    const auto count = static_cast<uint64_t>(gathered.axes[k].blocks);
    if (places.size() * piece.blocks[k].size() > kMostPlaces) return std::nullopt;
    std::vector<uint64_t> longer;
    for (const uint64_t place : places) {
      for (const int64_t block : piece.blocks[k]) {
        longer.push_back(place * count + static_cast<uint64_t>(block));
      }
    }
    places = std::move(longer);
  }
  return places;
}

// Whether no place of the whole is taken twice. With as many elements as the whole has, all are.
bool AreApart(const GatheredTensor& gathered) {
  std::vector<uint64_t> taken;
  for (const GatheredTensor::Piece& piece : gathered.pieces) {
    const auto places = PlacesOf(gathered, piece);
    if (!places || taken.size() + places->size() > kMostPlaces) return false;
    taken.insert(taken.end(), places->begin(), places->end());
  }
  std::ranges::sort(taken);
  return std::ranges::adjacent_find(taken) == taken.end();
}

bool AreWellFormed(const GatheredTensor& gathered) {
  const auto fits = [&](const GatheredTensor::Axis& axis) {
    return axis.dimension < gathered.shape.size() && axis.blocks > 0 &&
           gathered.shape[axis.dimension] % axis.blocks == 0;
  };
  if (!std::ranges::all_of(gathered.axes, fits)) return false;
  const bool fit = std::ranges::all_of(gathered.pieces, [&](const GatheredTensor::Piece& piece) {
    if (piece.files.empty() || piece.blocks.size() != gathered.axes.size()) return false;
    for (size_t k = 0; k < gathered.axes.size(); ++k) {
      for (const int64_t block : piece.blocks[k]) {
        if (block < 0 || block >= gathered.axes[k].blocks) return false;
      }
    }
    return true;
  });
  return fit && (gathered.axes.empty() || AreApart(gathered));
}

std::vector<int64_t> NumbersIn(std::string_view text, char mark) {
  std::vector<int64_t> numbers;
  if (text.empty()) return numbers;
  for (const std::string_view part : SplitAt(text, mark)) {
    numbers.push_back(ParseNatural(part).value_or(-1));
  }
  return numbers;
}

// Takes up "name=value"; false if there is no such thing.
bool TakeField(std::string_view name, std::string_view value, GatheredTensor& gathered) {
  if (name == "shape") {
    gathered.shape = NumbersIn(value, 'x');
  } else if (name == "axis") {
    const std::vector<int64_t> axis = NumbersIn(value, ':');
    if (axis.size() != 2 || axis[0] < 0) return false;
    gathered.axes.push_back({static_cast<size_t>(axis[0]), axis[1]});
  } else if (name == "divisor") {
    gathered.divisor = ParseReal(value).value_or(0);
  } else if (name == "at") {
    GatheredTensor::Piece& piece = gathered.pieces.emplace_back();
    if (value.empty()) return true;
    for (const std::string_view blocks : SplitAt(value, ',')) {
      piece.blocks.push_back(NumbersIn(blocks, '+'));
    }
  } else if (name == "file") {
    const auto path = PathSpelledAs(value);
    if (!path || gathered.pieces.empty()) return false;
    gathered.pieces.back().files.push_back(*path);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string GatheredName(const GatheredTensor& gathered) {
  std::string name = fmt::format("{}shape={}", kGatheredName, fmt::join(gathered.shape, "x"));
  for (const GatheredTensor::Axis& axis : gathered.axes) {
    name += fmt::format(";axis={}:{}", axis.dimension, axis.blocks);
  }
  if (gathered.divisor != 1) name += fmt::format(";divisor={}", gathered.divisor);
  if (gathered.is_ascending) name += fmt::format(";{}", kAscendingField);
  for (const GatheredTensor::Piece& piece : gathered.pieces) {
    std::vector<std::string> blocks;
    for (const auto& each : piece.blocks) blocks.push_back(fmt::format("{}", fmt::join(each, "+")));
    name += fmt::format(";at={}", fmt::join(blocks, ","));
    for (const std::string& file : piece.files) name += fmt::format(";file={}", SpelledPath(file));
  }
  return name;
}

std::optional<GatheredTensor> ParseGatheredName(std::string_view name) {
  if (!name.starts_with(kGatheredName)) return std::nullopt;
  GatheredTensor gathered;
  for (const std::string_view field : SplitAt(name.substr(kGatheredName.size()), ';')) {
    if (field == kAscendingField) {
      gathered.is_ascending = true;
      continue;
    }
    const size_t equals = field.find('=');
    if (equals == field.npos) return std::nullopt;
    if (!TakeField(field.substr(0, equals), field.substr(equals + 1), gathered)) {
      return std::nullopt;
    }
  }
  const bool has_size = std::ranges::all_of(gathered.shape, [](int64_t size) { return size >= 0; });
  if (!has_size || !(gathered.divisor > 0) || gathered.pieces.empty()) return std::nullopt;
  return AreWellFormed(gathered) ? std::optional(gathered) : std::nullopt;
}

Result<TensorFile> Gather(const GatheredTensor& gathered, const OpenFile& open) {
  Bytes whole;
  size_t filled = 0;
  std::optional<DType> dtype;
  PL_TRY_ASSIGN(const int64_t elements, ElementCount(gathered.shape));
  for (const GatheredTensor::Piece& piece : gathered.pieces) {
    PL_TRY_ASSIGN(const Part part, ReadPart(piece, open));
    if (dtype.value_or(part.dtype) != part.dtype) return DoesNotFit(gathered, "unlike types");
    const size_t width = InfoOf(part.dtype).size_bytes;
    // No file makes up many times its own size.
    const size_t most = part.bytes.size() * gathered.pieces.size() * kUnlikeSizes;
    if (static_cast<size_t>(elements) > most / width)
      return DoesNotFit(gathered, "too few elements");
    if (!dtype) whole.resize(static_cast<size_t>(elements) * width);
    dtype = part.dtype;
    Placement placement(gathered, piece, width, whole);
    const bool fits = filled + part.bytes.size() <= whole.size() &&
                      (gathered.axes.empty() || placement.bytes() == part.bytes.size());
    if (!fits) return DoesNotFit(gathered, "other numbers of elements");
    if (gathered.axes.empty()) {
      std::ranges::copy(part.bytes, whole.begin() + static_cast<std::ptrdiff_t>(filled));
    } else {
      placement.Put(part.bytes.data());
    }
    filled += part.bytes.size();
  }
  if (!dtype || filled != whole.size()) return DoesNotFit(gathered, "other numbers of elements");
  if (gathered.divisor != 1) PL_TRY(Divide(*dtype, gathered.divisor, whole));
  if (gathered.is_ascending) {
    PL_TRY_ASSIGN(whole, Ascending(*dtype, whole));
  }
  const std::vector<int64_t> strides = ContiguousStrides(gathered.shape);
  PL_TRY_ASSIGN(Tensor tensor, Tensor::Copy({*dtype, whole.data(), gathered.shape, strides}));
  return TensorFile::Of(std::move(tensor));
}

}  // namespace plumbline::load

#include "load/processed_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/process/parallel.h"
#include "kernels/kernel_table.h"
#include "kernels/panel_product.h"
#include "tensor/element_value.h"

namespace plumbline::load {
namespace {

using StepKind = ProcessingStep::Kind;
using kernels::kPanelColumns;

constexpr std::string_view kProcessed = "processed;";
constexpr std::string_view kSpecial = "%/;";
constexpr std::array<std::string_view, 3> kStepNames = {"rows=", "right=", "left="};  // by Kind

bool HoldsTensor(std::string_view path) {
  return path.ends_with(".npy") || path.ends_with(".pt") || path.ends_with(".pth");
}

std::optional<ProcessingStep> ParseStep(std::string_view text) {
  for (size_t k = 0; k < kStepNames.size(); ++k) {
    if (!text.starts_with(kStepNames[k])) continue;
    text.remove_prefix(kStepNames[k].size());
    ProcessingStep step;
    step.kind = static_cast<StepKind>(k);
    if (step.kind == StepKind::kKeepRows) {
      const auto read = std::from_chars(text.data(), text.data() + text.size(), step.rows);
      const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
      return whole && step.rows >= 0 ? std::optional(step) : std::nullopt;
    }
    const auto path = PathSpelledAs(text);
    if (!path || !HoldsTensor(*path)) return std::nullopt;
    step.matrix = *path;
    return step;
  }
  return std::nullopt;
}

// Row-major elements.
struct Elements {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;

  explicit Elements(const TensorView& view)
      : dtype(view.dtype), shape(view.sizes.begin(), view.sizes.end()), bytes(view.size_bytes()) {
    CopyContiguous(view, bytes);
  }
  [[nodiscard]] double At(size_t i) const {
    return ElementAsDouble(dtype, bytes.data() + i * InfoOf(dtype).size_bytes);
  }
};

void KeepRows(int64_t rows, Elements& x) {
  if (x.shape.empty() || rows >= x.shape.front()) return;
  const size_t kept = x.bytes.size() / static_cast<size_t>(x.shape.front());
  const auto from = static_cast<std::ptrdiff_t>(kept * static_cast<size_t>(rows));
  std::fill(x.bytes.begin() + from, x.bytes.end(), std::byte{0});
}

bool IsWide(DType dtype) {
  const DTypeInfo& info = InfoOf(dtype);
  const bool is_float = info.kind == DTypeKind::kFloat;
  return is_float ? dtype == DType::kFloat64 : info.size_bytes >= sizeof(float);
}

// One factor of a product: a matrix that begins at element `first`.
struct Factor {
  const Elements& elements;
  size_t first, rows, columns;
};

// Writes elements of the product from `first` of `out` on.
void Multiply(const Factor& left, const Factor& right, size_t first, Elements& out) {
  constexpr size_t kRows = 32;  // of the left factor, for one thread at a time
  const size_t depth = left.columns, columns = right.columns;
  const size_t panel_count = kernels::PanelCount(columns);
  std::vector<double> panels(panel_count * depth * kPanelColumns);
  for (size_t k = 0; k < depth; ++k) {
    for (size_t j = 0; j < columns; ++j) {
      panels[(j / kPanelColumns * depth + k) * kPanelColumns + j % kPanelColumns] =
          right.elements.At(right.first + k * columns + j);
    }
  }
  ParallelBlocks(left.rows, kRows, [&](size_t begin, size_t end) {
    std::vector<double> a((end - begin) * depth);
    for (size_t i = 0; i < a.size(); ++i) a[i] = left.elements.At(left.first + begin * depth + i);
    const size_t stride = panel_count * kPanelColumns;
    std::vector<double> sums((end - begin) * stride);
    kernels::ActiveTable().multiply_panels(
        {a.data(), depth, 1, end - begin, depth, panels.data(), panel_count, sums.data(), stride});
    for (size_t i = begin; i < end; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        const double sum = sums[(i - begin) * stride + j];
        const size_t at = first + i * columns + j;
        if (out.dtype == DType::kFloat64) {
          std::memcpy(out.bytes.data() + at * sizeof(double), &sum, sizeof(double));
        } else {
          const auto rounded = static_cast<float>(sum);
          std::memcpy(out.bytes.data() + at * sizeof(float), &rounded, sizeof(float));
        }
      }
    }
  });
}

std::string ShapeText(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Result<Elements> Product(const ProcessingStep& step, const Elements& x) {
  PL_TRY_ASSIGN(const TensorFile file, TensorFile::Open(step.matrix));
  const Elements matrix(file.view());
  for (const Elements* each : {&x, &matrix}) {
    if (InfoOf(each->dtype).kind != DTypeKind::kComplex) continue;
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: a product of complex numbers", step.matrix));
  }
  const bool from_left = step.kind == StepKind::kMultiplyLeft;
  const size_t dimensions = x.shape.size();
  const bool is_vector = dimensions == 1;
  const auto size = [](const Shape& shape, size_t i) { return static_cast<size_t>(shape[i]); };
  // The dimension that the sums run over.
  const size_t at = from_left && !is_vector ? dimensions - 2 : dimensions - 1;
  if (matrix.shape.size() != 2 || dimensions == 0 ||
      x.shape[at] != matrix.shape[from_left ? 1 : 0]) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: its shape {} does not fit a tensor of shape {}", step.matrix,
                             ShapeText(matrix.shape), ShapeText(x.shape)));
  }
  Shape shape = x.shape;
  shape[at] = matrix.shape[from_left ? 0 : 1];
  const DType dtype = IsWide(x.dtype) || IsWide(matrix.dtype) ? DType::kFloat64 : DType::kFloat32;
  PL_TRY_ASSIGN(const int64_t count, ElementCount(shape));
  const std::vector<std::byte> zeros(static_cast<size_t>(count) * InfoOf(dtype).size_bytes);
  const std::vector<int64_t> strides = ContiguousStrides(shape);
  Elements out(TensorView{dtype, zeros.data(), shape, strides});
  if (count == 0) return out;
  const size_t height = size(matrix.shape, 0), width = size(matrix.shape, 1);
  const size_t in_count = x.bytes.size() / InfoOf(x.dtype).size_bytes;
  if (!from_left) {
    if (height > 0) Multiply({x, 0, in_count / height, height}, {matrix, 0, height, width}, 0, out);
    return out;
  }
  const size_t columns = is_vector ? 1 : size(x.shape, dimensions - 1);
  const size_t batches = width == 0 ? 0 : in_count / (width * columns);
  for (size_t b = 0; b < batches; ++b) {
    Multiply({matrix, 0, height, width}, {x, b * width * columns, width, columns},
             b * height * columns, out);
  }
  return out;
}

}  // namespace

std::string SpelledPath(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (kSpecial.find(c) == std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::optional<std::string> PathSpelledAs(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto* const found = std::ranges::find_if(kSpecial, [&](char c) {
      return text.substr(i).starts_with(SpelledPath({&c, 1}));
    });
    if (found == kSpecial.end()) return std::nullopt;
    out += *found;
    i += 2;
  }
  return out;
}

std::string ProcessingStep::Text() const {
  if (kind == StepKind::kKeepRows) return fmt::format("rows from {} on are set to 0", rows);
  return fmt::format("is multiplied by {} from the {}", matrix,
                     kind == StepKind::kMultiply ? "right" : "left");
}

std::string ProcessedName(std::string_view file, std::span<const ProcessingStep> steps) {
  std::string name = fmt::format("{}{}", kProcessed, SpelledPath(file));
  for (const ProcessingStep& step : steps) {
    name += fmt::format(
        ";{}{}", kStepNames[static_cast<size_t>(step.kind)],
        step.kind == StepKind::kKeepRows ? std::to_string(step.rows) : SpelledPath(step.matrix));
  }
  return name;
}

std::optional<ProcessedTensor> ParseProcessedName(std::string_view name) {
  if (!name.starts_with(kProcessed)) return std::nullopt;
  name.remove_prefix(kProcessed.size());
  ProcessedTensor processed;
  for (bool is_file = true;; is_file = false) {
    const size_t end = name.find(';');
    if (is_file) {
      auto file = PathSpelledAs(name.substr(0, end));
      if (!file) return std::nullopt;
      processed.file = std::move(*file);
    } else {
      auto step = ParseStep(name.substr(0, end));
      if (!step) return std::nullopt;
      processed.steps.push_back(std::move(*step));
    }
    if (end == std::string_view::npos) return processed;
    name.remove_prefix(end + 1);
  }
}

Result<TensorFile> Process(const TensorView& view, std::span<const ProcessingStep> steps) {
  Elements x(view);
  for (const ProcessingStep& step : steps) {
    if (step.kind == StepKind::kKeepRows) {
      KeepRows(step.rows, x);
      continue;
    }
    if (!HoldsTensor(step.matrix)) {
      return Error(
          ErrorCode::kUnsupported,
          fmt::format("{}: no file of a tensor (expected .npy, .pt or .pth)", step.matrix));
    }
    PL_TRY_ASSIGN(x, Product(step, x));
  }
  const std::vector<int64_t> strides = ContiguousStrides(x.shape);
  PL_TRY_ASSIGN(Tensor tensor, Tensor::Copy({x.dtype, x.bytes.data(), x.shape, strides}));
  return TensorFile::Of(std::move(tensor));
}

}  // namespace plumbline::load

#include "pipeline/arrays/print_array.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/number_text.h"
#include "base/text_file.h"
#include "formats/npy.h"
#include "kernels/tensor_scan.h"
#include "match/python_text.h"
#include "pipeline/arrays/array_elements.h"
#include "record/tensor_stats.h"

namespace plumbline {
namespace {

constexpr size_t kRowElements = 8;
constexpr size_t kMostRows = 16;

std::string FactText(const Statistic& statistic) {
  if (const auto* truth = std::get_if<bool>(&statistic)) return *truth ? "True" : "False";
  if (const auto* number = std::get_if<double>(&statistic)) return PythonFloat(*number);
  if (const auto* number = std::get_if<int64_t>(&statistic)) return std::to_string(*number);
  return "nan";
}

}  // namespace

std::string ArrayFacts(const TensorView& view) {
  const kernels::TensorScan scan = kernels::ScanTensor(view, {});
  const TensorStats stats = ComputeStats(view.dtype, scan.moments, view.sizes.empty());
  return fmt::format("[Shape: {}] [Dtype: {}] [Max: {}] [Min: {}] [Mean: {}]",
                     match::TupleText(view.sizes), InfoOf(view.dtype).name, FactText(stats.max),
                     FactText(stats.min), FactText(stats.mean));
}

Result<std::string> WriteArrayText(const std::string& path, const TensorView& view) {
  std::string text_path = path + ".txt";
  if (KindOf(text_path) != PathKind::kMissing) return text_path;
  PL_TRY_ASSIGN(TextFile out, TextFile::Create(text_path));
  const auto count = static_cast<size_t>(view.element_count());
  const size_t row = view.sizes.empty() ? 1 : static_cast<size_t>(view.sizes.back());
  const bool is_complex = InfoOf(view.dtype).kind == DTypeKind::kComplex;
  for (size_t i = 0; i < count; ++i) {
    if (is_complex) {
      out.text() += ElementText(view, i);
    } else {
      out.text() += fmt::format("{:g}", static_cast<double>(ElementValue(view, i)));
    }
    out.text() += (i + 1) % row == 0 ? '\n' : ' ';
    PL_TRY(out.Flush());
  }
  PL_TRY(out.Close());
  return text_path;
}

Result<std::string> PrintArray(const std::string& path) {
  PL_TRY_ASSIGN(const npy::NpyFile file, npy::NpyFile::Open(path));
  PL_TRY_ASSIGN(const Tensor array, Tensor::Copy(file.view()));
  const TensorView view = array.view();
  const auto count = static_cast<size_t>(view.element_count());
  if (count == 0) {
    return Error(ErrorCode::kInvalidArgument, path + ": the array has no elements");
  }
  PL_TRY_ASSIGN(const std::string text_path, WriteArrayText(path, view));
  std::string text = fmt::format("{}\nPath: {}\nTextFile: {}\n{:>8} | Data\n", ArrayFacts(view),
                                 path, text_path, "Index");
  for (size_t i = 0; i < std::min(count, kRowElements * kMostRows); ++i) {
    if (i % kRowElements == 0) text += fmt::format("{:8} |", i);
    text += " " + ElementText(view, i);
    if ((i + 1) % kRowElements == 0 || i + 1 == count) text += "\n";
  }
  return text;
}

}  // namespace plumbline

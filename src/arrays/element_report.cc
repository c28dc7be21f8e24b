#include "arrays/element_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arrays/compare_arrays.h"
#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/text/number_text.h"
#include "formats/array/npy.h"
#include "kernels/tensor_scan.h"
#include "match/expand.h"
#include "measure/tensor_metrics.h"
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

namespace {

struct Scan {
  uint64_t wrong = 0;
  bool all_close = true;
  std::string top, errors;  // tables
};

std::string RowText(const TensorView& left, const TensorView& right, size_t i, long double diff) {
  return fmt::format("{:8} | {} | {} | {}\n", i, ElementText(left, i), ElementText(right, i),
                     PythonFloat(static_cast<double>(diff)));
}

Scan ScanElements(const TensorView& left, const TensorView& right,
                  const ElementReportOptions& options) {
  Scan scan;
  size_t error_rows = 0;
  const auto count = static_cast<size_t>(left.element_count());
  for (size_t i = 0; i < count; ++i) {
    const long double a = ElementValue(left, i), b = ElementValue(right, i);
    const long double diff = ElementDistance(left, right, i);
    const bool both_nan = std::isnan(a) && std::isnan(b);
    const bool close = diff <= options.absolute + options.relative * std::abs(b) &&
                       (diff == 0 || std::isfinite(b));
    scan.all_close = scan.all_close && close;
    if (i < options.most_rows) scan.top += RowText(left, right, i, diff);
    if (close || both_nan) continue;
    ++scan.wrong;
    if (error_rows++ < options.most_rows) scan.errors += RowText(left, right, i, diff);
  }
  return scan;
}

}  // namespace

Result<ElementReport> CompareElements(const std::string& target, const std::string& golden,
                                      const ElementReportOptions& options) {
  PL_TRY_ASSIGN(const npy::NpyFile left_file, npy::NpyFile::Open(target));
  PL_TRY_ASSIGN(const npy::NpyFile right_file, npy::NpyFile::Open(golden));
  PL_TRY_ASSIGN(const Tensor left, Tensor::Copy(left_file.view()));
  PL_TRY_ASSIGN(const Tensor right, Tensor::Copy(right_file.view()));
  const TensorView a = left.view(), b = right.view();
  const int64_t count = a.element_count();
  if (count != b.element_count() || count == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}, {}: cannot be compared element by element (expected equally many "
                             "elements, got {} and {})",
                             target, golden, count, b.element_count()));
  }
  const Shape flat{count};
  const std::vector<int64_t> strides{1};
  const TensorView flat_a{a.dtype, a.data, flat, strides}, flat_b{b.dtype, b.data, flat, strides};
  PL_TRY_ASSIGN(const TensorMetrics metrics, measure::MeasureTensors(flat_a, flat_b));
  const auto* cosine = std::get_if<double>(&metrics.cosine);
  const Scan scan = ScanElements(a, b, options);
  ElementReport report;
  report.all_close = scan.all_close;
  constexpr const char* kHead = "   Index | Left | Right | Diff\n";
  report.text = fmt::format("Error Item Table\n{}{}Top Item Table\n{}{}", kHead, scan.errors, kHead,
                            scan.top);
  for (const auto& [side, path, view] :
       {std::tuple("Left", &target, &a), std::tuple("Right", &golden, &b)}) {
    report.text += fmt::format("{}:\n |- NpyFile: {}\n", side, *path);
    if (options.writes_text) {
      PL_TRY_ASSIGN(const std::string text_path, WriteArrayText(*path, *view));
      report.text += fmt::format(" |- TxtFile: {}\n", text_path);
    }
    report.text += fmt::format(" |- NpySpec: {}\n", ArrayFacts(*view));
  }
  if (!std::ranges::equal(a.sizes, b.sizes)) report.text += "Shapes differ; compared in order\n";
  report.text += fmt::format(
      "NumCnt: {}\nAllClose: {}\nCosSim: {}\nErrorPer: {}  (rl= {}, al= {})\n", count,
      scan.all_close ? "True" : "False", cosine != nullptr ? PythonFloat(*cosine) : "nan",
      PythonFloat(static_cast<double>(scan.wrong) / static_cast<double>(count)),
      PythonFloat(options.relative), PythonFloat(options.absolute));
  return report;
}

}  // namespace plumbline

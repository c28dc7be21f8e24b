#include "operators/operator_detail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/file/file.h"
#include "base/file/input_files.h"
#include "base/file/text_file.h"
#include "base/text/csv.h"
#include "formats/pytorch/tensor_convert.h"
#include "measure/tensor_metrics.h"
#include "operators/measure_operator.h"
#include "operators/output_names.h"
#include "record/call_name.h"

namespace plumbline::operators {
namespace {

constexpr size_t kLongestName = 255;
constexpr const char* kLongest = "_relative_error_topn.csv";
constexpr const char* kNameTable = "simple_op_mapping.csv";

// Both sides of the tensor as doubles.
struct Values {
  Shape sizes;  // at least four
  bool is_bool = false;
  bool is_complex = false;  // one side at least: both have two parts per element
  std::vector<double> target, golden;

  [[nodiscard]] size_t count() const { return target.size() / (is_complex ? 2 : 1); }
  [[nodiscard]] double Absolute(size_t i) const {
    if (!is_complex) return std::fabs(target[i] - golden[i]);
    return std::hypot(target[2 * i] - golden[2 * i], target[2 * i + 1] - golden[2 * i + 1]);
  }
  [[nodiscard]] double Relative(size_t i) const {
    return Absolute(i) /
           (is_complex ? std::hypot(golden[2 * i], golden[2 * i + 1]) : std::fabs(golden[i]));
  }
};

bool IsComplex(const acl::Elements& elements) {
  return InfoOf(elements.dtype).kind == DTypeKind::kComplex;
}

std::vector<double> WidenedAll(const acl::Elements& elements, bool as_complex) {
  const size_t count = elements.bytes.size() / InfoOf(elements.dtype).size_bytes;
  auto values =
      measure::WidenAll<std::vector<double>>(elements.dtype, elements.bytes.data(), count);
  if (!as_complex || IsComplex(elements)) return values;
  std::vector<double> parts(2 * count);
  for (size_t i = 0; i < count; ++i) parts[2 * i] = values[i];
  return parts;
}

// Letters of the axes: those of the format, or N C H W and N C D H W by the number of axes.
std::string AxisNames(const std::string& format, const Shape& sizes) {
  if (sizes.empty()) return "ID";
  const auto known = ParseDeviceFormat(format);
  std::string_view letters = known ? PlainAxes(*known) : std::string_view();
  if (letters.size() != sizes.size()) letters = sizes.size() == 5 ? "NCDHW" : "NCHW";
  std::string names;
  for (size_t i = 0; i < std::max<size_t>(4, sizes.size()); ++i) {
    const bool has_letter = sizes.size() <= letters.size() && i < letters.size();
    names +=
        (i == 0 ? "" : " ") + (has_letter ? std::string(1, letters[i]) : fmt::format("D{}", i));
  }
  return names;
}

std::string IndexText(size_t element, const Shape& sizes) {
  std::string text;
  for (size_t i = sizes.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(sizes[i]);
    text = std::to_string(element % size) + (text.empty() ? "" : " ") + text;
    element /= size;
  }
  return text;
}

// A tab keeps spreadsheet programs from shortening the number.
std::string ValueText(const Values& values, const std::vector<double>& side, size_t i) {
  if (values.is_complex) return fmt::format("{:.6f}{:+.6f}j\t", side[2 * i], side[2 * i + 1]);
  if (values.is_bool) return side[i] != 0 ? "True\t" : "False\t";
  return std::isnan(side[i]) ? "nan\t" : fmt::format("{:.6f}\t", side[i]);
}

std::string ErrorText(double value, bool is_bool) {
  return is_bool || !std::isfinite(value) ? "-" : fmt::format("{:.6f}\t", value);
}

void AppendElement(const Values& values, size_t i, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{}\n", i, IndexText(i, values.sizes),
                 ValueText(values, values.target, i), ValueText(values, values.golden, i),
                 ErrorText(values.Absolute(i), values.is_bool),
                 ErrorText(values.Relative(i), values.is_bool));
}

class DetailWriter {
 public:
  DetailWriter(const DetailRequest& request, const OperatorRow& row, Values values)
      : request_(request), row_(row), values_(std::move(values)) {}

  Status Run(const acl::Elements& target, OperatorDetail& detail);

 private:
  Result<std::string> Prefix();
  Status RemoveOld() const;
  [[nodiscard]] std::string PathOf(const std::string& suffix) const {
    return JoinPath(request_.output_directory, prefix_ + suffix);
  }
  [[nodiscard]] std::string Summary() const;
  Status WriteRows(const std::string& suffix, size_t begin, size_t end,
                   const std::vector<size_t>* order);
  // The elements of the largest errors, NaN first.
  template <class F>
  Status WriteLargest(const std::string& suffix, const F& error);

  const DetailRequest& request_;
  const OperatorRow& row_;
  Values values_;
  std::string prefix_;
  std::vector<std::string> files_;
};

// The start of all names; a long one is recorded beside the files.
Result<std::string> DetailWriter::Prefix() {
  const std::string tensor =
      fmt::format("_{}_{}", request_.place.is_input ? "input" : "output", request_.place.index);
  std::string prefix = request_.op_name + tensor;
  std::replace(prefix.begin(), prefix.end(), '/', '_');  // as upstream, and nothing else
  const std::string wanted = prefix;
  const size_t room = kLongestName - std::string_view(kLongest).size();
  if (prefix.size() >= room) {
    prefix = std::string(BaseName(row_.target_path)) + tensor;
    std::replace(prefix.begin(), prefix.end(), '.', '_');
  }
  if (prefix.size() >= room) {
    PL_TRY_ASSIGN(prefix, HashedName(wanted));
  }
  if (prefix == wanted) return prefix;
  std::string line;
  csv::AppendRow(csv::Row{prefix, wanted}, line);
  PL_TRY_ASSIGN(File table, File::OpenAppend(JoinPath(request_.output_directory, kNameTable)));
  PL_TRY(table.Write(line));
  PL_TRY(table.Close());
  return prefix;
}

Status DetailWriter::RemoveOld() const {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(request_.output_directory));
  std::vector<std::string> old;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix_)) continue;
    const std::string rest = name.substr(prefix_.size());
    const bool is_ours = rest == ".npy" || (rest.starts_with("_") && rest.ends_with(".csv")) ||
                         rest == "_summary.txt";
    if (is_ours) old.push_back(JoinPath(request_.output_directory, name));
  }
  const OperatorRequest& read = request_.recordings;
  InputFiles inputs(
      {read.target, read.golden, read.fusion_rule, read.quant_rule, read.unfused_rule});
  for (const std::string& path : old) {
    const Status spared = inputs.CheckSpares(path);
    if (!spared) return Error(ErrorCode::kIo, spared.error().message());
  }
  for (const std::string& path : old) PL_TRY(RemoveFile(path));
  return {};
}

std::string DetailWriter::Summary() const {
  double ranges[2][2] = {{INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
  for (size_t i = 0; i < values_.count(); ++i) {
    const double errors[2] = {values_.Absolute(i), values_.Relative(i)};
    for (size_t kind = 0; kind < 2; ++kind) {
      if (!std::isfinite(errors[kind])) continue;
      ranges[kind][0] = std::min(ranges[kind][0], errors[kind]);
      ranges[kind][1] = std::max(ranges[kind][1], errors[kind]);
    }
  }
  const auto spelled = [&](double value) {
    return values_.is_bool || !std::isfinite(value) ? std::string("-")
                                                    : fmt::format("{:.6f}", value);
  };
  return fmt::format(
      "TotalCount:{}\nNPUDump:{}\nGroundTruth:{}\nFormat:{}\nMinAbsoluteError:{}\n"
      "MaxAbsoluteError:{}\nMinRelativeError:{}\nMaxRelativeError:{}\n",
      values_.count(), request_.op_name, row_.golden_name, row_.format, spelled(ranges[0][0]),
      spelled(ranges[0][1]), spelled(ranges[1][0]), spelled(ranges[1][1]));
}

Status DetailWriter::WriteRows(const std::string& suffix, size_t begin, size_t end,
                               const std::vector<size_t>* order) {
  files_.push_back(PathOf(suffix));
  PL_TRY_ASSIGN(TextFile out, TextFile::Create(files_.back()));
  out.text() = "Index," + AxisNames(row_.format, values_.sizes) +
               ",NPUDump,GroundTruth,AbsoluteError,RelativeError\n";
  for (size_t i = begin; i < end; ++i) {
    AppendElement(values_, order == nullptr ? i : (*order)[i], out.text());
    PL_TRY(out.Flush());
  }
  return out.Close();
}

template <class F>
Status DetailWriter::WriteLargest(const std::string& suffix, const F& error) {
  std::vector<size_t> order(values_.count());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t count = std::min(request_.largest, order.size());
  const auto key = [&](size_t i) {
    const double value = error(i);
    return std::isnan(value) ? INFINITY : value;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  return WriteRows(suffix, 0, count, &order);
}

Status DetailWriter::Run(const acl::Elements& target, OperatorDetail& detail) {
  PL_TRY(MakeDirectories(request_.output_directory));
  PL_TRY_ASSIGN(prefix_, Prefix());
  PL_TRY(RemoveOld());
  files_.push_back(PathOf(".npy"));
  PL_TRY(WriteNpy(target.view(), files_.back()));
  detail.summary = Summary();
  files_.push_back(PathOf("_summary.txt"));
  PL_TRY(WriteFileAtomically(files_.back(), detail.summary, false));
  PL_TRY(WriteLargest("_absolute_error_topn.csv", [&](size_t i) { return values_.Absolute(i); }));
  PL_TRY(WriteLargest(kLongest, [&](size_t i) { return values_.Relative(i); }));
  const size_t count = values_.count();
  for (size_t at = 0; request_.all_elements && at < count; at += request_.lines_per_file) {
    PL_TRY(WriteRows(fmt::format("_{}.csv", at), at, std::min(count, at + request_.lines_per_file),
                     nullptr));
  }
  detail.files = std::move(files_);
  return {};
}

Values ValuesOf(const acl::Elements& target, const acl::Elements& golden) {
  Values values;
  values.sizes = target.sizes;
  if (!values.sizes.empty() && values.sizes.size() < 4) values.sizes.resize(4, 1);
  values.is_bool = target.dtype == DType::kBool && golden.dtype == DType::kBool;
  values.is_complex = IsComplex(target) || IsComplex(golden);
  values.target = WidenedAll(target, values.is_complex);
  values.golden = WidenedAll(golden, values.is_complex);
  return values;
}

}  // namespace

Result<OperatorDetail> DetailOperator(const DetailRequest& request) {
  PL_TRY_ASSIGN(const OperatorComparison pairs, PairOperators(request.recordings));
  auto pair = std::ranges::find(pairs.pairs, request.op_name, &PairedOperator::target_name);
  if (pair == pairs.pairs.end()) {
    const std::string mangled = MangledKernel(request.op_name);
    pair = std::ranges::find_if(pairs.pairs, [&](const PairedOperator& one) {
      return MangledKernel(one.target_name) == mangled;
    });
  }
  if (pair == pairs.pairs.end()) {
    return Error(ErrorCode::kNotFound, request.op_name + ": there is no such operator");
  }
  OperatorDetail detail;
  Status written;
  bool is_found = false;
  MeasureSettings settings{request.recordings.algorithms, request.recordings.most_elements,
                           /*with_overflow=*/false, request.recordings.own};
  OwnLayouts layouts(request.recordings.own.code.get());
  const std::string tensor = TensorName(pair->target_name, request.place);
  settings.on_pair = [&](const OperatorRow& row, const acl::Elements& target,
                         const acl::Elements& golden) {
    if (row.tensor != tensor) return;
    is_found = true;
    written = DetailWriter(request, row, ValuesOf(target, golden)).Run(target, detail);
  };
  for (OperatorRow& row : MeasureOperator(*pair, 0, settings, layouts)) {
    const bool is_this = row.tensor == tensor;
    if (!is_found && (is_this || row.tensor.empty())) {
      return Error(row.paired ? ErrorCode::kInvalidArgument : ErrorCode::kNotFound, row.reason);
    }
    if (is_this) detail.row = std::move(row);
  }
  PL_TRY(std::move(written));
  if (!is_found) return Error(ErrorCode::kNotFound, tensor + ": there is no such tensor");
  return detail;
}

}  // namespace plumbline::operators

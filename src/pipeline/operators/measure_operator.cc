#include "pipeline/operators/measure_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/kernel_table.h"
#include "pipeline/operators/array_pair.h"
#include "pipeline/operators/operator_tensors.h"
#include "pipeline/operators/plain_tensor.h"
#include "tensor/device_shape.h"

namespace plumbline::pipeline {
namespace {

constexpr double kLargestHalf = 65504;

const std::vector<acl::DumpedTensor>& TensorsOf(const OperatorTensors& tensors, bool is_input) {
  return is_input ? tensors.message().inputs : tensors.message().outputs;
}

std::string ShapeCell(const Shape& sizes) {
  std::string text = ShapeText(sizes);
  text.front() = '[';
  text.back() = ']';
  return text;
}

// What NumPy calls the elements; bfloat16 and float8 are float32 there.
std::string NumpyName(DType dtype) {
  return std::string(InfoOf(dtype).numpy_descr.empty() ? InfoOf(DType::kFloat32).name
                                                       : InfoOf(dtype).name);
}

std::string Overflow(const acl::Elements& elements) {
  if (elements.dtype != DType::kFloat16) return "NaN";
  const kernels::Moments moments = kernels::MomentsOf(elements.dtype, elements.bytes.data(),
                                                      elements.bytes.size() / sizeof(uint16_t));
  return std::max(std::fabs(moments.max), std::fabs(moments.min)) >= kLargestHalf &&
                 moments.count > moments.nan_count
             ? "YES"
             : "NO";
}

// The layout of the golden side: as the rule file has it, or NHWC in place of NCHW (and the other
// way round) where only this order gives the array's own sizes.
std::optional<PlainLayout> LayoutOf(const GoldenTensor& golden, const Shape& sizes) {
  if (!golden.format || PlainAxes(*golden.format).size() != sizes.size()) return std::nullopt;
  const Shape& rule = golden.sizes;
  if (rule.size() == 4 && sizes != rule) {
    const Shape last = {rule[0], rule[2], rule[3], rule[1]};    // of NCHW as NHWC
    const Shape second = {rule[0], rule[3], rule[1], rule[2]};  // of NHWC as NCHW
    if (golden.format == DeviceFormat::kNCHW && sizes == last) {
      return PlainLayout{DeviceFormat::kNHWC, sizes};
    }
    if (golden.format == DeviceFormat::kNHWC && sizes == second) {
      return PlainLayout{DeviceFormat::kNCHW, sizes};
    }
  }
  return PlainLayout{*golden.format, sizes};
}

// The plain layout that a tensor has, or stands for by its own facts.
std::optional<PlainLayout> PlainFacts(const acl::DumpedTensor& tensor) {
  if (auto own = OwnLayout(tensor)) return own;
  const auto format = static_cast<DeviceFormat>(tensor.format);
  const std::optional<Shape> sizes = acl::KnownShape(tensor.shape);
  if (!sizes || PlainAxes(format).size() != sizes->size() || sizes->empty()) return std::nullopt;
  return PlainLayout{format, *sizes};
}

// My tensor in the layout of the golden one, or in its own where that is not known or cannot be.
Result<acl::Elements> LikeGolden(const acl::DumpedTensor& mine, const GoldenTensor& golden,
                                 const Shape& golden_sizes, UserCode* own) {
  const auto format = static_cast<DeviceFormat>(mine.format);
  std::optional<PlainLayout> wanted = LayoutOf(golden, golden_sizes);
  if (wanted && HasConverter(own, mine, wanted->format)) return PlainElements(mine, wanted, own);
  if (!wanted) {
    // Without a word of the rule file, the golden sizes may still be mine in another order.
    const std::optional<PlainLayout> facts = PlainFacts(mine);
    if (!facts) return acl::ElementsOf(mine);
    GoldenTensor like_mine;
    like_mine.format = facts->format;
    like_mine.sizes = facts->sizes;
    wanted = LayoutOf(like_mine, golden_sizes);
    if (!wanted || wanted->format == facts->format) return PlainElements(mine, facts);
  }
  if (!BlockedAxes(format).empty()) {
    // Sizes that would cut more than padding off are no counterpart.
    return PlainElements(mine, IsExactly(mine, *wanted) ? wanted : OwnLayout(mine));
  }
  PL_TRY_ASSIGN(acl::Elements elements, acl::ElementsOf(mine));
  const bool is_other_order = PlainAxes(format).size() == elements.sizes.size() &&
                              !PlainAxes(format).empty() && format != wanted->format;
  if (!is_other_order) return elements;
  return Reordered(std::move(elements), format, *wanted);
}

// Keeps the first elements only, as one dimension.
void Limit(acl::Elements& elements, uint64_t most) {
  const size_t width = InfoOf(elements.dtype).size_bytes;
  const size_t count = elements.bytes.size() / width;
  if (most == 0 || count <= most) return;
  elements.bytes = elements.bytes.first(most * width);
  elements.sizes = {static_cast<int64_t>(most)};
  elements.strides = {1};
}

// What is odd about the parts of operators that FFTS+ cut, of one tensor.
class PartsNote {
 public:
  void Add(const OperatorTensors& tensors, const TensorPlace& place) {
    AddText(tensors.remark());
    const std::string disagreement = place.is_input ? "" : tensors.Disagreement(place.index);
    AddText(disagreement);
    do_agree_ = do_agree_ && disagreement.empty();
    is_whole_ = is_whole_ && tensors.is_whole();
    if (has_any_ && tensors.numbers() != numbers_) are_same_ = false;
    numbers_ = tensors.numbers();
    has_any_ = true;
  }
  // Outputs are the ones that are put together. One that lacks a part never passes, and is not
  // wrong either where the other side lacks another one.
  void Apply(OperatorRow& row) const {
    if (row.is_input) return;
    if (!text_.empty()) row.reason += (row.reason.empty() ? "" : ",") + text_;
    const Verdict verdict = row.verdict.verdict;
    if (verdict == Verdict::kNotComparable) return;
    const bool passes = verdict == Verdict::kSame || verdict == Verdict::kWithinNoise;
    if (!is_whole_ && (passes || !are_same_)) {
      row.verdict = measure::NotComparable("parts-missing");
    } else if (!do_agree_ && passes) {
      row.verdict = measure::NotComparable("parts-differ");
    }
  }

 private:
  void AddText(const std::string& sentence) {
    if (text_.find(sentence) == std::string::npos) text_ += (text_.empty() ? "" : ",") + sentence;
  }

  std::string text_;
  bool is_whole_ = true, do_agree_ = true;
  bool has_any_ = false, are_same_ = true;  // the same parts on both sides
  std::vector<int64_t> numbers_;
};

// Memory of converted elements, which the thread keeps for the next operator.
struct KeptMemory {
  std::vector<std::byte> target, golden;

  // Takes back what `elements` had, unless it is too much to keep.
  static void Return(acl::Elements& elements, std::vector<std::byte>& memory) {
    constexpr size_t kMost = size_t{16} << 20;
    if (!elements.owned.empty() && elements.owned.capacity() <= kMost) {
      memory = std::move(elements.owned);
    }
  }
};

KeptMemory& KeptOfThread() {
  static thread_local KeptMemory kept;
  return kept;
}

class PairMeasurer {
 public:
  PairMeasurer(const PairedOperator& pair, size_t pair_index, const MeasureSettings& settings,
               OwnLayouts& layouts)
      : pair_(pair), pair_index_(pair_index), settings_(settings), layouts_(layouts) {}

  std::vector<OperatorRow> Run();

 private:
  OperatorRow NewRow(const TensorPlace& place) const;
  void AddFailure(const std::string& reason, std::string_view code, bool paired);
  void MeasureByPosition(const OperatorTensors& target, const OperatorTensors& golden, bool inputs);
  void MeasureTask(const OperatorTensors& target, const TensorTask& task);
  // Outputs of the dump behind those that the tasks name.
  void AddUnnamedOutputs(const OperatorTensors& target);
  // Values, verdict and facts of two tensors of equally many elements.
  void Fill(acl::Elements& target, acl::Elements& golden, OperatorRow& row);
  Result<acl::Elements> GoldenOf(const GoldenTensor& golden, OperatorRow& row, PartsNote& parts);

  const PairedOperator& pair_;
  size_t pair_index_;
  const MeasureSettings& settings_;
  OwnLayouts& layouts_;
  std::vector<OperatorRow> rows_;
};

OperatorRow PairMeasurer::NewRow(const TensorPlace& place) const {
  OperatorRow row;
  row.pair = pair_index_;
  row.is_input = place.is_input;
  row.golden_name = pair_.golden_name;
  row.target_path = pair_.target_path;
  row.golden_path = pair_.golden_path;
  row.tensor = TensorName(pair_.target_name, place);
  row.overflow = "NaN";
  return row;
}

void PairMeasurer::AddFailure(const std::string& reason, std::string_view code, bool paired) {
  OperatorRow row = NewRow({});
  row.tensor.clear();
  row.reason = reason;
  row.paired = paired;
  row.verdict = measure::NotComparable(code);
  rows_.push_back(std::move(row));
}

void PairMeasurer::Fill(acl::Elements& target, acl::Elements& golden, OperatorRow& row) {
  row.shape = ShapeCell(target.sizes);
  if (settings_.with_overflow) row.overflow = Overflow(target);
  Limit(target, settings_.most_elements);
  Limit(golden, settings_.most_elements);
  target.Align();
  golden.Align();
  if (settings_.on_pair) settings_.on_pair(row, target, golden);
  const measure::DumpPair pair{target.view(), golden.view(), row.target_path, row.golden_path};
  measure::DumpMeasures measures = measure::MeasureDumps(settings_.algorithms, pair);
  for (measure::AlgorithmText& text : settings_.own.Compare(pair)) {
    measures.texts.push_back(std::move(text));
  }
  row.values.reserve(measures.texts.size());
  for (measure::AlgorithmText& text : measures.texts) {
    row.values.push_back(std::move(text.value));
    if (!text.message.empty() && row.reason.find(text.message) == std::string::npos) {
      row.reason += (row.reason.empty() ? "" : ",") + text.message;
    }
  }
  row.verdict = measures.difference ? measure::JudgeDifference(*measures.difference,
                                                               pair.target.dtype, pair.golden.dtype)
                                    : JudgePair(pair.target, pair.golden);
}

void PairMeasurer::MeasureByPosition(const OperatorTensors& target, const OperatorTensors& golden,
                                     bool inputs) {
  const auto& mine = TensorsOf(target, inputs);
  const auto& theirs = TensorsOf(golden, inputs);
  if (mine.size() != theirs.size()) {
    AddFailure(fmt::format("The number of {} does not match ({} vs {}).",
                           inputs ? "input" : "output", mine.size(), theirs.size()),
               "shape-differs", true);
    return;
  }
  for (size_t i = 0; i < mine.size(); ++i) {
    OperatorRow row = NewRow({inputs, i});
    PartsNote parts;
    parts.Add(target, {inputs, i});
    parts.Add(golden, {inputs, i});
    row.target_type = acl::TypeName(mine[i].data_type);
    row.golden_type = acl::TypeName(theirs[i].data_type);
    row.target_address = mine[i].address;
    row.golden_address = theirs[i].address;
    // Both in their own plain layout, or both as they lie on the device.
    const auto target_layout = layouts_.Of(mine[i]);
    const auto golden_layout = layouts_.Of(theirs[i]);
    if (!target_layout->layout && !golden_layout->layout && mine[i].format != theirs[i].format) {
      row.reason =
          fmt::format("The format does not match ({} vs {}) for {}.",
                      DeviceFormatName(static_cast<DeviceFormat>(mine[i].format)),
                      DeviceFormatName(static_cast<DeviceFormat>(theirs[i].format)), row.tensor);
      row.verdict = measure::NotComparable("shape-differs");
      rows_.push_back(std::move(row));
      continue;
    }
    KeptMemory& kept = KeptOfThread();
    auto a = PlainElements(mine[i], *target_layout, &kept.target);
    auto b = PlainElements(theirs[i], *golden_layout, &kept.golden);
    if (!a || !b) {
      row.reason = a ? row.golden_path + ": " + b.error().message()
                     : row.target_path + ": " + a.error().message();
    } else if (a->sizes != b->sizes) {
      row.shape = ShapeCell(a->sizes);
      row.reason = fmt::format("The shape does not match ({} vs {}) for {}.", ShapeText(a->sizes),
                               ShapeText(b->sizes), row.tensor);
      row.verdict = measure::NotComparable("shape-differs");
    } else {
      const auto format = static_cast<DeviceFormat>(mine[i].format);
      row.format = DeviceFormatName(target_layout->layout ? target_layout->layout->format : format);
      Fill(*a, *b, row);
    }
    if (a) KeptMemory::Return(*a, kept.target);
    if (b) KeptMemory::Return(*b, kept.golden);
    parts.Apply(row);
    rows_.push_back(std::move(row));
  }
}

// The golden tensor in the layout of the rule file, as far as it says one.
Result<acl::Elements> PairMeasurer::GoldenOf(const GoldenTensor& golden, OperatorRow& row,
                                             PartsNote& parts) {
  PL_TRY_ASSIGN(const OperatorTensors file,
                OperatorTensors::Open(golden.path, golden.file_name, golden.slices));
  parts.Add(file, golden.place);
  const auto& tensors = TensorsOf(file, golden.place.is_input);
  const size_t index = golden.is_array ? 0 : golden.place.index;
  if (index >= tensors.size()) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("there is no {} {}", golden.place.is_input ? "input" : "output", index));
  }
  const acl::DumpedTensor& tensor = tensors[index];
  std::optional<PlainLayout> layout;
  UserCode* own = settings_.own.code.get();
  if (!golden.is_array) layout = OwnLayout(tensor, own);
  PL_TRY_ASSIGN(acl::Elements elements, PlainElements(tensor, layout, own));
  row.golden_type = NumpyName(elements.dtype);
  // The elements may lie in the file that is closed here.
  if (elements.owned.empty()) {
    elements.owned.assign(elements.bytes.begin(), elements.bytes.end());
    elements.bytes = elements.owned;
  }
  return elements;
}

void PairMeasurer::MeasureTask(const OperatorTensors& target, const TensorTask& task) {
  const auto& tensors = TensorsOf(target, task.target.is_input);
  // This side was not recorded. Inputs are other operators' outputs; outputs are nothing else.
  if (tensors.empty() && (task.target.is_input || !task.golden)) return;
  if (task.target.index >= tensors.size()) {
    OperatorRow row = NewRow(task.target);
    row.reason = fmt::format("The dump file has only {} of them.", tensors.size());
    row.paired = false;
    row.verdict = measure::NotComparable("only-golden");
    rows_.push_back(std::move(row));
    return;
  }
  const acl::DumpedTensor& mine = tensors[task.target.index];
  OperatorRow row = NewRow(task.target);
  row.golden_path = task.golden ? task.golden->path : "";
  row.golden_name = task.golden ? task.golden->name : "*";
  row.target_address = mine.address;
  if (!task.golden) {
    row.reason = task.missing;
    row.paired = task.stands_for_nothing;
    row.verdict = measure::NotComparable(task.stands_for_nothing ? "no-original" : "only-target");
    rows_.push_back(std::move(row));
    return;
  }
  PartsNote parts;
  parts.Add(target, task.target);
  Result<acl::Elements> golden = GoldenOf(*task.golden, row, parts);
  Result<acl::Elements> plain =
      LikeGolden(mine, *task.golden, golden ? golden->sizes : Shape{}, settings_.own.code.get());
  if (plain) row.target_type = NumpyName(plain->dtype);
  if (!plain || !golden) {
    row.reason = plain ? row.golden_path + ": " + golden.error().message()
                       : row.target_path + ": " + plain.error().message();
  } else if (plain->bytes.size() / InfoOf(plain->dtype).size_bytes !=
             golden->bytes.size() / InfoOf(golden->dtype).size_bytes) {
    row.shape = ShapeCell(plain->sizes);
    row.reason = fmt::format(
        "Due to the different shapes on the left and right,the left dump data{} can not be "
        "compared to the right dump data{}.",
        ShapeText(plain->sizes), ShapeText(golden->sizes));
    row.verdict = measure::NotComparable("shape-differs");
  } else {
    const std::optional<PlainLayout> layout = LayoutOf(*task.golden, golden->sizes);
    const std::optional<PlainLayout> own = layout ? layout : PlainFacts(mine);
    row.format = DeviceFormatName(own ? own->format : DeviceFormat::kND);
    Fill(*plain, *golden, row);
  }
  parts.Apply(row);
  rows_.push_back(std::move(row));
}

void PairMeasurer::AddUnnamedOutputs(const OperatorTensors& target) {
  size_t named = 0;
  for (const TensorTask& task : *pair_.tasks) {
    if (task.stands_for_nothing) return;
    if (!task.target.is_input) named = std::max(named, task.target.index + 1);
  }
  if (named == 0) return;  // they are not wanted
  for (size_t i = named; i < target.message().outputs.size(); ++i) {
    OperatorRow row = NewRow({/*is_input=*/false, i});
    row.golden_name = "*";
    row.reason = "The rule file does not name this output.";
    row.paired = false;
    row.verdict = measure::NotComparable("only-target");
    rows_.push_back(std::move(row));
  }
}

std::vector<OperatorRow> PairMeasurer::Run() {
  if (!pair_.reason.empty()) {
    const bool has_target = !pair_.target_path.empty();
    AddFailure(pair_.reason, has_target ? "only-target" : "only-golden", false);
    return std::move(rows_);
  }
  const Result<OperatorTensors> target =
      OperatorTensors::Open(pair_.target_path, pair_.target_file_name, pair_.target_slices);
  if (!target) {
    AddFailure(target.error().message(), "unreadable", true);
    return std::move(rows_);
  }
  if (pair_.tasks) {
    for (const TensorTask& task : *pair_.tasks) MeasureTask(*target, task);
    AddUnnamedOutputs(*target);
    if (rows_.empty()) AddFailure("The operator has no tensor to compare.", "empty", true);
    return std::move(rows_);
  }
  const Result<OperatorTensors> golden =
      OperatorTensors::Open(pair_.golden_path, pair_.golden_file_name, pair_.golden_slices);
  if (!golden) {
    AddFailure(golden.error().message(), "unreadable", true);
    return std::move(rows_);
  }
  rows_.reserve(target->message().inputs.size() + target->message().outputs.size());
  MeasureByPosition(*target, *golden, true);
  MeasureByPosition(*target, *golden, false);
  if (rows_.empty()) AddFailure("The operator has no tensor to compare.", "empty", true);
  return std::move(rows_);
}

}  // namespace

std::vector<OperatorRow> MeasureOperator(const PairedOperator& pair, size_t pair_index,
                                         const MeasureSettings& settings, OwnLayouts& layouts) {
  return PairMeasurer(pair, pair_index, settings, layouts).Run();
}

}  // namespace plumbline::pipeline

#include "operators/measure_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "kernels/kernel_table.h"
#include "measure/compared_row.h"
#include "measure/verdict.h"
#include "operators/array_pair.h"
#include "operators/operator_tensors.h"
#include "operators/slice_assembly.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

namespace {

using acl::DumpedTensor;

struct PartOfInput {
  const DumpedTensor* tensor;
  int64_t number;
};

bool AreSame(const DumpedTensor& a, const DumpedTensor& b) {
  return a.data_type == b.data_type && a.format == b.format && a.sub_format == b.sub_format &&
         a.shape == b.shape && a.original_shape == b.original_shape && a.size == b.size &&
         a.data.size() == b.data.size() &&
         (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0);
}

bool AreAllSame(const std::vector<PartOfInput>& parts) {
  return std::ranges::all_of(
      parts, [&](const PartOfInput& one) { return AreSame(*one.tensor, *parts.front().tensor); });
}

// With `takes_whole` one that was put together is one. `is_whole` becomes false where a part lacks
// the input.
std::vector<PartOfInput> PartsOf(const OperatorTensors& tensors, size_t index, bool takes_whole,
                                 bool& is_whole) {
  if (tensors.parts().empty() || (takes_whole && tensors.IsInputWhole(index))) {
    return {{&tensors.message().inputs[index], 0}};
  }
  std::vector<PartOfInput> parts;
  for (size_t i = 0; i < tensors.parts().size(); ++i) {
    const std::vector<DumpedTensor>& inputs = tensors.parts()[i].inputs;
    if (index < inputs.size()) parts.push_back({&inputs[index], tensors.numbers()[i]});
  }
  is_whole = is_whole && parts.size() == tensors.parts().size();
  return parts;
}

int Severity(const measure::ArrayVerdict& verdict) {
  const bool is_nothing = verdict.verdict == Verdict::kNotComparable &&
                          (verdict.reason == "zero-both" || verdict.reason == "empty");
  return is_nothing ? -1 : measure::Severity(verdict.verdict);
}

}  // namespace

InputPairs PairInputs(const OperatorTensors& target, const OperatorTensors& golden, size_t index) {
  InputPairs found;
  std::vector<PartOfInput> mine = PartsOf(target, index, true, found.is_whole);
  std::vector<PartOfInput> theirs = PartsOf(golden, index, true, found.is_whole);
  bool is_mine_one = AreAllSame(mine), is_theirs_one = AreAllSame(theirs);
  if (is_mine_one != is_theirs_one) {  // parts meet parts, where both sides have them
    mine = PartsOf(target, index, false, found.is_whole);
    theirs = PartsOf(golden, index, false, found.is_whole);
    is_mine_one = AreAllSame(mine);
    is_theirs_one = AreAllSame(theirs);
  }
  if (is_mine_one) mine.resize(1);
  if (is_theirs_one) theirs.resize(1);
  for (const PartOfInput& one : mine) {
    for (const PartOfInput& other : theirs) {
      if (!is_mine_one && !is_theirs_one && one.number != other.number) continue;
      found.pairs.push_back({one.tensor, other.tensor, is_mine_one ? other.number : one.number});
    }
  }
  const bool is_cut = found.pairs.size() != 1;
  const size_t most = std::max(mine.size(), theirs.size());
  found.is_whole = found.is_whole && found.pairs.size() == most &&
                   (!is_cut || (target.is_whole() && golden.is_whole()));
  return found;
}

InputPairs PairInputs(const OperatorTensors& target, size_t index) {
  InputPairs found;
  std::vector<PartOfInput> mine = PartsOf(target, index, true, found.is_whole);
  if (AreAllSame(mine)) mine.resize(1);
  for (const PartOfInput& one : mine) found.pairs.push_back({one.tensor, nullptr, one.number});
  found.is_whole = found.is_whole && (mine.size() == 1 || target.is_whole());
  return found;
}

bool IsWorse(const measure::ArrayVerdict& one, const measure::ArrayVerdict& other) {
  const int a = Severity(one), b = Severity(other);
  return a != b ? a > b : one.error > other.error;
}

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

// Keeps the first elements only, as one dimension.
void Limit(acl::Elements& elements, uint64_t most) {
  const size_t width = InfoOf(elements.dtype).size_bytes;
  const size_t count = elements.bytes.size() / width;
  if (most == 0 || count <= most) return;
  elements.bytes = elements.bytes.first(most * width);
  elements.sizes = {static_cast<int64_t>(most)};
  elements.strides = {1};
}

// The layout in which a tensor is compared.
DeviceFormat FormatOf(const acl::DumpedTensor& tensor, const OwnLayouts::Known& own) {
  return own.layout ? own.layout->format : static_cast<DeviceFormat>(tensor.format);
}

// The same elements, which must outlive the result.
acl::Elements Borrowed(const acl::Elements& elements) {
  acl::Elements borrowed;
  borrowed.dtype = elements.dtype;
  borrowed.sizes = elements.sizes;
  borrowed.bytes = elements.bytes;
  borrowed.strides = elements.strides;
  return borrowed;
}

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
  // Makes the row of one pair of tensors.
  using MeasureOne = std::function<OperatorRow(const TensorPair& pair, bool is_shown)>;
  // The row of the pair that says most against the tensor.
  OperatorRow WorstOf(const TensorPlace& place, const InputPairs& found, const MeasureOne& measure);
  OperatorRow MeasurePair(const TensorPlace& place, const TensorPair& pair, bool is_shown);
  OperatorRow NewRowOf(const TensorTask& task, const acl::DumpedTensor& mine) const;
  OperatorRow MeasureAgainst(const TensorTask& task, const acl::DumpedTensor& mine,
                             const Result<acl::Elements>& golden, bool is_shown);
  // Outputs of the dump behind those that the tasks name.
  void AddUnnamedOutputs(const OperatorTensors& target);
  // Values, verdict and facts of two tensors of equally many elements.
  // `is_shown`: they are those of the result.
  void Fill(acl::Elements& target, acl::Elements& golden, OperatorRow& row, bool is_shown);
  Result<acl::Elements> GoldenOf(const GoldenTensor& golden, PartsNote& parts);

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

void PairMeasurer::Fill(acl::Elements& target, acl::Elements& golden, OperatorRow& row,
                        bool is_shown) {
  row.shape = ShapeCell(target.sizes);
  if (settings_.with_overflow) row.overflow = Overflow(target);
  Limit(target, settings_.most_elements);
  Limit(golden, settings_.most_elements);
  target.Align();
  golden.Align();
  if (settings_.on_pair && is_shown) settings_.on_pair(row, target, golden);
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
  row.verdict = measures.difference
                    ? measure::JudgeElements(*measures.difference, pair.target, pair.golden,
                                             pair.target.dtype, pair.golden.dtype)
                    : measure::JudgePair(pair.target, pair.golden);
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
    const TensorPlace place{inputs, i};
    const InputPairs found =
        inputs ? PairInputs(target, golden, i) : InputPairs{{{&mine[i], &theirs[i]}}};
    OperatorRow row = WorstOf(place, found, [&](const TensorPair& pair, bool is_shown) {
      return MeasurePair(place, pair, is_shown);
    });
    PartsNote parts;
    parts.Add(target, place);
    parts.Add(golden, place);
    parts.Apply(row);
    rows_.push_back(std::move(row));
  }
}

OperatorRow PairMeasurer::WorstOf(const TensorPlace& place, const InputPairs& found,
                                  const MeasureOne& measure) {
  const size_t count = found.pairs.size();
  OperatorRow worst = NewRow(place);
  size_t shown = 0;
  for (size_t i = 0; i < count; ++i) {
    OperatorRow row = measure(found.pairs[i], count == 1);
    if (i > 0 && !IsWorse(row.verdict, worst.verdict)) continue;
    worst = std::move(row);
    shown = i;
  }
  if (count > 1 && settings_.on_pair) worst = measure(found.pairs[shown], true);
  const auto add = [&worst](const std::string& sentence) {
    worst.reason += (worst.reason.empty() ? "" : ",") + sentence;
  };
  if (count > 1) {
    add(fmt::format("Of the inputs of {} parts that of part {} is shown.", count,
                    found.pairs[shown].part));
  }
  if (found.is_whole) return worst;
  add("Some parts of the input have no counterpart.");
  if (measure::IsGood(worst.verdict.verdict) || count == 0) {
    worst.verdict = measure::NotComparable("parts-missing");
  }
  return worst;
}

OperatorRow PairMeasurer::MeasurePair(const TensorPlace& place, const TensorPair& pair,
                                      bool is_shown) {
  const acl::DumpedTensor &mine = *pair.target, &theirs = *pair.golden;
  OperatorRow row = NewRow(place);
  row.target_type = acl::TypeName(mine.data_type);
  row.golden_type = acl::TypeName(theirs.data_type);
  row.target_address = mine.address;
  row.golden_address = theirs.address;
  // Both in their own plain layout, or both as they lie on the device.
  const auto target_layout = layouts_.Of(mine);
  const auto golden_layout = layouts_.Of(theirs);
  const DeviceFormat format = FormatOf(mine, *target_layout);
  const DeviceFormat other = FormatOf(theirs, *golden_layout);
  const bool are_plain = target_layout->layout || golden_layout->layout;
  // ND is the order that the other side has; NHWC is not NCHW, whatever the sizes.
  const bool may_differ = are_plain && (PlainAxes(format).empty() || PlainAxes(other).empty());
  if (format != other && !may_differ) {
    row.reason = fmt::format("The format does not match ({} vs {}) for {}.",
                             DeviceFormatName(format), DeviceFormatName(other), row.tensor);
    row.verdict = measure::NotComparable("shape-differs");
    return row;
  }
  KeptMemory& kept = KeptOfThread();
  auto a = PlainElements(mine, *target_layout, &kept.target);
  auto b = PlainElements(theirs, *golden_layout, &kept.golden);
  if (!a || !b) {
    row.reason = a ? row.golden_path + ": " + b.error().message()
                   : row.target_path + ": " + a.error().message();
  } else if (a->sizes != b->sizes) {
    row.shape = ShapeCell(a->sizes);
    row.reason = fmt::format("The shape does not match ({} vs {}) for {}.", ShapeText(a->sizes),
                             ShapeText(b->sizes), row.tensor);
    row.verdict = measure::NotComparable("shape-differs");
  } else {
    row.format = DeviceFormatName(format);
    Fill(*a, *b, row, is_shown);
  }
  if (a) KeptMemory::Return(*a, kept.target);
  if (b) KeptMemory::Return(*b, kept.golden);
  return row;
}

// The golden tensor in the layout of the rule file, as far as it says one.
Result<acl::Elements> PairMeasurer::GoldenOf(const GoldenTensor& golden, PartsNote& parts) {
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
  if (!task.golden) {
    OperatorRow row = NewRowOf(task, mine);
    row.reason = task.missing;
    row.paired = task.stands_for_nothing;
    row.verdict = measure::NotComparable(task.stands_for_nothing ? "no-original" : "only-target");
    rows_.push_back(std::move(row));
    return;
  }
  PartsNote parts;
  parts.Add(target, task.target);
  const Result<acl::Elements> golden = GoldenOf(*task.golden, parts);
  const InputPairs found =
      task.target.is_input ? PairInputs(target, task.target.index) : InputPairs{{{&mine, nullptr}}};
  OperatorRow row = WorstOf(task.target, found, [&](const TensorPair& pair, bool is_shown) {
    return MeasureAgainst(task, *pair.target, golden, is_shown);
  });
  parts.Apply(row);
  rows_.push_back(std::move(row));
}

OperatorRow PairMeasurer::NewRowOf(const TensorTask& task, const acl::DumpedTensor& mine) const {
  OperatorRow row = NewRow(task.target);
  row.golden_path = task.golden ? task.golden->path : "";
  row.golden_name = task.golden ? task.golden->name : "*";
  row.target_address = mine.address;
  return row;
}

OperatorRow PairMeasurer::MeasureAgainst(const TensorTask& task, const acl::DumpedTensor& mine,
                                         const Result<acl::Elements>& golden, bool is_shown) {
  OperatorRow row = NewRowOf(task, mine);
  if (golden) row.golden_type = NumpyName(golden->dtype);
  Result<LaidOut> laid_out =
      LikeGolden(mine, *task.golden, golden ? golden->sizes : Shape{}, settings_.own.code.get());
  if (laid_out) row.target_type = NumpyName(laid_out->elements.dtype);
  if (!laid_out || !golden) {
    row.reason = laid_out ? row.golden_path + ": " + golden.error().message()
                          : row.target_path + ": " + laid_out.error().message();
    return row;
  }
  acl::Elements& plain = laid_out->elements;
  if (!HaveSameOrder(*laid_out, golden->sizes)) {
    row.shape = ShapeCell(plain.sizes);
    row.reason = fmt::format(
        "Due to the different shapes on the left and right,the left dump data{} can not be "
        "compared to the right dump data{}.",
        ShapeText(plain.sizes), ShapeText(golden->sizes));
    row.verdict = measure::NotComparable("shape-differs");
    return row;
  }
  row.format = DeviceFormatName(laid_out->format);
  acl::Elements theirs = Borrowed(*golden);
  Fill(plain, theirs, row, is_shown);
  return row;
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

}  // namespace plumbline::operators

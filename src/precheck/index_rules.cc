#include "precheck/index_rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plumbline::precheck {

namespace {

struct Argument {
  size_t position = 0;
  std::string_view keyword;
};

// What the elements of an index go up to.
enum class Extent : uint8_t {
  kRows,       // size of the first dimension of `of`
  kClasses,    // size of its second dimension, or of the only one
  kDimension,  // size of the dimension of `of` that the argument `by` names; all elements without
               // it
  kElements,   // number of elements of `of`
  kNumber,     // the argument `by` itself; without limit where it is not above 0
};

struct IndexRule {
  std::string_view type;  // empty: of any type
  std::string_view api;
  Argument index;
  Extent extent = Extent::kRows;
  Argument of;
  Argument by = {};
  bool is_distinct = false;
};

constexpr Argument kInput = {0, "input"};
constexpr Argument kDim = {1, "dim"};
constexpr Argument kDimIndex = {2, "index"};

// To keep another API legal, add a row.
constexpr IndexRule kRules[] = {
    {"Functional", "embedding", kInput, Extent::kRows, {1, "weight"}},
    {"Torch", "embedding", {1, "indices"}, Extent::kRows, {0, "weight"}},
    {"Functional", "embedding_bag", kInput, Extent::kRows, {1, "weight"}},
    {"Functional", "one_hot", {0, "tensor"}, Extent::kNumber, {}, {1, "num_classes"}},
    {"", "nll_loss", {1, "target"}, Extent::kClasses, kInput},
    {"", "cross_entropy", {1, "target"}, Extent::kClasses, kInput},
    {"", "multi_margin_loss", {1, "target"}, Extent::kClasses, kInput},
    {"", "multilabel_margin_loss", {1, "target"}, Extent::kClasses, kInput},
    {"", "gather", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "index_select", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "index_add", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "index_add_", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "index_fill", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "index_fill_", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "index_copy", kDimIndex, Extent::kDimension, kInput, kDim, true},
    {"", "index_copy_", kDimIndex, Extent::kDimension, kInput, kDim, true},
    {"", "scatter", kDimIndex, Extent::kDimension, kInput, kDim, true},
    {"", "scatter_", kDimIndex, Extent::kDimension, kInput, kDim, true},
    {"", "scatter_add", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "scatter_add_", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "scatter_reduce", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "scatter_reduce_", kDimIndex, Extent::kDimension, kInput, kDim},
    {"", "take", {1, "index"}, Extent::kElements, kInput},
    {"", "take_along_dim", {1, "indices"}, Extent::kDimension, kInput, {2, "dim"}},
};

// Lengths or offsets that go on from one to the next, under these names of any API.
constexpr std::string_view kCumulative[] = {"actual_seq_kvlen", "actual_seq_qlen", "cu_seqlens",
                                            "cu_seqlens_k",     "cu_seqlens_q",    "offsets"};
// Tensors that single APIs expect to ascend.
struct AscendingRule {
  std::string_view api;
  Argument argument;
};
constexpr AscendingRule kAscendingRules[] = {
    {"bucketize", {1, "boundaries"}},
    {"embedding_bag", {2, "offsets"}},
    {"searchsorted", {0, "sorted_sequence"}},
};

const TensorPlace* TensorAt(const PreparedCall& call, const Argument& argument) {
  const CallValue* const value = FindArgument(call, argument.position, argument.keyword);
  return value == nullptr ? nullptr : value->As<TensorPlace>();
}

std::optional<int64_t> IntegerAt(const PreparedCall& call, const Argument& argument) {
  const CallValue* const value = FindArgument(call, argument.position, argument.keyword);
  const auto* const number = value == nullptr ? nullptr : value->As<int64_t>();
  return number == nullptr ? std::nullopt : std::optional<int64_t>(*number);
}

// A dimension counted from the end as well as from the start.
std::optional<size_t> DimensionOf(const Shape& shape, int64_t dim) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t place = dim < 0 ? dim + rank : dim;
  if (place < 0 || place >= rank) return std::nullopt;
  return static_cast<size_t>(place);
}

std::optional<int64_t> ExtentOf(const PreparedCall& call, const IndexRule& rule) {
  const std::optional<int64_t> by = IntegerAt(call, rule.by);
  if (rule.extent == Extent::kNumber) return by && *by > 0 ? by : std::nullopt;
  const TensorPlace* const of = TensorAt(call, rule.of);
  if (of == nullptr) return std::nullopt;
  const Shape& shape = of->shape;
  const bool is_flat =
      rule.extent == Extent::kElements || (rule.extent == Extent::kDimension && !by);
  if (is_flat) return *ElementCount(shape);
  if (shape.empty()) return 1;
  if (rule.extent == Extent::kRows) return shape[0];
  if (rule.extent == Extent::kClasses) return shape.size() == 1 ? shape[0] : shape[1];
  const std::optional<size_t> dimension = DimensionOf(shape, *by);
  return dimension ? std::optional<int64_t>(shape[*dimension]) : std::nullopt;
}

// What is drawn for `tensor`; null for recorded elements, which are legal.
GeneratedData* DrawnFor(PreparedCall& call, const TensorPlace& tensor) {
  for (TensorFill& fill : call.fills) {
    if (fill.offset == tensor.offset) return std::get_if<GeneratedData>(&fill.source);
  }
  return nullptr;
}

bool IsInteger(DType dtype) {
  const DTypeKind kind = InfoOf(dtype).kind;
  return kind == DTypeKind::kSigned || kind == DTypeKind::kUnsigned;
}

void Clip(ValueRange& range, int64_t extent) {
  const double last = static_cast<double>(extent - 1);
  for (double* end : {&range.low, &range.high, &range.raw_low, &range.raw_high}) {
    *end = std::clamp(*end, 0.0, last);
  }
}

// Distinct along the dimension that is indexed, if it has as many places as the index has elements.
void MakeDistinct(const PreparedCall& call, const IndexRule& rule, const TensorPlace& index,
                  GeneratedData& data) {
  const std::optional<int64_t> dim = IntegerAt(call, rule.by);
  if (!dim || FindArgument(call, SIZE_MAX, "reduce") != nullptr) return;
  const std::optional<size_t> dimension = DimensionOf(index.shape, *dim);
  // The index of index_copy is a vector, whatever dimension it is for.
  const size_t along = index.shape.size() == 1 ? 0 : dimension.value_or(index.shape.size());
  if (along >= index.shape.size() || index.shape[along] > data.extent) return;
  data.pattern = Pattern::kDistinct;
  data.dimension = static_cast<int64_t>(along);
}

void ApplyRule(PreparedCall& call, const IndexRule& rule) {
  const TensorPlace* const index = TensorAt(call, rule.index);
  if (index == nullptr || !IsInteger(index->dtype)) return;
  GeneratedData* const data = DrawnFor(call, *index);
  if (data == nullptr) return;
  const std::optional<int64_t> extent = ExtentOf(call, rule);
  constexpr double kNoLimit = 0x1p62;
  if (!extent) {
    data->range.low = std::clamp(data->range.low, 0.0, kNoLimit);
    data->range.high = std::clamp(data->range.high, 0.0, kNoLimit);
    return;
  }
  if (*extent <= 0) return;  // no index is legal; the call says so
  Clip(data->range, *extent);
  data->extent = *extent;
  if (rule.is_distinct) MakeDistinct(call, rule, *index, *data);
}

void MakeAscending(PreparedCall& call, const CallValue* value) {
  const auto* const tensor = value == nullptr ? nullptr : value->As<TensorPlace>();
  if (tensor == nullptr) return;
  GeneratedData* const data = DrawnFor(call, *tensor);
  if (data != nullptr) data->pattern = Pattern::kAscending;
}

}  // namespace

const CallValue* FindArgument(const PreparedCall& call, size_t position, std::string_view keyword) {
  if (position < call.args.size()) return &call.args[position];
  for (const auto& [name, value] : call.kwargs) {
    if (name == keyword) return &value;
  }
  return nullptr;
}

void KeepIndicesLegal(PreparedCall& call) {
  for (const IndexRule& rule : kRules) {
    const bool is_meant = rule.api == call.api && (rule.type.empty() || rule.type == call.type);
    if (is_meant) ApplyRule(call, rule);
  }
  for (const std::string_view name : kCumulative) {
    MakeAscending(call, FindArgument(call, SIZE_MAX, name));
  }
  for (const auto& [api, argument] : kAscendingRules) {
    if (api != call.api) continue;
    MakeAscending(call, FindArgument(call, argument.position, argument.keyword));
  }
}

}  // namespace plumbline::precheck

#include "precheck/reference/attention_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace plumbline::precheck::reference {
namespace {

// The operator's stand-ins for masks of any size (public documentation of sparse_mode).
constexpr int64_t kTriangle = 2048;
constexpr int64_t kPrefixRows = 3072;
constexpr int64_t kStatisticCopies = 8;
// A diagonal below all others: nothing is hidden from that side.
constexpr int64_t kNever = std::numeric_limits<int64_t>::min() / 2;

enum class Layout : uint8_t { kBsh, kSbh, kBsnd, kBnsd, kTnd };

Result<Layout> LayoutOf(const std::string& name) {
  constexpr std::array<std::string_view, 5> kNames = {"BSH", "SBH", "BSND", "BNSD", "TND"};
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at != kNames.end()) return static_cast<Layout>(at - kNames.begin());
  return BadArgument("input_layout", fmt::format("\"{}\" is no layout (expected BSH, SBH, BSND, "
                                                 "BNSD or TND)",
                                                 name));
}
bool IsPacked(Layout layout) { return layout == Layout::kBsh || layout == Layout::kSbh; }

// One of query, key and value.
struct Extent {
  size_t batches = 0, rows = 0, batch_stride = 0;
  HeadRows at;
};

// `heads`: how many share the last dimension of packed layouts.
Result<Extent> ExtentOf(std::string_view argument, const Operand& operand, Layout layout,
                        size_t heads) {
  PL_TRY(CheckFloating(argument, operand));
  const Shape& shape = operand.shape;
  const size_t rank = layout == Layout::kBsnd || layout == Layout::kBnsd ? 4 : 3;
  if (shape.size() != rank) {
    return BadArgument(
        argument, fmt::format("has shape {} (expected {} dimensions)", ShapeText(shape), rank));
  }
  std::vector<size_t> size(shape.begin(), shape.end());
  if (IsPacked(layout) && (heads == 0 || size[2] % heads != 0)) {
    return BadArgument(argument, fmt::format("the last dimension of shape {} is not made of {} "
                                             "heads",
                                             ShapeText(shape), heads));
  }
  // In the packed layouts the heads of a row lie one behind the other.
  const size_t packed = size[2], dim = IsPacked(layout) ? packed / heads : size.back();
  switch (layout) {
    case Layout::kBsh:
      return Extent{size[0], size[1], size[1] * packed, {heads, dim, packed, dim}};
    case Layout::kSbh:
      return Extent{size[1], size[0], packed, {heads, dim, size[1] * packed, dim}};
    case Layout::kBsnd:
      return Extent{size[0], size[1], size[1] * packed * dim, {packed, dim, packed * dim, dim}};
    case Layout::kBnsd:
      return Extent{size[0], packed, size[1] * packed * dim, {size[1], dim, dim, packed * dim}};
    case Layout::kTnd:
      break;  // one batch, whose rows are cut into sequences later
  }
  return Extent{1, size[0], 0, {size[1], dim, size[1] * dim, dim}};
}

struct Extents {
  Extent query, key, value, out;
  Layout layout = Layout::kBsh;
};

Status CheckHeads(const AttentionCall& call, const Extents& of) {
  const HeadRows &q = of.query.at, &k = of.key.at, &v = of.value.at;
  if (static_cast<int64_t>(q.heads) != call.head_num) {
    return BadArgument("head_num",
                       fmt::format("{} is not the {} heads of query", call.head_num, q.heads));
  }
  if (k.dim != q.dim) {
    return BadArgument(
        "key", fmt::format("heads have {} elements (expected {} as in query)", k.dim, q.dim));
  }
  if (k.heads == 0 || q.heads % k.heads != 0) {
    return BadArgument("head_num", fmt::format("{} heads of query are no multiple of the {} heads "
                                               "of key",
                                               q.heads, k.heads));
  }
  if (v.heads != k.heads || of.value.rows != of.key.rows || of.value.batches != of.key.batches) {
    return BadArgument("value",
                       fmt::format("shape {} does not go with key {}", ShapeText(call.value.shape),
                                   ShapeText(call.key.shape)));
  }
  if (of.query.batches != of.key.batches) {
    return BadArgument("key", fmt::format("has {} batches (expected {} as in query)",
                                          of.key.batches, of.query.batches));
  }
  return {};
}

Result<Extents> ExtentsOf(const AttentionCall& call, AttentionPlan& plan) {
  Extents of;
  PL_TRY_ASSIGN(of.layout, LayoutOf(call.input_layout));
  if (call.head_num < 1) {
    return BadArgument("head_num", fmt::format("{} is no number of heads", call.head_num));
  }
  const auto heads = static_cast<size_t>(call.head_num);
  PL_TRY_ASSIGN(of.query, ExtentOf("query", call.query, of.layout, heads));
  const size_t dim = of.query.at.dim;
  if (dim == 0) return BadArgument("query", "heads have no elements");
  // Heads of keys are as long as those of queries; packed layouts give their number only so.
  const size_t key_heads = call.key.last() / dim;
  PL_TRY_ASSIGN(of.key, ExtentOf("key", call.key, of.layout, key_heads));
  PL_TRY_ASSIGN(of.value, ExtentOf("value", call.value, of.layout, key_heads));
  PL_TRY(CheckHeads(call, of));
  // Rows and heads of the result are those of the query, but as long as those of the values.
  plan.out_shape = call.query.shape;
  plan.out_shape.back() = static_cast<int64_t>(of.value.at.dim * (IsPacked(of.layout) ? heads : 1));
  PL_TRY_ASSIGN(of.out,
                ExtentOf("query", {DType::kFloat64, nullptr, plan.out_shape}, of.layout, heads));
  plan.query = of.query.at, plan.key = of.key.at, plan.value = of.value.at, plan.out = of.out.at;
  return of;
}

void AddBatches(const Extents& of, AttentionPlan& plan) {
  const size_t rows = of.query.rows, heads = of.query.at.heads;
  plan.statistics_shape = {static_cast<int64_t>(of.query.batches), static_cast<int64_t>(heads),
                           static_cast<int64_t>(rows), kStatisticCopies};
  plan.statistics_row_stride = 1, plan.statistics_head_stride = rows;
  for (size_t b = 0; b < of.query.batches; ++b) {
    Sequence sequence{b, rows, of.key.rows, 0, 0, 0, 0, 0, {}};
    sequence.query = b * of.query.batch_stride;
    sequence.key = b * of.key.batch_stride;
    sequence.value = b * of.value.batch_stride;
    sequence.out = b * of.out.batch_stride;
    sequence.statistics = b * heads * rows;
    plan.sequences.push_back(sequence);
  }
}

// Ends of sequences rise to the number of rows.
Status CheckEnds(std::string_view argument, const std::vector<int64_t>& ends, size_t rows) {
  if (ends.empty()) {
    return BadArgument(argument, "is missing (expected where the sequences of layout TND end)");
  }
  // Equal ends are allowed: a sequence may be empty.
  const bool rises = ends.front() >= 0 && std::is_sorted(ends.begin(), ends.end());
  if (rises && ends.back() == static_cast<int64_t>(rows)) return {};
  return BadArgument(argument, fmt::format("[{}] does not rise to the {} rows of the tensor",
                                           fmt::join(ends, ", "), rows));
}

Status AddPieces(const AttentionCall& call, const Extents& of, AttentionPlan& plan) {
  PL_TRY(CheckEnds("actual_seq_qlen", call.actual_seq_qlen, of.query.rows));
  PL_TRY(CheckEnds("actual_seq_kvlen", call.actual_seq_kvlen, of.key.rows));
  if (call.actual_seq_qlen.size() != call.actual_seq_kvlen.size()) {
    return BadArgument("actual_seq_kvlen",
                       fmt::format("has {} ends (expected {} as in actual_seq_qlen)",
                                   call.actual_seq_kvlen.size(), call.actual_seq_qlen.size()));
  }
  const size_t heads = of.query.at.heads;
  plan.statistics_shape = {static_cast<int64_t>(of.query.rows), static_cast<int64_t>(heads),
                           kStatisticCopies};
  plan.statistics_row_stride = heads, plan.statistics_head_stride = 1;
  size_t query = 0, key = 0;
  for (size_t i = 0; i < call.actual_seq_qlen.size(); ++i) {
    const auto query_end = static_cast<size_t>(call.actual_seq_qlen[i]);
    const auto key_end = static_cast<size_t>(call.actual_seq_kvlen[i]);
    Sequence sequence{i, query_end - query, key_end - key, 0, 0, 0, 0, 0, {}};
    sequence.query = query * of.query.at.row_stride;
    sequence.key = key * of.key.at.row_stride;
    sequence.value = key * of.value.at.row_stride;
    sequence.out = query * of.out.at.row_stride;
    sequence.statistics = query * heads;
    plan.sequences.push_back(sequence);
    query = query_end, key = key_end;
  }
  return {};
}

// Rows and columns that the largest sequence has.
std::array<int64_t, 2> LargestScores(const AttentionPlan& plan) {
  std::array<int64_t, 2> largest = {};
  for (const Sequence& sequence : plan.sequences) {
    largest[0] = std::max(largest[0], static_cast<int64_t>(sequence.query_rows));
    largest[1] = std::max(largest[1], static_cast<int64_t>(sequence.key_rows));
  }
  return largest;
}

// Of a mask or pse, whose last dimensions are those of scores. Shorter sequences of TND use its
// upper left part.
Result<ScoreStrides> StridesOf(std::string_view argument, const Operand& operand,
                               const AttentionPlan& plan, bool is_tnd) {
  const std::array<int64_t, 2> largest = LargestScores(plan);
  const Shape full = {static_cast<int64_t>(plan.sequences.size()),
                      static_cast<int64_t>(plan.query.heads), largest[0], largest[1]};
  const Shape& shape = operand.shape;
  ScoreStrides strides = {};
  bool fits = shape.size() >= 2 && shape.size() <= full.size();
  size_t stride = 1;
  for (size_t i = 1; fits && i <= shape.size(); ++i) {
    const int64_t size = shape[shape.size() - i], wanted = full[full.size() - i];
    fits = size == 1 || size == wanted || (is_tnd && i <= 2 && size > wanted);
    // A size of 1 keeps the stride 0, which repeats the element.
    if (size != 1) strides[full.size() - i] = stride;
    stride *= static_cast<size_t>(size);
  }
  if (fits) return strides;
  return BadArgument(argument, fmt::format("shape {} does not fit scores of shape {}",
                                           ShapeText(shape), ShapeText(full)));
}

bool HasMatrixShape(const Operand& mask, int64_t rows, int64_t columns) {
  const Shape& shape = mask.shape;
  return shape.size() >= 2 && shape[shape.size() - 2] == rows && shape.back() == columns &&
         mask.count() == static_cast<size_t>(rows * columns);
}

// The operator's triangle: ones strictly above the diagonal of 2048 x 2048.
bool IsTriangle(const Operand& mask) {
  // A mask of this size may also be a user's own, so its elements decide.
  if (!HasMatrixShape(mask, kTriangle, kTriangle)) return false;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(mask.data);
  for (int64_t row = 0; row < kTriangle; ++row) {
    const unsigned char* const begin = bytes + row * kTriangle;
    const unsigned char* const end = begin + kTriangle;
    const auto is_hidden = [](unsigned char byte) { return byte != 0; };
    if (std::any_of(begin, begin + row + 1, is_hidden)) return false;
    if (!std::all_of(begin + row + 1, end, is_hidden)) return false;
  }
  return true;
}

// Causal masks: row i sees the first i + 1 columns, or so many that the last row sees all.
Hiding LeftCausal() { return {Hiding::Kind::kBand, kNever, 1}; }
Hiding RightCausal(const Sequence& sequence) {
  const auto shift =
      static_cast<int64_t>(sequence.key_rows) - static_cast<int64_t>(sequence.query_rows);
  return {Hiding::Kind::kBand, kNever, shift + 1};
}
// The tokens count from the diagonal that ends in the lower right corner.
Hiding BandOf(const AttentionCall& call, const Sequence& sequence) {
  const auto shift =
      static_cast<int64_t>(sequence.key_rows) - static_cast<int64_t>(sequence.query_rows);
  return {Hiding::Kind::kBand, shift - call.pre_tokens, shift + call.next_tokens + 1};
}

// Modes 7 and 8: the sequence that was cut, the last or the first that is not empty.
size_t CutSequence(const AttentionPlan& plan, bool is_last) {
  size_t cut = 0;
  bool is_found = false;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const bool is_empty = plan.sequences[i].query_rows == 0 || plan.sequences[i].key_rows == 0;
    if (is_empty || (is_found && !is_last)) continue;
    cut = i;
    is_found = true;
  }
  return cut;
}

Status HidePieces(const AttentionCall& call, bool is_tnd, AttentionPlan& plan) {
  if (!is_tnd) {
    return BadArgument("sparse_mode", fmt::format("{} needs layout TND (got {})", call.sparse_mode,
                                                  call.input_layout));
  }
  if (!IsTriangle(*call.atten_mask)) {
    return BadArgument("atten_mask", fmt::format("sparse_mode {} takes the upper triangle of "
                                                 "2048 x 2048",
                                                 call.sparse_mode));
  }
  // The mask that was cut between devices was one of mode 3, or of mode 2.
  const bool from_right = call.sparse_mode == 7;
  const size_t cut = CutSequence(plan, from_right);
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    Sequence& sequence = plan.sequences[i];
    const Hiding whole = from_right ? RightCausal(sequence) : LeftCausal();
    sequence.hiding = i == cut ? BandOf(call, sequence) : whole;
  }
  return {};
}

Status HidePrefix(const AttentionCall& call, AttentionPlan& plan) {
  if (call.prefix.size() != plan.sequences.size()) {
    return BadArgument("prefix", fmt::format("has {} lengths (expected one of each of the {} "
                                             "batches)",
                                             call.prefix.size(), plan.sequences.size()));
  }
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    plan.sequences[i].hiding = RightCausal(plan.sequences[i]);
    plan.sequences[i].hiding.prefix = call.prefix[i];
  }
  return {};
}

Status HideGiven(const AttentionCall& call, bool is_tnd, AttentionPlan& plan) {
  PL_TRY_ASSIGN(plan.mask, StridesOf("atten_mask", *call.atten_mask, plan, is_tnd));
  for (Sequence& sequence : plan.sequences) sequence.hiding.kind = Hiding::Kind::kGiven;
  return {};
}

Status Hide(const AttentionCall& call, bool is_tnd, AttentionPlan& plan) {
  const int64_t mode = call.sparse_mode;
  if (mode < 0 || mode > 8) {
    return BadArgument("sparse_mode", fmt::format("{} is no mode (expected 0 to 8)", mode));
  }
  if (!call.atten_mask) {
    if (mode < 5) return {};  // the device ignores mode and tokens then
    return BadArgument("atten_mask", fmt::format("is missing, which sparse_mode {} needs", mode));
  }
  const DType dtype = call.atten_mask->dtype;
  if (dtype != DType::kBool && dtype != DType::kUInt8) {
    return BadArgument("atten_mask", fmt::format("is no mask (expected bool or uint8, got {})",
                                                 InfoOf(dtype).name));
  }
  if (mode >= 7) return HidePieces(call, is_tnd, plan);
  if (mode == 6 && HasMatrixShape(*call.atten_mask, kPrefixRows, kTriangle)) {
    return HidePrefix(call, plan);
  }
  // In these modes the device is given one triangle, whatever the sizes of the scores.
  const bool is_stand_in = mode >= 2 && mode <= 4 && IsTriangle(*call.atten_mask);
  if (!is_stand_in) return HideGiven(call, is_tnd, plan);
  for (Sequence& sequence : plan.sequences) {
    sequence.hiding = mode == 2   ? LeftCausal()
                      : mode == 3 ? RightCausal(sequence)
                                  : BandOf(call, sequence);
  }
  return {};
}

}  // namespace

Result<AttentionPlan> PlanAttention(const AttentionCall& call) {
  AttentionPlan plan;
  PL_TRY_ASSIGN(const Extents of, ExtentsOf(call, plan));
  const bool is_tnd = of.layout == Layout::kTnd;
  if (is_tnd) {
    PL_TRY(AddPieces(call, of, plan));
  } else {
    AddBatches(of, plan);
  }
  PL_TRY(Hide(call, is_tnd, plan));
  if (!call.pse) return plan;
  PL_TRY(CheckFloating("pse", *call.pse));
  PL_TRY_ASSIGN(plan.pse, StridesOf("pse", *call.pse, plan, is_tnd));
  return plan;
}

}  // namespace plumbline::precheck::reference

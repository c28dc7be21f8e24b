// What a call of attention means: where the rows of each head lie, which sequences there are, and
// what each row of scores gets added.

#ifndef PLUMBLINE_PRECHECK_REFERENCE_ATTENTION_PLAN_H_
#define PLUMBLINE_PRECHECK_REFERENCE_ATTENTION_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "precheck/reference/attention.h"

namespace plumbline::precheck::reference {

// How the rows of one tensor lie: row s of head n of a sequence begins s * row_stride +
// n * head_stride elements behind its first one; its `dim` elements are contiguous.
struct HeadRows {
  size_t heads = 0, dim = 0;
  size_t row_stride = 0, head_stride = 0;
};

// Which columns of a row of scores are hidden.
struct Hiding {
  enum class Kind : uint8_t { kNothing, kGiven, kBand };
  Kind kind = Kind::kNothing;
  // kBand: visible is lowest <= column - row < above, and the first `prefix` columns.
  int64_t lowest = 0, above = 0, prefix = 0;
};

// One sequence: a batch of the padded layouts, or a piece of the TND layout.
struct Sequence {
  size_t batch = 0;  // its number
  size_t query_rows = 0, key_rows = 0;
  size_t query = 0, key = 0, value = 0, out = 0;  // elements before its first row
  size_t statistics = 0;                          // values before its first one
  Hiding hiding;
};

// Elements between batches, heads, rows and columns of a mask or pse; 0 where it is broadcast.
using ScoreStrides = std::array<size_t, 4>;

struct AttentionPlan {
  HeadRows query, key, value, out;
  std::vector<Sequence> sequences;
  Shape out_shape, statistics_shape;
  // Between values of the statistics, each of which is stored 8 times.
  size_t statistics_row_stride = 0, statistics_head_stride = 0;
  ScoreStrides mask = {}, pse = {};

  [[nodiscard]] size_t group() const { return query.heads / key.heads; }  // of one key head
};

// kInvalidArgument: the call means nothing; the message names the argument.
Result<AttentionPlan> PlanAttention(const AttentionCall& call);

}  // namespace plumbline::precheck::reference

#endif  // PLUMBLINE_PRECHECK_REFERENCE_ATTENTION_PLAN_H_

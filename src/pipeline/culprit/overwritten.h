// What a write in place replaces.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_OVERWRITTEN_H_
#define PLUMBLINE_PIPELINE_CULPRIT_OVERWRITTEN_H_

#include <span>
#include <string_view>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Whether the paired forward call `name` with these rows writes into the tensor `row`, one of its
// inputs, so that on both sides nothing is left of what was there: memory that nobody wrote yet, in
// many programs. `copy_`, `fill_`, `zero_` and random numbers; `out=` of a function;
// `__setitem__` and `index_copy_` where the index names every place: all of a dimension, true
// throughout, or each number once.
bool IsOverwritten(const ComparedRow& row, std::string_view name,
                   std::span<const ComparedRow> rows);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_OVERWRITTEN_H_

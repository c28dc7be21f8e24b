// What a page may ask of the elements of a value: `GET d/{id}/values` (docs/design/viewer.md).
//
// Answers are JSON objects. Everything but a count is of the finite elements; a complex number
// counts by its modulus, and two differ by the modulus of their difference. Each answer begins with
//
//   "target", "golden": {"dtype", "shape"} or null
//   "notes": sentences that must be shown: numbers that are rounded, sides that cannot be compared
//
// | what | Parameters | Members |
// |---|---|---|
// | `stats` | | in "target" and "golden" also what `distribution` below has; "difference": the same
// of target - golden, or null; "metrics": those of `plumb compare`, or null; "quantiles_at": the
// shares that "quantiles" are of | | `histogram` | `scale`: `linear` or `symlog` | "edges": of 256
// bins, the same for both sides; in each side "counts" (of the bins), "nan", "inf", "minus_inf",
// "zero", "subnormal", which add up to "elements"; "errors" or null | | `slice` | `axes`: `i,j`
// (the last two); `fixed`: an index for each other dimension, in order; `rows`, `columns`: `r0:r1`;
// `width`, `height`: cells at most (256); `side`: `target`, `golden`, `difference` | "axes",
// "fixed", "rows", "columns" as used; "width", "height", "is_exact" (a cell is an element),
// "pooling": `none`, `mean`, or `largest` (the difference farthest from 0); "cells": by rows;
// "min", "max" over the finite cells | | `topk` | `k` (20), `by`: `absolute` or `relative` |
// "worst": [{"index": [...], "target", "golden", "difference", "relative"}], the worst first; of
// one side the largest magnitudes | | `profile` | `axis` (the last), `width`: cells at most (1024)
// | "axis", "length", "begins": the first index of each cell; by cells "elements", "nonfinite",
// "absolute_max", "relative_max", "target_mean", "golden_mean", "target_norm", "golden_norm" |
//
// `distribution`: {"elements", "nan", "inf", "minus_inf", "zero", "subnormal", "min", "max",
// "mean", "norm", "quantiles"}; quantiles as numpy.quantile() interpolates them. "errors":
// {"nonfinite", "nonfinite_mismatch" (other on the sides), "equal", "relative_infinite" (golden is
// 0 and target is not), "absolute", "relative": {"edges", "counts"} of the errors above 0, "ulp":
// {"edges", "counts"} (distances 0, 1, 2 to 3, 4 to 7, ... representable numbers of golden's data
// type) or null, "deciles": [{"low", "high" (magnitudes of golden), "count", "absolute_mean",
// "absolute_max", "relative_max"}]}.

#ifndef PLUMBLINE_VIEW_VALUES_VALUE_ANSWERS_H_
#define PLUMBLINE_VIEW_VALUES_VALUE_ANSWERS_H_

#include <string>
#include <string_view>

#include "plumbline/result.h"
#include "view/query/parameters.h"
#include "view/store/kept_answers.h"
#include "view/values/value_file.h"

namespace plumbline::view {

// What an answer may use besides; all may be null.
struct ValueContext {
  KeptAnswers* cache = nullptr;
  CancelFlag cancel = nullptr;
};

// Reads mapped files run by run, on the threads of the caller's arena: memory does not grow with
// the tensors. Thread-safe. kInvalidArgument for faulty parameters; kNotFound where neither side
// has elements on disk (the message says how to record them), for a file that is gone, and
// "cancelled"; errors of ValueFile::Open(); kIo for a file that another program cuts meanwhile.
Result<std::string> ValueAnswer(const ValueFiles& files, std::string_view what,
                                const Parameters& parameters, const ValueContext& context = {});

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_VALUES_VALUE_ANSWERS_H_

// Whether one of two runs multiplies float32 in lower precision, as tf32 does.

#ifndef PLUMBLINE_PIPELINE_PRODUCT_PRECISION_H_
#define PLUMBLINE_PIPELINE_PRODUCT_PRECISION_H_

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The unit roundoff of the products' inputs (2^-11: tf32, 2^-8: bfloat16) if every product of
// float32 whose inputs agree shows an error of that size, spread over its elements; else 0. A
// single wrong product among exact ones is no such precision.
double ProductRoundoff(const Comparison& comparison, const measure::PairContext& context);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_PRODUCT_PRECISION_H_

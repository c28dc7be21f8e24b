// Whether one of two runs multiplies float32 in lower precision, as tf32 does.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_PRODUCT_PRECISION_H_
#define PLUMBLINE_PIPELINE_CULPRIT_PRODUCT_PRECISION_H_

#include <string_view>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Unit roundoffs of the inputs of float32 products (2^-11: tf32, 2^-8: bfloat16); 0: full
// precision. Frameworks switch matrix products and convolutions apart.
struct ProductRoundoffs {
  double matrix = 0;
  double convolution = 0;

  [[nodiscard]] double largest() const { return matrix > convolution ? matrix : convolution; }
  // Of the products that a call makes, by its full name; the larger one where that is not known.
  [[nodiscard]] double Of(std::string_view call_name) const;
};

// A roundoff is found where every product of its kind whose inputs agree shows an error of that
// size, spread over its elements. A single wrong product among exact ones is no such precision,
// even where the exact ones are of the other kind.
ProductRoundoffs FindProductRoundoffs(const Comparison& comparison,
                                      const measure::PairContext& context);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_PRODUCT_PRECISION_H_

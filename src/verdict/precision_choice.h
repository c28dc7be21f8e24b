// With which precision each side computes: the dtypes of its tensors and of its products.

#ifndef PLUMBLINE_VERDICT_PRECISION_CHOICE_H_
#define PLUMBLINE_VERDICT_PRECISION_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "measure/verdict.h"
#include "plumbline/compare.h"

namespace plumbline::verdict {

// Whether the runs compute in other types on purpose.

struct TypeChoice {
  // The target keeps many of its values in a narrower type (autocast). A few are a fault.
  bool is_narrower = false;
  // Most calls that compute have floating types that cannot stand against golden's: float64
  // against float32. Then that is what the runs differ in, not the first such call.
  bool is_other = false;
  // Where is_narrower holds: the call that is the first to read or return a narrower tensor, if it
  // computes that of floating tensors of golden's types. A type given to it as an argument is no
  // choice of the run, which narrows nothing else: all that is narrower follows from it.
  std::optional<uint32_t> starts_at;
};

TypeChoice TypeChoiceOf(const Comparison& comparison);

// Where the target keeps many values in a narrower type, the first row of such a tensor gets the
// note kNarrowed: "bfloat16 from Functional.conv2d.0.forward on (218 calls)".
void NoteNarrowed(Comparison& comparison);

// Whether a floating type given as an argument is narrower in the target.
bool IsNarrowerType(const Item& target, const Item& golden);

// Whether one of two runs multiplies float32 in lower precision, as tf32 does.

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

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_PRECISION_CHOICE_H_

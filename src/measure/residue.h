// What becomes of a value that is nothing but the rounding of a sum that cancelled.

#ifndef PLUMBLINE_MEASURE_RESIDUE_H_
#define PLUMBLINE_MEASURE_RESIDUE_H_

#include <span>
#include <string_view>

#include "measure/propagation.h"
#include "plumbline/compare.h"

namespace plumbline::measure {

// Whether an operand is nothing but rounding (InputError::residue).
bool HasResidue(std::span<const InputError> operands);

// The relative error of a call's result `output` that the residues among its operands explain
// (InputError::residue), without a ceiling (docs/design/verdict.md, "Sums that cancel"). Residues
// count by their share in the result: beside something larger they vanish, beside zeros they are
// all there is. `factor`: the one number among the arguments, such as the step size of addcdiv.
double ResidueError(const Item& output, std::string_view call_name,
                    std::span<const InputError> operands, double factor);

// The relative error of a result that four statistics of the operands cannot rule out where single
// elements may be rounding alone: of a sign, of those that may be small beside the largest; of
// x + s a / b (addcdiv), of quotients by the smallest divisor. 0 for other calls. The error of an
// operand is one of all elements.
double HiddenByElements(const Item& output, std::string_view call_name,
                        std::span<const InputError> operands, double factor);

// Lowers the errors of residues that are added to other values to their share in the result, so
// that they excuse nothing in what is larger. False: there are none, or the call is none that adds.
bool ShareResidues(const Item& output, std::string_view call_name, double factor,
                   std::span<InputError> operands);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_RESIDUE_H_

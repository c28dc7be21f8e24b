// Single elements of a contiguous array, for people to read.

#ifndef PLUMBLINE_PIPELINE_ARRAYS_ARRAY_ELEMENTS_H_
#define PLUMBLINE_PIPELINE_ARRAYS_ARRAY_ELEMENTS_H_

#include <cstddef>
#include <string>

#include "plumbline/tensor.h"

namespace plumbline {

// Value of element `i` in row-major order; exact for every real type of NumPy, 64-bit integers
// included. The modulus of a complex one. Requires: `view` is contiguous and holds it.
long double ElementValue(const TensorView& view, size_t i);
// How far element `i` of the one is from that of the other, complex ones in the plane; 0 for equal
// values, infinities too. Requires: as above, of both.
long double ElementDistance(const TensorView& one, const TensorView& other, size_t i);
// As NumPy prints it: "True", "-3", "0.1", "nan", "(1.5-2j)".
std::string ElementText(const TensorView& view, size_t i);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_ARRAYS_ARRAY_ELEMENTS_H_

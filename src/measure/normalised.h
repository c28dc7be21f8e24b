// What layer, batch, group and instance norm return, computed again from what they read.

#ifndef PLUMBLINE_MEASURE_NORMALISED_H_
#define PLUMBLINE_MEASURE_NORMALISED_H_

#include <cstddef>
#include <span>

namespace plumbline::measure {

// y = w (x - mean) / sqrt(variance + epsilon) + b, with mean and variance of each group of
// elements.
struct Normalisation {
  std::span<const double> x;
  std::span<const double> w, b;  // one number per channel, or empty
  size_t channels = 1;           // element i is of channel i / places % channels
  size_t places = 1;
  size_t block = 0;  // elements of a group, which lie in a row; 0: a group is a channel
  double epsilon = 0;
};

// Whether `y` is, in every element, the result of `call`, to within the roundings of a correct one
// in a type of this roundoff: those of x count by its size over the deviation of its group. Sizes
// that do not fit are false.
bool IsNormalised(const Normalisation& call, std::span<const double> y, double unit_roundoff);

// The same of the gradient of x, where `incoming` is that of the result.
bool IsGradientOfNormalised(const Normalisation& call, std::span<const double> incoming,
                            std::span<const double> gradient, double unit_roundoff);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_NORMALISED_H_

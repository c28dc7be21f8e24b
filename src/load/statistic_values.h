// The statistics of one tensor as statistic.csv spells them.

#ifndef PLUMBLINE_LOAD_STATISTIC_VALUES_H_
#define PLUMBLINE_LOAD_STATISTIC_VALUES_H_

#include <span>
#include <string>
#include <vector>

#include "plumbline/tensor.h"

namespace plumbline::load {

// MindSpore prints six significant digits. More than 15 stand for the shortest text that reads back
// to the same number.
inline constexpr int kSixDigits = 6;

// One text per item of statistic_category. Maximum, minimum and mean are NaN where any element is;
// the mean takes in infinities. "negative zero count" and "positive zero count" are the numbers of
// elements below and above zero. "hash:sha1" of more than 20480 elements is the SHA-1 of the joined
// hexadecimal SHA-1s of slices of that many. Complex elements count by modulus. Digests are of the
// bytes in row-major order, "null" where base/memory/digest.h has none. Without elements: "null",
// counts 0.
std::vector<std::string> StatisticTexts(const TensorView& view, std::span<const std::string> items,
                                        int digits);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_STATISTIC_VALUES_H_

// Elements of both sides of an output, looked at one by one: those that no metric can take.

#ifndef PLUMBLINE_PRECHECK_GRADING_PAIRED_ELEMENTS_H_
#define PLUMBLINE_PRECHECK_GRADING_PAIRED_ELEMENTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "precheck/output_metrics.h"

namespace plumbline::precheck {

// Both sides with zeros where they have the same infinity, as masks of attention do everywhere, or
// both NaN, which the inputs give then, or infinite on the device because its type does not reach
// to the value of the benchmark: the rest of them can be judged.
struct FiniteSides {
  std::vector<std::byte> bench, device;
  size_t elements = 0, infinite = 0, nan = 0, beyond = 0;

  [[nodiscard]] size_t not_judged() const { return infinite + nan + beyond; }
};
// Nothing: another NaN or infinity is on one side only.
std::optional<FiniteSides> WithoutEqualSpecials(const OutputPair& pair);
// What was left out, in sentences.
std::string SpecialsText(const FiniteSides& sides);

// Elements of a dropout that are finite and not zero on both sides.
struct KeptElements {
  size_t both = 0, apart = 0;  // apart: their values differ
};
KeptElements KeptOf(const OutputPair& pair);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_GRADING_PAIRED_ELEMENTS_H_

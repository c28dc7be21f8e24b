// Upstream's single-benchmark rule for one output: is what a device computed close enough to what
// the CPU computed in higher precision?

#ifndef PLUMBLINE_PRECHECK_ONLINE_SINGLE_BENCHMARK_H_
#define PLUMBLINE_PRECHECK_ONLINE_SINGLE_BENCHMARK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plumbline/tensor.h"
#include "precheck/standards.h"

namespace plumbline::precheck {

enum class SingleVerdict : uint8_t { kPass, kFail, kNotChecked };

// The numbers of one output; complex numbers count as two elements each in what is measured.
struct SingleMeasure {
  double error_balance = 0;                // magnitude of the mean error
  double max_abs_error = 0;                // over elements with |benchmark| < 1
  double max_rel_error = 0;                // over the others
  std::optional<uint64_t> max_abs_index;  // absent: there is no such element
  std::optional<uint64_t> max_rel_index;
};

struct SingleGrade {
  SingleVerdict verdict = SingleVerdict::kNotChecked;
  std::optional<SingleMeasure> measure;        // absent: nothing could be measured
  std::optional<SingleBenchmarkLimits> limits;  // absent: every element has to be equal
  std::string message;                         // what decided; may be empty of a pass
};

// Judges `device` against `bench`, both contiguous. Elements that are NaN on both sides, the same
// infinity, or too large for the type of the device and infinite there, are left out of the
// measures and named in the message; any other NaN or infinity fails. All elements NaN on both
// sides, or all of them too small for the limit to tell them from zero: kNotChecked.
SingleGrade GradeSingle(const TensorView& device, const TensorView& bench);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_ONLINE_SINGLE_BENCHMARK_H_

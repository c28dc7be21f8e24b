// What kind of error a wrong tensor shows: the cause classes of docs/reference/causes.md. Pure
// functions of values; src/pipeline/cause_of_call collects what they look at.

#ifndef PLUMBLINE_MEASURE_CAUSE_CLASS_H_
#define PLUMBLINE_MEASURE_CAUSE_CLASS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/tensor.h"

namespace plumbline::measure {

enum class CauseConfidence : uint8_t { kLow, kMedium, kHigh };
std::string_view CauseConfidenceName(CauseConfidence confidence);  // "low", "medium", "high"

struct Cause {
  std::string code = "unexplained";  // stable
  std::string text;                  // one sentence with the numbers
  CauseConfidence confidence = CauseConfidence::kLow;

  bool is_history = false;      // the values are those of an earlier step
  bool leaves_rounding = true;  // false: a fit that explains most of the difference, but not all

  [[nodiscard]] bool is_explained() const { return code != "unexplained"; }
};

// A tensor that may explain the difference. Borrowed.
struct CauseCandidate {
  enum class Role : uint8_t {
    kOperand,      // input or parameter of the call, good on both sides
    kEarlier,      // recorded earlier in the target, of the same step
    kEarlierStep,  // the same item at another step
    kRankShare,    // on another rank of the target, what would be added to this rank's value
    kOtherRank,    // the same item on another rank of the golden run
  };
  std::string name;
  Role role = Role::kOperand;
  TensorView view;
};

struct CauseRequest {
  TensorView target, golden;
  std::string api;  // "linear"; empty if unknown
  // The pair is an input or parameter that no recorded call made, so nothing is known about how.
  bool is_source = false;
  double explained = 0;  // relative error that rounding and the inputs explain
  std::vector<CauseCandidate> candidates;
};

// Classifies the difference of two tensors. Tensors of other shapes are "structure" or
// "transposed"; equal ones are unexplained. kInternal when memory runs out.
Result<Cause> ClassifyTensors(const CauseRequest& request);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_CLASS_H_

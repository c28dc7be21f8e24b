// The first wrong call in words.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_CULPRIT_TEXT_H_
#define PLUMBLINE_PIPELINE_CULPRIT_CULPRIT_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::pipeline {

// What an event shows where no single row does, and its cause (docs/reference/causes.md).
struct CulpritFact {
  std::string what;
  std::string cause{}, cause_text{}, confidence{};  // empty: to be looked for
};

// One place where the runs part although everything before it agreed.
struct CulpritEvent {
  enum class Kind : uint8_t {
    kOutput,     // a result differs by more than rounding and the inputs explain
    kArgument,   // a scalar argument has another value
    kInput,      // an input differs that no recorded call produced
    kStructure,  // the call has other shapes, dtypes or arguments
    kUnpaired,   // a call without counterpart; `row` is where its wrong result arrives
    kFact,       // what several rows show together, told by `fact`
  };
  uint32_t call = 0;  // index into Comparison::calls
  uint32_t row = 0;   // index into Comparison::rows
  Kind kind = Kind::kOutput;
  double error = 0, expected = 0;
  bool has_other_source = false;  // an input that one side takes from a call the other has not
  bool must_agree = false;        // whatever other way a side takes: a gradient of all parts
  CulpritFact fact{};
};

// A statistic or an argument, as Python writes it.
std::string ShownValue(const Recorded& recorded);

FirstWrongCall DescribeCulprit(const Run& target, const Comparison& comparison,
                               const CulpritEvent& event);

// "Torch.f.0.forward" for "Torch.f.0.backward"; empty for a name that is not a backward entry.
std::string ForwardNameOf(std::string_view backward_name);
// The target's call of that name; null where there is none.
const ComparedCall* ForwardCallOf(const Comparison& comparison, std::string_view backward_name);
// What calls of one API and direction share: the name without the number; empty for modules.
std::string SeriesOf(const std::string& name);

// The reverse; empty for a name that is not a forward entry.
std::string BackwardNameOf(std::string_view forward_name);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_CULPRIT_TEXT_H_

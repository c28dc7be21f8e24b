// The plain values of two checkpoints, beside their tensors: step numbers, learning rates,
// settings.

#ifndef PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_VALUES_H_
#define PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "load/checkpoint.h"

namespace plumbline {

struct DifferingValue {
  std::string name;
  torch_pt::PlainValue target, golden;
};

struct ComparedValues {
  uint64_t common = 0;                          // names that both sides have
  std::vector<DifferingValue> differing;        // of these, in order of name
  uint64_t target_only = 0, golden_only = 0;    // not compared
  uint64_t target_other = 0, golden_other = 0;  // neither tensors nor plain values: not compared
};

// Pairs values of the same name; both sides are in order of name. Numbers agree whatever their
// types up to eight roundings of a double, NaN with NaN; everything else when it is equal. Pure.
ComparedValues CompareValues(const load::Checkpoint& target, const load::Checkpoint& golden);

// As Python writes it: None, True, 3, 0.001, 'text'.
std::string PlainText(const torch_pt::PlainValue& value);
// "2 of 14 plain values differ, 3 other values not compared"; empty: there are no values.
std::string ValuesText(const ComparedValues& values);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_VALUES_H_

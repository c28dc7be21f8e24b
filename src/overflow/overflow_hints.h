// What helps to repair an overflow that was named: how near its operands were to the end of their
// types, and what ran just before.

#ifndef PLUMBLINE_OVERFLOW_OVERFLOW_HINTS_H_
#define PLUMBLINE_OVERFLOW_OVERFLOW_HINTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "formats/json/json_feed.h"
#include "load/rank_scan.h"
#include "plumbline/tensor.h"

namespace plumbline {

// A floating tensor that went into a call, by its recorded statistics.
struct OperandRange {
  std::string path;  // "input_args.0"
  DType dtype = DType::kFloat32;
  std::optional<double> low, high;  // over its finite elements; absent: none, or not recorded
  bool is_finite = true;            // no NaN and no infinity in it

  // log2(largest finite number of the type / largest magnitude): how often it may be doubled.
  // Absent where it is not known or all elements are 0.
  [[nodiscard]] std::optional<double> doublings_left() const;
};

// The same call with its inputs in another type.
struct OtherType {
  std::string dtype;                 // "bfloat16"
  std::optional<bool> stays_finite;  // absent: see `problem`
  std::string problem = {};
  bool is_by_ranges = false;  // follows from the ranges of the operands: nothing was run
};

struct OverflowHints {
  std::vector<OperandRange> operands;
  std::vector<std::string> previous;  // entries before it, in the order of the dump
  bool has_tensors = false;           // its inputs were saved
  std::string recorded_class;          // what the recorder said: "origin", "propagated", "unknown"
  std::vector<OtherType> other_types;  // bfloat16 and float32, where they are known or were run
  std::string problem;                 // why they were not
};

// Of the entry `name`, which stands at `place` of `dump_text`. An entry that cannot be read again
// has no operands.
OverflowHints HintsOf(const std::string& name, const EntryPlace& place, std::string_view dump_text);

// "float16 in [-3, 60000], 2^0.127 below the largest, 65504".
std::string RangeText(const OperandRange& operand);
// "stays finite", "overflows too", "not known: <problem>".
std::string OtherTypeText(const OtherType& other);
// How to find out what `other_types` lacks; empty: nothing is missing.
std::string AdviceOf(const OverflowHints& hints);
// The members "operands", "previous", "overflow_origin" and, where they are known, "other_types".
void AddHints(const OverflowHints& hints, json::Document& out);

}  // namespace plumbline

#endif  // PLUMBLINE_OVERFLOW_OVERFLOW_HINTS_H_

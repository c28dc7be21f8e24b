// Argument trees of dump.json made concrete: what a call is given again.

#ifndef PLUMBLINE_PRECHECK_CALL_ARGUMENTS_H_
#define PLUMBLINE_PRECHECK_CALL_ARGUMENTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/record.h"
#include "precheck/call_value.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// Finds a place for a tensor that stands at `path` ("input_args.0.1", "input_kwargs.weight"), or
// says why it cannot.
using PlaceTensor =
    std::function<OrSkip<CallValue>(const TensorRecord& record, const std::string& path)>;

// Containers inside each other that are rebuilt; the dump holds up to 400.
inline constexpr int kMostArgumentDepth = 10;

// The value that stands at `path`. What is recorded as a list is a list; an object without "type"
// is a dict; scalars, sizes, slices, dtypes, devices, memory formats and NumPy scalars are what
// they were. kBadArgument, naming the path and what stands there: a kind of value that cannot be
// rebuilt (a function, a generator, a process group, an object that the dump could not describe),
// or more than kMostArgumentDepth levels.
OrSkip<CallValue> BuildValue(const Value& value, const std::string& path, const PlaceTensor& place);

// `input_args` and `input_kwargs` of an entry; null: the entry lacks them. Without positional
// arguments the dump does not say how the API was called: kBadArgument.
OrSkip<std::vector<CallValue>> BuildPositional(const Value* arguments, const PlaceTensor& place);
OrSkip<CallMap> BuildKeyword(const Value* arguments, const PlaceTensor& place);

// The integer that a recorded scalar holds ({"type": "int", "value": 3}, or 3 itself).
std::optional<int64_t> RecordedInteger(const Value& value);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_CALL_ARGUMENTS_H_

// Makes a recorded call ready to run: its arguments, what is special about its API, the types that
// the benchmark side computes in, and the gradients that come into its backward.

#ifndef PLUMBLINE_PRECHECK_PREPARATION_H_
#define PLUMBLINE_PRECHECK_PREPARATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "plumbline/record.h"
#include "plumbline/tensor.h"
#include "precheck/outcome.h"
#include "precheck/prepared_call.h"

namespace plumbline::precheck {

struct PreparationOptions {
  uint64_t seed = 0;
  uint64_t memory_limit = 0;     // most bytes of the inputs of one call
  std::string tensor_directory;  // of recorded tensors; empty: elements are drawn
  // Where recorded tensors are found instead, by their data_name; nothing: that one is missing.
  // Then none is drawn.
  std::function<std::optional<TensorView>(std::string_view data_name)> find_tensor = {};
  bool keep_random = false;      // see PlanOptions
};

// A call as it stands in the dump. Everything is borrowed.
struct RecordedCall {
  std::string_view name, type, api;
  const Call* forward = nullptr;
  const Call* backward = nullptr;  // null: none was recorded
};

// The call made ready, or why its forward cannot be run: a kind of argument that cannot be rebuilt,
// a recorded tensor that cannot be read, inputs beyond the memory, or a result that is random with
// these arguments. What keeps only the backward from being run is PreparedCall::backward_skip.
OrSkip<PreparedCall> PrepareCall(const RecordedCall& recorded, const PreparationOptions& options);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_PREPARATION_H_

// The reference of bench_path: one step and rank of an earlier recording with checksums.

#ifndef PLUMBLINE_PYTHON_BINDINGS_REFERENCE_RUN_H_
#define PLUMBLINE_PYTHON_BINDINGS_REFERENCE_RUN_H_

#include <optional>
#include <string>

#include "capture/reference_calls.h"
#include "plumbline/result.h"

namespace plumbline::python {

// Reads {bench_path}/step{N}/rank{R}/dump.json; without a rank, or without that directory, "rank"
// or the only "proc{pid}". kInvalidArgument when there is none or several; errors of the file
// otherwise.
Result<capture::ReferenceCalls> ReadReference(const std::string& bench_path, int step,
                                              std::optional<int> rank);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_REFERENCE_RUN_H_

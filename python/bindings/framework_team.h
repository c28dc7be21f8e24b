// The framework's own OpenMP threads, borrowed for large tensors.

#ifndef PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_TEAM_H_
#define PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_TEAM_H_

#include "kernels/tensor_scan.h"

namespace plumbline::python {

// A team of the OpenMP runtime that the process has loaded (libgomp's entry points, which LLVM's
// and Intel's runtimes offer too), as many threads as the caller may use now. Between two operators
// these threads spin or sleep in their runtime, so threads of our own would compete with them for
// the same cores. size 1 when there is no such runtime.
kernels::Team FrameworkTeam();

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_TEAM_H_

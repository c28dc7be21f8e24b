// The pre-check from Python.

#ifndef PLUMBLINE_PYTHON_BIND_PRECHECK_H_
#define PLUMBLINE_PYTHON_BIND_PRECHECK_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds PrecheckOptions, PrecheckReport and run_precheck. Requires: RowTable is bound.
void BindPrecheck(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_PRECHECK_H_

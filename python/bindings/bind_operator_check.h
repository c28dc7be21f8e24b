// Operators that are checked while they run, from Python.

#ifndef PLUMBLINE_PYTHON_BIND_OPERATOR_CHECK_H_
#define PLUMBLINE_PYTHON_BIND_OPERATOR_CHECK_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds OperatorCheck and is_left_alone.
void BindOperatorCheck(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_OPERATOR_CHECK_H_

// The perturbation check from Python.

#ifndef PLUMBLINE_PYTHON_BIND_PERTURBATION_H_
#define PLUMBLINE_PYTHON_BIND_PERTURBATION_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds CheckedCall, Comparison and PerturbationCheck.
void BindPerturbation(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_PERTURBATION_H_

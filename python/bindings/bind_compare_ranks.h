// Comparing several ranks and steps from Python.

#ifndef PLUMBLINE_PYTHON_BIND_COMPARE_RANKS_H_
#define PLUMBLINE_PYTHON_BIND_COMPARE_RANKS_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds RankOptions and compare_ranks. Requires: CompareOptions is bound.
void BindCompareRanks(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_COMPARE_RANKS_H_

// What the page of the viewer asks, from Python.

#ifndef PLUMBLINE_PYTHON_BIND_VIEW_H_
#define PLUMBLINE_PYTHON_BIND_VIEW_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds ValueReader, TrendDatabase and LayoutGrid.
void BindView(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_VIEW_H_

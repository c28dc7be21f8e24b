// Files of a training monitor from Python.

#ifndef PLUMBLINE_PYTHON_BIND_MONITOR_H_
#define PLUMBLINE_PYTHON_BIND_MONITOR_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds monitor_to_tensorboard and compare_gradients.
void BindMonitor(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_MONITOR_H_

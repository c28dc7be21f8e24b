// Recordings and rules of `plumb watch` from Python.

#ifndef PLUMBLINE_PYTHON_BIND_WATCH_H_
#define PLUMBLINE_PYTHON_BIND_WATCH_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds WatchedRecording.
void BindWatch(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_WATCH_H_

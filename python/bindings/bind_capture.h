// Bindings of the recorder for the hook layers.

#ifndef PLUMBLINE_PYTHON_BINDINGS_BIND_CAPTURE_H_
#define PLUMBLINE_PYTHON_BINDINGS_BIND_CAPTURE_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

void BindCapture(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BIND_CAPTURE_H_

// Python access to the black box of a training.

#ifndef PLUMBLINE_PYTHON_BINDINGS_BIND_BLACK_BOX_H_
#define PLUMBLINE_PYTHON_BINDINGS_BIND_BLACK_BOX_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

void BindBlackBox(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BIND_BLACK_BOX_H_

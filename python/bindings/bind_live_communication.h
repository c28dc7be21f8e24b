// Binds what watches communication calls for a monitor.

#ifndef PLUMBLINE_PYTHON_BINDINGS_BIND_LIVE_COMMUNICATION_H_
#define PLUMBLINE_PYTHON_BINDINGS_BIND_LIVE_COMMUNICATION_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

void BindLiveCommunication(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BIND_LIVE_COMMUNICATION_H_

// Python access to the monitor of a training.

#ifndef PLUMBLINE_PYTHON_BINDINGS_BIND_LIVE_MONITOR_H_
#define PLUMBLINE_PYTHON_BINDINGS_BIND_LIVE_MONITOR_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

void BindLiveMonitor(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BIND_LIVE_MONITOR_H_

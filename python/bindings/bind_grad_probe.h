// The gradient probe from Python: task grad_probe.

#ifndef PLUMBLINE_PYTHON_BINDINGS_BIND_GRAD_PROBE_H_
#define PLUMBLINE_PYTHON_BINDINGS_BIND_GRAD_PROBE_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds GradProbe and asks_for_grad_probe. Requires: Config is there.
void BindGradProbe(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BIND_GRAD_PROBE_H_

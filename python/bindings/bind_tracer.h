// The tracer of forward calls for plumbline.watch.overflow_tracer.

#ifndef PLUMBLINE_PYTHON_BINDINGS_BIND_TRACER_H_
#define PLUMBLINE_PYTHON_BINDINGS_BIND_TRACER_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds ModelTracer and TraceReport.
void BindTracer(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BIND_TRACER_H_

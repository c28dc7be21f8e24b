// Dumps of static graphs from Python: their configuration and the passes over their trees.

#ifndef PLUMBLINE_PYTHON_BIND_GRAPH_DUMPS_H_
#define PLUMBLINE_PYTHON_BIND_GRAPH_DUMPS_H_

#include <nanobind/nanobind.h>

namespace plumbline::python {

// Adds plan_graph_dump, GraphRun, GraphIndex and the functions of plumbline.graph_dumps.
void BindGraphDumps(nanobind::module_& m);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BIND_GRAPH_DUMPS_H_

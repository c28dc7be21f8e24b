// Rows of a comparison as columns: NumPy views and the Arrow stream protocol.

#ifndef PLUMBLINE_PYTHON_BINDINGS_BIND_ROWS_H_
#define PLUMBLINE_PYTHON_BINDINGS_BIND_ROWS_H_

#include <nanobind/nanobind.h>

#include <memory>

#include "plumbline/compare.h"

namespace plumbline::report {
struct RowColumns;
}  // namespace plumbline::report

namespace plumbline::python {

void BindRows(nanobind::module_& m);

// What Python holds of them.
struct RowTable {
  std::shared_ptr<const report::RowColumns> columns;
};
RowTable MakeRowTable(const Comparison& comparison);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BIND_ROWS_H_

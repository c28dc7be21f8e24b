#include "bind_rows.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "report/arrow_stream.h"
#include "report/table.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using report::CellKind;
using report::RowColumn;

constexpr const char* kStreamName = "arrow_array_stream";

const RowColumn& ColumnOf(const RowTable& table, const std::string& name) {
  for (const RowColumn& column : table.columns->columns) {
    if (column.name == name) return column;
  }
  throw nb::key_error(name.c_str());
}

// A read-only view that keeps `owner` alive.
template <class T>
nb::object View(const std::vector<T>& values, nb::handle owner) {
  return nb::cast(
      nb::ndarray<nb::numpy, const T, nb::ndim<1>>(values.data(), {values.size()}, owner));
}

nb::object Texts(const RowColumn& column, size_t rows) {
  nb::list texts;
  for (size_t row = 0; row < rows; ++row) {
    if (column.IsNull(row)) {
      texts.append(nb::none());
      continue;
    }
    const auto index =
        column.kind == CellKind::kWord ? static_cast<size_t>(column.codes[row]) : row;
    const std::string_view text = column.texts[index];
    texts.append(nb::str(text.data(), text.size()));
  }
  return texts;
}

// The column: a NumPy view of numbers, a list of texts.
nb::object Values(nb::handle self, const std::string& name) {
  const auto& table = nb::cast<const RowTable&>(self);
  const RowColumn& column = ColumnOf(table, name);
  switch (column.kind) {
    case CellKind::kInteger:
      return View(column.integers, self);
    case CellKind::kReal:
    case CellKind::kStatistic:
      return View(column.reals, self);
    case CellKind::kText:
    case CellKind::kWord:
      break;
  }
  return Texts(column, table.columns->row_count);
}

std::vector<std::string> Names(const RowTable& table) {
  std::vector<std::string> names;
  for (const RowColumn& column : table.columns->columns) names.push_back(column.name);
  return names;
}

nb::list AllValues(nb::handle self) {
  nb::list columns;
  for (const std::string& name : Names(nb::cast<const RowTable&>(self))) {
    columns.append(Values(self, name));
  }
  return columns;
}

nb::list Items(nb::handle self) {
  nb::list items;
  for (const std::string& name : Names(nb::cast<const RowTable&>(self))) {
    items.append(nb::make_tuple(name, Values(self, name)));
  }
  return items;
}

void DropStream(PyObject* capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kStreamName));
  // Whoever took it over has cleared `release`.
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

nb::object Stream(const RowTable& table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  report::ExportStream(table.columns, stream.get());
  PyObject* const capsule = PyCapsule_New(stream.get(), kStreamName, DropStream);
  if (capsule == nullptr) {
    stream->release(stream.get());
    throw nb::python_error();
  }
  (void)stream.release();
  return nb::steal(capsule);
}

}  // namespace

RowTable MakeRowTable(const Comparison& comparison) { return {report::MakeRowColumns(comparison)}; }

void BindRows(nb::module_& m) {
  nb::class_<RowTable>(
      m, "RowTable", "The rows of a comparison as columns: a read-only mapping of name to column.")
      .def("__len__", [](const RowTable& self) { return self.columns->columns.size(); })
      .def_prop_ro(
          "row_count", [](const RowTable& self) { return self.columns->row_count; },
          "Of every column.")
      .def_prop_ro("names", &Names, "Of the columns, in order.")
      .def("keys", &Names, "The same as names: dict(table) has every column by its name.")
      .def("__iter__", [](const RowTable& self) { return nb::iter(nb::cast(Names(self))); })
      .def(
          "__contains__",
          [](const RowTable& self, const nb::object& name) {
            const int found = PySequence_Contains(nb::cast(Names(self)).ptr(), name.ptr());
            if (found < 0) throw nb::python_error();
            return found == 1;
          },
          nb::arg("name"))
      .def("values", &AllValues, "The columns, in order.")
      .def("items", &Items, "Pairs of name and column, in order.")
      .def("__getitem__", &Values, nb::arg("name"),
           "Numbers as a read-only NumPy view (no number: NaN or 0); texts as a list.")
      .def(
          "__arrow_c_stream__",
          [](const RowTable& self, const nb::object&) { return Stream(self); },
          nb::arg("requested_schema") = nb::none(),
          "For pyarrow.table(), polars.DataFrame() and others; nothing is copied.");
}

}  // namespace plumbline::python

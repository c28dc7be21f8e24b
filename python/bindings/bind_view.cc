#include "bind_view.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "file_path.h"
#include "view/trends/layout_picture.h"
#include "view/trends/trend_answers.h"
#include "view/values/value_answers.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using QuestionTexts = std::map<std::string, std::string>;

view::Parameters ParametersOf(const QuestionTexts& texts) {
  view::Parameters parameters;
  for (const auto& [name, text] : texts) parameters.Set(name, text);
  return parameters;
}

// Answers that are kept for the next question.
struct ValueReader {
  view::KeptAnswers cache;

  Result<std::string> Ask(const FilePath& target, const FilePath& golden, const std::string& what,
                          const QuestionTexts& texts) {
    const nb::gil_scoped_release release;
    return view::ValueAnswer({target.bytes, golden.bytes}, what, ParametersOf(texts),
                             {&cache, nullptr});
  }
};

struct TrendDatabase {
  view::TrendDb database;

  Result<std::string> Ask(const std::string& question, const QuestionTexts& texts,
                          const TrendDatabase* against) const {
    const nb::gil_scoped_release release;
    return view::TrendAnswer(database, question, ParametersOf(texts),
                             {against == nullptr ? nullptr : &against->database, nullptr});
  }
};

// Ranks, label, copy of the model, cells.
using LayoutRowParts =
    std::tuple<std::vector<int64_t>, std::string, size_t, std::vector<std::string>>;

void BindLayout(nb::module_& m) {
  nb::class_<view::LayoutGrid>(m, "LayoutGrid", "Which ranks hold which layers.")
      .def(
          "__init__",
          [](view::LayoutGrid* self, int64_t ranks, int64_t layers, int64_t tensor,
             int64_t pipeline, std::optional<int64_t> layers_of_part, const std::string& order,
             bool standalone_embedding) {
            new (self) view::LayoutGrid(ValueOrRaise(view::LayOutModel(
                {ranks, layers, tensor, pipeline, layers_of_part, order, standalone_embedding})));
          },
          nb::arg("ranks"), nb::arg("layers"), nb::arg("tensor"), nb::arg("pipeline"),
          nb::arg("layers_of_part").none(), nb::arg("order"), nb::arg("standalone_embedding"))
      .def_ro("virtual_stages", &view::LayoutGrid::virtual_stages)
      .def_ro("data_parallel_size", &view::LayoutGrid::data_parallel_size)
      .def_ro("transformer_stages", &view::LayoutGrid::transformer_stages)
      .def_prop_ro("rows",
                   [](const view::LayoutGrid& self) {
                     std::vector<LayoutRowParts> rows;
                     for (const view::LayoutRow& row : self.rows) {
                       rows.emplace_back(row.ranks, row.label, row.replica, row.cells);
                     }
                     return rows;
                   })
      .def(
          "path_of",
          [](const view::LayoutGrid& self, const FilePath& output) {
            return FilePath{view::LayoutPath(self, output.bytes)};
          },
          nb::arg("output"), "Where the picture is written.")
      .def(
          "write",
          [](const view::LayoutGrid& self, const FilePath& output) {
            return FilePath{ValueOrRaise(view::WriteLayout(self, output.bytes))};
          },
          nb::arg("output"), "Writes the picture; its path.");
}

}  // namespace

void BindView(nb::module_& m) {
  BindLayout(m);
  nb::class_<ValueReader>(m, "ValueReader", "Answers about the elements of tensor files.")
      .def(nb::init<>())
      .def(
          "ask",
          [](ValueReader& self, const FilePath& target, const FilePath& golden,
             const std::string& what, const QuestionTexts& parameters) {
            return ValueOrRaise(self.Ask(target, golden, what, parameters));
          },
          nb::arg("target"), nb::arg("golden"), nb::arg("what"),
          nb::arg("parameters") = QuestionTexts(),
          "The JSON text of an answer; an empty path is no side.");
  nb::class_<TrendDatabase>(m, "TrendDatabase", "A .trend.db, opened read-only.")
      .def_static(
          "open",
          [](const FilePath& path) {
            return TrendDatabase{ValueOrRaise(view::TrendDb::Open(path.bytes))};
          },
          nb::arg("path"))
      .def(
          "ask",
          [](const TrendDatabase& self, const std::string& question,
             const QuestionTexts& parameters, const TrendDatabase* against) {
            return ValueOrRaise(self.Ask(question, parameters, against));
          },
          nb::arg("question"), nb::arg("parameters") = QuestionTexts(),
          nb::arg("against").none() = nb::none(), "The JSON text of an answer.");
}

}  // namespace plumbline::python

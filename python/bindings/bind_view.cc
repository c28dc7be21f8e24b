#include "bind_view.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/file/file.h"
#include "errors.h"
#include "file_path.h"
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

// Empty: there is none.
std::optional<view::ValueFile> FileOf(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return view::ValueFile{std::string(DirectoryOf(path)), std::string(BaseName(path))};
}

// Answers that are kept for the next question.
struct ValueReader {
  view::ValueCache cache;

  Result<std::string> Ask(const FilePath& target, const FilePath& golden, const std::string& what,
                          const QuestionTexts& texts) {
    const nb::gil_scoped_release release;
    return view::ValueAnswer({FileOf(target.bytes), FileOf(golden.bytes)}, what,
                             ParametersOf(texts), {&cache, nullptr});
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

}  // namespace

void BindView(nb::module_& m) {
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

#include "bind_operator_check.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "file_path.h"
#include "precheck/online/operator_check.h"
#include "precheck/standards.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using precheck::OperatorCall;
using precheck::OperatorLeaf;

// Keeps a Python object alive; may be released on any thread.
std::shared_ptr<const void> Keep(nb::handle object) {
  PyObject* const kept = object.inc_ref().ptr();
  return {static_cast<const void*>(kept), [kept](const void*) {
            const nb::gil_scoped_acquire lock;
            Py_DECREF(kept);
          }};
}

// A tensor as (tensor, dtype, shape, address), else a number or None.
precheck::OperatorValue ValueOf(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  const auto parts = nb::cast<nb::tuple>(value);
  const auto type = nb::cast<std::string>(parts[1]);
  const std::optional<DType> dtype = ParseDType(type);
  if (!dtype) Raise(Error(ErrorCode::kUnsupported, type + " is no element type that is judged"));
  precheck::HeldArray array{*dtype, nb::cast<Shape>(parts[2]), nullptr, Keep(parts[0])};
  array.data = reinterpret_cast<const std::byte*>(nb::cast<uintptr_t>(parts[3]));
  return array;
}

std::vector<OperatorLeaf> LeavesOf(nb::list leaves) {
  std::vector<OperatorLeaf> found;
  for (const nb::handle leaf : leaves) {
    const auto pair = nb::cast<nb::tuple>(leaf);
    found.push_back({nb::cast<std::string>(pair[0]), ValueOf(pair[1])});
  }
  return found;
}

// Without the interpreter lock wherever it waits: workers need that to let tensors go.
class CheckOfOperators {
 public:
  explicit CheckOfOperators(const precheck::OperatorCheckOptions& options)
      : check_(ValueOrRaise(precheck::OperatorCheck::Start(options))) {}
  ~CheckOfOperators() {
    const nb::gil_scoped_release release;
    check_.reset();
  }
  CheckOfOperators(const CheckOfOperators&) = delete;
  CheckOfOperators& operator=(const CheckOfOperators&) = delete;

  [[nodiscard]] bool WantsInputs(std::string_view op) const { return check_->WantsInputs(op); }

  void Add(const std::tuple<std::string, std::string>& name, nb::list inputs, nb::list device,
           nb::list bench) {
    OperatorCall call;
    std::tie(call.op, call.where) = name;
    call.inputs = LeavesOf(inputs);
    call.device = LeavesOf(device);
    call.bench = LeavesOf(bench);
    const nb::gil_scoped_release release;
    check_->Add(std::move(call));
  }

  void AddUnchecked(const std::string& op, const std::string& reason) {
    OperatorCall call;
    call.op = op;
    call.not_checked = reason;
    const nb::gil_scoped_release release;
    check_->Add(std::move(call));
  }

  nb::dict Finish(uint64_t left_alone) {
    precheck::OperatorReport report;
    {
      const nb::gil_scoped_release release;
      report = check_->Finish();
    }
    nb::dict facts;
    facts["answer"] = precheck::AnswerText(report, left_alone);
    facts["counts"] = nb::dict();
    facts["counts"]["passed"] = report.passed;
    facts["counts"]["failed"] = report.failed;
    facts["counts"]["not checked"] = report.not_checked;
    facts["counts"]["left alone"] = left_alone;
    nb::list failed, files;
    for (const auto& one : report.failures) {
      failed.append(nb::make_tuple(one.name, one.where, one.message));
    }
    facts["failed"] = failed;
    facts["reasons"] = report.reasons;
    nb::list problems;
    for (const std::string& text : report.problems) problems.append(TextWithPaths{text});
    facts["problems"] = problems;
    for (const std::string& path : report.files) files.append(FilePath{path});
    facts["files"] = files;
    facts["directory"] = FilePath{report.directory};
    return facts;
  }

 private:
  std::unique_ptr<precheck::OperatorCheck> check_;
};

}  // namespace

void BindOperatorCheck(nb::module_& m) {
  nb::class_<CheckOfOperators>(m, "OperatorCheck", "Judges operators while they run.")
      .def(
          "__init__",
          [](CheckOfOperators* self, const FilePath& directory, const std::string& tag, int rank,
             const std::tuple<std::string, std::vector<std::string>>& dump, int workers) {
            precheck::OperatorCheckOptions options;
            options.directory = directory.bytes;
            options.tag = tag;
            options.rank = rank;
            options.dump = ValueOrRaise(precheck::ParseArrayDump(std::get<0>(dump)));
            options.listed = std::get<1>(dump);
            options.workers = workers;
            new (self) CheckOfOperators(options);
          },
          nb::arg("directory"), nb::arg("tag"), nb::arg("rank"), nb::arg("dump"),
          nb::arg("workers"), "`dump`: when, and which operators.")
      .def("wants_inputs", &CheckOfOperators::WantsInputs, nb::arg("op"),
           "Whether inputs of this operator could be written.")
      .def("add", &CheckOfOperators::Add, nb::arg("name"), nb::arg("inputs"), nb::arg("device"),
           nb::arg("bench"),
           "A call: operator and place; leaves as (path, value), tensors as (owner, dtype, shape, "
           "address).")
      .def("add_unchecked", &CheckOfOperators::AddUnchecked, nb::arg("op"), nb::arg("reason"))
      .def("finish", &CheckOfOperators::Finish, nb::arg("left_alone"), "What was found.");
  m.def("is_left_alone", &precheck::IsLeftAlone, nb::arg("aten_operator"),
        "Whether this operator is never checked.");
}

}  // namespace plumbline::python

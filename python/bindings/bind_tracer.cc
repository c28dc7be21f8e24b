#include "bind_tracer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "file_path.h"
#include "model_tracer.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// None: nothing is to be said, as nearly always.
nb::object AnswerOf(TraceReport report) {
  const bool says = !report.text.empty() || !report.error.empty() || report.is_written;
  return says ? nb::cast(std::move(report)) : nb::none();
}

void MakeTracer(ModelTracer* self, const nb::dict& framework, size_t max_frames,
                std::vector<int64_t> traced_batches, std::optional<int64_t> abort_after) {
  FrameworkTypes types;
  FrameworkHooks hooks;
  if (!ReadTypes(framework.ptr(), &types)) {
    throw nb::value_error("ModelTracer: name, tensor or describe is missing");
  }
  ReadHooks(framework.ptr(), &hooks);
  new (self) ModelTracer(std::move(types), hooks, framework["magnitudes"], framework["read"],
                         {.max_frames = max_frames,
                          .traced_batches = std::move(traced_batches),
                          .abort_after = abort_after});
}

}  // namespace

void BindTracer(nb::module_& m) {
  nb::class_<TraceReport>(m, "TraceReport", "What a forward gave cause to say.")
      .def_ro("text", &TraceReport::text, "To be printed, with its line breaks.")
      .def_ro("error", &TraceReport::error, "Why the training should end, or empty.")
      .def_ro("is_found", &TraceReport::is_found, "NaN or Inf; the trace is over.")
      .def_ro("is_written", &TraceReport::is_written, "write() has something new to say.");
  nb::class_<ModelTracer>(m, "ModelTracer", "The last forward calls before the first NaN or Inf.")
      .def("__init__", &MakeTracer, nb::kw_only(), nb::arg("framework"), nb::arg("max_frames"),
           nb::arg("traced_batches"), nb::arg("abort_after").none(),
           "`framework`: parts as of new_recorder(), and magnitudes(tensor) and read(magnitudes).")
      .def(
          "frame",
          [](ModelTracer& self, std::string name, bool is_root, nb::handle module, nb::handle args,
             nb::handle output) {
            return AnswerOf(
                self.Frame(std::move(name), is_root, module.ptr(), args.ptr(), output.ptr()));
          },
          nb::arg("name"), nb::arg("is_root"), nb::arg("module"), nb::arg("args").none(),
          nb::arg("output").none(),
          nb::sig("def frame(self, name: str, is_root: bool, module: object, args: object | None, "
                  "output: object | None) -> TraceReport | None"),
          "The call of a module is over.")
      .def(
          "end_early", [](ModelTracer& self) { return AnswerOf(self.EndEarly()); },
          nb::sig("def end_early(self) -> TraceReport | None"),
          "The forward of the model raised.")
      .def(
          "write",
          [](const ModelTracer& self, const FilePath& directory, const std::string& model,
             int64_t rank) {
            ValueOrRaise(WriteOverflowTrace(self.trace(), directory.bytes, model, rank));
          },
          nb::arg("directory"), nb::arg("model"), nb::arg("rank"),
          "Writes overflow_trace_rank{R}.json.");
}

}  // namespace plumbline::python

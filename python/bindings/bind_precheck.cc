// The pre-check of recorded calls for Python.

#include "bind_precheck.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "bind_rows.h"
#include "errors.h"
#include "file_path.h"
#include "kernels/cpu_target.h"
#include "load/detect.h"
#include "precheck/precheck.h"
#include "precheck/precheck_files.h"
#include "precheck/settings.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using precheck::PrecheckOptions;
using precheck::PrecheckReport;

// A member of the options that holds a path, as a property.
template <std::string PrecheckOptions::*member>
FilePath PathAt(const PrecheckOptions& options) {
  return {options.*member};
}
template <std::string PrecheckOptions::*member>
void SetPath(PrecheckOptions& options, FilePath path) {
  options.*member = std::move(path.bytes);
}

// As the command: a section of config.json, and the file of defaults that the environment names.
Result<std::vector<std::string>> LoadSettings(PrecheckOptions& options, const std::string& path) {
  options.config_path = path;
  const char* const defaults = std::getenv(precheck::kDefaultsVariable);
  PL_TRY_ASSIGN(precheck::PrecheckSettings settings,
                precheck::LoadPrecheckSettings({path, defaults == nullptr ? "" : defaults}));
  options.plan.white_list = std::move(settings.white_list);
  options.plan.black_list = std::move(settings.black_list);
  options.error_data_path = std::move(settings.error_data_path);
  options.precision = settings.precision;
  options.plan.seed = settings.seed.value_or(options.plan.seed);
  return std::move(settings.warnings);
}

Result<std::string> DumpJsonOf(const std::string& path) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  if (facts.kind == PathKind::kDirectory) return load::ResolveDumpJson(path);
  if (facts.kind == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, path + ": no such file or directory");
  }
  return path;
}

// Without the interpreter lock, but for looking whether the user has interrupted: his signal
// handler runs then, and what it raises ends the run.
Result<PrecheckReport> RunUnlocked(PrecheckOptions options,
                                   std::optional<nb::python_error>& interruption) {
  const nb::gil_scoped_release release;
  options.is_stopped = [&interruption] {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() == 0) return false;
    interruption.emplace();
    return true;
  };
  PL_TRY(kernels::ChooseTarget());
  PL_TRY_ASSIGN(options.dump_json, DumpJsonOf(options.dump_json));
  return RunPrecheck(options);
}

PrecheckReport Run(const PrecheckOptions& options) {
  std::optional<nb::python_error> interruption;
  Result<PrecheckReport> report = RunUnlocked(options, interruption);
  if (interruption) throw std::move(*interruption);
  return ValueOrRaise(std::move(report));
}

plumbline::Status WriteUnlocked(const PrecheckReport& report, precheck::PrecheckFormat format,
                                const std::string& path) {
  const nb::gil_scoped_release release;
  switch (format) {
    case precheck::PrecheckFormat::kXlsx:
      return WriteXlsx(report, path);
    case precheck::PrecheckFormat::kHtml:
      return WriteHtml(report, path);
    case precheck::PrecheckFormat::kJunit:
      return WriteJunit(report, path);
  }
  return {};
}

void Write(const PrecheckReport& report, const std::string& word, const FilePath& path) {
  for (const precheck::PrecheckFormat format : ValueOrRaise(precheck::PrecheckFormatsOf({word}))) {
    ValueOrRaise(WriteUnlocked(report, format, path.bytes));
  }
}

void WriteFiles(PrecheckReport& report, const std::vector<std::string>& words) {
  const auto formats = ValueOrRaise(precheck::PrecheckFormatsOf(words));
  const auto write = [&]() -> plumbline::Status {
    const nb::gil_scoped_release release;
    return WritePrecheckFiles(formats, report);
  };
  ValueOrRaise(write());
}

template <class T>
T Unlocked(Result<T> (*make)(const PrecheckReport&), const PrecheckReport& report) {
  const auto run = [&] {
    const nb::gil_scoped_release release;
    return make(report);
  };
  return ValueOrRaise(run());
}

std::vector<FilePath> FilesOf(const PrecheckReport& report) {
  std::vector<FilePath> files = {{report.result_path}, {report.details_path}};
  for (const std::string& path : report.files) files.push_back({path});
  return files;
}

void BindPrecheckOptions(nb::module_& m) {
  nb::class_<PrecheckOptions>(m, "PrecheckOptions", "What run_precheck does.")
      .def(nb::init<>())
      .def_prop_rw("dump", &PathAt<&PrecheckOptions::dump_json>,
                   &SetPath<&PrecheckOptions::dump_json>)
      .def_prop_rw("output_dir", &PathAt<&PrecheckOptions::output_dir>,
                   &SetPath<&PrecheckOptions::output_dir>)
      .def_prop_rw("python", &PathAt<&PrecheckOptions::python>, &SetPath<&PrecheckOptions::python>)
      .def_prop_rw("resume_path", &PathAt<&PrecheckOptions::resume_path>,
                   &SetPath<&PrecheckOptions::resume_path>)
      .def_prop_rw("error_data_path", &PathAt<&PrecheckOptions::error_data_path>,
                   &SetPath<&PrecheckOptions::error_data_path>)
      .def_rw("device_type", &PrecheckOptions::device_type)
      .def_rw("devices", &PrecheckOptions::devices)
      .def_rw("workers", &PrecheckOptions::workers)
      .def_rw("bench_workers", &PrecheckOptions::bench_workers)
      .def_rw("threads", &PrecheckOptions::threads)
      .def_prop_rw(
          "api_timeout",
          [](const PrecheckOptions& self) {
            return std::chrono::duration<double>(self.api_timeout).count();
          },
          [](PrecheckOptions& self, double seconds) {
            self.api_timeout =
                std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1e3)));
          },
          "In seconds.")
      .def_rw("retry_skipped", &PrecheckOptions::retry_skipped)
      .def_rw("sorted", &PrecheckOptions::sorted)
      .def_rw("save_error_data", &PrecheckOptions::save_error_data)
      .def_rw("max_abs_error", &PrecheckOptions::max_abs_error)
      .def_prop_rw(
          "dedupe", [](const PrecheckOptions& self) { return self.plan.dedupe; },
          [](PrecheckOptions& self, bool value) { self.plan.dedupe = value; })
      .def_prop_rw(
          "seed", [](const PrecheckOptions& self) { return self.plan.seed; },
          [](PrecheckOptions& self, uint64_t value) { self.plan.seed = value; })
      .def(
          "load_settings",
          [](PrecheckOptions& self, const FilePath& path) {
            return ValueOrRaise(LoadSettings(self, path.bytes));
          },
          nb::arg("path"), "Takes a config.json over (\"\": none); returns warnings.");
}

}  // namespace

void BindPrecheck(nb::module_& m) {
  BindPrecheckOptions(m);
  nb::class_<PrecheckReport>(m, "PrecheckReport", "What a pre-check found.")
      .def(
          "summary_text",
          [](const PrecheckReport& self) { return TextWithPaths{AnswerText(self)}; },
          "The answer as `plumb precheck` prints it.")
      .def(
          "summary_json",
          [](const PrecheckReport& self) { return TextWithPaths{AnswerJson(self)}; },
          "What `plumb precheck --json` prints.")
      .def(
          "calls_json",
          [](const PrecheckReport& self) { return Unlocked(&precheck::CallsJson, self); },
          "The result file: an array of objects.")
      .def(
          "details_json",
          [](const PrecheckReport& self) { return Unlocked(&precheck::DetailsJson, self); },
          "The details file: an array of objects.")
      .def(
          "row_table",
          [](const PrecheckReport& self) {
            return RowTable{Unlocked(&precheck::DetailsTable, self)};
          },
          "The details file as columns; read on every call.")
      .def("files", &FilesOf, "Paths of the files that were written.")
      .def_ro("warnings", &PrecheckReport::warnings)
      .def(
          "fails_on",
          [](const PrecheckReport& self, const std::vector<std::string>& conditions) {
            return FailsOn(self, conditions);
          },
          nb::arg("conditions"), "Whether it meets one of the conditions of `--fail-on`.")
      .def_static(
          "check_formats",
          [](const std::vector<std::string>& words) {
            ValueOrRaise(precheck::PrecheckFormatsOf(words));
          },
          nb::arg("words"), "Raises ValueError if one is unknown.")
      .def("write_files", &WriteFiles, nb::arg("formats"), "Writes files beside the csv files.")
      .def("write", &Write, nb::arg("format"), nb::arg("path"), "Writes one file.");
  m.def("run_precheck", &Run, nb::arg("options"),
        "Runs every recorded call again; writes the csv files.");
}

}  // namespace plumbline::python

// The extension module plumbline._compare: include/plumbline/compare.h for Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "arrays/compare_checkpoints.h"
#include "bind_compare_ranks.h"
#include "bind_config.h"
#include "bind_graph_dumps.h"
#include "bind_monitor.h"
#include "bind_operator_check.h"
#include "bind_precheck.h"
#include "bind_rows.h"
#include "bind_view.h"
#include "bind_watch.h"
#include "compare/compare_training.h"
#include "errors.h"
#include "file_path.h"
#include "kernels/cpu_target.h"
#include "load/pair_kind.h"
#include "plumbline/compare.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// As the command: a CPU target that this machine cannot run is an error, not a silent fallback.
Result<Comparison> CompareOnThisCpu(const std::string& target, const std::string& golden,
                                    const CompareOptions& options) {
  PL_TRY(kernels::ChooseTarget());
  return CompareRuns(target, golden, options);
}

Result<CheckpointReport> CompareCheckpointsUnlocked(const std::string& target,
                                                    const std::string& golden,
                                                    const CompareOptions& options) {
  const nb::gil_scoped_release release;
  PL_TRY(kernels::ChooseTarget());
  return CompareCheckpointFiles(target, golden, options);
}

// Without the interpreter lock. Errors are raised by the caller, which holds it again.
Result<Comparison> CompareUnlocked(const std::string& target, const std::string& golden,
                                   const CompareOptions& options) {
  const nb::gil_scoped_release release;
  return CompareOnThisCpu(target, golden, options);
}

Status WriteUnlocked(Comparison& comparison, const CompareOptions& options) {
  const nb::gil_scoped_release release;
  return WriteComparison(comparison, options);
}

using OptionalPath = std::optional<FilePath>;

std::optional<std::string> Bytes(OptionalPath path) {
  if (!path) return std::nullopt;
  return std::move(path->bytes);
}

// A member of the options that holds a path, as a property.
template <std::string CompareOptions::*member>
FilePath PathAt(const CompareOptions& options) {
  return {options.*member};
}
template <std::string CompareOptions::*member>
void SetPath(CompareOptions& options, FilePath path) {
  options.*member = std::move(path.bytes);
}

void BindOptions(nb::module_& m) {
  nb::class_<CompareOptions>(m, "CompareOptions", "What compare_runs and write_comparison do.")
      .def(nb::init<>())
      .def_prop_rw("output_dir", &PathAt<&CompareOptions::output_dir>,
                   &SetPath<&CompareOptions::output_dir>)
      .def(
          "set_formats",
          [](CompareOptions& self, const std::vector<std::string>& names) {
            self.formats = ValueOrRaise(ReportFormatsOf(names));
          },
          nb::arg("names"), "Which result files are written: names as `--format` takes them.")
      .def_rw("write_advice", &CompareOptions::write_advice)
      .def_rw("fuzzy_match", &CompareOptions::fuzzy_match)
      .def_rw("suffix", &CompareOptions::suffix)
      .def(
          "set_mappings",
          [](CompareOptions& self, FilePath data, OptionalPath api, OptionalPath cell,
             OptionalPath layer) {
            self.mappings = {std::move(data.bytes), Bytes(std::move(api)), Bytes(std::move(cell)),
                             Bytes(std::move(layer))};
          },
          nb::arg("data"), nb::arg("api").none(), nb::arg("cell").none(), nb::arg("layer").none(),
          "The mapping files: paths; \"\" is no data mapping, and of the others the built-in one.")
      .def_rw("show_stack", &CompareOptions::show_stack)
      .def_prop_rw("stack_path", &PathAt<&CompareOptions::stack_path>,
                   &SetPath<&CompareOptions::stack_path>)
      .def_prop_rw("noise_path", &PathAt<&CompareOptions::noise_path>,
                   &SetPath<&CompareOptions::noise_path>)
      .def_rw("salvage", &CompareOptions::salvage)
      .def_rw("threads", &CompareOptions::threads);
}

void BindComparison(nb::module_& m) {
  nb::class_<Comparison>(m, "Comparison", "The result of one comparison.")
      .def(nb::init<>())
      .def_prop_ro("next_config", [](const Comparison& self) { return self.next_config; })
      .def(
          "summary_text", [](const Comparison& self) { return TextWithPaths{SummaryText(self)}; },
          nb::call_guard<nb::gil_scoped_release>(), "The answer as `plumb compare` prints it.")
      .def(
          "summary_json", [](const Comparison& self) { return SummaryJson(self); },
          nb::call_guard<nb::gil_scoped_release>(), "What `plumb compare --json` prints.")
      .def(
          "result_json", [](const Comparison& self) { return ResultJson(self); },
          nb::call_guard<nb::gil_scoped_release>(), "The machine form with every row.")
      .def("row_table", &MakeRowTable, nb::call_guard<nb::gil_scoped_release>(),
           "The rows as columns; made on every call.")
      .def(
          "fails_on",
          [](const Comparison& self, const std::vector<std::string>& conditions) {
            return ValueOrRaise(FailsOn(self, conditions));
          },
          nb::arg("conditions"), "Whether it meets one of the conditions of `--fail-on`.");
}

void BindCheckpoints(nb::module_& m) {
  nb::class_<CheckpointReport>(m, "CheckpointReport", "What two arrays or checkpoints gave.")
      .def(
          "summary_text",
          [](const CheckpointReport& self) {
            return TextWithPaths{CheckpointSummary(self.comparison)};
          },
          "The answer as `plumb compare` prints it.")
      .def(
          "result_json",
          [](const CheckpointReport& self) {
            return TextWithPaths{ValueOrRaise(CheckpointJson(self.comparison))};
          },
          "What `plumb compare --json` prints.")
      .def(
          "files",
          [](const CheckpointReport& self) {
            std::vector<FilePath> files;
            for (const std::string& file : self.files) files.push_back({file});
            return files;
          },
          "Paths of the result files.")
      .def(
          "fails_on",
          [](const CheckpointReport& self, const std::vector<std::string>& conditions) {
            return ValueOrRaise(FailsOn(self.comparison, conditions));
          },
          nb::arg("conditions"), "Whether it meets one of the conditions of `--fail-on`.");
  m.def(
      "compare_checkpoints",
      [](const FilePath& target, const FilePath& golden, const CompareOptions& options) {
        return ValueOrRaise(CompareCheckpointsUnlocked(target.bytes, golden.bytes, options));
      },
      nb::arg("target"), nb::arg("golden"), nb::arg("options"),
      "Compares two arrays or checkpoints; an empty output_dir: writes nothing.");
}

Result<Comparison> CompareTrainingUnlocked(const std::string& training,
                                           const std::string& inference,
                                           const match::TrainingRules& rules,
                                           const CompareOptions& options) {
  const nb::gil_scoped_release release;
  PL_TRY(kernels::ChooseTarget());
  return compare::CompareTraining(training, inference, rules, options);
}

void BindPairKind(nb::module_& m) {
  using load::PairKind;
  nb::enum_<PairKind>(m, "PairKind", "What two paths hold.")
      .value("RECORDING", PairKind::kRecording)
      .value("RANKS", PairKind::kRanks)
      .value("CHECKPOINTS", PairKind::kCheckpoints)
      .value("ATB", PairKind::kAtb)
      .value("HDF5", PairKind::kHdf5)
      .value("TORCHAIR", PairKind::kTorchair)
      .value("DEVICE_DUMPS", PairKind::kDeviceDumps)
      .value("MIXED", PairKind::kMixed)
      .def_prop_ro(
          "text", [](PairKind kind) { return std::string(load::PairKindText(kind)); }, "In words.");
  m.def(
      "kind_of_pair",
      [](const FilePath& target, const FilePath& golden, const CompareOptions& options) {
        return load::KindOfPair(target.bytes, golden.bytes, !options.mappings.data.empty());
      },
      nb::arg("target"), nb::arg("golden"), nb::arg("options"),
      nb::call_guard<nb::gil_scoped_release>(), "As `plumb compare` takes the two.");
}

void BindTraining(nb::module_& m) {
  nb::class_<match::TrainingRules>(m, "TrainingRules",
                                   "Which module of an inference stands against one of a training.")
      .def(nb::new_([](const std::string& backend, const FilePath& module_map) {
             return ValueOrRaise(compare::TrainingRulesOf(backend, module_map.bytes));
           }),
           nb::arg("backend"), nb::arg("module_map"));
  m.def(
      "compare_training",
      [](const FilePath& training, const FilePath& inference, const match::TrainingRules& rules,
         const CompareOptions& options) {
        return ValueOrRaise(
            CompareTrainingUnlocked(training.bytes, inference.bytes, rules, options));
      },
      nb::arg("training"), nb::arg("inference"), nb::arg("rules"), nb::arg("options"),
      "Reads and compares a training and an inference; writes nothing.");
}

}  // namespace

void BindCompare(nb::module_& m) {
  BindOptions(m);
  BindComparison(m);
  BindPairKind(m);
  BindCheckpoints(m);
  BindTraining(m);
  m.def(
      "compare_runs",
      [](const FilePath& target, const FilePath& golden, const CompareOptions& options) {
        return ValueOrRaise(CompareUnlocked(target.bytes, golden.bytes, options));
      },
      nb::arg("target"), nb::arg("golden"), nb::arg("options"),
      "Reads and compares two runs; writes nothing.");
  m.def(
      "write_comparison",
      [](Comparison& comparison, const CompareOptions& options) {
        ValueOrRaise(WriteUnlocked(comparison, options));
      },
      nb::arg("comparison"), nb::arg("options"), "Writes the result files that `options` selects.");
}

}  // namespace plumbline::python

NB_MODULE(_compare, m) {
  m.doc() = "Native comparison of plumbline.";
  plumbline::python::ImportErrors();
  plumbline::python::BindRows(m);
  plumbline::python::BindCompare(m);
  plumbline::python::BindCompareRanks(m);
  plumbline::python::BindConfigPacks(m);
  plumbline::python::BindGraphDumps(m);
  plumbline::python::BindMonitor(m);
  plumbline::python::BindView(m);
  plumbline::python::BindWatch(m);
  plumbline::python::BindOperatorCheck(m);
  plumbline::python::BindPrecheck(m);
}

#include "bind_graph_dumps.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "config/graph_dump/dump_plan.h"
#include "config/graph_dump/dump_request.h"
#include "errors.h"
#include "load/graph_index.h"
#include "pipeline/graphs/background_finisher.h"
#include "pipeline/graphs/graph_sheets.h"
#include "pipeline/graphs/source_tensors.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using graph_dump::DumpPlan;
using OptionalText = std::optional<std::string>;

// Where the graph runs, by the names that Python gives.
struct GraphPlace {
  std::string mode, device;
  std::optional<int64_t> rank;
  bool hash_is_named_md5 = false;
};

Result<DumpPlan> Plan(const OptionalText& config_path, const ConfigOverrides& overrides,
                      const GraphPlace& place) {
  const auto mode = graph_dump::ExecutionModeNamed(place.mode);
  const auto device = graph_dump::DeviceKindNamed(place.device);
  if (!mode || !device) {
    return Error(ErrorCode::kInvalidArgument,
                 "mode or device: is \"" + place.mode + "\", \"" + place.device +
                     "\" (expected graph_kbyk, graph_ge or pynative; cpu, gpu or ascend)");
  }
  return graph_dump::PlanDump(config_path, overrides,
                              {*mode, *device, place.rank, place.hash_is_named_md5});
}

pipeline::FinishOptions OptionsOf(const DumpPlan& plan) {
  pipeline::FinishOptions options;
  options.items = plan.finish_items;
  options.drops_tensors = !plan.keeps_tensors;
  return options;
}

void BindPlan(nb::module_& m) {
  nb::class_<DumpPlan>(m, "GraphDumpPlan", "What config.json asks of static graphs.")
      .def_prop_ro("is_on", [](const DumpPlan& self) { return self.is_on; })
      .def_prop_ro("dump_path", [](const DumpPlan& self) { return self.dump_path; })
      .def_prop_ro("warnings", [](const DumpPlan& self) { return self.warnings; })
      .def_prop_ro(
          "finishes", [](const DumpPlan& self) { return !self.finish_items.empty(); },
          "Whether statistics are to be made from the tensors.")
      .def(
          "tree",
          [](const DumpPlan& self, std::optional<int64_t> rank) { return TreeOfRank(self, rank); },
          nb::arg("rank").none(), "Where MindSpore writes what one rank dumps.")
      .def(
          "text", [](const DumpPlan& self) { return DumpSettingsText(self.settings); },
          "The dump configuration as JSON.")
      .def(
          "write", [](const DumpPlan& self) { return ValueOrRaise(WriteDumpPlan(self)); },
          "Writes the dump configuration below dump_path; returns its path.")
      .def(
          "environment",
          [](const DumpPlan& self, const std::string& config_file) {
            return EnvironmentOf(self, config_file).set;
          },
          nb::arg("config_file"), "Variables to set before MindSpore starts.")
      .def(
          "removed_environment", [](const DumpPlan& self) { return EnvironmentOf(self, {}).unset; },
          "Variables to remove before MindSpore starts.");
}

// Kernel, rank, step, is_output, path.
using FoundTensor = std::tuple<std::string, int64_t, int64_t, bool, std::string>;

Result<std::vector<FoundTensor>> FindUnlocked(const std::string& root,
                                              const pipeline::SourceQuery& query) {
  const nb::gil_scoped_release release;
  PL_TRY_ASSIGN(std::vector<pipeline::SourceTensor> found,
                pipeline::FindSourceTensors(root, query));
  std::vector<FoundTensor> out;
  out.reserve(found.size());
  for (pipeline::SourceTensor& one : found) {
    out.emplace_back(std::move(one.kernel), one.rank, one.step, one.is_output, std::move(one.path));
  }
  return out;
}

void BindReaders(nb::module_& m) {
  nb::class_<load::GraphIndex>(m, "GraphIndex", "Every tensor of a static-graph dump.")
      .def_prop_ro("left_out", [](const load::GraphIndex& self) { return self.left_out(); })
      .def("__len__", [](const load::GraphIndex& self) { return self.tensors().size(); })
      .def(
          "path",
          [](const load::GraphIndex& self, size_t i) {
            if (i >= self.tensors().size()) throw nb::index_error();
            return self.PathOf(self.tensors()[i]);
          },
          nb::arg("index"), "File of one tensor, or the table that has its row.");
  m.def(
      "index_graph_dump",
      [](const std::string& root) {
        Result<load::GraphIndex> index = [&] {
          const nb::gil_scoped_release release;
          return load::GraphIndex::Read(root, /*reads_headers=*/false);
        }();
        return ValueOrRaise(std::move(index));
      },
      nb::arg("root"), "Lists every tensor of a static-graph dump; opens no tensor.");
  m.def(
      "find_source_tensors",
      [](const std::string& root, const std::string& text, bool is_regex,
         std::optional<std::vector<int64_t>> ranks, std::optional<std::vector<int64_t>> steps) {
        return ValueOrRaise(
            FindUnlocked(root, {text, is_regex, std::move(ranks), std::move(steps)}));
      },
      nb::arg("root"), nb::arg("text"), nb::arg("is_regex"), nb::arg("ranks").none(),
      nb::arg("steps").none(),
      "Tensors of the kernels whose source trace holds a text: kernel, rank, step, is_output, "
      "path.");
  m.def(
      "write_graph_sheets",
      [](const std::string& root, const std::string& directory) {
        Result<std::string> path = [&] {
          const nb::gil_scoped_release release;
          return pipeline::WriteGraphSheets(root, directory);
        }();
        return ValueOrRaise(std::move(path));
      },
      nb::arg("root"), nb::arg("directory"),
      "Writes the compiled graphs of a dump as a workbook; returns its path.");
}

}  // namespace

void BindGraphDumps(nb::module_& m) {
  BindPlan(m);
  BindReaders(m);
  nb::class_<GraphPlace>(m, "GraphPlace", "Where a graph runs, by the names of config.json.")
      .def(nb::init<std::string, std::string, std::optional<int64_t>, bool>(), nb::arg("mode"),
           nb::arg("device"), nb::arg("rank").none(), nb::arg("hash_is_named_md5"));
  nb::class_<ConfigOverrides>(m, "GraphOverrides", "Arguments that win over config.json.")
      .def(nb::init<OptionalText, OptionalText, OptionalText, OptionalText>(),
           nb::arg("task").none(), nb::arg("dump_path").none(), nb::arg("level").none(),
           nb::arg("step_json").none());
  m.def("asks_for_kernels", &graph_dump::AsksForKernels, nb::arg("config_path").none(),
        nb::arg("overrides"), "Whether config.json, with the arguments over it, has level L2.");
  m.def(
      "plan_graph_dump",
      [](const OptionalText& config_path, const ConfigOverrides& overrides,
         const GraphPlace& place) { return ValueOrRaise(Plan(config_path, overrides, place)); },
      nb::arg("config_path").none(), nb::arg("overrides"), nb::arg("place"),
      "Reads config.json for static graphs.");
  nb::class_<pipeline::BackgroundFinisher>(m, "GraphFinisher",
                                           "Makes statistics from the tensors of one rank.")
      .def(
          "__init__",
          [](pipeline::BackgroundFinisher* self, const DumpPlan& plan,
             std::optional<int64_t> rank) {
            new (self) pipeline::BackgroundFinisher(TreeOfRank(plan, rank), OptionsOf(plan));
          },
          nb::arg("plan"), nb::arg("rank").none())
      .def("begin", &pipeline::BackgroundFinisher::Begin, nb::call_guard<nb::gil_scoped_release>(),
           "Begins a pass in the background, unless one runs.")
      .def(
          "finish",
          [](pipeline::BackgroundFinisher& self) {
            Result<pipeline::FinishReport> report = [&] {
              const nb::gil_scoped_release release;
              return self.Finish();
            }();
            pipeline::FinishReport done = ValueOrRaise(std::move(report));
            return std::pair(done.rows, std::move(done.problems));
          },
          "Waits and takes what is left; returns the number of rows, and what was left out.");
}

}  // namespace plumbline::python

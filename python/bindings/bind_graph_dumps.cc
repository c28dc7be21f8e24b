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

#include "config/graph_dump/dump_request.h"
#include "errors.h"
#include "file_path.h"
#include "graphs/graph_run.h"
#include "graphs/graph_sheets.h"
#include "graphs/source_lines.h"
#include "load/graph_index.h"
#include "operators/convert_dumps.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using OptionalText = std::optional<std::string>;

// What the environment must hold, and must not hold.
using EnvironmentChange =
    std::pair<std::vector<std::pair<std::string, std::string>>, std::vector<std::string>>;

using Question = decltype(graph_dump::AsksForKernels);

// A question about config.json and the arguments that win over it.
void DefineQuestion(nb::module_& m, const char* name, Question* question, const char* meaning) {
  m.def(
      name,
      [question](const OptionalText& config_path, const OptionalText& task,
                 const OptionalText& dump_path, const OptionalText& level,
                 const OptionalText& step_json) {
        return question(config_path, {task, dump_path, level, step_json});
      },
      nb::arg("config_path").none(), nb::arg("task").none(), nb::arg("dump_path").none(),
      nb::arg("level").none(), nb::arg("step_json").none(), meaning);
}

void BindRun(nb::module_& m) {
  nb::class_<graphs::GraphRun>(m, "GraphRun", "The dump of one process's static graphs.")
      .def_prop_ro("tree", &graphs::GraphRun::tree, "What MindSpore writes of this rank.")
      .def("select_scopes", &graphs::GraphRun::SelectScopes, nb::arg("scopes"),
           "Also selects kernels below these scopes, such as \"fc1-Dense/\".")
      .def("set_first_iteration", &graphs::GraphRun::SetFirstIteration, nb::arg("number"),
           "Numbers the first iteration; False: too late.")
      .def(
          "start",
          [](graphs::GraphRun& self) {
            graph_dump::DumpEnvironment change = self.Start();
            return EnvironmentChange(std::move(change.set), std::move(change.unset));
          },
          "Writes the dump configuration; returns variables to set and to remove.")
      .def("step", &graphs::GraphRun::Step, nb::call_guard<nb::gil_scoped_release>(),
           "Begins a pass over what is complete, in the background.")
      .def("close", &graphs::GraphRun::Close, nb::call_guard<nb::gil_scoped_release>(),
           "Makes the statistics that are left.")
      .def("take_problems", &graphs::GraphRun::TakeProblems, "Warnings since the last time.");
  m.def(
      "plan_graph_dump",
      [](const OptionalText& config_path, const OptionalText& task, const OptionalText& dump_path,
         const OptionalText& level, const OptionalText& step_json,
         const graphs::GraphPlace& place) {
        return ValueOrRaise(
            graphs::GraphRun::Plan(config_path, {task, dump_path, level, step_json}, place));
      },
      nb::arg("config_path").none(), nb::arg("task").none(), nb::arg("dump_path").none(),
      nb::arg("level").none(), nb::arg("step_json").none(), nb::arg("place"),
      "Reads config.json for static graphs; the arguments behind it win over it.");
  DefineQuestion(m, "asks_for_kernels", graph_dump::AsksForKernels,
                 "Whether config.json, with the arguments over it, has level L2.");
  DefineQuestion(m, "asks_for_api", graph_dump::AsksForApi,
                 "Whether it has level L2 and a list that names an API.");
}

// Kernel, rank, step, is_output, path.
using FoundTensor = std::tuple<std::string, int64_t, int64_t, bool, FilePath>;

Result<std::vector<FoundTensor>> FindUnlocked(const std::string& root,
                                              const graphs::SourceQuery& query) {
  const nb::gil_scoped_release release;
  PL_TRY_ASSIGN(std::vector<graphs::SourceTensor> found, graphs::FindSourceTensors(root, query));
  std::vector<FoundTensor> out;
  out.reserve(found.size());
  for (graphs::SourceTensor& one : found) {
    out.emplace_back(std::move(one.kernel), one.rank, one.step, one.is_output,
                     FilePath{std::move(one.path)});
  }
  return out;
}

Result<std::vector<TextWithPaths>> ConvertUnlocked(const std::string& root) {
  const nb::gil_scoped_release release;
  PL_TRY_ASSIGN(std::vector<std::string> failed, operators::ConvertTreeToHost(root));
  std::vector<TextWithPaths> out;
  for (std::string& line : failed) out.push_back({std::move(line)});
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
            return FilePath{self.PathOf(self.tensors()[i])};
          },
          nb::arg("index"), "File of one tensor, or the table that has its row.");
  m.def(
      "index_graph_dump",
      [](const FilePath& root) {
        Result<load::GraphIndex> index = [&] {
          const nb::gil_scoped_release release;
          return load::GraphIndex::Read(root.bytes, /*reads_headers=*/false);
        }();
        return ValueOrRaise(std::move(index));
      },
      nb::arg("root"), "Lists every tensor of a static-graph dump; opens no tensor.");
  m.def(
      "find_source_tensors",
      [](const FilePath& root, const std::string& text, bool is_regex,
         std::optional<std::vector<int64_t>> ranks, std::optional<std::vector<int64_t>> steps) {
        return ValueOrRaise(
            FindUnlocked(root.bytes, {text, is_regex, std::move(ranks), std::move(steps)}));
      },
      nb::arg("root"), nb::arg("text"), nb::arg("is_regex"), nb::arg("ranks").none(),
      nb::arg("steps").none(),
      "Tensors of the kernels whose source trace holds a text: kernel, rank, step, is_output, "
      "path.");
  m.def(
      "write_graph_sheets",
      [](const FilePath& root, const FilePath& directory) {
        Result<std::string> path = [&] {
          const nb::gil_scoped_release release;
          return graphs::WriteGraphSheets(root.bytes, directory.bytes);
        }();
        return FilePath{ValueOrRaise(std::move(path))};
      },
      nb::arg("root"), nb::arg("directory"),
      "Writes the compiled graphs of a dump as a workbook; returns its path.");
  m.def(
      "convert_tree_to_host",
      [](const FilePath& root) { return ValueOrRaise(ConvertUnlocked(root.bytes)); },
      nb::arg("root"),
      "Writes the tensors of every device file below a directory as arrays beside it; returns a "
      "line for each file that failed.");
}

}  // namespace

void BindGraphDumps(nb::module_& m) {
  nb::class_<graphs::GraphPlace>(m, "GraphPlace", "Where graphs run, as MindSpore spells it.")
      .def(nb::init<std::string, std::string, std::string>(), nb::arg("mode"), nb::arg("device"),
           nb::arg("version"));
  BindRun(m);
  BindReaders(m);
}

}  // namespace plumbline::python

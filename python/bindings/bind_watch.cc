#include "bind_watch.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "errors.h"
#include "file_path.h"
#include "formats/array/npy.h"
#include "watch/points/graph_trace.h"
#include "watch/points/recording.h"
#include "watch/points/watch_run.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using watch::WatchedTensor;

// The tensors of a recording under numbers, with the parts that hold them.
class WatchedRecording {
 public:
  static Result<std::unique_ptr<WatchedRecording>> Open(const std::string& path) {
    auto recording = std::make_unique<WatchedRecording>();
    recording->path_ = path;
    PL_TRY_ASSIGN(const watch::Recording read, watch::OpenRecording(path));
    for (const auto& part : read.parts) {
      PL_TRY_ASSIGN(auto tensors, part->Read());
      for (WatchedTensor& tensor : tensors) {
        recording->places_.emplace(KeyOf(tensor, part->step, part->rank),
                                   recording->tensors_.size());
        recording->tensors_.push_back({std::move(tensor), part});
      }
    }
    recording->trace_ = watch::GraphTrace::Read(path);
    return recording;
  }

  struct Entry {
    WatchedTensor tensor;
    std::shared_ptr<watch::StepPart> part;
  };

  static std::string KeyOf(const WatchedTensor& tensor, int64_t step, int64_t rank) {
    return std::to_string(step) + '\n' + std::to_string(rank) + '\n' + tensor.Key();
  }

  [[nodiscard]] const std::vector<Entry>& tensors() const { return tensors_; }
  [[nodiscard]] const watch::GraphTrace& trace() const { return trace_; }

  using Watchpoint = std::pair<std::string, std::vector<size_t>>;
  // Rows of all watchpoints, each over the tensors that it names.
  Result<watch::WatchReport> Check(const std::vector<Watchpoint>& watchpoints) const {
    watch::WatchOptions options;
    options.path = path_;
    options.side = watch::WatchedSide::kBoth;
    std::vector<std::vector<bool>> chosen;
    for (const auto& [text, numbers] : watchpoints) {
      PL_TRY_ASSIGN(watch::Rule rule, watch::Rules::ParseRule(text));
      rule.takes_any_kind = true;
      options.rules.Add(std::move(rule));
      std::vector<bool>& of_rule = chosen.emplace_back(tensors_.size());
      for (const size_t number : numbers) of_rule[number] = true;
    }
    options.selects = [&](size_t rule, const WatchedTensor& tensor, int64_t step, int64_t rank) {
      const auto found = places_.find(KeyOf(tensor, step, rank));
      return found != places_.end() && chosen[rule][found->second];
    };
    return watch::WatchRecording(options);
  }

  [[nodiscard]] std::optional<size_t> NumberOf(const watch::WatchRow& row) const {
    WatchedTensor tensor;
    tensor.graph = row.graph;
    tensor.name = row.name;
    tensor.io = row.io;
    tensor.slot = row.slot;
    const auto found = places_.find(KeyOf(tensor, row.step, row.rank));
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::string path_;
  std::vector<Entry> tensors_;
  std::unordered_map<std::string, size_t> places_;
  watch::GraphTrace trace_;
};

Result<std::unique_ptr<WatchedRecording>> OpenUnlocked(const std::string& path) {
  const nb::gil_scoped_release release;
  return WatchedRecording::Open(path);
}

Result<watch::WatchReport> CheckUnlocked(const WatchedRecording& recording,
                                         const std::vector<WatchedRecording::Watchpoint>& all) {
  const nb::gil_scoped_release release;
  return recording.Check(all);
}

nb::list TensorsOf(const WatchedRecording& recording) {
  nb::list out;
  for (const auto& [tensor, part] : recording.tensors()) {
    out.append(nb::make_tuple(part->step, part->rank, tensor.graph, tensor.name, tensor.io,
                              tensor.slot_number, tensor.op));
  }
  return out;
}

nb::list NodesOf(const WatchedRecording& recording) {
  nb::list out;
  for (const watch::TracedNode& node : recording.trace().nodes()) {
    out.append(nb::make_tuple(node.rank, node.graph_name, node.root_graph, node.name, node.op,
                              node.stack, node.inputs));
  }
  return out;
}

// (bytes, dtype, shape), or None where no elements were recorded.
nb::object ValueOf(const WatchedRecording& recording, size_t number) {
  const auto& entry = recording.tensors().at(number);
  if (entry.tensor.file.empty()) return nb::none();
  const auto held = ValueOrRaise(entry.part->Open(entry.tensor));
  const Tensor copy = ValueOrRaise(Tensor::Copy(held->view()));
  const TensorView view = copy.view();
  const npy::Contents contents = ValueOrRaise(
      npy::MakeContents(view.dtype, view.sizes, {view.data, view.size_bytes()}));
  const std::vector<int64_t> shape(view.sizes.begin(), view.sizes.end());
  return nb::make_tuple(
      nb::bytes(reinterpret_cast<const char*>(contents.data.data()), contents.data.size()),
      std::string(InfoOf(contents.dtype).numpy_descr), shape);
}

nb::tuple CheckTuple(const watch::RowCheck& check) {
  const bool is_known = check.truth != watch::Truth::kUnknown && check.actual.is_bounded();
  const nb::object hit = check.truth == watch::Truth::kUnknown
                             ? nb::none()
                             : nb::cast(check.truth == watch::Truth::kTrue);
  const nb::object actual =
      is_known ? nb::cast(static_cast<double>((check.actual.low + check.actual.high) / 2))
               : nb::none();
  return nb::make_tuple(std::string(check.parameter), check.threshold, hit, actual);
}

// (watchpoint, tensor, upstream's code, words of the reasons, checks) for what is no plain "no".
nb::list RowsOf(const WatchedRecording& recording,
                const std::vector<WatchedRecording::Watchpoint>& watchpoints) {
  const watch::WatchReport report = ValueOrRaise(CheckUnlocked(recording, watchpoints));
  nb::list out;
  for (const watch::WatchRow& row : report.rows) {
    const auto number = recording.NumberOf(row);
    if (!number) continue;
    nb::list checks;
    for (const watch::RowCheck& check : row.checks) checks.append(CheckTuple(check));
    const bool is_unknown = row.verdict == watch::Truth::kUnknown;
    out.append(nb::make_tuple(row.rule, *number, is_unknown ? watch::UpstreamCode(row.reasons) : 0,
                              is_unknown ? watch::ReasonText(row.reasons) : std::string(),
                              checks));
  }
  return out;
}

}  // namespace

void BindWatch(nb::module_& m) {
  nb::class_<WatchedRecording>(m, "WatchedRecording", "Every tensor of a recording, by number.")
      .def_prop_ro("tensors", &TensorsOf,
                   "(step, rank, graph, name, io, slot, operation) of each.")
      .def_prop_ro("nodes", &NodesOf,
                   "(rank, graph, root graph, name, operation, stack, inputs) of compiled graphs.")
      .def(
          "stack",
          [](const WatchedRecording& self, size_t number) {
            const auto& entry = self.tensors().at(number);
            return entry.part->StackOf(entry.tensor);
          },
          nb::arg("number"), "Call stack of a tensor's call, innermost frame first.")
      .def("value", &ValueOf, nb::arg("number"),
           "Its elements as (bytes, dtype, shape), or None.")
      .def("check", &RowsOf, nb::arg("watchpoints"),
           "Holds expressions against the tensors named beside each: (watchpoint, tensor, code, "
           "reasons, [(parameter, threshold, hit, actual)]) for hits and what is not evaluated.");
  m.def(
      "open_watched",
      [](const FilePath& path) { return ValueOrRaise(OpenUnlocked(path.bytes)); },
      nb::arg("path"), "Reads what a recording holds; no elements of tensors.");
}

}  // namespace plumbline::python

#include "bind_black_box.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "callback.h"
#include "errors.h"
#include "grad_hook.h"
#include "live_monitor.h"
#include "watch/live/black_box.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

using Clock = std::chrono::steady_clock;

// A monitor that looks at samples, and the sink that it writes to.
struct BlackBox {
  nb::object live;
  LiveMonitor* monitor = nullptr;
  watch::BlackBoxSink* sink = nullptr;  // owned by the monitor
  Clock::duration in_hooks{};           // time spent in hooks since the last question
};

// Adds the time that it lives.
class Stopwatch {
 public:
  explicit Stopwatch(Clock::duration* total) : total_(total), begun_(Clock::now()) {}
  ~Stopwatch() { *total_ += Clock::now() - begun_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Clock::duration* total_;
  Clock::time_point begun_;
};

// A forward hook: samples what a module gives at its first call of each step.
class OutputSample {
 public:
  OutputSample(BlackBox& box, nb::object is_recomputing, std::string_view module)
      : box_(box),
        is_recomputing_(std::move(is_recomputing)),
        name_(box.monitor->monitor().Name(std::string(module) + ".output", 0, 0)) {}

  void After(PyObject* module, PyObject* output) {
    const Stopwatch stopwatch(&box_.in_hooks);
    RunGuarded(*box_.monitor, [&] { Look(module, output); });
  }

 private:
  void Look(PyObject* module, PyObject* output) {
    LiveMonitor& monitor = *box_.monitor;
    if (epoch_ == monitor.epoch()) return;
    if (!IsTraining(module) || nb::cast<bool>(is_recomputing_())) return;
    epoch_ = monitor.epoch();
    PyObject* tensor = FirstTensor(output, monitor.types().tensor);
    if (tensor != nullptr) monitor.Add(MonitorKind::kActivation, name_, 0, tensor);
  }

  BlackBox& box_;
  nb::object is_recomputing_;
  const watch::WatchedName* name_;
  uint64_t epoch_ = UINT64_MAX;
};

// A forward pre hook: the first tensor that the model gets in each step.
class InputSample {
 public:
  InputSample(BlackBox& box, std::string_view name)
      : box_(box), name_(box.monitor->monitor().Name(name, 0, 0)) {}

  void Before(PyObject* module, PyObject* args, PyObject* kwargs) {
    const Stopwatch stopwatch(&box_.in_hooks);
    RunGuarded(*box_.monitor, [&] {
      LiveMonitor& monitor = *box_.monitor;
      if (epoch_ == monitor.epoch() || !IsTraining(module)) return;
      epoch_ = monitor.epoch();
      PyObject* tensor = FirstTensor(args, monitor.types().tensor);
      if (tensor == nullptr) tensor = FirstTensor(kwargs, monitor.types().tensor);
      if (tensor != nullptr) monitor.Add(MonitorKind::kOther, name_, 0, tensor);
    });
  }

 private:
  BlackBox& box_;
  const watch::WatchedName* name_;
  uint64_t epoch_ = UINT64_MAX;
};

// A forward pre hook that counts calls in training. Native, as compilers of models trace others.
class CallCount {
 public:
  explicit CallCount(nb::object at_limit) : at_limit_(std::move(at_limit)) {}

  void Before(PyObject* module) {
    try {
      if (!IsTraining(module)) return;
    } catch (...) {  // no such attribute: other frameworks
      PyErr_Clear();
    }
    if (++calls != limit || at_limit_.is_none()) return;
    PyObject* result = PyObject_CallNoArgs(at_limit_.ptr());
    if (result == nullptr) PyErr_Clear();  // what it has to say is said at the end
    Py_XDECREF(result);
  }
  void Forget() { at_limit_ = nb::none(); }

  uint64_t calls = 0, limit = 0;

 private:
  nb::object at_limit_;
};

nb::object NewBlackBox(const nb::dict& framework, const std::string& output,
                       std::optional<int64_t> rank, int64_t steps) {
  FrameworkTypes types;
  FrameworkHooks hooks;
  if (!ReadTypes(framework.ptr(), &types)) {
    throw nb::value_error("new_black_box: name, tensor or describe is missing");
  }
  ReadHooks(framework.ptr(), &hooks);
  watch::MonitorConfig config;
  config.ops = watch::BlackBoxOps();
  const watch::MonitorPlace place{output, {rank.value_or(0), 0, {}}, rank, 0};
  std::string warning;
  auto made = watch::MakeMonitorDirectory(config, place, nullptr, &warning);
  std::string directory = made ? std::move(*made) : std::string();
  auto sink = std::make_unique<watch::BlackBoxSink>(directory, steps);
  auto* raw_sink = sink.get();
  auto monitor = std::make_unique<watch::Monitor>(config, place.alerts, std::move(sink), "", 0);
  auto* live = new LiveMonitor(std::move(types), hooks, std::move(monitor), 0);
  live->set_sampled();
  if (!made) {
    live->Warn(fmt::format("{}: nothing is written; what goes wrong is said in the log alone",
                           made.error().message()));
  }
  live->set_directory(std::move(directory));
  nb::object owner = nb::cast(live, nb::rv_policy::take_ownership);
  live->set_owner(owner.ptr());
  return nb::cast(new BlackBox{owner, live, raw_sink, {}}, nb::rv_policy::take_ownership);
}

// The norm of all gradients together, from samples; None counts as zero.
double NormOf(BlackBox& self, const nb::list& gradients) {
  const Stopwatch stopwatch(&self.in_hooks);
  double squares = 0;
  for (nb::handle gradient : gradients) {
    if (gradient.is_none()) continue;
    const double norm = self.monitor->Measure(gradient.ptr()).of(watch::Op::kNorm);
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

// (fault, step, row, module, text) of the finding that explains the others.
std::optional<std::tuple<std::string, int64_t, std::string, std::string, std::string>> First(
    const BlackBox& self) {
  const auto first = self.sink->First();
  if (!first) return std::nullopt;
  return std::tuple(std::string(watch::NameOf(first->fault)), first->step, first->name,
                    first->place, first->text);
}

}  // namespace

void BindBlackBox(nb::module_& m) {
  nb::class_<BlackBox>(m, "BlackBox", "Samples of the last steps of a training.")
      .def_prop_ro(
          "live", [](const BlackBox& self) { return self.live; },
          nb::for_getter(nb::sig("def live(self, /) -> LiveMonitor")))
      .def_prop_ro("is_frozen", [](const BlackBox& self) { return self.sink->is_frozen(); })
      .def_prop_ro("first", First)
      .def("norm", NormOf, nb::arg("gradients"))
      .def(
          "take_seconds",
          [](BlackBox& self) {
            const auto spent = std::exchange(self.in_hooks, {});
            return std::chrono::duration<double>(spent).count();
          },
          "Spent in hooks since the last call.")
      .def(
          "write",
          [](const BlackBox& self, std::string_view text) {
            if (self.monitor->directory().empty()) return;
            ValueOrRaise(WriteFileAtomically(
                JoinPath(self.monitor->directory(), watch::kBlackBoxFile), text, false));
          },
          nb::arg("text"), "How the training is and how it ended, as JSON.");
  nb::class_<InputSample>(m, "InputSample", "Samples what a model gets.")
      .def(nb::init<BlackBox&, std::string_view>(), nb::keep_alive<1, 2>(), nb::arg("box"),
           nb::arg("name"))
      .def(
          "before",
          [](InputSample& self, nb::handle module, nb::handle args, nb::handle kwargs) {
            self.Before(module.ptr(), args.ptr(), kwargs.ptr());
          },
          nb::arg(), nb::arg(), nb::arg(), "A forward pre hook.");
  nb::class_<CallCount>(m, "CallCount", "Counts calls of a model that trains.")
      .def(nb::init<nb::object>(), nb::arg("at_limit").none(),
           nb::sig("def __init__(self, at_limit: collections.abc.Callable[[], None]) -> None"))
      .def_rw("calls", &CallCount::calls)
      .def_rw("limit", &CallCount::limit, "At this many calls `at_limit` is called.")
      .def("forget", &CallCount::Forget, "`at_limit` is called no more.")
      .def(
          "before",
          [](CallCount& self, nb::handle module, nb::handle) { self.Before(module.ptr()); },
          nb::arg(), nb::arg(), "A forward pre hook.");
  nb::class_<OutputSample>(m, "OutputSample", "Samples the output of one module.")
      .def(nb::init<BlackBox&, nb::object, std::string_view>(), nb::keep_alive<1, 2>(),
           nb::arg("box"), nb::arg("is_recomputing"), nb::arg("module"))
      .def(
          "after",
          [](OutputSample& self, nb::handle module, nb::handle, nb::handle output) {
            self.After(module.ptr(), output.ptr());
          },
          nb::arg(), nb::arg(), nb::arg().none(), "A forward hook.");
  m.def("new_black_box", NewBlackBox, nb::arg("framework"), nb::arg("output"),
        nb::arg("rank").none(), nb::arg("steps"),
        nb::sig("def new_black_box(framework: dict, output: str, rank: int | None, steps: int) -> "
                "BlackBox"));
}

}  // namespace plumbline::python

#include "bind_capture.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/process/log.h"
#include "call_probe.h"
#include "config/config.h"
#include "config/selection.h"
#include "errors.h"
#include "module_hook.h"
#include "optimizer_steps.h"
#include "patch_set.h"
#include "recorder.h"
#include "reference_run.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

std::string_view OutcomeName(capture::StartOutcome outcome) {
  switch (outcome) {
    case capture::StartOutcome::kCollecting:
      return "collecting";
    case capture::StartOutcome::kNotSelected:
      return "not selected";
    case capture::StartOutcome::kFinished:
      return "finished";
  }
  return "";
}

// Window calls write and sync files: without the interpreter lock.
void WithoutLock(void (capture::Observer::*call)(), capture::Observer& observer) {
  const nb::gil_scoped_release release;
  (observer.*call)();
}

// Nobody records while a step ends.
void EndStepWith(void (capture::Observer::*call)(), Recorder& recorder) {
  const capture::StepGate::Closed closed(recorder.gate(), ThisThread().in_tool > 0 ? 1 : 0,
                                         recorder.calls().threads());
  recorder.EndStep();
  WithoutLock(call, recorder.observer());
}

void BindConfig(nb::module_& m) {
  nb::class_<Config>(m, "Config", "A checked config.json with the constructor's overrides.")
      .def_prop_ro("task", [](const Config& c) { return std::string(TaskName(c.task)); })
      .def_prop_ro("level", [](const Config& c) { return std::string(LevelName(c.level)); })
      .def_ro("dump_path", &Config::dump_path)
      .def_ro("listed", &Config::list)
      .def_ro("enable_dataloader", &Config::enable_dataloader)
      .def_ro("dump_enable", &Config::dump_enable)
      .def_prop_ro("wants_backward", [](const Config& c) { return c.data_mode.backward; })
      .def_ro("traces_frames", &Config::traces_frames)
      .def_ro("max_frames", &Config::max_frames)
      .def_ro("traced_batches", &Config::traced_batches)
      .def_ro("abort_after_batch", &Config::abort_after_batch)
      .def_ro("raises_on_overflow", &Config::raises_on_overflow)
      .def(
          "wants",
          [](const Config& c, int step, std::optional<int> rank) {
            return WantsStep(c, step) && WantsRank(c, rank);
          },
          nb::arg("step"), nb::arg("rank").none(), "Whether a step of a rank is selected.")
      .def_ro("warnings", &Config::warnings);
  m.def(
      "load_config",
      [](const std::optional<std::string>& path, const std::optional<std::string>& task,
         const std::optional<std::string>& dump_path, const std::optional<std::string>& level,
         const std::optional<std::string>& step_json) {
        return ValueOrRaise(LoadConfig(path, {task, dump_path, level, step_json}));
      },
      nb::arg("path").none(), nb::arg("task").none(), nb::arg("dump_path").none(),
      nb::arg("level").none(), nb::arg("step_json").none(),
      "Reads and checks a configuration; ValueError names field, value and what was expected.");
}

using Class = Recorder;

// A row of numbers that a device computes of a tensor (python/plumbline/pytorch/device_values.py).
struct DeviceRow {
  double count, nan_count, inf_count, zero_count;
  double max, min, finite_max, finite_min;
  double sum, sum_squares;
  int64_t integer;  // the value of an integer tensor without dimensions, else 0
  uint64_t digest_low, digest_high;  // where wants_digest
};

// What is known of the tensors with the numbers from `first` on, from `count` rows at `address`.
void AddRows(Recorder& recorder, uint64_t first, uintptr_t address, size_t count) {
  const nb::gil_scoped_release release;
  const std::span rows(reinterpret_cast<const DeviceRow*>(address), count);
  std::vector<capture::Observer::DeviceValues> values;
  for (const DeviceRow& row : rows) {
    kernels::Moments one;
    one.count = static_cast<uint64_t>(row.count);
    one.nan_count = static_cast<uint64_t>(row.nan_count);
    one.inf_count = static_cast<uint64_t>(row.inf_count);
    one.zero_count = static_cast<uint64_t>(row.zero_count);
    one.max = row.max;
    one.min = row.min;
    one.finite_max = row.finite_max;
    one.finite_min = row.finite_min;
    one.sum = row.sum;
    one.sum_squares = row.sum_squares;
    one.int_max = one.int_min = row.integer;
    one.uint_max = one.uint_min = static_cast<uint64_t>(row.integer);
    values.push_back({one, {row.digest_low, row.digest_high}});
  }
  recorder.observer().AddReduced(first, values);
}

void BindLateValues(nb::class_<Class>& recorder) {
  recorder
      .def_prop_ro("wants_digest",
                   [](Class& self) {
                     return self.observer().config().summary_mode == SummaryMode::kDigest;
                   })
      .def_prop_ro("is_async", [](Class& self) { return self.observer().config().async_dump; })
      .def("add_rows", &AddRows, nb::arg("first"), nb::arg("address"), nb::arg("count"),
           "What a device computed of the tensors with the numbers from `first` on: rows of 10 "
           "float64 and 3 int64 in host memory. May write the files of a step.")
      .def(
          "add_tensor",
          [](Class& self, uint64_t number, nb::handle tensor) {
            return self.AddLate(number, tensor.ptr());
          },
          nb::arg("number"), nb::arg("tensor"),
          "Every element of the tensor of that number, on the host. False: it cannot be read.")
      .def(
          "drop_values",
          [](Class& self, uint64_t first, uint64_t count, const std::string& why) {
            const nb::gil_scoped_release release;
            self.observer().DropValues(first, count, why);
          },
          nb::arg("first"), nb::arg("count"), nb::arg("why"),
          "The statistics of these tensors will not come: they are counted as lost.");
}

// What bench_path compares this step with. Without it the window closes again.
void ReadReferenceOfStep(Recorder& recorder, std::optional<int> rank) {
  capture::Observer& observer = recorder.observer();
  if (observer.config().bench_path.empty()) return;
  auto reference = ReadReference(observer.config().bench_path, observer.step(), rank);
  if (!reference) (void)observer.Stop();
  recorder.calls().set_reference(ValueOrRaise(std::move(reference)));
}

void BindWindow(nb::class_<Class>& recorder) {
  recorder
      .def(
          "start",
          [](Class& self, std::optional<int> rank) {
            const capture::StartOutcome outcome = self.observer().Start(rank);
            if (outcome == capture::StartOutcome::kCollecting) ReadReferenceOfStep(self, rank);
            return std::string(OutcomeName(outcome));
          },
          nb::arg("rank").none())
      .def(
          "use_batch",
          [](Class& self, nb::handle schedule) { return self.UseBatch(schedule.ptr()); },
          nb::arg("schedule").none(),
          "Which rows belong to which request from here on: a dict request -> number of tokens, or "
          "None. False: the request that is recorded has none.")
      .def("stop",
           [](Class& self) {
             self.ForgetTensors();
             WithoutLock(&capture::Observer::Stop, self.observer());
           })
      .def("step", [](Class& self) { EndStepWith(&capture::Observer::Step, self); })
      .def("set_step", [](Class& self, int step) { self.observer().SetStep(step); })
      .def("close", [](Class& self) { EndStepWith(&capture::Observer::Close, self); })
      .def_prop_ro("is_step_open", [](Class& self) { return self.observer().is_step_open(); })
      .def_prop_ro("is_collecting", [](Class& self) { return self.observer().is_collecting(); })
      .def_prop_ro("current_step", [](Class& self) { return self.observer().step(); })
      .def_prop_ro("custom_op_namespaces",
                   [](Class& self) { return self.observer().config().custom_op_namespaces; })
      .def_prop_ro("epoch", [](Class& self) { return self.observer().epoch(); })
      .def_prop_ro("run_directory", [](Class& self) { return self.observer().run_directory(); });
}

void BindProbes(nb::class_<Class>& recorder) {
  recorder.def("probe",
               [](Class& self, nb::object original, std::string_view name, bool is_method) {
                 PyObject* probe = NewProbe(self, original.ptr(), name, is_method);
                 if (probe == nullptr) throw nb::python_error();
                 return nb::steal(probe);
               });
}

// The framework's region of gathered calls, a context manager, whose begin and end are told.
class GatheringRegion {
 public:
  GatheringRegion(nb::object calls, const nb::callable& original, const nb::args& args,
                  const nb::kwargs& kwargs)
      : owner_(std::move(calls)),
        calls_(nb::cast<Collectives&>(owner_)),
        region_(original(*args, **kwargs)) {}

  nb::object Enter() {
    calls_.BeginGathering();
    try {
      manager_ = region_.attr("__enter__")();
    } catch (...) {
      calls_.EndGathering(nullptr);
      throw;
    }
    return manager_;
  }

  nb::object Exit(nb::handle type, nb::handle error, nb::handle traceback) {
    nb::object result;
    try {
      result = region_.attr("__exit__")(type, error, traceback);
    } catch (...) {
      calls_.EndGathering(nullptr);
      throw;
    }
    const nb::object handles = nb::getattr(manager_, "works", nb::none());  // PyTorch 2.1
    const bool is_known = type.is_none() && nb::isinstance<nb::list>(handles);
    calls_.EndGathering(is_known ? handles.ptr() : nullptr);
    return result;
  }

 private:
  nb::object owner_;  // keeps calls_
  Collectives& calls_;
  nb::object region_, manager_;
};

void BindCollectives(nb::module_& m) {
  nb::class_<GatheringRegion>(m, "GatheringRegion", "A region whose calls start together.")
      .def(nb::init<nb::object, nb::callable, nb::args, nb::kwargs>(),
           nb::sig("def __init__(self, calls: Collectives | None, original: object, *args: object, "
                   "**kwargs: object) -> None"))
      .def("__enter__", &GatheringRegion::Enter)
      .def("__exit__", &GatheringRegion::Exit, nb::arg("type").none(), nb::arg("error").none(),
           nb::arg("traceback").none());
  nb::class_<Collectives>(m, "Collectives", "Records communication calls.")
      .def(
          "__init__",
          [](Collectives* self, Class& recorder, nb::object handle_type, nb::object has_succeeded,
             nb::dict postponed, nb::object before) {
            new (self)
                Collectives(recorder, {handle_type.release().ptr(), has_succeeded.release().ptr(),
                                       postponed.release().ptr(), before.release().ptr()});
          },
          nb::keep_alive<1, 2>(), nb::arg("recorder"), nb::arg("handle_type"),
          nb::arg("has_succeeded"), nb::arg("postponed"), nb::arg("before") = nb::none())
      .def(
          "probe",
          [](nb::handle_t<Collectives> self, nb::object original, std::string_view name,
             std::vector<Py_ssize_t> masked_inputs, std::vector<std::string> masked_names,
             std::vector<Py_ssize_t> masked_outputs, bool gives_result) {
            CollectiveRule rule{std::move(masked_inputs), std::move(masked_names),
                                std::move(masked_outputs), gives_result};
            PyObject* probe = NewCollectiveProbe(*nb::inst_ptr<Collectives>(self), self.ptr(),
                                                 original.ptr(), name, std::move(rule));
            if (probe == nullptr) throw nb::python_error();
            return nb::steal(probe);
          },
          nb::arg("original"), nb::arg("name"), nb::arg("masked_inputs"), nb::arg("masked_names"),
          nb::arg("masked_outputs"), nb::arg("gives_result") = false,
          "Masked arguments are recorded as null or as `before` of them; the output is the "
          "arguments afterwards, or the result.")
      .def(
          "completed", [](Collectives& self, nb::handle handle) { self.Completed(handle.ptr()); },
          "The user has waited for `handle`: records the call that returned it, once.")
      .def(
          "is_pending",
          [](Collectives& self, nb::handle handle) { return self.IsPending(handle.ptr()); },
          "Whether the call that returned `handle` is still to be recorded.")
      .def("finish", &Collectives::Finish, "Records the calls that nobody waited for.");
}

// Whether a forward hook runs because the module raised (always_call).
bool IsRaising() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_GetExcInfo(&type, &value, &traceback);
  const bool raising = value != nullptr && value != Py_None;
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return raising;
}

void BindModuleHook(nb::module_& m) {
  nb::class_<Autograd>(m, "Autograd", "Functions of the framework that BackwardCall needs.")
      .def(
          "__init__",
          [](Autograd* self, nb::object is_grad_enabled, nb::object sequence_number,
             nb::object gradient_edge, nb::object queue_callback, nb::object watch_all,
             nb::object add, nb::object reduces_in_place, bool opens_containers) {
            new (self) Autograd{std::move(is_grad_enabled),  std::move(sequence_number),
                                std::move(gradient_edge),    std::move(queue_callback),
                                std::move(watch_all),        std::move(add),
                                std::move(reduces_in_place), opens_containers};
          },
          nb::kw_only(), nb::arg("is_grad_enabled"), nb::arg("sequence_number").none(),
          nb::arg("gradient_edge").none(), nb::arg("queue_callback"), nb::arg("watch_all").none(),
          nb::arg("add"), nb::arg("reduces_in_place"), nb::arg("opens_containers") = false);
  nb::class_<ModuleHook>(m, "ModuleHook", "Hooks around the calls of one module.")
      .def(nb::init<Class&, const Autograd&, std::string, bool>(), nb::keep_alive<1, 2>(),
           nb::keep_alive<1, 3>())
      .def(
          "before",
          [](ModuleHook& self, nb::handle module, nb::handle args, nb::handle kwargs) {
            self.Before(module.ptr(), args.ptr(), kwargs.ptr());
          },
          "A forward pre hook (with_kwargs).")
      .def(
          "after",
          [](ModuleHook& self, nb::handle module, nb::handle, nb::handle, nb::handle output) {
            self.After(module.ptr(), output.ptr(), output.is_none() && IsRaising());
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
          "A forward hook (with_kwargs, always_call).")
      .def("forget_parameters", &ModuleHook::ForgetParameters);
}

void BindOptimizerSteps(nb::module_& m) {
  nb::class_<OptimizerSteps>(m, "OptimizerSteps", "Records what optimizers make of parameters.")
      .def(nb::init<Class&>(), nb::keep_alive<1, 2>())
      .def("use_models", &OptimizerSteps::UseModels, "The models that name the parameters.")
      .def("before", &OptimizerSteps::Before, "An optimizer is about to step.")
      .def("after", &OptimizerSteps::After, "It has.")
      .def("clear", &OptimizerSteps::Clear, "Forgets steps under way.");
}

void BindThread(nb::class_<Class>& recorder) {
  recorder
      .def(
          "save_variable",
          [](Class& self, std::string_view name, nb::handle variable, bool with_gradients) {
            return self.SaveVariable(name, variable.ptr(), with_gradients);
          },
          nb::arg("name"), nb::arg("variable").none(), nb::arg("with_gradients"))
      .def_prop_ro(
          "api_depth", [](Class&) { return ThisThread().in_api; },
          "How many listed APIs this thread is inside of.")
      .def(
          "begin_operator",
          [](Class&) {
            ThisThread().in_operator = true;
            return std::exchange(ThisThread().in_api, 0);
          },
          "The next probe called is an operator's (level L2). Returns what end_operator() takes.")
      .def("end_operator",
           [](Class&, int depth) {
             ThisThread().in_operator = false;
             ThisThread().in_api = depth;
           })
      .def("push_region",
           [](Class& self, std::string_view name) { self.calls().PushRegion(ThisThread(), name); })
      .def("pop_region",
           [](Class& self, std::string_view name) { self.calls().PopRegion(ThisThread(), name); })
      .def(
          "set_function_mode",
          [](Class&, nb::handle mode) {
            ThisThread().function_mode = mode.is_none() ? nullptr : mode.ptr();
          },
          nb::arg("mode").none(),
          "Tells the function mode that was put on this thread's stack, which the caller keeps.")
      .def("count_loss", [](Class& self, std::string_view counter,
                            std::string_view what) { self.observer().CountLoss(counter, what); })
      .def("set_own_directory", [](Class& self, std::string directory) {
        self.stacks().set_own_directory(std::move(directory));
      });
}

void BindRecorder(nb::module_& m) {
  nb::class_<Class> recorder(m, "Recorder", "Turns hook events into entries of the open step.");
  BindWindow(recorder);
  BindProbes(recorder);
  BindThread(recorder);
  BindLateValues(recorder);
  m.def(
      "new_recorder",
      [](const Config& config, const nb::dict& framework) {
        FrameworkTypes types;
        FrameworkHooks hooks;
        if (!ReadTypes(framework.ptr(), &types)) {
          throw nb::value_error("new_recorder: name, tensor or describe is missing");
        }
        ReadHooks(framework.ptr(), &hooks);
        auto observer = ValueOrRaise(capture::Observer::Create(config, types.texts.name));
        auto* made = new Recorder(std::move(observer), std::move(types), hooks);
        nb::object owner = nb::cast(made, nb::rv_policy::take_ownership);
        made->set_owner(owner.ptr());
        return owner;
      },
      nb::arg("config"), nb::arg("framework"),
      nb::sig("def new_recorder(config: Config, framework: dict) -> Recorder"),
      "Makes the recorder of this process; `framework` is Adapter.framework_parts() and a name.");
  m.def("log_info", [](const std::string& text) { LogInfo(text); });
  m.def("log_warning", [](const std::string& text) { LogWarning(text); });
  m.def("log_error", [](const std::string& text) { LogError(text); });
}

}  // namespace

void BindCapture(nb::module_& m) {
  BindConfig(m);
  BindRecorder(m);
  BindCollectives(m);
  BindModuleHook(m);
  BindOptimizerSteps(m);
  nb::class_<PatchSet>(m, "PatchSet", "Attribute replacements applied and taken back as a whole.")
      .def(nb::init<>())
      .def("add",
           [](PatchSet& self, nb::object owner, nb::str name, nb::object replacement) {
             self.Add(owner.ptr(), name.ptr(), replacement.ptr());
           })
      .def("apply", &PatchSet::Apply)
      .def("restore", &PatchSet::Restore)
      .def_prop_ro("is_applied", &PatchSet::is_applied)
      .def_prop_ro("skipped", &PatchSet::skipped)
      .def("__len__", &PatchSet::size);
  m.def(
      "original_of",
      [](nb::object object) -> nb::object {
        PyObject* original = OriginalOf(object.ptr());
        return original == nullptr ? nb::none() : nb::borrow(original);
      },
      "The wrapped callable of a probe, or None.");
}

}  // namespace plumbline::python

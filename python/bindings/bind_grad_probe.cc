#include "bind_grad_probe.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callback.h"
#include "config/config.h"
#include "framework_guards.h"
#include "python_program.h"
#include "tensor_from_python.h"
#include "watch/gradients/gradient_probe.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// Gradients whose memory is read together.
struct Batch {
  std::vector<gradients::Gradient> views;
  std::vector<std::unique_ptr<HostTensor>> hosts;  // what the views are of
  std::vector<nb::object> kept;                    // tensors that must live that long
  size_t copied_bytes = 0;
};

// Reads gradients as Python has them. All methods need the interpreter lock. Nothing raises.
class GradProbe {
 public:
  GradProbe(const Config& config, const nb::dict& framework) : probe_(config) {
    if (!ReadTypes(framework.ptr(), &types_)) {
      throw nb::value_error("GradProbe: name, tensor or describe is missing");
    }
    ReadHooks(framework.ptr(), &hooks_);
    reader_.emplace(types_);
  }
  ~GradProbe() {
    Release(types_);
    Release(hooks_);
  }
  GradProbe(const GradProbe&) = delete;
  GradProbe& operator=(const GradProbe&) = delete;

  gradients::GradientProbe& probe() { return probe_; }

  void Take(const std::vector<size_t>& parameters, const nb::sequence& tensors) {
    const NoOverride plain(types_, hooks_, nullptr);
    Batch batch;
    size_t i = 0;
    for (const nb::handle tensor : tensors) {
      if (i == parameters.size()) break;
      const size_t parameter = parameters[i++];
      if (tensor.is_none()) continue;
      if (!AddTo(batch, parameter, nb::borrow(tensor))) {
        probe_.MissGradient(parameter, problem_);
      }
      // Copies from a device are let go of before they fill the memory.
      constexpr size_t kMostCopied = size_t{256} << 20;
      if (batch.copied_bytes >= kMostCopied) TakeBatch(batch);
    }
    TakeBatch(batch);
  }

 private:
  void TakeBatch(Batch& batch) {
    const capture::ProgramThreads threads = PythonThreads();
    const kernels::Team team = threads.team();
    threads.run_unlocked([&] { probe_.Take(batch.views, team); });
    batch = {};
  }

  // False: problem_ says why.
  bool AddTo(Batch& batch, size_t parameter, nb::object tensor) {
    problem_ = "its memory cannot be read";
    auto host = std::make_unique<HostTensor>();
    if (!IsPlain(tensor.ptr()) || !reader_->Read(tensor.ptr(), host.get())) {
      host = std::make_unique<HostTensor>();
      if (!ReplaceByValues(&tensor) || !reader_->Read(tensor.ptr(), host.get())) return false;
    }
    if (!host->on_host || IsNegated(tensor.ptr())) {
      tensor = nb::steal(PyObject_CallOneArg(hooks_.to_host, tensor.ptr()));
      if (!tensor.is_valid()) {
        DropError();
        return false;
      }
      host = std::make_unique<HostTensor>();
      if (!reader_->Read(tensor.ptr(), host.get()) || !host->on_host) return false;
      batch.copied_bytes += host->view().size_bytes();
    }
    batch.views.push_back({parameter, host->view()});
    batch.hosts.push_back(std::move(host));
    batch.kept.push_back(std::move(tensor));
    return true;
  }

  [[nodiscard]] bool IsPlain(PyObject* tensor) const {
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
    return type == types_.tensor || type == hooks_.parameter_type || types_.dtypes != nullptr;
  }

  // The negation that PyTorch carries out later.
  [[nodiscard]] bool IsNegated(PyObject* tensor) const {
    if (types_.dtypes != nullptr) return false;
    const nb::object answer = nb::steal(PyObject_CallMethod(tensor, "is_neg", nullptr));
    if (!answer.is_valid()) DropError();
    return answer.ptr() == Py_True;
  }

  // A sparse or distributed tensor, or one of a class of the user, by one that holds its values.
  bool ReplaceByValues(nb::object* tensor) {
    constexpr Py_ssize_t kSource = 4, kProblem = 7, kFields = 8;
    const nb::object answer = nb::steal(
        PyObject_CallFunctionObjArgs(hooks_.describe_tensor, tensor->ptr(), Py_True, nullptr));
    if (!answer.is_valid() || !PyTuple_Check(answer.ptr()) ||
        PyTuple_GET_SIZE(answer.ptr()) != kFields) {
      DropError();
      return false;
    }
    PyObject* const problem = PyTuple_GET_ITEM(answer.ptr(), kProblem);
    PyObject* const source = PyTuple_GET_ITEM(answer.ptr(), kSource);
    if (PyUnicode_Check(problem)) problem_ = nb::cast<std::string>(nb::handle(problem));
    if (PyUnicode_Check(problem) || source == Py_None) return false;
    *tensor = nb::borrow(source);
    return true;
  }

  FrameworkTypes types_;
  FrameworkHooks hooks_;
  std::optional<TensorReader> reader_;
  gradients::GradientProbe probe_;
  std::string problem_;
};

void WithoutLock(void (gradients::GradientProbe::*call)(), GradProbe& self) {
  const nb::gil_scoped_release release;
  (self.probe().*call)();
}

using OptionalText = std::optional<std::string>;

void BindQuestion(nb::module_& m) {
  m.def(
      "asks_for_grad_probe",
      [](const OptionalText& path, const OptionalText& task, const OptionalText& dump_path,
         const OptionalText& level, const OptionalText& step_json) {
        return AsksForTask(Task::kGradProbe, path, {task, dump_path, level, step_json});
      },
      nb::arg("path").none(), nb::arg("task").none(), nb::arg("dump_path").none(),
      nb::arg("level").none(), nb::arg("step_json").none(),
      "Whether config.json, with the arguments over it, has task grad_probe. Checks nothing else.");
}

}  // namespace

void BindGradProbe(nb::module_& m) {
  nb::class_<GradProbe>(m, "GradProbe", "Records gradients when optimizers step.")
      .def(nb::init<const Config&, const nb::dict&>(), nb::arg("config"), nb::arg("framework"))
      .def("add_parameters",
           [](GradProbe& self, const std::vector<std::string>& names) {
             self.probe().AddParameters(names);
           })
      .def(
          "begin",
          [](GradProbe& self, uintptr_t optimizer, const std::vector<size_t>& own,
             std::optional<int> rank) { return self.probe().Begin(optimizer, own, rank); },
          nb::arg("optimizer"), nb::arg("own"), nb::arg("rank").none(),
          "An optimizer, by its id, is about to step; the numbers of the parameters to take().")
      .def("take", &GradProbe::Take, nb::arg("parameters"), nb::arg("gradients"),
           "Gradients, or None, of parameters by their numbers.")
      .def("end", [](GradProbe& self) { WithoutLock(&gradients::GradientProbe::End, self); })
      .def("set_first_step",
           [](GradProbe& self, int64_t step) { return self.probe().SetFirstStep(step); })
      .def("drain", [](GradProbe& self) { WithoutLock(&gradients::GradientProbe::Drain, self); })
      .def("close", [](GradProbe& self) { WithoutLock(&gradients::GradientProbe::Close, self); })
      .def_prop_ro("directory", [](GradProbe& self) { return self.probe().directory(); });
  BindQuestion(m);
}

}  // namespace plumbline::python

#include "module_hook.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "callback.h"
#include "errors.h"
#include "recorder.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// The parameters of the module itself, as a dict without the absent ones.
nb::dict OwnParameters(PyObject* module, const FrameworkNames& names) {
  const nb::object all = nb::steal(CheckedPython(PyObject_GetAttr(module, names.parameters)));
  nb::dict present;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(all.ptr(), &at, &key, &value) != 0;) {
    if (value != Py_None) present[nb::handle(key)] = nb::handle(value);
  }
  return present;
}

}  // namespace

ModuleHook::ModuleHook(Recorder& recorder, const Autograd& autograd, std::string prefix,
                       bool wants_backward)
    : recorder_(recorder),
      autograd_(autograd),
      owner_(nb::borrow(recorder.owner())),
      prefix_(std::move(prefix)),
      wants_backward_(wants_backward),
      id_(recorder.observer().counters().Register(prefix_)) {}

void ModuleHook::Before(PyObject* module, PyObject* args, PyObject* kwargs) {
  ThreadState& thread = ThisThread();
  ModuleCall call{this, 0, nullptr};
  RunGuarded(recorder_, [&] {
    const ModeOff mode_off(recorder_.hooks(), thread);
    const uint32_t number = recorder_.EnterModule(id_, module, args, kwargs, &call.token);
    if (call.token == 0 || !wants_backward_ || !nb::cast<bool>(autograd_.is_grad_enabled())) return;
    const InTool in_tool(thread, recorder_.gate());
    const NoOverride unseen(recorder_.types(), recorder_.hooks(), nullptr);
    call.backward = std::make_shared<BackwardCall>(
        recorder_, autograd_, prefix_ + ".backward." + std::to_string(number),
        recorder_.calls().ParentOfBackward(thread), args);
  });
  thread.module_calls.push_back(std::move(call));
}

void ModuleHook::After(PyObject* module, PyObject* output, bool raised) {
  ThreadState& thread = ThisThread();
  auto& calls = thread.module_calls;
  size_t depth = calls.size();
  while (depth > 0 && calls[depth - 1].hook != this) --depth;
  if (depth == 0) return;  // the window was opened inside the call
  const ModuleCall call = std::move(calls[depth - 1]);
  calls.resize(depth - 1);
  if (call.token == 0) return;
  RunGuarded(recorder_, [&] {
    const ModeOff mode_off(recorder_.hooks(), thread);
    const nb::dict parameters = OwnParameters(module, recorder_.hooks().names);
    recorder_.LeaveModule(call.token, module, raised ? nullptr : output, parameters.ptr());
    if (raised || recorder_.observer().is_done()) return;
    const InTool in_tool(thread, recorder_.gate());
    const NoOverride unseen(recorder_.types(), recorder_.hooks(), nullptr);
    if (wants_backward_) WatchParameters(module, parameters.ptr());
    if (call.backward != nullptr) call.backward->Watch(output);
  });
}

void ModuleHook::WatchParameters(PyObject* module, PyObject* parameters) {
  // At the first call of a step: reserves the entry and hooks the parameters.
  static PyObject* const register_hook = PyUnicode_InternFromString("register_hook");
  const uint64_t epoch = recorder_.observer().epoch();
  if (parameters_epoch_ == epoch) return;
  parameters_epoch_ = epoch;
  ForgetParameters();
  nb::list trained;
  PyObject* name = nullptr;
  PyObject* parameter = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(parameters, &at, &name, &parameter) != 0;) {
    if (RequiresGrad(parameter, recorder_.hooks().names)) trained.append(nb::handle(name));
  }
  if (trained.size() == 0) return;
  const std::string entry = prefix_ + ".parameters_grad";
  recorder_.ReserveParameterGradients(entry, trained.ptr());
  awaited_.clear();
  queued_.reset();
  const nb::object in_place = autograd_.reduces_in_place();
  const bool has_ranks = !in_place.is_none();
  reduces_in_place_ = in_place.ptr() == Py_True;
  if (has_ranks) module_ = nb::steal(CheckedPython(PyWeakref_NewRef(module, nullptr)));
  const nb::object self = nb::find(this);
  for (nb::handle key : trained) {
    PyObject* trained_one = PyDict_GetItem(parameters, key.ptr());
    // `self` keeps this object: hooks of parameters may outlive the debugger's list.
    auto record = [this, self, entry, has_ranks, trained_one,
                   text = std::string(TextOf(key.ptr()))](PyObject* args) {
      recorder_.RecordParameterGradient(entry, text, PyTuple_GET_ITEM(args, 0));
      if (has_ranks) AwaitReduction(text, trained_one);
    };
    const nb::object callback = nb::steal(CheckedPython(NewCallback(recorder_, std::move(record))));
    parameter_handles_.push_back(nb::steal(
        CheckedPython(PyObject_CallMethodOneArg(trained_one, register_hook, callback.ptr()))));
  }
}

void ModuleHook::AwaitReduction(const std::string& parameter, const PyObject* known) {
  const bool is_queued = !queued_.expired();
  if (!is_queued) awaited_.clear();  // of a pass that raised
  awaited_.push_back({parameter, known});
  if (is_queued) return;
  const auto ticket = std::make_shared<const bool>(true);
  queued_ = ticket;
  // The framework's own last callback of the pass, which finishes the reduction, may be queued
  // after this one; a callback queued from a callback runs after it.
  const nb::object self = nb::find(this);
  auto last = [this, self, ticket](PyObject*) { RecordReduced(); };
  auto first = [this, self, last = std::move(last)](PyObject*) {
    autograd_.queue_callback(nb::steal(CheckedPython(NewCallback(recorder_, last))));
  };
  autograd_.queue_callback(nb::steal(CheckedPython(NewCallback(recorder_, std::move(first)))));
}

void ModuleHook::RecordReduced() {
  static PyObject* const grad_name = PyUnicode_InternFromString("grad");
  const std::vector<Awaited> awaited = std::exchange(awaited_, {});
  queued_.reset();
  const nb::object module = module_();
  if (module.is_none() || parameters_epoch_ != recorder_.observer().epoch()) return;
  const nb::dict parameters = OwnParameters(module.ptr(), recorder_.hooks().names);
  PyObject* key = nullptr;
  PyObject* parameter = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(parameters.ptr(), &at, &key, &parameter) != 0;) {
    const std::string_view name = TextOf(key);
    const auto found = std::ranges::find(awaited, name, &Awaited::name);
    // FSDP2 has another tensor in the parameter's place while a pass runs. The one that is left
    // gets the reduced gradient.
    if (found == awaited.end() || (parameter == found->known && !reduces_in_place_)) continue;
    const nb::object grad = nb::steal(CheckedPython(PyObject_GetAttr(parameter, grad_name)));
    if (grad.is_none()) continue;
    recorder_.RecordParameterGradient(prefix_ + ".parameters_grad", found->name + ".reduced",
                                      grad.ptr());
  }
}

void ModuleHook::ForgetParameters() {
  static PyObject* const remove = PyUnicode_InternFromString("remove");
  for (const nb::object& handle : std::exchange(parameter_handles_, {})) {
    RunGuarded(recorder_,
               [&] { Py_DECREF(CheckedPython(PyObject_CallMethodNoArgs(handle.ptr(), remove))); });
  }
}

}  // namespace plumbline::python

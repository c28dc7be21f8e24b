// The hooks around the calls of one module, and around the gradients of its parameters.

#ifndef PLUMBLINE_PYTHON_BINDINGS_MODULE_HOOK_H_
#define PLUMBLINE_PYTHON_BINDINGS_MODULE_HOOK_H_

#include "python_api.h"
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backward_call.h"

namespace plumbline::python {

class Recorder;

// `Before` and `After` are registered as forward pre hook and forward hook of a torch.nn.Module.
// Nothing here raises. Requires the interpreter lock.
class ModuleHook {
 public:
  // `prefix`: the entry's name up to the class, "Module.layers.0.LlamaDecoderLayer".
  ModuleHook(Recorder& recorder, const Autograd& autograd, std::string prefix, bool wants_backward);

  void Before(PyObject* module, PyObject* args, PyObject* kwargs);
  // `raised`: the module raised, and `output` means nothing.
  void After(PyObject* module, PyObject* output, bool raised);

  // Removes the hooks of the parameters.
  void ForgetParameters();

 private:
  void WatchParameters(PyObject* module, PyObject* parameters);
  // Gradients that the ranks combine during the backward pass are recorded as well, under
  // "{parameter}.reduced". `known`: the parameter that a gradient of this rank has arrived at.
  void AwaitReduction(const std::string& parameter, const PyObject* known);
  void RecordReduced();

  Recorder& recorder_;
  const Autograd& autograd_;
  nanobind::object owner_;  // of the recorder
  std::string prefix_;
  bool wants_backward_;
  uint32_t id_;
  uint64_t parameters_epoch_ = 0;
  std::vector<nanobind::object> parameter_handles_;

  // Parameters with a gradient in the running pass, by name; `known` is compared, never read.
  struct Awaited {
    std::string name;
    const PyObject* known;
  };
  std::vector<Awaited> awaited_;
  // Held by the callback queued for them: gone without a call when the pass raised.
  std::weak_ptr<const bool> queued_;
  nanobind::object module_;        // weak reference; unless there are no ranks
  bool reduces_in_place_ = false;  // Autograd::reduces_in_place
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_MODULE_HOOK_H_

// The recorder behind every hook: turns Python calls into entries of the open step.
//
// What is recorded, and when, is decided by capture::CallRecorder and capture::TensorRecorder; here
// Python values become what these take. One per process, owned by the Python debugger. All methods
// need the interpreter lock. Nothing here raises into training: a value that cannot be read is
// counted as a loss, and the wrapped call goes on.

#ifndef PLUMBLINE_PYTHON_BINDINGS_RECORDER_H_
#define PLUMBLINE_PYTHON_BINDINGS_RECORDER_H_

#include "python_api.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backward_call.h"
#include "call_watch.h"
#include "capture/call_recorder.h"
#include "capture/tensor_cache.h"
#include "capture/tensor_cuts.h"
#include "capture/tensor_recorder.h"
#include "frames.h"
#include "framework_guards.h"
#include "record/value.h"
#include "tensor_from_python.h"
#include "thread_state.h"
#include "values.h"

namespace plumbline::python {

// What the arguments of a call say of what it writes to. `kwnames`: tuple or null.
capture::WriteHints HintsOf(PyObject* const* args, Py_ssize_t count, PyObject* kwnames);

class Recorder final : public TensorSink,
                       public BackwardSink,
                       private capture::KeptTensorPacker {
 public:
  // Takes over the references in `types` and `hooks`.
  Recorder(std::unique_ptr<capture::Observer> observer, FrameworkTypes types, FrameworkHooks hooks);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  capture::CallRecorder& calls() { return calls_; }
  capture::Observer& observer() { return calls_.observer(); }
  capture::StepGate& gate() { return calls_.gate(); }
  // The Python object that owns this recorder; probes and gradient hooks keep a reference to it.
  void set_owner(PyObject* owner) { owner_ = owner; }
  [[nodiscard]] PyObject* owner() const override { return owner_; }
  void CountLoss(std::string_view counter, std::string_view what) override {
    observer().CountLoss(counter, what);
  }
  StackTable& stacks() { return stacks_; }
  [[nodiscard]] const FrameworkHooks& hooks() const { return hooks_; }
  [[nodiscard]] const FrameworkTypes& types() const { return types_; }
  [[nodiscard]] const FrameworkNames& names() const override { return hooks_.names; }
  [[nodiscard]] uint64_t epoch() override { return observer().epoch(); }
  [[nodiscard]] bool IsTensor(PyObject* value) const override {
    return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(types_.tensor)) != 0;
  }

  // Calls `original` and records the call under the counter `api`. The result is the original's,
  // a new reference or null with its exception set.
  PyObject* CallApi(uint32_t api, PyObject* original, PyObject* const* args, size_t nargsf,
                    PyObject* kwnames);

  // From now on calls of APIs go to `watch`, and nothing is recorded.
  void set_watch(std::unique_ptr<CallWatch> watch) { watch_ = std::move(watch); }
  [[nodiscard]] const CallWatch* watch() const { return watch_.get(); }

  // Module events. Enter returns the call number and sets *token for Leave; inputs are read here.
  uint32_t EnterModule(uint32_t id, PyObject* module, PyObject* args, PyObject* kwargs,
                       uint64_t* token);
  // `parameters`: dict name -> tensor, or null. `output` null: the module raised.
  void LeaveModule(uint64_t token, PyObject* module, PyObject* output, PyObject* parameters);

  // A backward entry comes in two parts: the gradients of the outputs (a tuple), reduced when they
  // are there, and the entry as a whole, with the gradients of the inputs. `parent` null: not
  // known.
  void BeginBackward(const std::string& name) override { calls_.EnterBackward(name); }
  PackedPart PackBackwardInput(std::string_view name, PyObject* grad_outputs) override;
  void EndBackward(const std::string& name, const std::string* parent, PackedPart results,
                   PyObject* grad_inputs) override;
  nanobind::object Add(const Autograd& autograd, nanobind::handle first,
                       nanobind::handle second) override;
  void RecordBackward(std::string_view name, const std::string* parent, PackedPart input,
                      PyObject* grad_inputs);
  // `parameter_names`: a list of texts.
  void ReserveParameterGradients(std::string_view entry, PyObject* parameter_names);
  void RecordParameterGradient(std::string_view entry, std::string_view parameter, PyObject* grad);
  // Level debug (debug_save.cc): records `variable` as "{name}.{count}" and, with `with_gradients`,
  // its structure with the gradients that arrive until the step ends as "{name}_grad.{count}".
  // False: a variable of no kind that can be recorded; nothing was done. Requires: the step is
  // open.
  bool SaveVariable(std::string_view name, PyObject* variable, bool with_gradients);
  // Puts a gradient into its place (store/entry_table.h) of the entry. `path`: of its tensor file.
  void RecordSavedGradient(std::string_view entry, std::string_view place, std::string_view path,
                           PyObject* grad);

  // The call stack of this thread, told to the journal; none where stacks are not wanted.
  capture::StackInfo UseStack();
  // From here on tensors hold the tokens of a batch: `schedule`, a dict request -> number of its
  // tokens, in their order, or None. False: the batch has none of the request that is recorded.
  bool UseBatch(PyObject* schedule);
  // Forgets tensors seen (values may change unseen from here on) and per-step state.
  void ForgetTensors() { cache_.Clear(); }
  void EndStep();
  // The elements of a tensor that PackLate() left on its device. False: they cannot be read.
  bool AddLate(uint64_t number, PyObject* host_tensor);

  void PackTensor(PyObject* tensor, std::string_view path, EntryPacker& out) override;
  void PackArray(PyObject* tensor, std::string_view dtype_text, std::string_view path,
                 EntryPacker& out) override;

 private:
  // Where an entry is searched: looks at the tensor, and keeps it in thread.kept.
  void LookAt(PyObject* tensor, std::string_view path, EntryPacker& out);
  // `bare`: also packs type, dtype, shape and requires_grad there; may be null. `awaited`: gets a
  // tensor on a device that tells whether all elements are finite, where that is not known yet.
  capture::Sight Look(PyObject* tensor, EntryPacker* bare, capture::ObjectRef* awaited);
  capture::Sight LookAtMemory(PyObject* tensor, const HostTensor& host, bool may_cache,
                              capture::ObjectRef* awaited);
  capture::Sight LookOnDevice(PyObject* tensor, capture::ObjectRef* awaited);
  capture::Sight LookAtDescribed(PyObject* tensor, EntryPacker* bare, capture::ObjectRef* awaited);
  // What is searched as the output of a call: `result`, or the argument written to by a call that
  // returns None (x[i] = y). Borrowed.
  PyObject* WhatIsLeft(PyObject* result, PyObject* const* args, Py_ssize_t count,
                       const KeptTensors& kept) const;
  // The tensor's values at this moment, for all entries under way that hold it; may be empty.
  capture::ObjectRef CopyBeforeCall(PyObject* tensor, std::optional<int64_t> version);
  void PackKept(const capture::KeptTensor& kept, EntryPacker& out) override;
  void ReadAwaited(KeptTensors& kept) override;

  void HookGradient(PyObject* result, const capture::ApiCall& call, const ThreadState& thread);
  void CountUnreadableTensor(std::string_view what);
  const capture::TensorFacts* FindFacts(PyObject* tensor, const HostTensor& host);
  void StoreFacts(PyObject* tensor, const HostTensor& host, const capture::TensorFacts& facts);
  // What the framework part says of a tensor whose memory is not its values.
  struct Description {
    Description() = default;
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;
    ~Description() { Py_XDECREF(answer); }
    PyObject* answer = nullptr;  // owned; the rest borrows from it
    PyObject* source = nullptr;  // a tensor with the values, or null
    capture::TensorLabels labels;
    Shape shape;
    EntryPacker extra_members;
    std::string problem;  // why values that exist are not there, or empty
  };
  // False if there is none (counted). `with_bytes`: the source should have every element.
  bool Describe(PyObject* tensor, bool with_bytes, Description* out);
  [[nodiscard]] capture::TensorLabels LabelsOf(PyObject* tensor) const;
  [[nodiscard]] bool IsParameter(PyObject* tensor) const;
  // Has a tensor reduced where it is. False: its values are wanted now; nothing is packed then.
  bool PackLate(PyObject* tensor, const HostTensor& host, capture::TensorLabels labels,
                std::string_view path, EntryPacker& out);
  // The part of a tensor that is recorded, the whole one where its labels tell of another shape.
  // The labels of a part tell of none.
  [[nodiscard]] capture::Cut CutOf(std::span<const int64_t> sizes,
                                   capture::TensorLabels* labels) const;
  // That part of a tensor on a device; new reference, null if it has to come to the host first.
  PyObject* PartOnDevice(PyObject* tensor, const capture::Cut& cut) const;
  // False if the memory cannot be read; nothing is packed then. `may_cache`: the tensor is one of
  // the training itself and its memory tells whether it has changed.
  bool PackMemory(PyObject* tensor, capture::TensorLabels labels, bool may_cache,
                  std::string_view path, EntryPacker& out);
  // Any other tensor, as the framework part describes it: another tensor to read the values from,
  // or type, dtype and shape with absent statistics.
  void PackDescribed(PyObject* tensor, std::string_view path, EntryPacker& out);

  std::unique_ptr<CallWatch> watch_;  // null: calls are recorded
  FrameworkTypes types_;
  FrameworkHooks hooks_;
  capture::CallRecorder calls_;
  capture::TensorRecorder tensors_;
  TensorReader reader_;
  capture::TensorCuts cuts_;
  bool warned_of_batch_ = false;
  capture::TensorCache cache_;
  StackTable stacks_;
  PyObject* owner_ = nullptr;             // borrowed: it owns this object
  std::vector<PyObject*> saved_handles_;  // hooks of SaveVariable, owned; removed by EndStep
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_RECORDER_H_

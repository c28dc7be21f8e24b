// The recorder behind every hook: turns Python calls into entries of the open step.
//
// One per process, owned by the Python debugger. All methods need the interpreter lock, except
// where they say otherwise. Nothing here raises into training: a value that cannot be read is
// counted as a loss, and the wrapped call goes on.

#ifndef PLUMBLINE_PYTHON_BINDINGS_RECORDER_H_
#define PLUMBLINE_PYTHON_BINDINGS_RECORDER_H_

#include <Python.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "capture/observer.h"
#include "frames.h"
#include "record/value.h"
#include "step_gate.h"
#include "tensor_cache.h"
#include "tensor_from_python.h"
#include "thread_state.h"
#include "values.h"

namespace plumbline::python {

class BackwardCall;
class Collectives;
class ModuleHook;

// Callables of the framework, owned references.
struct FrameworkHooks {
  PyObject* to_host = nullptr;          // to_host(tensor): a plain CPU tensor of the same values
  PyObject* describe_tensor = nullptr;  // a tensor whose memory is not its values: PackDescribed
  PyObject* mode_depth = nullptr;       // number of function modes on the thread's stack
  PyObject* mode_at = nullptr;          // mode_at(i), counted from the outermost
  PyObject* pop_mode = nullptr;         // take the innermost function mode off the stack
  PyObject* push_mode = nullptr;        // put one on
  PyObject* parameter_type = nullptr;   // tensor subclass without overrides of its own
  PyObject* no_override = nullptr;      // context manager class: attributes of tensors are read
                                        // without running any __torch_function__
};

// Takes plumbline's own function mode off the thread's stack while an original or plumbline itself
// uses the framework, and puts it back. May be nested. Autograd runs hooks with the stack of the
// call of backward(), so the mode may not be there; modes of the user stay.
class ModeOff {
 public:
  ModeOff(const FrameworkHooks& hooks, ThreadState& thread);
  ~ModeOff();
  ModeOff(const ModeOff&) = delete;
  ModeOff& operator=(const ModeOff&) = delete;

 private:
  PyObject* push_;
  ThreadState& thread_;
  PyObject* mode_ = nullptr;
};

// While it lives, a tensor is read without running a user's __torch_function__, of its class or of
// a mode. Costs nothing for plain tensors and parameters without such modes. `tensor` null: several
// are read, of any class.
class NoOverride {
 public:
  NoOverride(const FrameworkTypes& types, const FrameworkHooks& hooks, PyObject* tensor);
  ~NoOverride();
  NoOverride(const NoOverride&) = delete;
  NoOverride& operator=(const NoOverride&) = delete;

 private:
  PyObject* guard_ = nullptr;
};

class Recorder : public TensorSink {
 public:
  // Takes over the references in `types` and `hooks`.
  Recorder(std::unique_ptr<capture::Observer> observer, FrameworkTypes types, FrameworkHooks hooks);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  capture::Observer& observer() { return *observer_; }
  // The Python object that owns this recorder; probes and gradient hooks keep a reference to it.
  void set_owner(PyObject* owner) { owner_ = owner; }
  [[nodiscard]] PyObject* owner() const { return owner_; }
  StackTable& stacks() { return stacks_; }
  StepGate& gate() { return gate_; }
  [[nodiscard]] const FrameworkHooks& hooks() const { return hooks_; }
  [[nodiscard]] const FrameworkTypes& types() const { return types_; }
  [[nodiscard]] bool IsTensor(PyObject* value) const {
    return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(types_.tensor)) != 0;
  }

  // Calls `original` and records the call under the counter `api`. The result is the original's,
  // a new reference or null with its exception set.
  PyObject* CallApi(uint32_t api, PyObject* original, PyObject* const* args, size_t nargsf,
                    PyObject* kwnames);

  // Module events. Enter returns the call number and sets *token for Leave; inputs are read here.
  uint32_t EnterModule(uint32_t module, PyObject* args, PyObject* kwargs, uint64_t* token);
  // `parameters`: dict name -> tensor, or null. Frames above the token's (calls that raised) are
  // dropped. `output` null: the module raised.
  void LeaveModule(uint64_t token, PyObject* output, PyObject* parameters);

  // The name of the backward entry that encloses the one of the innermost module call; empty: none.
  [[nodiscard]] std::string ParentOfBackward() const;

  // A backward entry comes in two parts: the gradients of the outputs (a tuple), reduced when they
  // are there, and the entry as a whole, with the gradients of the inputs. `parent` null: not
  // known.
  std::vector<std::byte> PackBackwardInput(std::string_view name, PyObject* grad_outputs);
  void RecordBackward(std::string_view name, const std::string* parent,
                      std::span<const std::byte> packed_input, PyObject* grad_inputs);
  // {name: [null]} for every parameter, so that the entry has its place and order.
  void ReserveParameterGradients(std::string_view entry, PyObject* parameter_names);
  void RecordParameterGradient(std::string_view entry, std::string_view parameter, PyObject* grad);
  // Level debug (debug_save.cc): records `variable` as "{name}.{count}" and, with `with_gradients`,
  // its structure with the gradients that arrive until the step ends as "{name}_grad.{count}".
  // False: a variable of no kind that can be recorded; nothing was done. Requires: the step is
  // open.
  bool SaveVariable(std::string_view name, PyObject* variable, bool with_gradients);
  // Puts a gradient into its place (store/debug_entry.h) of the entry. `path`: of its tensor file.
  void RecordSavedGradient(std::string_view entry, std::string_view place, std::string_view path,
                           PyObject* grad);
  // Begin and end of a backward region, for scope filters only.
  void EnterBackward(std::string_view name);
  bool LeaveBackward(std::string_view name);

  // Pseudo modules "optimizer" and "clip_grad": parents of the APIs called inside.
  void PushRegion(std::string_view name);
  void PopRegion(std::string_view name);

  // Forgets tensors seen (values may change unseen from here on) and per-step state.
  void ForgetTensors();
  void EndStep();

  void PackTensor(PyObject* tensor, std::string_view path, EntryPacker& out) override;
  void PackArray(PyObject* tensor, std::string_view dtype_text, std::string_view path,
                 EntryPacker& out) override;

 private:
  friend class Collectives;  // the communication half of the recorder

  [[nodiscard]] bool Recording(const ThreadState& thread) const;
  [[nodiscard]] bool MayRecordBackward(const ThreadState& thread) const;
  // Whether a call that began in `epoch` still has its place; counts it as lost if not.
  bool StillHasPlace(uint64_t epoch, std::string_view name);
  uint32_t UseStack(StackInfo* info);
  void AppendEntry(std::span<const std::byte> packed);
  void CountFailures(const ValueWalker& walker);
  void HookGradient(PyObject* result, std::string_view api_name, uint32_t number,
                    const ThreadState& thread);
  // Begins to pack values of the entry `name`: their tensors are stored if it is one of those.
  void NameEntry(ThreadState& thread, std::string_view name) const;
  // One pass over the memory: statistics and, in md5 mode, the CRC; in xor mode only the XOR.
  void ScanTensorInto(const HostTensor& host, TensorFacts* facts);
  // Stores the tensor, or links a file of the same contents; fills `facts` if they are not known
  // yet. Returns the file name, empty if the tensor was lost (counted).
  std::string SaveTensor(std::string_view path, const HostTensor& host, TensorFacts* facts);
  // Texts and flags of the record that are not read from memory.
  struct Labels {
    std::string_view type = {};
    std::string_view dtype_text = {};  // empty: that of the memory
    std::optional<bool> requires_grad = {};
    const Shape* shape = nullptr;  // null: that of the memory
    uint64_t implicit_zeros = 0;   // elements that the memory leaves out (sparse tensors)
    PyObject* extra = nullptr;     // dict of further keys, or null; borrowed
  };
  // Whether the memory of a tensor of this class is its value: no class of the user stands between
  // (no __torch_dispatch__ of its own).
  [[nodiscard]] bool IsPlainClass(PyTypeObject* type) const;
  // False if the memory cannot be read; nothing is packed then. `may_cache`: the tensor is one of
  // the training itself and its memory tells whether it has changed.
  bool PackMemory(PyObject* tensor, const Labels& labels, bool may_cache, std::string_view path,
                  EntryPacker& out);
  // Any other tensor, as the framework part describes it: another tensor to read the values from,
  // or type, dtype and shape with absent statistics.
  void PackDescribed(PyObject* tensor, std::string_view path, EntryPacker& out);
  void PackWithoutValues(const Labels& labels, EntryPacker& out);
  void PackFacts(const HostTensor& host, const TensorFacts& facts, std::string_view data_name,
                 const Labels& labels, EntryPacker& out);

  std::unique_ptr<capture::Observer> observer_;
  FrameworkTypes types_;
  FrameworkHooks hooks_;
  TensorReader reader_;
  TensorCache cache_;
  StepGate gate_;
  StackTable stacks_;
  std::unordered_set<uint32_t> stacks_written_;  // ids known to the open step's journal
  std::unordered_set<std::string> regions_written_;
  PyObject* owner_ = nullptr;             // borrowed: it owns this object
  std::vector<PyObject*> saved_handles_;  // hooks of SaveVariable, owned; removed by EndStep
  uint64_t next_token_ = 1;
  bool wants_tensors_ = false;
  bool wants_digest_ = false;  // the CRC
  bool wants_xor_ = false;
  bool wants_stacks_ = true;
  bool wants_parents_ = false;
};

// tensor.requires_grad; false if it cannot be read.
bool RequiresGrad(PyObject* tensor);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_RECORDER_H_

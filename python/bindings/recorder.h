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
#include <utility>
#include <vector>

#include "capture/observer.h"
#include "capture/reference_calls.h"
#include "frames.h"
#include "framework_guards.h"
#include "kept_tensors.h"
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
  uint32_t EnterModule(uint32_t id, PyObject* module, PyObject* args, PyObject* kwargs,
                       uint64_t* token);
  // `parameters`: dict name -> tensor, or null. Frames above the token's (calls that raised) are
  // dropped. `output` null: the module raised.
  void LeaveModule(uint64_t token, PyObject* module, PyObject* output, PyObject* parameters);

  // The name of the backward entry that encloses the one of the innermost module call; empty: none.
  [[nodiscard]] std::string ParentOfBackward() const;

  // A backward entry comes in two parts: the gradients of the outputs (a tuple), reduced when they
  // are there, and the entry as a whole, with the gradients of the inputs. `parent` null: not
  // known.
  PackedPart PackBackwardInput(std::string_view name, PyObject* grad_outputs);
  void RecordBackward(std::string_view name, const std::string* parent, PackedPart input,
                      PyObject* grad_inputs);
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
  // Begin and end of the backward of a module, and the backward of an API, for filters only.
  void EnterBackward(std::string_view name);
  bool LeaveBackward(std::string_view name);
  bool SelectsBackward(std::string_view name);

  // Pseudo modules "optimizer" and "clip_grad": parents of the APIs called inside.
  void PushRegion(std::string_view name);
  void PopRegion(std::string_view name);

  // What bench_path compares the open step with; empty: nothing differs.
  void set_reference(capture::ReferenceCalls reference) { reference_ = std::move(reference); }

  // Forgets tensors seen (values may change unseen from here on) and per-step state.
  void ForgetTensors();
  void EndStep();

  void PackTensor(PyObject* tensor, std::string_view path, EntryPacker& out) override;
  void PackArray(PyObject* tensor, std::string_view dtype_text, std::string_view path,
                 EntryPacker& out) override;

 private:
  friend class Collectives;  // the communication half of the recorder

  // What is searched for in every entry (recorder_search.cc).
  enum class Search : uint8_t {
    kNothing,
    kNonFinite,   // overflow_check: only entries with NaN or Inf are recorded, with their tensors
    kNanFlag,     // nan_check: every entry is recorded with a flag in place of statistics
    kDifference,  // bench_path: every entry is recorded, those that differ with their tensors
  };
  struct Sight {
    bool hit = false;
    bool unknown = false;  // not readable (counted)
  };
  // Tells what tensors are searched for and kept in: thread.kept.
  void LookAt(PyObject* tensor, std::string_view path, EntryPacker& out);
  // `bare`: also packs type, dtype, shape and requires_grad there; may be null.
  Sight Look(PyObject* tensor, EntryPacker* bare);
  Sight LookAtMemory(PyObject* tensor, const HostTensor& host, bool may_cache);
  Sight LookOnDevice(PyObject* tensor);
  // What is searched as the output of a call: `result`, or the argument written to by a call that
  // returns None (x[i] = y). Borrowed.
  PyObject* WhatIsLeft(PyObject* result, PyObject* const* args, Py_ssize_t count,
                       const KeptTensors& kept) const;
  Sight LookAtDescribed(PyObject* tensor, EntryPacker* bare);
  // The tensor's values at this moment, for all entries under way that hold it; new reference or
  // null.
  PyObject* CopyBeforeCall(PyObject* tensor, std::optional<int64_t> version);
  // Packs a kept tensor as PackTensor() would have, with its values when it was met.
  void PackKept(const KeptTensor& kept, EntryPacker& out);
  // Replaces what `out` holds of the kept tensors by full records, and stores them.
  void StoreKept(std::string_view name, EntryPacker& out, const KeptTensors& kept);
  // The end of every entry: records what the search asks for. Clears `kept`. `is_listed`:
  // stack.json or construct.json name the entry whether or not it is a hit.
  void EndEntry(std::string_view name, EntryPacker& out, KeptTensors& kept, bool is_listed);
  void EndSearched(std::string_view name, EntryPacker& out, KeptTensors& kept, bool is_listed);
  void EndCompared(std::string_view name, EntryPacker& out, const KeptTensors& kept);
  void SecureHit();

  [[nodiscard]] bool Recording(const ThreadState& thread) const;
  [[nodiscard]] bool MayRecordBackward(const ThreadState& thread) const;
  // Whether modules tell which of their buffers they changed.
  [[nodiscard]] bool WantsBuffers() const;
  // Whether a call that began in `epoch` still has its place; counts it as lost if not.
  bool StillHasPlace(uint64_t epoch, std::string_view name);
  uint32_t UseStack(StackInfo* info);
  void AppendEntry(std::span<const std::byte> packed);
  // False: not selected; the entry of the open step is removed.
  bool SelectsGradients(const std::string& entry);
  void CountFailures(const ValueWalker& walker);
  void HookGradient(PyObject* result, std::string_view api_name, uint32_t number,
                    const ThreadState& thread);
  // Begins to pack values of the entry `name`: their tensors are stored if it is one of those, or
  // searched and put into `kept` when something is searched for.
  void NameEntry(ThreadState& thread, std::string_view name, KeptTensors* kept = nullptr) const;
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
  // What the framework part says of a tensor whose memory is not its values.
  struct Description {
    Description() = default;
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;
    ~Description() { Py_XDECREF(answer); }
    PyObject* answer = nullptr;  // owned; the rest borrows from it
    PyObject* source = nullptr;  // a tensor with the values, or null
    Labels labels;
    Shape shape;
    std::string problem;  // why values that exist are not there, or empty
  };
  // False if there is none (counted). `with_bytes`: the source should have every element.
  bool Describe(PyObject* tensor, bool with_bytes, Description* out);
  // Type, dtype, shape and, where it is told, requires_grad.
  void PackBare(const Labels& labels, EntryPacker& out) const;
  [[nodiscard]] Labels LabelsOf(PyObject* tensor) const;
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
  // With filters: gradient entries of modules whose backward or an earlier gradient was selected.
  std::unordered_set<std::string> gradients_wanted_;
  PyObject* owner_ = nullptr;             // borrowed: it owns this object
  std::vector<PyObject*> saved_handles_;  // hooks of SaveVariable, owned; removed by EndStep
  uint64_t next_token_ = 1;
  Search search_ = Search::kNothing;
  capture::ReferenceCalls reference_;
  bool wants_tensors_ = false;
  bool wants_digest_ = false;  // the CRC
  bool wants_xor_ = false;
  bool wants_stacks_ = true;
  bool wants_recompute_ = true;
  bool wants_parents_ = false;
};

// Opens the map of a tensor's record with its first members: type, dtype and shape.
void BeginTensor(std::string_view type, std::string_view dtype_text, std::span<const int64_t> shape,
                 EntryPacker& out);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_RECORDER_H_

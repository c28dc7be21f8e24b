// Level debug: variables handed over by the script, and their gradients.

#include <utility>

#include "callback.h"
#include "recorder.h"

namespace plumbline::python {
namespace {

constexpr int kMaxDepth = 400;  // as for the walk over values
// Tensor files are called "{entry}.tensor.{path}"; a tensor that is itself the variable has an
// empty path, hence upstream's two dots in "x.0.tensor..pt".
constexpr std::string_view kNestedPart = "tensor";
constexpr std::string_view kBarePart = "tensor.";

enum class VariableKind : uint8_t { kLeaf, kContainer, kOther };

// A tensor whose gradient has a place in the entry.
struct GradientPlace {
  PyObject* tensor;
  std::string place;  // positions (store/entry_table.h)
  std::string path;   // keys and positions, of the tensor file
};

// Answer of describe() for values that are no plain container: new reference or null.
PyObject* Describe(const FrameworkTypes& types, PyObject* value) {
  PyObject* answer = PyObject_CallOneArg(types.describe, value);
  if (answer == nullptr) DropError();
  if (answer != nullptr && PyTuple_Check(answer) && PyTuple_GET_SIZE(answer) >= 2) return answer;
  Py_XDECREF(answer);
  return nullptr;
}

bool IsPlainContainer(PyObject* value) {
  return PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_Check(value);
}

bool IsScalar(PyObject* value) {
  return PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value);
}

VariableKind KindOf(const Recorder& recorder, PyObject* value) {
  if (recorder.IsTensor(value) || IsScalar(value)) return VariableKind::kLeaf;
  if (IsPlainContainer(value)) return VariableKind::kContainer;
  PyObject* answer = value == Py_None ? nullptr : Describe(recorder.types(), value);
  if (answer == nullptr) return VariableKind::kOther;
  const std::string_view kind = TextOf(PyTuple_GET_ITEM(answer, 0));
  PyObject* content = PyTuple_GET_ITEM(answer, 1);
  VariableKind result = VariableKind::kContainer;
  if (kind == "array") {
    result = VariableKind::kLeaf;
  } else if (kind == "value") {
    // A described value is known by having one: {"type": ..., "value": None} is an unknown object.
    PyObject* known = PyDict_Check(content) ? PyDict_GetItemString(content, "value") : nullptr;
    result = known == nullptr || known == Py_None ? VariableKind::kOther : VariableKind::kLeaf;
  }
  Py_DECREF(answer);
  return result;
}

// Packs the structure of a variable with null for every leaf, and lists the tensors that will get a
// gradient. Its containers and their order are those of ValueWalker.
class GradientWalker {
 public:
  GradientWalker(const Recorder& recorder, EntryPacker& out) : recorder_(recorder), out_(out) {}
  ~GradientWalker() {
    for (const GradientPlace& at : places_) Py_DECREF(at.tensor);
  }
  GradientWalker(const GradientWalker&) = delete;
  GradientWalker& operator=(const GradientWalker&) = delete;

  void Walk(PyObject* value, const GradientPlace& at, int depth) {
    if (depth > kMaxDepth || IsScalar(value) || value == Py_None) {
      out_.Null();
    } else if (recorder_.IsTensor(value)) {
      out_.Null();
      const NoOverride plain(recorder_.types(), recorder_.hooks(), value);
      if (RequiresGrad(value, recorder_.hooks().names))
        places_.push_back({Py_NewRef(value), at.place, at.path});
    } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
      WalkItems(value, at, depth);
    } else if (PyDict_CheckExact(value)) {
      PyObject* items = PyDict_Items(value);
      WalkMembers(items, at, depth);
      Py_XDECREF(items);
    } else {
      WalkDescribed(value, at, depth);
    }
  }

  [[nodiscard]] const std::vector<GradientPlace>& places() const { return places_; }

 private:
  static GradientPlace Below(const GradientPlace& at, Py_ssize_t position, std::string_view key) {
    GradientPlace below{nullptr, at.place, at.path};
    if (!below.place.empty()) below.place += '.';
    below.place += std::to_string(position);
    below.path += '.';
    below.path += key;
    return below;
  }

  void WalkItems(PyObject* sequence, const GradientPlace& at, int depth) {
    out_.BeginList();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
      Walk(PySequence_Fast_GET_ITEM(sequence, i), Below(at, i, std::to_string(i)), depth + 1);
    }
    out_.EndList();
  }

  // `pairs`: list of (key, value); null: nothing could be read.
  void WalkMembers(PyObject* pairs, const GradientPlace& at, int depth) {
    out_.BeginMap();
    for (Py_ssize_t i = 0; pairs != nullptr && i < PyList_GET_SIZE(pairs); ++i) {
      PyObject* pair = PyList_GET_ITEM(pairs, i);
      const std::string key = KeyText(PyTuple_GET_ITEM(pair, 0));
      out_.Key(key);
      Walk(PyTuple_GET_ITEM(pair, 1), Below(at, i, key), depth + 1);
    }
    out_.EndMap();
    if (PyErr_Occurred() != nullptr) DropError();
  }

  void WalkDescribed(PyObject* value, const GradientPlace& at, int depth) {
    PyObject* answer = Describe(recorder_.types(), value);
    PyObject* content = answer == nullptr ? nullptr : PyTuple_GET_ITEM(answer, 1);
    const bool is_list = content != nullptr && PyList_Check(content);
    const std::string_view kind =
        is_list ? TextOf(PyTuple_GET_ITEM(answer, 0)) : std::string_view();
    if (kind == "list") {
      WalkItems(content, at, depth);
    } else if (kind == "map") {
      WalkMembers(content, at, depth);
    } else {
      out_.Null();
    }
    Py_XDECREF(answer);
  }

  const Recorder& recorder_;
  EntryPacker& out_;
  std::vector<GradientPlace> places_;  // with a reference each
};

// Lets `recorder` see the gradient of a tensor when it arrives. The handle of the hook, a new
// reference, or null: the tensor takes no hook.
PyObject* WatchGradient(Recorder& recorder, const std::string& entry, const GradientPlace& at) {
  static PyObject* const register_hook = PyUnicode_InternFromString("register_hook");
  auto record = [&recorder, entry, epoch = recorder.observer().epoch(), place = at.place,
                 path = at.path](PyObject* args) {
    if (epoch != recorder.observer().epoch()) return;  // the step has ended
    recorder.RecordSavedGradient(entry, place, path, PyTuple_GET_ITEM(args, 0));
  };
  PyObject* hook = NewCallback(recorder, std::move(record));
  PyObject* handle =
      hook == nullptr ? nullptr : PyObject_CallMethodOneArg(at.tensor, register_hook, hook);
  if (handle == nullptr) DropError();
  Py_XDECREF(hook);
  return handle;
}

}  // namespace

bool Recorder::SaveVariable(std::string_view name, PyObject* variable, bool with_gradients) {
  const VariableKind kind = KindOf(*this, variable);
  if (kind == VariableKind::kOther || gate().is_closed()) return false;
  const std::string_view part = kind == VariableKind::kContainer ? kNestedPart : kBarePart;
  capture::CallCounter& counters = observer().counters();
  const std::string count = std::to_string(counters.Next(counters.Register(name)));
  ThreadState& thread = ThisThread();
  const InTool in_tool(thread, gate());
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  calls_.NameEntry(thread, std::string(name).append(".").append(count));
  out.Begin(thread.entry_name, nullptr, 0);
  out.Key("");
  ValueWalker walker(types_, *this, thread.saves_tensors);
  walker.set_path(part);
  walker.Value(variable, out);
  calls_.CountUnreadable(thread, walker.failures());
  calls_.AppendEntry(out.Finish());
  if (!with_gradients) return true;

  const std::string entry = std::string(name) + "_grad." + count;
  out.Begin(entry, nullptr, 0);
  out.Key("");
  GradientWalker gradients(*this, out);
  gradients.Walk(variable, {nullptr, {}, std::string(part)}, 0);
  calls_.AppendEntry(out.Finish());
  for (const GradientPlace& at : gradients.places()) {
    if (PyObject* handle = WatchGradient(*this, entry, at); handle != nullptr) {
      saved_handles_.push_back(handle);
    } else {
      observer().CountLoss("gradients_unhooked", entry + ": a tensor that takes no hook");
    }
  }
  return true;
}

void Recorder::RecordSavedGradient(std::string_view entry, std::string_view place,
                                   std::string_view path, PyObject* grad) {
  ThreadState& thread = ThisThread();
  if (!calls_.MayRecordLate(thread)) return;
  const InTool in_tool(thread, gate());
  const ModeOff mode_off(hooks_, thread);
  EntryPacker& out = thread.event;
  calls_.NameEntry(thread, entry);
  out.Begin(entry, nullptr, 0);
  out.Key(place);
  ValueWalker walker(types_, *this, thread.saves_tensors);
  walker.set_path(path);
  thread.replaces_files = true;  // the gradient of a later backward pass takes the earlier's place
  walker.Value(grad, out);
  thread.replaces_files = false;
  calls_.CountUnreadable(thread, walker.failures());
  calls_.AppendEntry(out.Finish());
}

}  // namespace plumbline::python

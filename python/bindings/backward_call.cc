#include "backward_call.h"

#include <functional>
#include <limits>
#include <unordered_set>

#include "callback.h"
#include "errors.h"
#include "recorder.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// Attribute and method names, interned once.
struct Names {
  PyObject* grad_fn = PyUnicode_InternFromString("grad_fn");
  PyObject* output_nr = PyUnicode_InternFromString("output_nr");
  PyObject* next_functions = PyUnicode_InternFromString("next_functions");
  PyObject* sequence_nr = PyUnicode_InternFromString("_sequence_nr");
  PyObject* register_hook = PyUnicode_InternFromString("register_hook");
  PyObject* register_prehook = PyUnicode_InternFromString("register_prehook");
  PyObject* version = PyUnicode_InternFromString("_version");
};
const Names& TheNames() {
  static const Names names;
  return names;
}

nb::object Get(PyObject* object, PyObject* name) {
  return nb::steal(CheckedPython(PyObject_GetAttr(object, name)));
}

uint64_t Unsigned(nb::handle number) {
  const uint64_t value = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

// Nodes that store gradients of leaves have the largest number and nothing behind them.
constexpr uint64_t kLeafSequence = std::numeric_limits<uint64_t>::max();

uint64_t SequenceOf(PyObject* node) {
  return Unsigned(
      nb::steal(CheckedPython(PyObject_CallMethodNoArgs(node, TheNames().sequence_nr))));
}

void Register(PyObject* owner, PyObject* method, Recorder& recorder, CallbackBody body) {
  const nb::object callback = nb::steal(CheckedPython(NewCallback(recorder, std::move(body))));
  Py_DECREF(CheckedPython(PyObject_CallMethodOneArg(owner, method, callback.ptr())));
}

// The result hooked last on this thread and its listeners: a parent that returns its child's
// result is told first, as its backward call encloses the child's.
struct LastResult {
  nb::object weak_reference;
  int64_t version = 0;
  std::shared_ptr<std::vector<std::function<void(PyObject*)>>> listeners;
};
LastResult& TheLastResult() {
  // Never destroyed: a thread's end may come after the interpreter's.
  thread_local auto* last = new LastResult;
  return *last;
}

}  // namespace

BackwardCall::BackwardCall(Recorder& recorder, const Autograd& autograd, std::string name,
                           std::string parent, PyObject* args)
    : recorder_(recorder),
      autograd_(autograd),
      name_(std::move(name)),
      parent_(std::move(parent)),
      epoch_(recorder.observer().epoch()),
      arguments_(static_cast<size_t>(PyTuple_GET_SIZE(args))),
      first_sequence_(Unsigned(autograd.sequence_number())) {
  for (size_t i = 0; i < arguments_; ++i) {
    PyObject* value = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
    if (!recorder.IsTensor(value) || !RequiresGrad(value)) continue;
    Edge edge = EdgeOf(value);
    if (const Input* known = FindInput(edge.node.ptr(), edge.number)) {
      const_cast<Input*>(known)->arguments.push_back(i);
    } else {
      inputs_.push_back({std::move(edge), {i}});
    }
  }
}

BackwardCall::Edge BackwardCall::EdgeOf(PyObject* tensor) const {
  nb::object node = Get(tensor, TheNames().grad_fn);
  if (node.is_none()) {
    const nb::object edge = autograd_.gradient_edge(nb::handle(tensor));
    return {edge[0], nb::cast<int64_t>(edge[1])};
  }
  return {std::move(node), nb::cast<int64_t>(Get(tensor, TheNames().output_nr))};
}

const BackwardCall::Input* BackwardCall::FindInput(PyObject* node, int64_t number) const {
  for (const Input& input : inputs_) {
    if (input.edge.node.ptr() == node && input.edge.number == number) return &input;
  }
  return nullptr;
}

void BackwardCall::Watch(PyObject* output) {
  std::vector<size_t> positions;
  std::vector<PyObject*> tensors;
  const bool is_tuple = PyTuple_Check(output);
  outputs_ = is_tuple ? static_cast<size_t>(PyTuple_GET_SIZE(output)) : 1;
  for (size_t i = 0; i < outputs_; ++i) {
    PyObject* value = is_tuple ? PyTuple_GET_ITEM(output, static_cast<Py_ssize_t>(i)) : output;
    if (!recorder_.IsTensor(value) || !RequiresGrad(value)) continue;
    positions.push_back(i);
    tensors.push_back(value);
  }
  if (!tensors.empty()) {
    std::vector<Edge> edges;
    for (PyObject* tensor : tensors) edges.push_back(EdgeOf(tensor));
    HookConsumers(edges);
    if (tensors.size() == 1) {
      HookResult(tensors[0], positions[0]);
    } else {
      nb::list watched;
      for (PyObject* tensor : tensors) watched.append(nb::handle(tensor));
      auto ready = [self = shared_from_this(), positions](PyObject* args) {
        std::vector<PyObject*> gradients;
        const nb::handle values = PyTuple_GET_ITEM(args, 0);
        nb::tuple items = nb::steal<nb::tuple>(CheckedPython(PySequence_Tuple(values.ptr())));
        for (nb::handle value : items) gradients.push_back(value.ptr());
        self->OutputsReady(positions, gradients);
      };
      autograd_.watch_all(watched,
                          nb::steal(CheckedPython(NewCallback(recorder_, std::move(ready)))));
    }
  }
  inputs_.clear();
}

void BackwardCall::HookConsumers(const std::vector<Edge>& results) {
  std::vector<nb::object> waiting;
  for (size_t i = 0; i < results.size(); ++i) {
    if (const Input* input = FindInput(results[i].node.ptr(), results[i].number)) {
      passed_.emplace_back(i, input->arguments);
    } else {
      waiting.push_back(results[i].node);
    }
  }
  // A node's Python object is the same one only as long as somebody keeps it.
  std::vector<nb::object> kept;
  std::unordered_set<PyObject*> seen;
  while (!waiting.empty() && !inputs_.empty()) {
    nb::object node = std::move(waiting.back());
    waiting.pop_back();
    if (!seen.insert(node.ptr()).second) continue;
    HookConsumersOf(node.ptr(), &waiting);
    kept.push_back(std::move(node));
  }
}

void BackwardCall::HookConsumersOf(PyObject* node, std::vector<nb::object>* waiting) {
  const nb::object edges = Get(node, TheNames().next_functions);
  Sends sends;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges.ptr()); ++i) {
    PyObject* edge = PyTuple_GET_ITEM(edges.ptr(), i);
    PyObject* target = PyTuple_GET_ITEM(edge, 0);
    if (target == Py_None) continue;
    const Input* input = FindInput(target, PyLong_AsLongLong(PyTuple_GET_ITEM(edge, 1)));
    if (input != nullptr) {
      sends.emplace_back(static_cast<size_t>(i), input->arguments);
      continue;
    }
    const uint64_t sequence = SequenceOf(target);
    if (sequence >= first_sequence_ && sequence != kLeafSequence) {
      waiting->push_back(nb::borrow(target));
    }
  }
  if (sends.empty()) return;
  ++expected_;
  Register(node, TheNames().register_hook, recorder_,
           [self = shared_from_this(), sends = std::move(sends)](PyObject* args) {
             self->InputReady(sends, PyTuple_GET_ITEM(args, 0));
           });
}

void BackwardCall::HookResult(PyObject* tensor, size_t position) {
  auto listener = [self = shared_from_this(), position](PyObject* gradient) {
    self->OutputsReady({position}, {gradient});
  };
  const auto version = nb::cast<int64_t>(Get(tensor, TheNames().version));
  LastResult& last = TheLastResult();
  if (last.listeners != nullptr && last.version == version &&
      PyWeakref_GetObject(last.weak_reference.ptr()) == tensor) {
    last.listeners->insert(last.listeners->begin(), std::move(listener));
    return;
  }
  auto listeners = std::make_shared<std::vector<std::function<void(PyObject*)>>>();
  listeners->push_back(std::move(listener));
  const Edge edge = EdgeOf(tensor);
  // On the node, not the tensor: a tensor's hooks stay with the node that it had when the first
  // one was registered, so after an in-place operation they would see another gradient.
  Register(edge.node.ptr(), TheNames().register_prehook, recorder_,
           [listeners, number = edge.number](PyObject* args) {
             PyObject* gradients = PyTuple_GET_ITEM(args, 0);
             for (const auto& told : *listeners) told(PyTuple_GET_ITEM(gradients, number));
           });
  last = {nb::steal(CheckedPython(PyWeakref_NewRef(tensor, nullptr))), version, listeners};
}

void BackwardCall::OutputsReady(const std::vector<size_t>& positions,
                                const std::vector<PyObject*>& gradients) {
  if (epoch_ != recorder_.observer().epoch()) return;
  const nb::object all = nb::steal(CheckedPython(PyTuple_New(static_cast<Py_ssize_t>(outputs_))));
  for (size_t i = 0; i < outputs_; ++i) {
    PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(Py_None));
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    PyTuple_SetItem(all.ptr(), static_cast<Py_ssize_t>(positions[i]), Py_NewRef(gradients[i]));
  }
  recorder_.EnterBackward(name_);
  // Reduced now and not when the entry is complete: held gradients would cost memory.
  packed_outputs_ = recorder_.PackBackwardInput(name_, all.ptr());
  grad_inputs_.assign(arguments_, nb::none());
  arrived_ = 0;
  is_open_ = true;
  for (const auto& [result, arguments] : passed_) {
    for (const size_t argument : arguments) AddTo(argument, gradients[result]);
  }
  if (expected_ == 0) {
    Record();
    return;
  }
  // Some consumers may not take part in this backward pass.
  auto finish = [self = shared_from_this()](PyObject*) { self->Record(); };
  autograd_.queue_callback(nb::steal(CheckedPython(NewCallback(recorder_, std::move(finish)))));
}

void BackwardCall::InputReady(const Sends& sends, PyObject* grad_inputs) {
  if (!is_open_ || epoch_ != recorder_.observer().epoch()) return;
  for (const auto& [index, arguments] : sends) {
    PyObject* gradient = PyTuple_GET_ITEM(grad_inputs, static_cast<Py_ssize_t>(index));
    if (gradient == Py_None) continue;
    for (const size_t argument : arguments) AddTo(argument, gradient);
  }
  if (++arrived_ == expected_) Record();
}

void BackwardCall::AddTo(size_t argument, PyObject* gradient) {
  nb::object& known = grad_inputs_[argument];
  if (known.is_none()) {
    known = nb::borrow(gradient);
    return;
  }
  const InTool in_tool(ThisThread(), recorder_.gate());
  known = autograd_.add(known, nb::handle(gradient));
}

void BackwardCall::Record() {
  if (!is_open_) return;
  is_open_ = false;
  const nb::object gradients =
      nb::steal(CheckedPython(PyTuple_New(static_cast<Py_ssize_t>(grad_inputs_.size()))));
  for (size_t i = 0; i < grad_inputs_.size(); ++i) {
    PyTuple_SET_ITEM(gradients.ptr(), static_cast<Py_ssize_t>(i), grad_inputs_[i].release().ptr());
  }
  grad_inputs_.clear();
  if (recorder_.LeaveBackward(name_)) {
    recorder_.RecordBackward(name_, &parent_, std::move(packed_outputs_), gradients.ptr());
  }
  packed_outputs_ = {};
}

}  // namespace plumbline::python

#include "backward_call.h"

#include <algorithm>
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

// What tells nodes apart while they live.
uint64_t KeyOf(PyObject* node, const FrameworkNames& names) {
  if (names.node_id == nullptr) return reinterpret_cast<uintptr_t>(node);
  return Unsigned(nb::steal(CheckedPython(PyObject_CallMethodNoArgs(node, names.node_id))));
}

void Register(PyObject* owner, PyObject* method, Recorder& recorder, CallbackBody body) {
  const nb::object callback = nb::steal(CheckedPython(NewCallback(recorder, std::move(body))));
  Py_DECREF(CheckedPython(PyObject_CallMethodOneArg(owner, method, callback.ptr())));
}

// Marks of BackwardCall::layout_.
constexpr char kResult = '.', kOpen = '(', kClose = ')';
constexpr size_t kDeepestResult = 10;  // what a list that holds itself is opened to

// The result hooked last on this thread and its listeners: a parent that returns its child's
// result is told first, as its backward call encloses the child's.
struct LastResult {
  nb::object weak_reference;
  int64_t version = 0;
  uint64_t node = 0;  // its key
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
      names_(recorder.hooks().names),
      name_(std::move(name)),
      parent_(std::move(parent)),
      epoch_(recorder.observer().epoch()),
      arguments_(static_cast<size_t>(PyTuple_GET_SIZE(args))) {
  const bool knows_sequence = !autograd.sequence_number.is_none();
  if (knows_sequence) first_sequence_ = Unsigned(autograd.sequence_number());
  for (size_t i = 0; i < arguments_; ++i) {
    PyObject* value = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
    if (!recorder.IsTensor(value) || !RequiresGrad(value, names_)) continue;
    Edge edge = EdgeOf(value);
    const uint64_t sequence = knows_sequence ? 0 : SequenceOf(edge.node.ptr());
    // What the call makes comes after all that it is given.
    if (!knows_sequence && sequence != kLeafSequence) {
      first_sequence_ = std::max(first_sequence_, sequence + 1);
    }
    if (const Input* known = FindInput(edge.key, edge.number)) {
      const_cast<Input*>(known)->arguments.push_back(i);
    } else {
      inputs_.push_back({std::move(edge), {i}});
    }
  }
}

BackwardCall::Edge BackwardCall::EdgeOf(PyObject* tensor) const {
  nb::object node = Get(tensor, names_.grad_node);
  nb::object number;
  if (node.is_none()) {
    const nb::object edge = autograd_.gradient_edge(nb::handle(tensor));
    node = edge[0];
    number = edge[1];
  } else {
    number = Get(tensor, names_.output_number);
  }
  const uint64_t key = KeyOf(node.ptr(), names_);
  return {std::move(node), key, nb::cast<int64_t>(number)};
}

const BackwardCall::Input* BackwardCall::FindInput(uint64_t key, int64_t number) const {
  for (const Input& input : inputs_) {
    if (input.edge.key == key && input.edge.number == number) return &input;
  }
  return nullptr;
}

std::vector<PyObject*> BackwardCall::ResultsIn(PyObject* output) {
  std::vector<PyObject*> results;
  if (PyTuple_Check(output) || autograd_.opens_containers) {
    AddResult(output, 0, &results);
  } else {
    results.push_back(output);
    layout_ = kResult;
  }
  return results;
}

void BackwardCall::AddResult(PyObject* value, size_t depth, std::vector<PyObject*>* results) {
  const bool opens = (depth == 0 || autograd_.opens_containers) && depth < kDeepestResult;
  const bool is_list = PyTuple_Check(value) || PyList_Check(value);
  if (!opens || !(is_list || PyDict_Check(value))) {
    results->push_back(value);
    layout_ += kResult;
    return;
  }
  if (depth > 0) layout_ += kOpen;
  if (is_list) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      AddResult(PySequence_Fast_GET_ITEM(value, i), depth + 1, results);
    }
  } else {
    PyObject* item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, nullptr, &item) != 0;) {
      AddResult(item, depth + 1, results);
    }
  }
  if (depth > 0) layout_ += kClose;
}

void BackwardCall::Watch(PyObject* output) {
  std::vector<size_t> positions;
  std::vector<PyObject*> tensors;
  const std::vector<PyObject*> results = ResultsIn(output);
  outputs_ = results.size();
  for (size_t i = 0; i < outputs_; ++i) {
    PyObject* value = results[i];
    if (!recorder_.IsTensor(value) || !RequiresGrad(value, names_)) continue;
    positions.push_back(i);
    tensors.push_back(value);
  }
  watched_ = tensors.size();
  if (!tensors.empty()) {
    std::vector<Edge> edges;
    for (PyObject* tensor : tensors) edges.push_back(EdgeOf(tensor));
    HookConsumers(edges, positions);
    if (tensors.size() == 1 || autograd_.watch_all.is_none()) {
      const bool is_only = tensors.size() == 1;
      for (size_t i = 0; i < tensors.size(); ++i) HookResult(tensors[i], positions[i], is_only);
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

void BackwardCall::HookConsumers(const std::vector<Edge>& results,
                                 const std::vector<size_t>& positions) {
  std::vector<nb::object> waiting;
  for (size_t i = 0; i < results.size(); ++i) {
    if (const Input* input = FindInput(results[i].key, results[i].number)) {
      passed_.emplace_back(positions[i], input->arguments);
    } else {
      waiting.push_back(results[i].node);
    }
  }
  // A node's Python object is the same one only as long as somebody keeps it.
  std::vector<nb::object> kept;
  std::unordered_set<uint64_t> seen;
  while (!waiting.empty() && !inputs_.empty()) {
    nb::object node = std::move(waiting.back());
    waiting.pop_back();
    if (!seen.insert(KeyOf(node.ptr(), names_)).second) continue;
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
    const Input* input =
        FindInput(KeyOf(target, names_), PyLong_AsLongLong(PyTuple_GET_ITEM(edge, 1)));
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
  // PyTorch's nodes have a gradient or None for every edge.
  EdgeShapes shapes = names_.node_id == nullptr ? EdgeShapes() : EdgeShapes(edges.ptr());
  auto ready = [self = shared_from_this(), sends = std::move(sends), shapes = std::move(shapes)](
                   PyObject* args) { self->InputReady(sends, shapes, PyTuple_GET_ITEM(args, 0)); };
  Register(node, TheNames().register_hook, recorder_, std::move(ready));
}

void BackwardCall::HookResult(PyObject* tensor, size_t position, bool is_only) {
  auto listener = [self = shared_from_this(), position, is_only](PyObject* gradient) {
    if (!is_only) return self->OutputArrived(position, gradient);
    self->OutputsReady({position}, {gradient});
  };
  const auto version = nb::cast<int64_t>(Get(tensor, TheNames().version));
  const Edge edge = EdgeOf(tensor);
  LastResult& last = TheLastResult();
  if (last.listeners != nullptr && last.version == version && last.node == edge.key &&
      PyWeakref_GetObject(last.weak_reference.ptr()) == tensor) {
    last.listeners->insert(last.listeners->begin(), std::move(listener));
    return;
  }
  auto listeners = std::make_shared<std::vector<std::function<void(PyObject*)>>>();
  listeners->push_back(std::move(listener));
  // On the node, not the tensor: a tensor's hooks stay with the node that it had when the first
  // one was registered, so after an in-place operation they would see another gradient.
  const bool has_prehooks =
      names_.node_id == nullptr || SequenceOf(edge.node.ptr()) != kLeafSequence;
  Register(has_prehooks ? edge.node.ptr() : tensor,
           has_prehooks ? TheNames().register_prehook : TheNames().register_hook, recorder_,
           [listeners, has_prehooks, number = edge.number](PyObject* args) {
             PyObject* gradient = PyTuple_GET_ITEM(args, 0);
             if (has_prehooks) gradient = PyTuple_GET_ITEM(gradient, number);
             for (const auto& told : *listeners) told(gradient);
           });
  last = {nb::steal(CheckedPython(PyWeakref_NewRef(tensor, nullptr))), version, edge.key,
          listeners};
}

void BackwardCall::Open() {
  recorder_.EnterBackward(name_);
  grad_outputs_.assign(outputs_, nb::none());
  grad_inputs_.assign(arguments_, nb::none());
  arrived_ = results_arrived_ = passed_arrived_ = 0;
  is_open_ = true;
}

void BackwardCall::PackOutputs() {
  if (grad_outputs_.empty()) return;
  size_t at = 0, position = 0;
  nb::object all = TakeOutputs(&at, &position);
  grad_outputs_.clear();
  packed_outputs_ = recorder_.PackBackwardInput(name_, all.ptr());
}

nb::object BackwardCall::TakeOutputs(size_t* at, size_t* position) {
  // A container without any gradient is one null, as where containers are not opened.
  nb::list items;
  bool is_empty = *at > 0;
  while (*at < layout_.size()) {
    const char mark = layout_[(*at)++];
    if (mark == kClose) break;
    nb::object item =
        mark == kOpen ? TakeOutputs(at, position) : std::move(grad_outputs_[(*position)++]);
    is_empty = is_empty && item.is_none();
    items.append(std::move(item));
  }
  return is_empty ? nb::none() : nb::object(nb::tuple(items));
}

bool BackwardCall::IsPassed(size_t argument) const {
  return std::ranges::any_of(
      passed_, [&](const auto& one) { return std::ranges::count(one.second, argument) > 0; });
}

bool BackwardCall::AwaitsPassed() const {
  return results_arrived_ > 0 && passed_arrived_ < passed_.size();
}

void BackwardCall::PassOn(size_t position, PyObject* gradient) {
  for (const auto& [result, arguments] : passed_) {
    if (result != position) continue;
    ++passed_arrived_;
    for (const size_t argument : arguments) AddTo(argument, gradient);
  }
}

void BackwardCall::OutputArrived(size_t position, PyObject* gradient) {
  if (epoch_ != recorder_.observer().epoch()) return;
  if (!is_open_) {
    Open();
    // When the last one arrives is not known: some results may be used by nobody.
    auto finish = [self = shared_from_this()](PyObject*) { self->Record(); };
    autograd_.queue_callback(nb::steal(CheckedPython(NewCallback(recorder_, std::move(finish)))));
  }
  if (grad_outputs_.empty()) {
    recorder_.observer().CountLoss("gradients_late",
                                   name_ + ": the gradient of a result came last");
    return;
  }
  if (grad_outputs_[position].is_none()) ++results_arrived_;
  grad_outputs_[position] = nb::borrow(gradient);
  PassOn(position, gradient);
  if (expected_ > 0 && arrived_ == expected_ && !AwaitsPassed()) Record();
}

void BackwardCall::OutputsReady(const std::vector<size_t>& positions,
                                const std::vector<PyObject*>& gradients) {
  if (epoch_ != recorder_.observer().epoch()) return;
  Open();
  for (size_t i = 0; i < positions.size(); ++i) {
    grad_outputs_[positions[i]] = nb::borrow(gradients[i]);
  }
  // Reduced now and not when the entry is complete: held gradients would cost memory.
  PackOutputs();
  for (size_t i = 0; i < positions.size(); ++i) PassOn(positions[i], gradients[i]);
  if (expected_ == 0) {
    Record();
    return;
  }
  // Some consumers may not take part in this backward pass.
  auto finish = [self = shared_from_this()](PyObject*) { self->Record(); };
  autograd_.queue_callback(nb::steal(CheckedPython(NewCallback(recorder_, std::move(finish)))));
}

void BackwardCall::InputReady(const Sends& sends, const EdgeShapes& shapes, PyObject* grad_inputs) {
  if (!is_open_ || epoch_ != recorder_.observer().epoch()) return;
  // A result that is used farther on than another one gets its gradient later.
  if (results_arrived_ == watched_) PackOutputs();
  const GradientPlaces places(shapes, grad_inputs);
  for (const auto& [index, arguments] : sends) {
    PyObject* gradient = places.At(index);
    if (gradient == nullptr) {
      recorder_.observer().CountLoss(
          "gradients_unplaced",
          name_ + ": a compiled function does not say of which of its arguments a gradient is");
    }
    if (gradient == nullptr || gradient == Py_None) continue;
    for (const size_t argument : arguments) {
      if (!IsPassed(argument)) AddTo(argument, gradient);
    }
  }
  if (++arrived_ == expected_ && !AwaitsPassed()) Record();
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
  PackOutputs();
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

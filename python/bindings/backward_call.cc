#include "backward_call.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_set>

#include "errors.h"

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

// A sequence of integers; nothing for something else.
std::optional<Shape> ShapeOf(PyObject* owner) {
  static PyObject* const name = PyUnicode_InternFromString("shape");
  PyObject* sizes = owner == nullptr ? nullptr : PyObject_GetAttr(owner, name);
  std::optional<Shape> shape;
  if (sizes != nullptr && (PyTuple_Check(sizes) || PyList_Check(sizes))) {
    shape.emplace();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sizes); ++i) {
      shape->push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(sizes, i)));
    }
  }
  Py_XDECREF(sizes);
  if (PyErr_Occurred() == nullptr) return shape;
  DropError();
  return std::nullopt;
}

// What a node expects as gradient of its output `number`.
std::optional<Shape> ShapeAt(PyObject* node, long long number) {
  static PyObject* const name = PyUnicode_InternFromString("_input_metadata");
  PyObject* all = PyObject_GetAttr(node, name);
  std::optional<Shape> shape;
  if (all != nullptr && PyTuple_Check(all) && number >= 0 && number < PyTuple_GET_SIZE(all)) {
    shape = ShapeOf(PyTuple_GET_ITEM(all, number));
  }
  Py_XDECREF(all);
  if (PyErr_Occurred() != nullptr) DropError();
  return shape;
}

// `edges`: a tuple of (node or None, number), as `next_functions` of MindSpore's nodes. The answer
// refers to no node.
std::vector<capture::GradientEdge> EdgesIn(PyObject* edges) {
  std::vector<capture::GradientEdge> found;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges); ++i) {
    PyObject* edge = PyTuple_GET_ITEM(edges, i);
    PyObject* node = PyTuple_GET_ITEM(edge, 0);
    capture::GradientEdge& known = found.emplace_back();
    known.is_there = node != Py_None;
    if (!known.is_there) continue;
    known.shape = ShapeAt(node, PyLong_AsLongLong(PyTuple_GET_ITEM(edge, 1)));
  }
  return found;
}

std::vector<capture::SeenGradient> SeenIn(PyObject* gradients) {
  std::vector<capture::SeenGradient> seen;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(gradients); ++i) {
    PyObject* gradient = PyTuple_GET_ITEM(gradients, i);
    const bool is_none = gradient == Py_None;
    seen.push_back({is_none, is_none ? std::nullopt : ShapeOf(gradient)});
  }
  return seen;
}

// The gradients of a node's inputs, as a hook of the node gets them. Most nodes have one for each
// edge, or None; where there are fewer, their shapes tell. Borrows both arguments.
class NodeGradients {
 public:
  NodeGradients(const std::vector<capture::GradientEdge>& edges, PyObject* gradients)
      : gradients_(gradients) {
    if (static_cast<size_t>(PyTuple_GET_SIZE(gradients)) < edges.size()) {
      places_.emplace(edges, SeenIn(gradients));
    }
  }

  // The gradient along an edge, borrowed; Py_None when none flows. Null: cannot be told.
  [[nodiscard]] PyObject* At(size_t edge) const {
    using Answer = capture::GradientPlaces::Answer;
    size_t place = edge;
    if (places_) {
      const Answer answer = places_->At(edge, &place);
      if (answer != Answer::kFound) return answer == Answer::kNone ? Py_None : nullptr;
    }
    const auto at = static_cast<Py_ssize_t>(place);
    return at < PyTuple_GET_SIZE(gradients_) ? PyTuple_GET_ITEM(gradients_, at) : Py_None;
  }

 private:
  PyObject* gradients_;
  std::optional<capture::GradientPlaces> places_;
};

void Register(PyObject* owner, PyObject* method, HookHost& host, CallbackBody body) {
  const nb::object callback = nb::steal(CheckedPython(NewCallback(host, std::move(body))));
  Py_DECREF(CheckedPython(PyObject_CallMethodOneArg(owner, method, callback.ptr())));
}

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

BackwardCall::BackwardCall(BackwardSink& sink, const Autograd& autograd, std::string name,
                           std::string parent, PyObject* args)
    : sink_(sink),
      autograd_(autograd),
      names_(sink.names()),
      name_(std::move(name)),
      parent_(std::move(parent)),
      epoch_(sink.epoch()),
      progress_(static_cast<size_t>(PyTuple_GET_SIZE(args))) {
  const bool knows_sequence = !autograd.sequence_number.is_none();
  if (knows_sequence) first_sequence_ = Unsigned(autograd.sequence_number());
  for (size_t i = 0; i < progress_.arguments(); ++i) {
    PyObject* value = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
    if (!sink.IsTensor(value) || !RequiresGrad(value, names_)) continue;
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
    progress_.AddResult();
  }
  return results;
}

void BackwardCall::AddResult(PyObject* value, size_t depth, std::vector<PyObject*>* results) {
  const bool opens = (depth == 0 || autograd_.opens_containers) && depth < kDeepestResult;
  const bool is_list = PyTuple_Check(value) || PyList_Check(value);
  if (!opens || !(is_list || PyDict_Check(value))) {
    results->push_back(value);
    progress_.AddResult();
    return;
  }
  if (depth > 0) progress_.OpenContainer();
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
  if (depth > 0) progress_.CloseContainer();
}

void BackwardCall::Watch(PyObject* output) {
  std::vector<size_t> positions;
  std::vector<PyObject*> tensors;
  const std::vector<PyObject*> results = ResultsIn(output);
  for (size_t i = 0; i < results.size(); ++i) {
    PyObject* value = results[i];
    if (!sink_.IsTensor(value) || !RequiresGrad(value, names_)) continue;
    positions.push_back(i);
    tensors.push_back(value);
  }
  progress_.set_watched(tensors.size());
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
                          nb::steal(CheckedPython(NewCallback(sink_, std::move(ready)))));
    }
  }
  inputs_.clear();
}

void BackwardCall::HookConsumers(const std::vector<Edge>& results,
                                 const std::vector<size_t>& positions) {
  std::vector<nb::object> waiting;
  for (size_t i = 0; i < results.size(); ++i) {
    if (const Input* input = FindInput(results[i].key, results[i].number)) {
      progress_.Pass(positions[i], input->arguments);
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
  progress_.ExpectNode();
  // PyTorch's nodes have a gradient or None for every edge.
  Edges places = names_.node_id == nullptr ? Edges() : EdgesIn(edges.ptr());
  auto ready = [self = shared_from_this(), sends = std::move(sends), places = std::move(places)](
                   PyObject* args) { self->InputReady(sends, places, PyTuple_GET_ITEM(args, 0)); };
  Register(node, TheNames().register_hook, sink_, std::move(ready));
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
           has_prehooks ? TheNames().register_prehook : TheNames().register_hook, sink_,
           [listeners, has_prehooks, number = edge.number](PyObject* args) {
             PyObject* gradient = PyTuple_GET_ITEM(args, 0);
             if (has_prehooks) gradient = PyTuple_GET_ITEM(gradient, number);
             for (const auto& told : *listeners) told(gradient);
           });
  last = {nb::steal(CheckedPython(PyWeakref_NewRef(tensor, nullptr))), version, edge.key,
          listeners};
}

void BackwardCall::Open() {
  sink_.BeginBackward(name_);
  grad_outputs_.assign(progress_.results(), nb::none());
  grad_inputs_.assign(progress_.arguments(), nb::none());
  progress_.Open();
}

void BackwardCall::PackOutputs() {
  if (!progress_.TakeResults()) return;
  size_t at = 0, position = 0;
  nb::object all = TakeOutputs(&at, &position);
  grad_outputs_.clear();
  packed_outputs_ = sink_.PackBackwardInput(name_, all.ptr());
}

nb::object BackwardCall::TakeOutputs(size_t* at, size_t* position) {
  using Progress = capture::BackwardProgress;
  // A container without any gradient is one null, as where containers are not opened.
  nb::list items;
  bool is_empty = *at > 0;
  while (*at < progress_.layout().size()) {
    const char mark = progress_.layout()[(*at)++];
    if (mark == Progress::kClose) break;
    nb::object item = mark == Progress::kOpen ? TakeOutputs(at, position)
                                              : std::move(grad_outputs_[(*position)++]);
    is_empty = is_empty && item.is_none();
    items.append(std::move(item));
  }
  return is_empty ? nb::none() : nb::object(nb::tuple(items));
}

void BackwardCall::PassOn(size_t position, PyObject* gradient) {
  for (const size_t argument : progress_.PassOn(position)) AddTo(argument, gradient);
}

void BackwardCall::RecordAtEnd() {
  auto finish = [self = shared_from_this()](PyObject*) { self->Record(); };
  autograd_.queue_callback(nb::steal(CheckedPython(NewCallback(sink_, std::move(finish)))));
}

void BackwardCall::OutputArrived(size_t position, PyObject* gradient) {
  if (epoch_ != sink_.epoch()) return;
  if (!progress_.is_open()) {
    Open();
    // When the last one arrives is not known: some results may be used by nobody.
    RecordAtEnd();
  }
  if (!progress_.ResultArrived(position, gradient == Py_None)) {
    sink_.CountLoss("gradients_late",
                                   name_ + ": the gradient of a result came last");
    return;
  }
  grad_outputs_[position] = nb::borrow(gradient);
  PassOn(position, gradient);
  if (progress_.expects_nodes() && progress_.is_complete()) Record();
}

void BackwardCall::OutputsReady(const std::vector<size_t>& positions,
                                const std::vector<PyObject*>& gradients) {
  if (epoch_ != sink_.epoch()) return;
  Open();
  for (size_t i = 0; i < positions.size(); ++i) {
    grad_outputs_[positions[i]] = nb::borrow(gradients[i]);
  }
  // Reduced now and not when the entry is complete: held gradients would cost memory.
  PackOutputs();
  for (size_t i = 0; i < positions.size(); ++i) PassOn(positions[i], gradients[i]);
  // Some consumers may not take part in this backward pass.
  progress_.expects_nodes() ? RecordAtEnd() : Record();
}

void BackwardCall::InputReady(const Sends& sends, const Edges& edges, PyObject* grad_inputs) {
  if (!progress_.is_open() || epoch_ != sink_.epoch()) return;
  if (progress_.has_all_results()) PackOutputs();
  const NodeGradients gradients(edges, grad_inputs);
  for (const auto& [index, arguments] : sends) {
    PyObject* gradient = gradients.At(index);
    if (gradient == nullptr) {
      sink_.CountLoss(
          "gradients_unplaced",
          name_ + ": a compiled function does not say of which of its arguments a gradient is");
    }
    if (gradient == nullptr || gradient == Py_None) continue;
    for (const size_t argument : arguments) {
      if (!progress_.IsPassed(argument)) AddTo(argument, gradient);
    }
  }
  progress_.NodeArrived();
  if (progress_.is_complete()) Record();
}

void BackwardCall::AddTo(size_t argument, PyObject* gradient) {
  nb::object& known = grad_inputs_[argument];
  if (known.is_none()) {
    known = nb::borrow(gradient);
    return;
  }
  known = sink_.Add(autograd_, known, gradient);
}

void BackwardCall::Record() {
  if (!progress_.Close()) return;
  PackOutputs();
  const nb::object gradients =
      nb::steal(CheckedPython(PyTuple_New(static_cast<Py_ssize_t>(grad_inputs_.size()))));
  for (size_t i = 0; i < grad_inputs_.size(); ++i) {
    PyTuple_SET_ITEM(gradients.ptr(), static_cast<Py_ssize_t>(i), grad_inputs_[i].release().ptr());
  }
  grad_inputs_.clear();
  sink_.EndBackward(name_, &parent_, std::move(packed_outputs_), gradients.ptr());
  packed_outputs_ = {};
}

}  // namespace plumbline::python

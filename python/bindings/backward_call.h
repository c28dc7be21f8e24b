// The way back of one module call: gradients of its results and of its inputs.
//
// The gradient of an input *through this module* is what the nodes inside the module send along
// their edges to the input's node. Those nodes are found once, when the call ends, by walking the
// graph from the results back to the inputs; each gets a post hook. PyTorch's own full backward
// hooks would put identity nodes around every module (docs/design/interception.md).

#ifndef PLUMBLINE_PYTHON_BINDINGS_BACKWARD_CALL_H_
#define PLUMBLINE_PYTHON_BINDINGS_BACKWARD_CALL_H_

#include "python_api.h"
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "callback.h"
#include "capture/backward_progress.h"
#include "capture/gradient_places.h"
#include "framework.h"
#include "thread_state.h"

namespace plumbline::python {

// Functions of PyTorch's autograd that the walk needs.
struct Autograd {
  nanobind::object is_grad_enabled;
  nanobind::object sequence_number;  // () -> number the next node will get on this thread; or None
  nanobind::object gradient_edge;    // leaf tensor -> (node, number of the node's output)
  nanobind::object queue_callback;   // fn: called when the running backward pass ends
  nanobind::object watch_all;        // (tensors, fn): fn(gradients) when all have arrived; or None
  nanobind::object add;              // (a, b) -> a + b, outside the graph
  // () -> whether the call under way is one whose parameters' gradients the ranks combine where
  // they are (DDP); None without ranks.
  nanobind::object reduces_in_place;
  // Whether results in a list or a dict count, one by one in their order, as those in a tuple do,
  // and results in containers inside them. Otherwise a tuple's own tensors alone.
  bool opens_containers = false;
};

// Who the ways back are followed for.
class BackwardSink : public HookHost {
 public:
  [[nodiscard]] virtual bool IsTensor(PyObject* value) const = 0;
  [[nodiscard]] virtual const FrameworkNames& names() const = 0;
  // Another number: the step is over, and what arrives belongs to none.
  [[nodiscard]] virtual uint64_t epoch() = 0;
  // The first gradient of a result of the call `name` has arrived.
  virtual void BeginBackward(const std::string& name) = 0;
  // The gradients of the results, None for those that got none: reduced at once. `grad_outputs`: a
  // tuple, nested as the results are.
  virtual PackedPart PackBackwardInput(std::string_view name, PyObject* grad_outputs) = 0;
  // The way back is over. `grad_inputs`: a tuple, one for each positional argument, or None.
  virtual void EndBackward(const std::string& name, const std::string* parent, PackedPart results,
                           PyObject* grad_inputs) = 0;
  // The sum of two gradients, unseen by whoever records.
  virtual nanobind::object Add(const Autograd& autograd, nanobind::handle first,
                               nanobind::handle second) = 0;
};

// Owned by the hooks it registers, so it lives as long as the graph. Between Watch() and the
// backward pass it refers to no tensor and no node: no reference cycle runs through the graph.
// Requires the interpreter lock.
class BackwardCall : public std::enable_shared_from_this<BackwardCall> {
 public:
  // Before the call: notes where the gradients of the tensors in `args` (a tuple) go.
  // `parent`: name of the enclosing call's backward entry, empty for none.
  BackwardCall(BackwardSink& sink, const Autograd& autograd, std::string name, std::string parent,
               PyObject* args);

  // After the call: registers the hooks at the tensor, or at those in the containers, that it
  // returned.
  void Watch(PyObject* output);

 private:
  struct Edge {
    nanobind::object node;
    uint64_t key = 0;    // of the node
    int64_t number = 0;  // of the node's output
  };
  // An edge into the call and the positions of the arguments whose gradient it carries.
  struct Input {
    Edge edge;
    std::vector<size_t> arguments;
  };
  using Sends = capture::BackwardProgress::Sends;
  using Edges = std::vector<capture::GradientEdge>;

  // What the call returned, borrowed, from the outermost container on; tells progress_.
  std::vector<PyObject*> ResultsIn(PyObject* output);
  void AddResult(PyObject* value, size_t depth, std::vector<PyObject*>* results);
  [[nodiscard]] Edge EdgeOf(PyObject* tensor) const;
  [[nodiscard]] const Input* FindInput(uint64_t key, int64_t number) const;
  // `positions`: of the results among all.
  void HookConsumers(const std::vector<Edge>& results, const std::vector<size_t>& positions);
  void HookConsumersOf(PyObject* node, std::vector<nanobind::object>* waiting);
  void HookResult(PyObject* tensor, size_t position, bool is_only);
  void Open();
  // One of several results, and nobody knows which others will get a gradient.
  void OutputArrived(size_t position, PyObject* gradient);
  // The gradient of a result is also that of the arguments which the result is.
  void PassOn(size_t position, PyObject* gradient);
  void PackOutputs();
  nanobind::object TakeOutputs(size_t* at, size_t* position);
  void OutputsReady(const std::vector<size_t>& positions, const std::vector<PyObject*>& gradients);
  void InputReady(const Sends& sends, const Edges& edges, PyObject* grad_inputs);
  // Records the entry when the backward pass ends, whatever has not arrived by then.
  void RecordAtEnd();
  void AddTo(size_t argument, PyObject* gradient);
  void Record();

  BackwardSink& sink_;
  const Autograd& autograd_;
  const FrameworkNames& names_;
  std::string name_;
  std::string parent_;
  uint64_t epoch_;
  capture::BackwardProgress progress_;
  uint64_t first_sequence_ = 0;
  std::vector<Input> inputs_;  // emptied by Watch()

  // The backward pass under way.
  std::vector<nanobind::object> grad_outputs_;  // until they are packed
  PackedPart packed_outputs_;  // gradients of the results, reduced when they arrived
  std::vector<nanobind::object> grad_inputs_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_BACKWARD_CALL_H_

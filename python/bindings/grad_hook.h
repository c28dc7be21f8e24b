// Gradients of API calls: a native hook on the autograd node of the first result tensor.

#ifndef PLUMBLINE_PYTHON_BINDINGS_GRAD_HOOK_H_
#define PLUMBLINE_PYTHON_BINDINGS_GRAD_HOOK_H_

#include "python_api.h"

#include "capture/call_recorder.h"

namespace plumbline::python {

class Recorder;

// The first tensor in a result: the value itself, the first item of tuples and lists, the first
// tensor value of a dict, recursively. Borrowed; null if there is none.
PyObject* FirstTensor(PyObject* value, PyObject* tensor_type);

// Registers a hook on tensor.grad_fn that records the entry when the node has run. The hook holds
// no tensor and no node; gradients of an earlier step are ignored. Without grad_fn (a leaf):
// nothing.
void AttachGradHook(PyObject* tensor, Recorder& recorder, capture::BackwardEntry entry);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_GRAD_HOOK_H_

#include "grad_hook.h"

#include <utility>

#include "callback.h"
#include "recorder.h"

namespace plumbline::python {

PyObject* FirstTensor(PyObject* value, PyObject* tensor_type) {
  if (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(tensor_type))) return value;
  if (PyTuple_Check(value) || PyList_Check(value)) {
    if (PySequence_Fast_GET_SIZE(value) == 0) return nullptr;
    return FirstTensor(PySequence_Fast_GET_ITEM(value, 0), tensor_type);
  }
  if (!PyDict_Check(value)) return nullptr;
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item) != 0;) {
    if (PyObject_TypeCheck(item, reinterpret_cast<PyTypeObject*>(tensor_type))) return item;
  }
  return nullptr;
}

void AttachGradHook(PyObject* tensor, Recorder& recorder, capture::BackwardEntry entry) {
  static PyObject* const register_name = PyUnicode_InternFromString("register_hook");
  PyObject* node = PyObject_GetAttr(tensor, recorder.hooks().names.grad_node);
  if (node == nullptr || node == Py_None) {
    DropError();
    Py_XDECREF(node);
    return;
  }
  // Called with (grad_inputs, grad_outputs) after the node has run; the gradients with respect to
  // the node's outputs are the entry's input.
  auto record = [&recorder, entry = std::move(entry)](PyObject* args) {
    if (!recorder.calls().SelectsBackward(entry)) return;
    PackedPart packed = recorder.PackBackwardInput(entry.name, PyTuple_GET_ITEM(args, 1));
    recorder.RecordBackward(entry.name, entry.has_parent ? &entry.parent : nullptr,
                            std::move(packed), PyTuple_GET_ITEM(args, 0));
  };
  PyObject* hook = NewCallback(recorder, std::move(record));
  if (hook != nullptr) {
    Py_XDECREF(PyObject_CallMethodOneArg(node, register_name, hook));
    Py_DECREF(hook);
  }
  if (PyErr_Occurred() != nullptr) {
    DropError();
    recorder.observer().CountLoss("gradients_unhooked",
                                  ThisThread().entry_name + ": its autograd node takes no hook");
  }
  Py_DECREF(node);
}

}  // namespace plumbline::python

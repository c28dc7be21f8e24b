#include "grad_hook.h"

#include <new>
#include <utility>

#include "recorder.h"

namespace plumbline::python {
namespace {

// Called by the autograd engine with (grad_inputs, grad_outputs) after the node has run.
struct GradHook {
  PyObject_HEAD Recorder* recorder;  // kept alive by owner
  PyObject* owner;
  uint64_t epoch;
  bool has_parent;
  std::string name;
  std::string parent;
};

PyTypeObject* grad_hook_type = nullptr;  // created once by InitGradHookType

PyObject* CallGradHook(PyObject* self, PyObject* args, PyObject* /*kwargs*/) {
  auto* hook = reinterpret_cast<GradHook*>(self);
  if (hook->epoch == hook->recorder->observer().epoch() && PyTuple_GET_SIZE(args) == 2) {
    // The node's gradients with respect to its outputs are the entry's input.
    hook->recorder->RecordBackward(hook->name, hook->parent, hook->has_parent,
                                   PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 0));
  }
  Py_RETURN_NONE;
}

void FreeGradHook(PyObject* self) {
  auto* hook = reinterpret_cast<GradHook*>(self);
  hook->name.~basic_string();
  hook->parent.~basic_string();
  Py_DECREF(hook->owner);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

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

void AttachGradHook(PyObject* tensor, Recorder& recorder, std::string name, std::string parent,
                    bool has_parent) {
  static PyObject* const grad_fn_name = PyUnicode_InternFromString("grad_fn");
  static PyObject* const register_name = PyUnicode_InternFromString("register_hook");
  PyObject* node = PyObject_GetAttr(tensor, grad_fn_name);
  if (node == nullptr || node == Py_None) {
    PyErr_Clear();
    Py_XDECREF(node);
    return;
  }
  auto* hook = PyObject_New(GradHook, grad_hook_type);
  if (hook != nullptr) {
    hook->recorder = &recorder;
    hook->owner = Py_NewRef(recorder.owner());
    hook->epoch = recorder.observer().epoch();
    hook->has_parent = has_parent;
    new (&hook->name) std::string(std::move(name));
    new (&hook->parent) std::string(std::move(parent));
    PyObject* handle =
        PyObject_CallMethodOneArg(node, register_name, reinterpret_cast<PyObject*>(hook));
    Py_XDECREF(handle);
    Py_DECREF(hook);
  }
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    recorder.observer().CountLoss("gradients_unhooked", "a node that takes no hook");
  }
  Py_DECREF(node);
}

bool InitGradHookType() {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(CallGradHook)},
      {Py_tp_dealloc, reinterpret_cast<void*>(FreeGradHook)},
      {0, nullptr},
  };
  PyType_Spec spec = {"plumbline._core.GradHook", sizeof(GradHook), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  grad_hook_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return grad_hook_type != nullptr;
}

}  // namespace plumbline::python

#include "framework.h"

#include <initializer_list>
#include <utility>

#include "callback.h"

namespace plumbline::python {
namespace {

struct Part {
  const char* key;
  PyObject** place;
};

// Parts that are not there stay as they are.
void ReadParts(PyObject* parts, std::initializer_list<Part> wanted) {
  for (const Part& part : wanted) {
    PyObject* value = PyDict_GetItemString(parts, part.key);
    if (value != nullptr) *part.place = Py_NewRef(value);
  }
}

// An attribute's name; `usual` unless the framework has another.
void ReadName(PyObject* parts, const char* key, const char* usual, PyObject** name) {
  if (usual != nullptr) *name = PyUnicode_FromString(usual);
  PyObject* own = PyDict_GetItemString(parts, key);
  if (own != nullptr) {
    Py_XDECREF(*name);
    *name = Py_NewRef(own);
  }
  if (*name != nullptr) PyUnicode_InternInPlace(name);
}

}  // namespace

bool ReadTypes(PyObject* parts, FrameworkTypes* types) {
  PyObject* name = nullptr;
  ReadParts(parts, {{"name", &name},
                    {"tensor", &types->tensor},
                    {"dtype", &types->dtype},
                    {"device", &types->device},
                    {"size", &types->size},
                    {"memory_format", &types->memory_format},
                    {"describe", &types->describe},
                    {"dtypes", &types->dtypes}});
  const char* text = name == nullptr ? nullptr : PyUnicode_AsUTF8(name);
  const bool is_complete =
      text != nullptr && types->tensor != nullptr && types->describe != nullptr;
  if (is_complete) types->texts = capture::TextsOf(text);
  Py_XDECREF(name);
  return is_complete;
}

void ReadHooks(PyObject* parts, FrameworkHooks* hooks) {
  ReadParts(parts, {{"to_host", &hooks->to_host},
                    {"describe_tensor", &hooks->describe_tensor},
                    {"read_together", &hooks->read_together},
                    {"reduce_on_device", &hooks->reduce_on_device},
                    {"copy_from_device", &hooks->copy_from_device},
                    {"part_of", &hooks->part_of},
                    {"mode_depth", &hooks->mode_depth},
                    {"mode_at", &hooks->mode_at},
                    {"pop_mode", &hooks->pop_mode},
                    {"push_mode", &hooks->push_mode},
                    {"parameter", &hooks->parameter_type},
                    {"no_override", &hooks->no_override}});
  FrameworkNames& names = hooks->names;
  ReadName(parts, "requires_grad_name", "requires_grad", &names.requires_grad);
  ReadName(parts, "grad_node_name", "grad_fn", &names.grad_node);
  ReadName(parts, "output_number_name", "output_nr", &names.output_number);
  ReadName(parts, "parameters_name", "_parameters", &names.parameters);
  ReadName(parts, "buffers_name", "_buffers", &names.buffers);
  ReadName(parts, "node_id_name", nullptr, &names.node_id);
}

void Release(FrameworkTypes& types) {
  for (PyObject* object : {types.tensor, types.dtype, types.device, types.size, types.memory_format,
                           types.describe, types.dtypes}) {
    Py_XDECREF(object);
  }
}

void Release(FrameworkHooks& hooks) {
  const FrameworkNames& names = hooks.names;
  for (PyObject* object :
       {hooks.to_host, hooks.describe_tensor, hooks.read_together, hooks.reduce_on_device,
        hooks.copy_from_device, hooks.part_of, hooks.mode_depth, hooks.mode_at, hooks.pop_mode,
        hooks.push_mode, hooks.parameter_type, hooks.no_override, names.requires_grad,
        names.grad_node, names.output_number, names.parameters, names.buffers, names.node_id}) {
    Py_XDECREF(object);
  }
}

bool RequiresGrad(PyObject* tensor, const FrameworkNames& names) {
  PyObject* value = PyObject_GetAttr(tensor, names.requires_grad);
  if (value == nullptr) {
    DropError();
    return false;
  }
  const bool truth = value == Py_True;
  Py_DECREF(value);
  return truth;
}

bool IsPlainClass(PyTypeObject* type, const FrameworkTypes& types, const FrameworkHooks& hooks) {
  static PyObject* const name = PyUnicode_InternFromString("__torch_dispatch__");
  auto* object = reinterpret_cast<PyObject*>(type);
  if (object == types.tensor || object == hooks.parameter_type) return true;
  if (types.dtypes != nullptr) return true;  // such a framework has no dispatch to override
  PyObject* own = PyObject_GetAttr(object, name);
  PyObject* base = PyObject_GetAttr(types.tensor, name);
  if (PyErr_Occurred() != nullptr) DropError();
  const bool is_plain = own == base;
  Py_XDECREF(own);
  Py_XDECREF(base);
  return is_plain;
}

}  // namespace plumbline::python

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

// Parts that are None stay null.
bool ReadParts(PyObject* parts, std::initializer_list<Part> wanted) {
  for (const Part& part : wanted) {
    PyObject* value = PyDict_GetItemString(parts, part.key);
    if (value == nullptr) {
      PyErr_Format(PyExc_KeyError, "framework_parts(): no part %s", part.key);
      return false;
    }
    *part.place = value == Py_None ? nullptr : Py_NewRef(value);
  }
  return true;
}

}  // namespace

FrameworkTexts TextsOf(std::string name) {
  const bool is_mindspore = name == "mindspore", is_mindtorch = name == "mindtorch";
  FrameworkTexts texts{.name = std::move(name),
                       .tensor_type = "torch.Tensor",
                       .dtype_type = "torch.dtype",
                       .has_mindspore_dtypes = is_mindspore || is_mindtorch,
                       .tells_grad = !is_mindspore && !is_mindtorch,
                       .tells_device = !is_mindspore};
  if (texts.has_mindspore_dtypes) {
    texts.tensor_type = "mindspore.Tensor";
    texts.dtype_type = "mindspore.dtype";
  }
  return texts;
}

bool ReadTypes(PyObject* parts, FrameworkTypes* types) {
  PyObject* name = nullptr;
  const bool complete = ReadParts(parts, {{"name", &name},
                                          {"tensor", &types->tensor},
                                          {"dtype", &types->dtype},
                                          {"device", &types->device},
                                          {"size", &types->size},
                                          {"memory_format", &types->memory_format},
                                          {"describe", &types->describe},
                                          {"dtypes", &types->dtypes}});
  const char* text = name == nullptr ? nullptr : PyUnicode_AsUTF8(name);
  if (text != nullptr) types->texts = TextsOf(text);
  Py_XDECREF(name);
  return complete && text != nullptr;
}

bool ReadHooks(PyObject* parts, FrameworkHooks* hooks) {
  FrameworkNames& names = hooks->names;
  if (!ReadParts(parts, {{"to_host", &hooks->to_host},
                         {"describe_tensor", &hooks->describe_tensor},
                         {"mode_depth", &hooks->mode_depth},
                         {"mode_at", &hooks->mode_at},
                         {"pop_mode", &hooks->pop_mode},
                         {"push_mode", &hooks->push_mode},
                         {"parameter", &hooks->parameter_type},
                         {"no_override", &hooks->no_override},
                         {"requires_grad_name", &names.requires_grad},
                         {"grad_node_name", &names.grad_node},
                         {"output_number_name", &names.output_number},
                         {"parameters_name", &names.parameters},
                         {"node_id_name", &names.node_id}})) {
    return false;
  }
  for (PyObject** name : {&names.requires_grad, &names.grad_node, &names.output_number,
                          &names.parameters, &names.node_id}) {
    if (*name != nullptr) PyUnicode_InternInPlace(name);
  }
  return true;
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
       {hooks.to_host, hooks.describe_tensor, hooks.mode_depth, hooks.mode_at, hooks.pop_mode,
        hooks.push_mode, hooks.parameter_type, hooks.no_override, names.requires_grad,
        names.grad_node, names.output_number, names.parameters, names.node_id}) {
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

}  // namespace plumbline::python

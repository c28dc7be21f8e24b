#include "python_api.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string_view>

namespace plumbline::python {

#ifdef Py_LIMITED_API

UnstableApi unstable_api;

void LoadPythonApi() {
  const auto find = []<class F>(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
    if (function != nullptr) return;
    throw std::runtime_error(
        std::string("this Python has no ") + name +
        " (expected CPython 3.12 or newer): install plumbline from its source");
  };
  find(unstable_api.frame_back, "PyFrame_GetBack");
  find(unstable_api.frame_instruction, "PyFrame_GetLasti");
  find(unstable_api.line_of_instruction, "PyCode_Addr2Line");
  find(unstable_api.new_method, "PyMethod_New");
  find(unstable_api.holds_lock, "PyGILState_Check");
}

#else

void LoadPythonApi() {}

#endif

std::string TypeNameOf(PyObject* value) {
#if PY_VERSION_HEX >= 0x030b0000
  PyObject* name = PyType_GetName(Py_TYPE(value));
  Py_ssize_t length = 0;
  const char* bytes = name == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(name, &length);
  const std::string text = bytes == nullptr ? "" : std::string(bytes, static_cast<size_t>(length));
  if (bytes == nullptr) PyErr_Clear();
  Py_XDECREF(name);
  return text;
#else
  const std::string_view name = Py_TYPE(value)->tp_name;
  return std::string(name.substr(name.rfind('.') + 1));
#endif
}

PyObject* OwnMemberOf(PyObject* type, PyObject* name) {
#ifdef Py_LIMITED_API
  // A view of the class's dict, whose get() raises nothing; the view itself stands for nothing.
  static PyObject* const get_name = PyUnicode_InternFromString("get");
  PyObject* const view = PyObject_GetAttrString(type, "__dict__");
  PyObject* value = view == nullptr
                        ? nullptr
                        : PyObject_CallMethodObjArgs(view, get_name, name, view, nullptr);
  if (value == nullptr) PyErr_Clear();
  Py_XDECREF(value);  // the class keeps it
  if (value == view) value = nullptr;
  Py_XDECREF(view);
#else
  PyObject* const members = reinterpret_cast<PyTypeObject*>(type)->tp_dict;
  PyObject* const value = members == nullptr ? nullptr : PyDict_GetItemWithError(members, name);
  if (value == nullptr) PyErr_Clear();
#endif
  return value;
}

std::vector<PyObject*> ItemsOf(PyObject* tuple) {
  std::vector<PyObject*> items(static_cast<size_t>(PyTuple_GET_SIZE(tuple)));
  for (size_t i = 0; i < items.size(); ++i) {
    items[i] = PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i));
  }
  return items;
}

void FreeWithClass(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

}  // namespace plumbline::python

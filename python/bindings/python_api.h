// Python's C interface, for one version or for the stable ABI of 3.12 and every later version
// (Py_LIMITED_API). What the stable ABI leaves out is here under the names that Python gives it:
// macros become the functions beside them, which check their arguments; functions that every
// CPython exports are looked up when the module is imported (LoadPythonApi).

#ifndef PLUMBLINE_PYTHON_BINDINGS_PYTHON_API_H_
#define PLUMBLINE_PYTHON_BINDINGS_PYTHON_API_H_

#include <Python.h>

#include <string>
#include <vector>

namespace plumbline::python {

// Before anything else of a module. Throws std::runtime_error that names the function which this
// interpreter does not have.
void LoadPythonApi();

// The name of the value's class without its module.
std::string TypeNameOf(PyObject* value);

// What a class itself has under `name`, borrowed, not what it inherits; null if it has nothing.
PyObject* OwnMemberOf(PyObject* type, PyObject* name);

// The items of a tuple, borrowed.
std::vector<PyObject*> ItemsOf(PyObject* tuple);

// Releases the memory of an object of a class made from a PyType_Spec, and its class.
void FreeWithClass(PyObject* self);

}  // namespace plumbline::python

#ifdef Py_LIMITED_API

namespace plumbline::python {

// Functions that are no part of the stable ABI, with the signatures of CPython 3.12 to 3.14.
struct UnstableApi {
  PyFrameObject* (*frame_back)(PyFrameObject*) = nullptr;
  int (*frame_instruction)(PyFrameObject*) = nullptr;
  int (*line_of_instruction)(PyCodeObject*, int) = nullptr;
  PyObject* (*new_method)(PyObject*, PyObject*) = nullptr;
  int (*holds_lock)() = nullptr;
};
extern UnstableApi unstable_api;

}  // namespace plumbline::python

#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_SET_ITEM PyTuple_SetItem
#define PyList_GET_ITEM PyList_GetItem
#define PyList_GET_SIZE PyList_Size
#define PyDict_GET_SIZE PyDict_Size
#define PyBytes_GET_SIZE PyBytes_Size
#define PyBytes_AS_STRING PyBytes_AsString
#define PyFloat_AS_DOUBLE PyFloat_AsDouble

inline const char* PyUnicode_AsUTF8(PyObject* text) {
  return PyUnicode_AsUTF8AndSize(text, nullptr);
}
inline PyObject* PyObject_CallOneArg(PyObject* function, PyObject* argument) {
  PyObject* arguments[] = {nullptr, argument};
  return PyObject_Vectorcall(function, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}
inline PyObject* PyObject_CallMethodNoArgs(PyObject* self, PyObject* name) {
  return PyObject_VectorcallMethod(name, &self, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}
inline PyObject* PyObject_CallMethodOneArg(PyObject* self, PyObject* name, PyObject* argument) {
  PyObject* arguments[] = {self, argument};
  return PyObject_VectorcallMethod(name, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}
inline PyFrameObject* PyFrame_GetBack(PyFrameObject* frame) {
  return plumbline::python::unstable_api.frame_back(frame);
}
inline int PyFrame_GetLasti(PyFrameObject* frame) {
  return plumbline::python::unstable_api.frame_instruction(frame);
}
inline int PyCode_Addr2Line(PyCodeObject* code, int instruction) {
  return plumbline::python::unstable_api.line_of_instruction(code, instruction);
}
inline PyObject* PyMethod_New(PyObject* function, PyObject* self) {
  return plumbline::python::unstable_api.new_method(function, self);
}
inline int PyGILState_Check() { return plumbline::python::unstable_api.holds_lock(); }

#endif  // Py_LIMITED_API

#endif  // PLUMBLINE_PYTHON_BINDINGS_PYTHON_API_H_

#include "callback.h"

#include <nanobind/nanobind.h>

#include <exception>
#include <new>
#include <utility>

namespace plumbline::python {
namespace {

struct Callback {
  PyObject_HEAD HookHost* host;  // kept alive by owner
  PyObject* owner;
  CallbackBody body;
};

PyTypeObject* callback_type = nullptr;  // created once by InitCallbackType

void CountFailure(HookHost& host, const char* what) { host.CountLoss("hooks_failed", what); }

// A pending call of the interpreter: raises `value`, which it takes over.
int RaiseAgain(void* value) {
  auto* exception = static_cast<PyObject*>(value);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  Py_DECREF(exception);
  return -1;
}

PyObject* CallCallback(PyObject* self, PyObject* args, PyObject* /*kwargs*/) {
  auto* callback = reinterpret_cast<Callback*>(self);
  Py_INCREF(self);  // the call itself may remove the hook
  RunGuarded(*callback->host, [&] { callback->body(args); });
  Py_DECREF(self);
  Py_RETURN_NONE;
}

void FreeCallback(PyObject* self) {
  auto* callback = reinterpret_cast<Callback*>(self);
  callback->body.~CallbackBody();
  Py_DECREF(callback->owner);
  FreeWithClass(self);
}

}  // namespace

PyObject* NewCallback(HookHost& host, CallbackBody body) {
  auto* callback = PyObject_New(Callback, callback_type);
  if (callback == nullptr) return nullptr;
  callback->host = &host;
  callback->owner = Py_NewRef(host.owner());
  new (&callback->body) CallbackBody(std::move(body));
  return reinterpret_cast<PyObject*>(callback);
}

void RunGuarded(HookHost& host, const std::function<void()>& body) {
  try {
    body();
  } catch (nanobind::python_error& error) {
    if (!error.matches(PyExc_Exception)) {
      error.restore();
      DropError();
      return;
    }
    CountFailure(host, error.what());
  } catch (const std::exception& error) {
    CountFailure(host, error.what());
  }
  if (PyErr_Occurred() == nullptr) return;
  DropError();
  CountFailure(host, "an error inside a hook");
}

void DropError() {
  if (PyErr_Occurred() == nullptr) return;
  if (PyErr_ExceptionMatches(PyExc_Exception) != 0) {
    PyErr_Clear();
    return;
  }
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(traceback);
  Py_XDECREF(type);
  if (Py_AddPendingCall(RaiseAgain, value) != 0) Py_XDECREF(value);
}

bool InitCallbackType() {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(CallCallback)},
      {Py_tp_dealloc, reinterpret_cast<void*>(FreeCallback)},
      {0, nullptr},
  };
  PyType_Spec spec = {"plumbline._core.Callback", sizeof(Callback), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  callback_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return callback_type != nullptr;
}

}  // namespace plumbline::python

#include "patch_set.h"

namespace plumbline::python {
namespace {

// The entry of the owner's own dict (borrowed), not of a base class; null if it has none.
PyObject* OwnAttribute(PyObject* owner, PyObject* name) {
  if (PyType_Check(owner)) return OwnMemberOf(owner, name);
  PyObject* dict = PyObject_GenericGetDict(owner, nullptr);
  if (dict == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  PyObject* value = PyDict_GetItemWithError(dict, name);
  if (value == nullptr) PyErr_Clear();
  Py_DECREF(dict);  // the owner keeps it
  return value;
}

}  // namespace

PatchSet::~PatchSet() {
  Restore();
  for (const Patch& patch : patches_) {
    Py_DECREF(patch.owner);
    Py_DECREF(patch.name);
    Py_DECREF(patch.replacement);
  }
}

void PatchSet::Add(PyObject* owner, PyObject* name, PyObject* replacement) {
  PyObject* interned = Py_NewRef(name);
  PyUnicode_InternInPlace(&interned);
  patches_.push_back({Py_NewRef(owner), interned, Py_NewRef(replacement), nullptr, false});
}

void PatchSet::Apply() {
  if (is_applied_) return;
  is_applied_ = true;
  for (Patch& patch : patches_) {
    patch.original = Py_XNewRef(OwnAttribute(patch.owner, patch.name));
    patch.is_set = PyObject_SetAttr(patch.owner, patch.name, patch.replacement) == 0;
    if (patch.is_set) continue;
    PyErr_Clear();
    ++skipped_;
    Py_CLEAR(patch.original);
  }
}

int PatchSet::Restore() {
  if (!is_applied_) return 0;
  is_applied_ = false;
  int foreign = 0;
  for (Patch& patch : patches_) {
    if (!patch.is_set) continue;
    if (OwnAttribute(patch.owner, patch.name) != patch.replacement) {
      ++foreign;
    } else if (PyObject_SetAttr(patch.owner, patch.name, patch.original) != 0) {
      PyErr_Clear();  // a null original deletes; neither fails for an attribute just set
    }
    Py_CLEAR(patch.original);
    patch.is_set = false;
  }
  return foreign;
}

}  // namespace plumbline::python

#include "call_probe.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "recorder.h"

namespace plumbline::python {
namespace {

struct Probe {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* original;
  Recorder* recorder;  // kept alive by owner
  PyObject* owner;
  uint32_t api;               // counter id of the recorder
  Collectives* collectives;   // of a communication function, else null; kept alive by owner
  CollectiveApi* collective;  // owned; null like collectives
};

// Created once by InitProbeTypes. Methods carry Py_TPFLAGS_METHOD_DESCRIPTOR, so that the
// interpreter calls them without making a bound object first.
PyTypeObject* function_type = nullptr;
PyTypeObject* method_type = nullptr;

Probe* AsProbe(PyObject* object) { return reinterpret_cast<Probe*>(object); }

PyObject* Call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Probe* probe = AsProbe(self);
  // The probe may be uninstalled, and freed, by the call itself.
  Py_INCREF(self);
  PyObject* result = probe->recorder->CallApi(probe->api, probe->original, args, nargsf, kwnames);
  Py_DECREF(self);
  return result;
}

PyObject* CallCollective(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Probe* probe = AsProbe(self);
  Py_INCREF(self);
  PyObject* result =
      probe->collectives->Call(*probe->collective, probe->original, args, nargsf, kwnames);
  Py_DECREF(self);
  return result;
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(AsProbe(self)->original);
  return 0;
}

int Clear(PyObject* /*self*/) {
  // The original stays callable for whoever still holds the probe; FreeProbe releases it.
  return 0;
}

void FreeProbe(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_DECREF(AsProbe(self)->original);
  delete AsProbe(self)->collective;
  Py_DECREF(AsProbe(self)->owner);
  FreeWithClass(self);
}

PyObject* GetAttribute(PyObject* self, PyObject* name) {
  // inspect.unwrap() and functools find the original here; everything else is its own attribute.
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  if (std::strcmp(text, "__wrapped__") == 0) return Py_NewRef(AsProbe(self)->original);
  if (std::strcmp(text, "__reduce_ex__") == 0 || std::strcmp(text, "__reduce__") == 0 ||
      std::strcmp(text, "__class__") == 0) {
    return PyObject_GenericGetAttr(self, name);
  }
  return PyObject_GetAttr(AsProbe(self)->original, name);
}

int SetAttribute(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(AsProbe(self)->original, name, value);
}

PyObject* Represent(PyObject* self) { return PyObject_Repr(AsProbe(self)->original); }

Py_hash_t Hash(PyObject* self) { return PyObject_Hash(AsProbe(self)->original); }

PyObject* Compare(PyObject* self, PyObject* other, int operation) {
  if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  PyObject* original = OriginalOf(other);
  const bool equal = AsProbe(self)->original == (original != nullptr ? original : other);
  return PyBool_FromLong(equal == (operation == Py_EQ));
}

// PyTorch passes an attribute of the tensor class to the user's __torch_function__ while the API
// runs: that has to be the original.
PyObject* Unbound(PyObject* self) {
  return Py_NewRef(ThisThread().in_api > 0 ? AsProbe(self)->original : self);
}

PyObject* BindFunction(PyObject* self, PyObject* instance, PyObject* owner) {
  // Builtin functions do not bind, Python functions do.
  PyTypeObject* const type = Py_TYPE(AsProbe(self)->original);
  const bool binds = PyType_GetSlot(type, Py_tp_descr_get) != nullptr;
  if (!binds || instance == nullptr || instance == Py_None) return Py_NewRef(self);
  (void)owner;
  return PyMethod_New(self, instance);
}

PyObject* BindMethod(PyObject* self, PyObject* instance, PyObject* /*owner*/) {
  if (instance == nullptr || instance == Py_None) return Unbound(self);
  return PyMethod_New(self, instance);
}

// copy and pickle give the original: a probe must not outlive its window in a stored object.
PyObject* Reduce(PyObject* self, PyObject* /*unused*/) {
  PyObject* module = PyImport_ImportModule("copy");
  PyObject* copy = module == nullptr ? nullptr : PyObject_GetAttrString(module, "copy");
  Py_XDECREF(module);
  if (copy == nullptr) return nullptr;
  return Py_BuildValue("N(O)", copy, AsProbe(self)->original);
}

PyMethodDef methods[] = {
    {"__reduce__", Reduce, METH_NOARGS, "Reduces to the wrapped callable."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Probe, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyTypeObject* NewType(const char* name, descrgetfunc bind, unsigned long extra_flags) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(Clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(FreeProbe)},
      {Py_tp_getattro, reinterpret_cast<void*>(GetAttribute)},
      {Py_tp_setattro, reinterpret_cast<void*>(SetAttribute)},
      {Py_tp_repr, reinterpret_cast<void*>(Represent)},
      {Py_tp_hash, reinterpret_cast<void*>(Hash)},
      {Py_tp_richcompare, reinterpret_cast<void*>(Compare)},
      {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {0, nullptr},
  };
  const unsigned long flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                              Py_TPFLAGS_DISALLOW_INSTANTIATION | extra_flags;
  PyType_Spec spec = {name, sizeof(Probe), 0, static_cast<unsigned int>(flags), slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

// A probe that is not tracked yet; null with an error.
Probe* Allocate(PyTypeObject* type, Recorder& recorder, PyObject* owner, PyObject* original,
                std::string_view name) {
  auto* probe = PyObject_GC_New(Probe, type);
  if (probe == nullptr) return nullptr;
  probe->vectorcall = Call;
  probe->original = Py_NewRef(original);
  probe->recorder = &recorder;
  probe->owner = Py_NewRef(owner);
  probe->api = recorder.observer().counters().Register(name);
  probe->collectives = nullptr;
  probe->collective = nullptr;
  return probe;
}

}  // namespace

PyObject* NewProbe(Recorder& recorder, PyObject* original, std::string_view name, bool is_method) {
  PyTypeObject* type = is_method ? method_type : function_type;
  Probe* probe = Allocate(type, recorder, recorder.owner(), original, name);
  if (probe != nullptr) PyObject_GC_Track(probe);
  return reinterpret_cast<PyObject*>(probe);
}

PyObject* NewCollectiveProbe(Collectives& collectives, PyObject* owner, PyObject* original,
                             std::string_view name, CollectiveRule rule) {
  Probe* probe = Allocate(function_type, collectives.recorder(), owner, original, name);
  if (probe == nullptr) return nullptr;
  probe->vectorcall = CallCollective;
  probe->collectives = &collectives;
  probe->collective = new CollectiveApi{probe->api, std::move(rule)};
  PyObject_GC_Track(probe);
  return reinterpret_cast<PyObject*>(probe);
}

PyObject* OriginalOf(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  return type == function_type || type == method_type ? AsProbe(object)->original : nullptr;
}

bool InitProbeTypes() {
  function_type = NewType("plumbline._core.FunctionProbe", BindFunction, 0);
  method_type = NewType("plumbline._core.MethodProbe", BindMethod, Py_TPFLAGS_METHOD_DESCRIPTOR);
  return function_type != nullptr && method_type != nullptr;
}

}  // namespace plumbline::python

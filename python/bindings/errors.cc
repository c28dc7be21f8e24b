#include "errors.h"

#include "base/process/log.h"
#include "file_path.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// Exception classes live as long as the interpreter; the module holds the reference that counts.
PyObject* unsupported_error = nullptr;
PyObject* corrupt_data_error = nullptr;
PyObject* internal_error = nullptr;

PyObject* NewException(nb::module_& m, const char* name, const char* doc, PyObject* base) {
  const std::string full = std::string("plumbline._core.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  if (type == nullptr) throw nb::python_error();
  m.attr(name) = nb::borrow(type);
  return type;
}

PyObject* TypeFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return PyExc_ValueError;
    case ErrorCode::kNotFound:
      return PyExc_FileNotFoundError;
    case ErrorCode::kUnsupported:
      return unsupported_error;
    case ErrorCode::kCorrupt:
      return corrupt_data_error;
    case ErrorCode::kIo:
      return PyExc_OSError;
    case ErrorCode::kInternal:
      return internal_error;
  }
  return internal_error;
}

}  // namespace

void BindErrors(nb::module_& m) {
  unsupported_error = NewException(m, "UnsupportedError",
                                   "Valid input that plumbline cannot handle.", PyExc_RuntimeError);
  corrupt_data_error = NewException(
      m, "CorruptDataError", "A file whose bytes contradict its own format.", PyExc_RuntimeError);
  internal_error =
      NewException(m, "InternalError", "A defect of plumbline itself.", PyExc_RuntimeError);
}

void ImportErrors() {
  const nb::module_ core = nb::module_::import_("plumbline._core");
  unsupported_error = nb::object(core.attr("UnsupportedError")).release().ptr();
  corrupt_data_error = nb::object(core.attr("CorruptDataError")).release().ptr();
  internal_error = nb::object(core.attr("InternalError")).release().ptr();
}

void Raise(const Error& error) {
  const nb::object message =
      nb::steal(CheckedPython(DecodeTextWithPaths(ShownText(error.message()))));
  PyErr_SetObject(TypeFor(error.code()), message.ptr());
  throw nb::python_error();
}

}  // namespace plumbline::python

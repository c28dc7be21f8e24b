// Names of files between Python and C++. Python spells bytes that are not UTF-8 as lone surrogates
// (os.fsencode, os.fsdecode); nanobind's own texts refuse them.

#ifndef PLUMBLINE_PYTHON_BINDINGS_FILE_PATH_H_
#define PLUMBLINE_PYTHON_BINDINGS_FILE_PATH_H_

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "python_api.h"

namespace plumbline::python {

// A path as the operating system knows it. From Python: str, bytes or os.PathLike without NUL.
struct FilePath {
  std::string bytes;
};

// Text for people that may name files. To Python only, as str.
struct TextWithPaths {
  std::string utf8;
};

// A new reference, or null with a Python error. Bytes that are not UTF-8 become lone surrogates.
inline PyObject* DecodeTextWithPaths(std::string_view text) noexcept {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}

}  // namespace plumbline::python

namespace nanobind::detail {

template <>
struct type_caster<plumbline::python::FilePath> {
  NB_TYPE_CASTER(plumbline::python::FilePath, io_name("str | bytes | os.PathLike", "str"))

  bool from_python(handle source, uint8_t /*flags*/, cleanup_list* /*unused*/) noexcept {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(source.ptr(), &encoded) == 0) {
      PyErr_Clear();
      return false;
    }
    value.bytes.assign(PyBytes_AS_STRING(encoded), static_cast<size_t>(PyBytes_GET_SIZE(encoded)));
    Py_DECREF(encoded);
    return true;
  }

  static handle from_cpp(const plumbline::python::FilePath& path, rv_policy /*unused*/,
                         cleanup_list* /*unused*/) noexcept {
    return PyUnicode_DecodeFSDefaultAndSize(path.bytes.data(),
                                            static_cast<Py_ssize_t>(path.bytes.size()));
  }
};

template <>
struct type_caster<plumbline::python::TextWithPaths> {
  NB_TYPE_CASTER(plumbline::python::TextWithPaths, const_name("str"))

  bool from_python(handle /*unused*/, uint8_t /*unused*/, cleanup_list* /*unused*/) noexcept {
    return false;
  }

  static handle from_cpp(const plumbline::python::TextWithPaths& text, rv_policy /*unused*/,
                         cleanup_list* /*unused*/) noexcept {
    return plumbline::python::DecodeTextWithPaths(text.utf8);
  }
};

}  // namespace nanobind::detail

#endif  // PLUMBLINE_PYTHON_BINDINGS_FILE_PATH_H_

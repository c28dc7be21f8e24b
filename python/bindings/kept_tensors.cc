#include "kept_tensors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "callback.h"
#include "values.h"

namespace plumbline::python {
namespace {

// Names of Python's in-place operators; other names with two underscores only read.
constexpr std::array<std::string_view, 14> kInPlaceOperators = {
    "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__",
    "__iand__", "__ior__",  "__ixor__", "__ilshift__",  "__irshift__",   "__idiv__", "__setitem__"};

// Fill a tensor without looking at it.
constexpr std::array<std::string_view, 11> kOverwriting = {
    "fill_",      "zero_",        "copy_",      "normal_", "uniform_",    "random_",
    "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_",
};

template <size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool KeywordIs(PyObject* kwnames, PyObject* const* values, std::string_view name, PyObject* value) {
  const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (TextOf(PyTuple_GET_ITEM(kwnames, i)) == name) return value == nullptr || values[i] == value;
  }
  return false;
}

void Release(const KeptTensor& kept) {
  Py_XDECREF(kept.tensor);
  Py_XDECREF(kept.copy);
}

}  // namespace

Writes WritesOf(std::string_view api, PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  const std::string_view name = api.substr(api.rfind('.') + 1);
  if (name.ends_with("__")) {
    return IsOneOf(name, kInPlaceOperators) ? Writes::kFirst : Writes::kNothing;
  }
  PyObject* const* keywords = args + count;
  if (KeywordIs(kwnames, keywords, "out", nullptr)) return Writes::kOut;
  if (KeywordIs(kwnames, keywords, "inplace", Py_True)) return Writes::kEverything;
  if (IsOneOf(name, kOverwriting)) return Writes::kOverwritten;
  if (name.ends_with("_")) return Writes::kFirst;
  if (name.ends_with("batch_norm") || name == "instance_norm") return Writes::kRunningStats;
  // relu(x, True), dropout(x, 0.5, True, True): the last positional argument is `inplace`.
  if (count > 1 && api.starts_with("Functional.") && args[count - 1] == Py_True) {
    return Writes::kFirst;
  }
  return Writes::kNothing;
}

bool MayWrite(Writes writes, std::string_view path) {
  switch (writes) {
    case Writes::kNothing:
      return false;
    case Writes::kFirst:
    case Writes::kOverwritten:
      return path == "input.0" || path.starts_with("input.0.");
    case Writes::kOut:
      return path == "kwargs.out" || path.starts_with("kwargs.out.");
    case Writes::kRunningStats:
      return path == "input.1" || path == "input.2" || path == "input.3" || path == "input.4" ||
             path.starts_with("kwargs.running_");
    case Writes::kEverything:
      break;
  }
  return true;
}

bool IsRead(Writes writes, std::string_view path) {
  const bool overwrites = writes == Writes::kOut || writes == Writes::kOverwritten;
  return !overwrites || !MayWrite(writes, path);
}

KeptTensors& KeptTensors::operator=(KeptTensors&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  tensors = std::exchange(other.tensors, {});
  head = other.head;
  writes = other.writes;
  in_output = other.in_output;
  has_input = other.has_input;
  input_hit = other.input_hit;
  output_hit = other.output_hit;
  is_unknown = other.is_unknown;
  return *this;
}

void KeptTensors::Clear() {
  // Releasing can run Python code that records: this must be consistent before.
  const std::vector<KeptTensor> old = std::exchange(tensors, {});
  head = 0;
  writes = Writes::kNothing;
  in_output = has_input = input_hit = output_hit = is_unknown = false;
  if (old.empty() || Py_IsInitialized() == 0 || PyGILState_Check() == 0) return;
  for (const KeptTensor& kept : old) Release(kept);
}

void KeptTensors::Append(KeptTensors&& part, size_t offset) {
  for (KeptTensor& kept : part.tensors) {
    kept.begin += offset;
    kept.end += offset;
  }
  tensors.insert(tensors.end(), std::make_move_iterator(part.tensors.begin()),
                 std::make_move_iterator(part.tensors.end()));
  part.tensors.clear();
  has_input |= part.has_input;
  input_hit |= part.input_hit;
  output_hit |= part.output_hit;
  is_unknown |= part.is_unknown;
}

void KeptTensors::Share(PyObject* tensor, std::optional<int64_t> version, PyObject* copy) {
  for (KeptTensor& kept : tensors) {
    if (kept.tensor != tensor || kept.copy != nullptr || kept.version != version) continue;
    kept.copy = Py_NewRef(copy);
  }
}

std::optional<int64_t> VersionOf(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("_version");
  PyObject* version = PyObject_GetAttr(tensor, name);
  const int64_t number = version == nullptr ? -1 : PyLong_AsLongLong(version);
  Py_XDECREF(version);
  if (PyErr_Occurred() == nullptr) return number;
  DropError();
  return std::nullopt;
}

}  // namespace plumbline::python

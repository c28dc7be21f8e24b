#include "model_tracer.h"

#include <cmath>

#include "callback.h"
#include "framework_guards.h"
#include "python_program.h"
#include "thread_state.h"
#include "values.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

constexpr int kMaxNesting = 16;
constexpr size_t kUnlockFromBytes = size_t{1} << 20;

bool IsEmpty(const HostTensor& host) { return host.view().element_count() == 0; }

// A list or tuple of two floats.
bool ReadPair(PyObject* pair, kernels::AbsExtremes* extremes) {
  if (!PySequence_Check(pair) || PySequence_Size(pair) != 2) return false;
  double numbers[2];
  for (Py_ssize_t i = 0; i < 2; ++i) {
    const nb::object number = nb::steal(PySequence_GetItem(pair, i));
    numbers[i] = number.is_valid() ? PyFloat_AsDouble(number.ptr()) : 0;
    if (PyErr_Occurred() != nullptr) return false;
  }
  *extremes = {numbers[0], numbers[1], std::isnan(numbers[1]), std::isinf(numbers[1])};
  return true;
}

}  // namespace

ModelTracer::ModelTracer(FrameworkTypes types, FrameworkHooks hooks, nb::object magnitudes,
                         nb::object read, OverflowTraceOptions options)
    : types_(std::move(types)),
      hooks_(hooks),
      magnitudes_(std::move(magnitudes)),
      read_(std::move(read)),
      reader_(types_),
      trace_(std::move(options)) {}

ModelTracer::~ModelTracer() {
  Release(types_);
  Release(hooks_);
}

TraceReport ModelTracer::Frame(std::string name, bool is_root, PyObject* module, PyObject* args,
                               PyObject* output) {
  if (trace_.is_over()) return {};
  const OwnWork own;
  OpenFrame open;
  open.frame.module = std::move(name);
  open.frame.type = TypeNameOf(module);
  open.frame.ends_batch = is_root;
  AddParameters(module, open);
  if (PyTuple_Check(args)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      AddValue(PyTuple_GET_ITEM(args, i), "input[" + std::to_string(i) + "]", 0, open);
    }
  } else {
    AddValue(args, "input", 0, open);
  }
  AddValue(output, "output", 2, open);
  // Only now: another thread may have taken a frame while a tensor was read.
  awaited_.insert(awaited_.end(), open.awaited.begin(), open.awaited.end());
  if (!trace_.Take(std::move(open.frame))) return {};
  return trace_.Settle(ReadAwaited());
}

TraceReport ModelTracer::EndEarly() {
  if (trace_.is_over()) return {};
  const OwnWork own;
  const TraceReport report = trace_.Settle(ReadAwaited());
  trace_.Drop();
  return report;
}

void ModelTracer::AddParameters(PyObject* module, OpenFrame& to) {
  const nb::object all = nb::steal(PyObject_GetAttr(module, hooks_.names.parameters));
  if (!all.is_valid() || !PyDict_Check(all.ptr())) return DropError();
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(all.ptr(), &at, &key, &value) != 0;) {
    if (value != Py_None) AddTensor(value, std::string(TextOf(key)), false, to);
  }
}

void ModelTracer::AddValue(PyObject* value, const std::string& label, int tuples, OpenFrame& to) {
  if (PyTuple_Check(value) && tuples > 0) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      AddValue(PyTuple_GET_ITEM(value, i), label + "[" + std::to_string(i) + "]", tuples - 1, to);
    }
    return;
  }
  if (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(types_.tensor)) != 0) {
    return AddTensor(value, label, false, to);
  }
  TracedValue line;
  line.label = label;
  line.kind = value == Py_None ? TracedKind::kNothing : TracedKind::kOther;
  to.frame.values.push_back(std::move(line));
  AddInside(value, label, 0, to);
}

void ModelTracer::AddInside(PyObject* value, const std::string& label, int depth, OpenFrame& to) {
  if (depth > kMaxNesting) return;
  if (depth > 0 && PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(types_.tensor)) != 0) {
    return AddTensor(value, label, true, to);
  }
  if (PyDict_Check(value)) {
    PyObject* key = nullptr;
    PyObject* item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(value, &at, &key, &item) != 0;) {
      AddInside(item, label + "[" + StrOf(key) + "]", depth + 1, to);
    }
  } else if (PyTuple_Check(value) || PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
      AddInside(PySequence_Fast_GET_ITEM(value, i), label + "[" + std::to_string(i) + "]",
                depth + 1, to);
    }
  }
}

void ModelTracer::AddTensor(PyObject* tensor, const std::string& label, bool is_inside,
                            OpenFrame& to) {
  TracedValue value;
  value.label = label;
  value.kind = TracedKind::kUnreadable;
  value.is_inside = is_inside;
  HostTensor host;
  const bool is_plain = IsPlainClass(Py_TYPE(tensor), types_, hooks_) &&
                        reader_.Read(tensor, &host);
  if (is_plain && (host.on_host ? !IsLazy(tensor, host.dtype) : IsEmpty(host))) {
    ReadHost(host, value);
  } else if (is_plain && !host.on_host) {
    nb::object later = nb::steal(PyObject_CallOneArg(magnitudes_.ptr(), tensor));
    value.is_awaited = later.is_valid();
    if (later.is_valid()) {
      value.kind = TracedKind::kTensor;
      to.awaited.push_back(std::move(later));
    }
    DropError();
  } else {
    ReadDescribed(tensor, value);
  }
  to.frame.values.push_back(std::move(value));
}

void ModelTracer::ReadHost(const HostTensor& host, TracedValue& value) const {
  const capture::ProgramThreads threads = PythonThreads();
  const kernels::Team team = threads.team();
  const TensorView view = host.view();
  value.kind = TracedKind::kTensor;
  if (view.size_bytes() < kUnlockFromBytes) {
    value.seen = kernels::AbsExtremesOf(view, &team);
    return;
  }
  threads.run_unlocked([&] { value.seen = kernels::AbsExtremesOf(view, &team); });
}

// describe_tensor() answers with the tensor that holds the values at this place, and behind it with
// the number of zeros that it leaves out.
void ModelTracer::ReadDescribed(PyObject* tensor, TracedValue& value) {
  constexpr Py_ssize_t kSource = 4, kZeros = 5;
  const nb::object answer = nb::steal(
      PyObject_CallFunctionObjArgs(hooks_.describe_tensor, tensor, Py_False, nullptr));
  if (!answer.is_valid() || !PyTuple_Check(answer.ptr()) ||
      PyTuple_GET_SIZE(answer.ptr()) <= kZeros) {
    return DropError();
  }
  PyObject* source = PyTuple_GET_ITEM(answer.ptr(), kSource);
  if (source == Py_None) return;
  const nb::object plain = nb::steal(PyObject_CallOneArg(hooks_.to_host, source));
  HostTensor host;
  if (plain.is_valid() && reader_.Read(plain.ptr(), &host) && host.on_host) {
    ReadHost(host, value);
    const size_t zeros = PyLong_AsSize_t(PyTuple_GET_ITEM(answer.ptr(), kZeros));
    if (PyErr_Occurred() == nullptr && zeros > 0 && !value.seen.has_nan) value.seen.min = 0;
  }
  DropError();
}

// Awaited values that a device does not tell are left out at the end: they count as not readable.
std::vector<kernels::AbsExtremes> ModelTracer::ReadAwaited() {
  std::vector<kernels::AbsExtremes> read;
  if (awaited_.empty()) return read;
  nb::list asked;
  for (nb::object& one : awaited_) asked.append(one);
  awaited_.clear();
  const nb::object answer = nb::steal(PyObject_CallOneArg(read_.ptr(), asked.ptr()));
  if (answer.is_valid() && PyList_Check(answer.ptr()) &&
      PyList_GET_SIZE(answer.ptr()) == PyList_GET_SIZE(asked.ptr())) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(answer.ptr()); ++i) {
      kernels::AbsExtremes extremes;
      if (!ReadPair(PyList_GET_ITEM(answer.ptr(), i), &extremes)) break;
      read.push_back(extremes);
    }
  }
  DropError();
  return read;
}

}  // namespace plumbline::python

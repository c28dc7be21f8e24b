#include "call_watch.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "callback.h"
#include "errors.h"
#include "framework_guards.h"
#include "recorder.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

std::atomic<bool> is_forked_child = false;

void WatchForks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; }); });
}

nb::object Checked(PyObject* object) { return nb::steal(CheckedPython(object)); }

nb::object TupleOf(PyObject* const* args, Py_ssize_t count) {
  nb::object tuple = Checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.ptr(), i, Py_NewRef(args[i]));
  return tuple;
}

nb::object DictOf(PyObject* kwnames, PyObject* const* values) {
  nb::object dict = Checked(PyDict_New());
  const Py_ssize_t count = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (PyDict_SetItem(dict.ptr(), PyTuple_GET_ITEM(kwnames, i), values[i]) != 0) {
      throw nb::python_error();
    }
  }
  return dict;
}

// The arguments that the call may write to.
nb::list WrittenOf(std::string_view api, PyObject* const* args, Py_ssize_t count,
                   PyObject* kwnames) {
  nb::list written;
  const capture::Writes writes = capture::WritesOf(api, HintsOf(args, count, kwnames));
  if (writes == capture::Writes::kNothing) return written;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (capture::MayWrite(writes, fmt::format("input.{}", i))) written.append(nb::borrow(args[i]));
  }
  const Py_ssize_t named = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < named; ++i) {
    const std::string path =
        fmt::format("kwargs.{}", TextOf(PyTuple_GET_ITEM(kwnames, i)));
    if (capture::MayWrite(writes, path)) written.append(nb::borrow(args[count + i]));
  }
  return written;
}

}  // namespace

CallWatch::CallWatch(Recorder& recorder, std::function<bool(const CheckedCall&)> selects,
                     nb::object before, nb::object after)
    : recorder_(recorder),
      selects_(std::move(selects)),
      before_(std::move(before)),
      after_(std::move(after)) {
  WatchForks();
}

bool CallWatch::is_open() const {
  return is_open_ && !is_forked_child.load(std::memory_order_relaxed);
}

nb::object CallWatch::Before(const CheckedCall& call, PyObject* original, PyObject* const* args,
                             Py_ssize_t count, PyObject* kwnames) {
  const nb::object positional = TupleOf(args, count);
  const nb::object named = DictOf(kwnames, args + count);
  const nb::list written = WrittenOf(call.api, args, count, kwnames);
  return before_(call, nb::borrow(original), positional, named, written);
}

PyObject* CallWatch::Call(uint32_t api, PyObject* original, PyObject* const* args, size_t nargsf,
                          PyObject* kwnames) {
  ThreadState& thread = ThisThread();
  if (thread.in_api > 0 || thread.in_tool > 0 || !is_open()) {
    return PyObject_Vectorcall(original, args, nargsf, kwnames);
  }
  const ModeOff mode_off(recorder_.hooks(), thread);
  const capture::ApiCall named = recorder_.calls().NameApi(api);
  const CheckedCall call{std::string(named.api), named.name, static_cast<int64_t>(named.number)};
  nb::object state;
  if (selects_(call)) {
    const InTool in_tool(thread, recorder_.gate());
    RunGuarded(recorder_, [&] {
      state = Before(call, original, args, PyVectorcall_NARGS(nargsf), kwnames);
    });
  }
  ++thread.in_api;
  PyObject* result = PyObject_Vectorcall(original, args, nargsf, kwnames);
  --thread.in_api;
  const InTool in_tool(thread, recorder_.gate());
  if (result == nullptr || !state.is_valid() || state.is_none()) {
    const KeepException keep;
    state.reset();
    return result;
  }
  nb::object replacement;
  RunGuarded(recorder_, [&] {
    replacement = after_(state, nb::borrow(result));
  });
  if (replacement.is_valid() && !replacement.is_none()) {
    Py_DECREF(result);
    result = replacement.release().ptr();
  }
  return result;
}

}  // namespace plumbline::python

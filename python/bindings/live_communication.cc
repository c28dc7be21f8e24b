#include "live_communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "callback.h"
#include "errors.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

bool IsOne(PyObject* value, const nb::object& type) {
  return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
}

bool Contains(const nb::list& list, nb::handle value) {
  const int answer = PySequence_Contains(list.ptr(), value.ptr());
  if (answer < 0) throw nb::python_error();
  return answer > 0;
}

}  // namespace

CommunicationWatch::CommunicationWatch(LiveMonitor& monitor, nb::object handle_type,
                                       nb::object operation_type, bool before)
    : monitor_(monitor),
      handle_type_(std::move(handle_type)),
      operation_type_(std::move(operation_type)),
      before_(before) {}

std::vector<CommunicationWatch::Call>& CommunicationWatch::OpenCalls() {
  // Never destroyed: a thread's end may come after the interpreter's.
  thread_local auto* calls = new std::vector<Call>;
  return *calls;
}

bool CommunicationWatch::is_inside() const { return !OpenCalls().empty(); }

CommunicationWatch::Item CommunicationWatch::ItemOf(PyObject* value) const {
  static PyObject* const tensor = PyUnicode_InternFromString("tensor");
  if (monitor_.IsTensor(value)) return {nb::borrow(value)};
  Item item;
  if (!PyList_Check(value) && !PyTuple_Check(value)) return item;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) {
    PyObject* member = PySequence_Fast_GET_ITEM(value, i);
    if (IsOne(member, operation_type_)) {
      item.push_back(nb::steal(CheckedPython(PyObject_GetAttr(member, tensor))));
    } else if (monitor_.IsTensor(member)) {
      item.push_back(nb::borrow(member));
    } else if (PyList_Check(member)) {
      for (nb::object& one : ItemOf(member)) item.push_back(std::move(one));
    }
  }
  return item;
}

void CommunicationWatch::Begin(const std::string& name, const nb::tuple& args,
                               const nb::dict& kwargs, const nb::list& masked,
                               bool is_asked_for) {
  const bool is_outermost = !is_inside();
  OpenCalls().push_back({name, {}, {}, false});
  if (!is_outermost || !is_asked_for) return;
  RunGuarded(monitor_, [&] {
    Call& call = OpenCalls().back();
    std::vector<bool> are_masked;
    const auto add = [&](nb::handle value, nb::handle where) {
      Item item = ItemOf(value.ptr());
      if (item.empty()) return;
      call.items.push_back(std::move(item));
      are_masked.push_back(Contains(masked, where));
    };
    for (size_t i = 0; i < args.size(); ++i) add(args[i], nb::int_(i));
    for (const auto& [keyword, value] : kwargs) add(value, keyword);
    call.is_watched = true;
    if (before_) AddRows(call, "pre", are_masked);
  });
}

void CommunicationWatch::End(PyObject* result) {
  if (OpenCalls().empty()) return;
  Call call = std::move(OpenCalls().back());
  OpenCalls().pop_back();
  if (!call.is_watched || result == nullptr) return;
  RunGuarded(monitor_, [&] {
    call.handles = HandlesIn(result);
    if (!call.handles.empty()) return pending_.push_back(std::move(call));
    AddRows(call, "post", {});
  });
}

std::vector<nb::object> CommunicationWatch::HandlesIn(PyObject* result) const {
  std::vector<nb::object> handles;
  const auto add = [&](PyObject* value) {
    const bool is_known = std::ranges::any_of(
        handles, [&](const nb::object& one) { return one.ptr() == value; });
    if (!is_known && IsOne(value, handle_type_)) handles.push_back(nb::borrow(value));
  };
  const bool is_sequence = PyList_Check(result) || PyTuple_Check(result);
  for (Py_ssize_t i = 0; is_sequence && i < PySequence_Fast_GET_SIZE(result); ++i) {
    add(PySequence_Fast_GET_ITEM(result, i));
  }
  if (!is_sequence) add(result);
  return handles;
}

void CommunicationWatch::Completed(PyObject* handle) {
  RunGuarded(monitor_, [&] {
    for (size_t i = 0; i < pending_.size(); ++i) {
      auto& handles = pending_[i].handles;
      const auto found = std::ranges::find_if(
          handles, [&](const nb::object& one) { return one.ptr() == handle; });
      if (found == handles.end()) continue;
      handles.erase(found);
      if (!handles.empty()) return;
      const Call call = std::move(pending_[i]);
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
      return AddRows(call, "post", {});
    }
  });
}

void CommunicationWatch::AddRows(const Call& call, const char* moment,
                                 const std::vector<bool>& are_masked) {
  // Other ranks write past every version counter.
  monitor_.ForgetTensors();
  for (size_t i = 0; i < call.items.size(); ++i) {
    if (i < are_masked.size() && are_masked[i]) continue;
    std::vector<watch::TensorValues> parts;
    for (const nb::object& tensor : call.items[i]) {
      parts.push_back(monitor_.MeasureOnce(tensor.ptr(), watch::kCommunicationZero));
    }
    values_.Add(fmt::format("{}.{}_{}", call.name, moment, i), watch::Joined(parts));
  }
}

void CommunicationWatch::EndStep() {
  for (auto& [name, values] : values_.Take()) {
    watch::Monitor& monitor = monitor_.monitor();
    monitor.Add(MonitorKind::kOther, monitor.Name(name, 0, 0), 0, std::move(values));
  }
  Forget();
}

void CommunicationWatch::Forget() {
  (void)values_.Take();
  pending_.clear();
}

}  // namespace plumbline::python

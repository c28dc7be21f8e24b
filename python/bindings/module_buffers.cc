#include "module_buffers.h"

#include <cstddef>
#include <vector>

#include "callback.h"
#include "framework_guards.h"

namespace nb = nanobind;

namespace plumbline::python {
namespace {

// Calls visit(name, tensor) for each of the module's own buffers, absent ones too. Frameworks and
// versions without buffers have none.
template <class Visit>
void VisitBuffers(PyObject* module, const FrameworkNames& names, const Visit& visit) {
  const nb::object all = nb::steal(PyObject_GetAttr(module, names.buffers));
  if (!all.is_valid()) return DropError();
  if (!PyDict_Check(all.ptr())) return;
  PyObject* name = nullptr;
  PyObject* tensor = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(all.ptr(), &at, &name, &tensor) != 0;) visit(name, tensor);
}

}  // namespace

capture::BufferState BufferReader::LookAt(PyObject* tensor) const {
  capture::BufferState buffer;
  if (tensor == Py_None) return buffer;
  buffer.tensor = tensor;
  const NoOverride plain(types_, hooks_, tensor);
  HostTensor host, unread;
  // Without plain memory its versions are all that is known.
  const bool has_memory = reader_.Read(tensor, &host);
  buffer.identity = IdentityOf(tensor, has_memory ? host : unread);
  buffer.is_sampled = has_memory && host.on_host;
  return buffer;
}

capture::BufferStates BufferReader::Look(PyObject* module) const {
  capture::BufferStates buffers;
  VisitBuffers(module, hooks_.names,
               [&](PyObject*, PyObject* tensor) { buffers.push_back(LookAt(tensor)); });
  return buffers;
}

nb::object BufferReader::ChangedSince(const capture::BufferStates& before, PyObject* module) const {
  const std::vector<bool> is_changed = capture::ChangedBuffers(before, Look(module));
  if (is_changed.empty()) return {};
  nb::dict changed;
  size_t i = 0;
  VisitBuffers(module, hooks_.names, [&](PyObject* name, PyObject* tensor) {
    const size_t place = i++;
    if (tensor == Py_None || (place < is_changed.size() && !is_changed[place])) return;
    changed[nb::handle(name)] = nb::handle(tensor);
  });
  return changed.size() > 0 ? nb::object(changed) : nb::object();
}

}  // namespace plumbline::python

#include "bind_live_communication.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "live_communication.h"

namespace nb = nanobind;

namespace plumbline::python {

void BindLiveCommunication(nb::module_& m) {
  using Class = CommunicationWatch;
  nb::class_<Class>(m, "CommunicationWatch", "Values around communication calls, step by step.")
      .def(nb::init<LiveMonitor&, nb::object, nb::object, bool>(), nb::keep_alive<1, 2>(),
           nb::arg("monitor"), nb::arg("handle_type"), nb::arg("operation_type"),
           nb::arg("before"))
      .def("begin", &Class::Begin, nb::arg("name"), nb::arg("args"), nb::arg("kwargs"),
           nb::arg("masked"), nb::arg("is_asked_for"), "Before every call of a function.")
      .def(
          "end", [](Class& self, nb::handle result) { self.End(result.ptr()); },
          nb::arg("result").none(), "After the call has returned.")
      .def("fail", [](Class& self) { self.End(nullptr); }, "After the call has raised.")
      .def_prop_ro("is_inside", &Class::is_inside, "Whether a call now is within another one.")
      .def(
          "completed", [](Class& self, nb::handle handle) { self.Completed(handle.ptr()); },
          nb::arg("handle"), "The user has waited for this handle.")
      .def("end_step", &Class::EndStep)
      .def("forget", &Class::Forget);
}

}  // namespace plumbline::python

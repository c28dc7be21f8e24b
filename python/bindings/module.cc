// The extension module plumbline._core: C++ side of the Python package.

#include <nanobind/nanobind.h>

#include "bind_black_box.h"
#include "bind_capture.h"
#include "bind_grad_probe.h"
#include "bind_live_communication.h"
#include "bind_live_monitor.h"
#include "bind_perturbation.h"
#include "bind_tracer.h"
#include "call_probe.h"
#include "callback.h"
#include "errors.h"
#include "python_api.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  // The recorder lives until the process ends, and the framework's tables refer to its probes.
  nb::set_leak_warnings(false);
  m.doc() = "Native core of plumbline.";
  plumbline::python::LoadPythonApi();
  if (!plumbline::python::InitProbeTypes() || !plumbline::python::InitCallbackType()) {
    throw nb::python_error();
  }
  plumbline::python::BindErrors(m);
  plumbline::python::BindCapture(m);
  plumbline::python::BindGradProbe(m);
  plumbline::python::BindLiveMonitor(m);
  plumbline::python::BindBlackBox(m);
  plumbline::python::BindPerturbation(m);
  plumbline::python::BindLiveCommunication(m);
  plumbline::python::BindTracer(m);
}

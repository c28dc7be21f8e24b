// The last forward calls of a model before its first NaN or Inf, as its hooks tell of them.

#ifndef PLUMBLINE_PYTHON_BINDINGS_MODEL_TRACER_H_
#define PLUMBLINE_PYTHON_BINDINGS_MODEL_TRACER_H_

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework.h"
#include "tensor_from_python.h"
#include "watch/tracer/overflow_trace.h"

namespace plumbline::python {

// Reads the tensors of module calls and hands their magnitudes to an OverflowTrace. Nothing here
// raises because of what a tensor is: one that cannot be read has a line that says so. All methods
// need the interpreter lock.
class ModelTracer {
 public:
  // Takes over the references in `types` and `hooks`. magnitudes(tensor): what a device answers
  // later; read(list of such): their (smallest, largest) as floats.
  ModelTracer(FrameworkTypes types, FrameworkHooks hooks, nanobind::object magnitudes,
              nanobind::object read, OverflowTraceOptions options);
  ~ModelTracer();
  ModelTracer(const ModelTracer&) = delete;
  ModelTracer& operator=(const ModelTracer&) = delete;

  // The call of a module is over. `is_root`: it is the model, whose forward ends with it.
  TraceReport Frame(std::string name, bool is_root, PyObject* module, PyObject* args,
                    PyObject* output);
  // The model's forward ended without an answer.
  TraceReport EndEarly();
  [[nodiscard]] const OverflowTrace& trace() const { return trace_; }

 private:
  struct OpenFrame {
    TraceFrame frame;
    std::vector<nanobind::object> awaited;
  };

  void AddParameters(PyObject* module, OpenFrame& to);
  // A line, or a line for each member of a tuple, as far as `tuples` levels go.
  void AddValue(PyObject* value, const std::string& label, int tuples, OpenFrame& to);
  void AddTensor(PyObject* tensor, const std::string& label, bool is_inside, OpenFrame& to);
  // Tensors in a value that has one line as no tensor.
  void AddInside(PyObject* value, const std::string& label, int depth, OpenFrame& to);
  void ReadHost(const HostTensor& host, TracedValue& value) const;
  void ReadDescribed(PyObject* tensor, TracedValue& value);
  std::vector<kernels::AbsExtremes> ReadAwaited();

  FrameworkTypes types_;
  FrameworkHooks hooks_;
  nanobind::object magnitudes_, read_;
  TensorReader reader_;
  OverflowTrace trace_;
  std::vector<nanobind::object> awaited_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_MODEL_TRACER_H_

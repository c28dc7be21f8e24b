// What the recorder is told of the framework that is recorded (Adapter.framework_parts()).

#ifndef PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_H_
#define PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_H_

#include "python_api.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "capture/tensor_recorder.h"

namespace plumbline::python {

using capture::FrameworkTexts;

// Python objects of the framework that the walk over values must know; owned references, null for
// classes that it does not have.
struct FrameworkTypes {
  PyObject* tensor = nullptr;         // tensor class
  PyObject* dtype = nullptr;          // class of dtype objects
  PyObject* device = nullptr;         // class of device objects
  PyObject* size = nullptr;           // class of shape objects (a tuple subclass)
  PyObject* memory_format = nullptr;  // class of memory format objects
  // describe(value): what a value of any other type is, see plumbline.adapter.Adapter.describe.
  PyObject* describe = nullptr;
  // List of dtype objects, one for each dtype: tensors are read through their attributes
  // (TensorReader). Null: through DLPack.
  PyObject* dtypes = nullptr;
  FrameworkTexts texts = {};
};

// Attributes of tensors, modules and nodes of the autograd graph, interned.
struct FrameworkNames {
  PyObject* requires_grad = nullptr;
  PyObject* grad_node = nullptr;      // of a tensor: the node that made it, or None
  PyObject* output_number = nullptr;  // of a tensor among the results of that node
  PyObject* parameters = nullptr;     // of a module: dict name -> parameter or None
  PyObject* buffers = nullptr;        // the same of tensors that are no parameters
  // Method of a node, a number that is its own: looking it up makes a new Python object each time.
  // Null: a node that lives has one object.
  PyObject* node_id = nullptr;

  // Whether every write to a tensor can be told from its number of versions.
  [[nodiscard]] bool counts_every_write() const { return node_id == nullptr; }
};

// Callables of the framework, owned references; those for function modes and for overrides are null
// where it has none.
struct FrameworkHooks {
  PyObject* to_host = nullptr;  // to_host(tensor): a plain CPU tensor of the same values
  // reduce_on_device(tensor): the number under which Recorder.add_rows brings its statistics
  // later, or None: it has to be read now. Null: no such device.
  PyObject* reduce_on_device = nullptr;
  // copy_from_device(tensor): the same for Recorder.add_tensor, which brings every element.
  PyObject* copy_from_device = nullptr;
  // part_of(tensor, slices): the part of a tensor where it is. Null: to_host comes first.
  PyObject* part_of = nullptr;
  PyObject* describe_tensor = nullptr;  // a tensor whose memory is not its values: PackDescribed
  PyObject* read_together = nullptr;    // read_together(tensors): their values, waited for once
  PyObject* mode_depth = nullptr;       // number of function modes on the thread's stack
  PyObject* mode_at = nullptr;          // mode_at(i), counted from the outermost
  PyObject* pop_mode = nullptr;         // take the innermost function mode off the stack
  PyObject* push_mode = nullptr;        // put one on
  PyObject* parameter_type = nullptr;   // tensor subclass without overrides of its own
  PyObject* no_override = nullptr;      // context manager class: attributes of tensors are read
                                        // without running any __torch_function__
  FrameworkNames names = {};
};

// From the dict of parts. False if it has no name, tensor class or describe(). Names of attributes
// are PyTorch's unless the dict has others.
bool ReadTypes(PyObject* parts, FrameworkTypes* types);
void ReadHooks(PyObject* parts, FrameworkHooks* hooks);
void Release(FrameworkTypes& types);
void Release(FrameworkHooks& hooks);

// The framework's own answer, false if it cannot be read.
bool RequiresGrad(PyObject* tensor, const FrameworkNames& names);

// Whether the memory of a tensor of this class is its value: no class of the user stands between
// (no __torch_dispatch__ of its own).
bool IsPlainClass(PyTypeObject* type, const FrameworkTypes& types, const FrameworkHooks& hooks);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_FRAMEWORK_H_

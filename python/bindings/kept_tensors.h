// Tensors of a call under way whose fate is open: only when the call has ended is it known whether
// it is stored with its tensors.

#ifndef PLUMBLINE_PYTHON_BINDINGS_KEPT_TENSORS_H_
#define PLUMBLINE_PYTHON_BINDINGS_KEPT_TENSORS_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::python {

// Which of its arguments a call may write to: they are copied before the call.
enum class Writes : uint8_t {
  kNothing,
  kFirst,         // the first argument, or all tensors in it: x.add_(y), x[i] = y, foreach_add_(xs)
  kOverwritten,   // the first argument, whose values the call does not read: x.fill_(1)
  kOut,           // likewise the keyword argument `out`
  kRunningStats,  // running_mean and running_var of a normalisation
  kEverything,
};

// From the API's name ("Tensor.add_") and its arguments. `kwnames`: tuple or null.
Writes WritesOf(std::string_view api, PyObject* const* args, Py_ssize_t count, PyObject* kwnames);
// Whether the tensor at `path` ("input.0", "kwargs.out") is one of those.
bool MayWrite(Writes writes, std::string_view path);

// Whether its values can matter to the call. Fresh memory that a call is to fill holds anything.
bool IsRead(Writes writes, std::string_view path);

// One tensor, and where the packed bytes describe it for now.
struct KeptTensor {
  size_t begin = 0, end = 0;       // of its description in the bytes of its part
  PyObject* tensor = nullptr;      // owned
  PyObject* copy = nullptr;        // owned; its values before the call could change them
  std::optional<int64_t> version;  // of `tensor` when it was met
  bool requires_grad = false;      // likewise
  std::string path;
};

// The tensors of one part of an entry, or of a whole entry, and what was seen in them. Move-only.
// Requires the interpreter lock, also to be destroyed; without it (a thread that ends in the middle
// of a call) the references are leaked.
class KeptTensors {
 public:
  KeptTensors() = default;
  KeptTensors(KeptTensors&& other) noexcept { *this = std::move(other); }
  KeptTensors& operator=(KeptTensors&& other) noexcept;
  ~KeptTensors() { Clear(); }

  // Forgets everything, for the next entry.
  void Clear();
  // Takes over the tensors of a part that was packed elsewhere and begins at `offset` here.
  void Append(KeptTensors&& part, size_t offset);
  // Another holder of the same tensor is about to see it changed: `copy` has its values so far.
  void Share(PyObject* tensor, std::optional<int64_t> version, PyObject* copy);

  std::vector<KeptTensor> tensors;
  size_t head = 0;                   // bytes before the entry's members
  Writes writes = Writes::kNothing;  // of the call
  bool in_output = false;            // what is being walked
  bool has_input = false;            // inputs were looked at
  bool input_hit = false, output_hit = false;
  bool is_unknown = false;  // a tensor could not be read

  [[nodiscard]] bool is_hit() const { return input_hit || output_hit; }
};

// Part of an entry packed before the rest: what the bytes describe and the tensors in them.
struct PackedPart {
  std::vector<std::byte> bytes;
  KeptTensors kept;
};

// tensor._version; nothing for tensors without one (inference mode).
std::optional<int64_t> VersionOf(PyObject* tensor);

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_KEPT_TENSORS_H_

#include "tensor_from_python.h"

#include <memory>
#include <utility>

#include "callback.h"
#include "values.h"

namespace plumbline::python {
namespace {

// The part of DLPack 1.3's exchange table that is read here.
struct DlVersion {
  uint32_t major, minor;
};
struct DlExchangeTable {
  DlVersion version;
  DlExchangeTable* previous;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object;
  void* managed_tensor_to_py_object;
  int (*dltensor_from_py_object)(void* py_object, void* out);
  void* current_work_stream;
};
bool Fill(const dlpack::Tensor& in, HostTensor* out) {
  const std::optional<TensorView> view = dlpack::ViewOf(in, out->inline_strides);
  if (!view) return false;
  out->dtype = view->dtype;
  out->on_host = dlpack::IsOnHost(in);
  out->data = view->data;
  out->sizes = view->sizes;
  out->strides = view->strides;
  return true;
}

// Whether a tensor that has elements has no memory: a wrapper subclass (DTensor), or storage freed
// behind the tensor's back (FSDP resizes it to 0). The pointer then is the offset in the storage.
bool HasNoMemory(PyObject* tensor, const HostTensor& host) {
  const auto address = reinterpret_cast<uintptr_t>(host.data);
  // No offset in freed storage leads further than this, and few tensors live below.
  if (address >= uintptr_t{1} << 36) return false;
  for (const int64_t size : host.sizes) {
    if (size == 0) return false;
  }
  PyObject* offset = PyObject_CallMethod(tensor, "storage_offset", nullptr);
  const long long elements = offset == nullptr ? 0 : PyLong_AsLongLong(offset);
  Py_XDECREF(offset);
  if (PyErr_Occurred() != nullptr) DropError();
  return address == static_cast<uintptr_t>(elements) * InfoOf(host.dtype).size_bytes;
}

struct DropReference {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Owned = std::unique_ptr<PyObject, DropReference>;

// Copies a tuple or list of integers. False: something else, or too many.
bool FillSizes(PyObject* sequence, std::array<int64_t, kMaxRank>* to,
               std::span<const int64_t>* sizes) {
  if (!PyTuple_Check(sequence) && !PyList_Check(sequence)) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
  if (count > kMaxRank) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    (*to)[static_cast<size_t>(i)] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(sequence, i));
  }
  *sizes = {to->data(), static_cast<size_t>(count)};
  return PyErr_Occurred() == nullptr;
}

}  // namespace

std::optional<int64_t> VersionOf(PyObject* tensor) {
  static PyObject* const name = PyUnicode_InternFromString("_version");
  PyObject* version = PyObject_GetAttr(tensor, name);
  const int64_t number = version == nullptr ? -1 : PyLong_AsLongLong(version);
  Py_XDECREF(version);
  if (PyErr_Occurred() == nullptr) return number;
  DropError();
  return std::nullopt;
}

bool IsLazy(PyObject* tensor, DType dtype) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  static PyObject* const is_conj = PyUnicode_InternFromString("is_conj");
  const DTypeKind kind = InfoOf(dtype).kind;
  if (kind != DTypeKind::kFloat && kind != DTypeKind::kComplex) return false;
  for (PyObject* method : {is_neg, is_conj}) {
    if (method == is_conj && kind != DTypeKind::kComplex) continue;
    PyObject* answer = PyObject_CallMethodNoArgs(tensor, method);
    if (answer == nullptr) DropError();
    const bool lazy = answer == Py_True;
    Py_XDECREF(answer);
    if (lazy) return true;
  }
  return false;
}

capture::TensorIdentity IdentityOf(PyObject* tensor, const HostTensor& host) {
  const int64_t version = VersionOf(tensor).value_or(capture::TensorIdentity::kNoVersion);
  return capture::IdentityOf(host.view(), host.on_host, version);
}

TensorReader::TensorReader(const FrameworkTypes& types) : types_(types) {
  if (types_.dtypes != nullptr) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types_.dtypes); ++i) {
      dtypes_.push_back(ParseDType(StrOf(PyList_GET_ITEM(types_.dtypes, i))));
    }
    return;
  }
  PyObject* capsule = PyObject_GetAttrString(types_.tensor, "__dlpack_c_exchange_api__");
  if (capsule == nullptr) {
    DropError();  // a framework older than DLPack 1.3
    return;
  }
  const char* name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : nullptr;
  auto* table = name == nullptr
                    ? nullptr
                    : static_cast<DlExchangeTable*>(PyCapsule_GetPointer(capsule, name));
  if (PyErr_Occurred() != nullptr) DropError();
  while (table != nullptr && table->version.major != 1) table = table->previous;
  if (table != nullptr) read_ = table->dltensor_from_py_object;
  Py_DECREF(capsule);
}

bool TensorReader::Read(PyObject* tensor, HostTensor* out) const {
  if (types_.dtypes != nullptr) {
    const bool was_read = ReadAttributes(tensor, out);
    if (PyErr_Occurred() != nullptr) DropError();
    return was_read;
  }
  if (read_ == nullptr) return ReadThroughCapsule(tensor, out);
  dlpack::Tensor dl{};
  if (read_(tensor, &dl) != 0) {
    DropError();  // sparse, quantised, wrapper subclass: described without values
    return false;
  }
  return Fill(dl, out) && !HasNoMemory(tensor, *out);
}

std::optional<DType> TensorReader::DTypeOf(PyObject* object) const {
  for (size_t i = 0; i < dtypes_.size(); ++i) {
    if (PyList_GET_ITEM(types_.dtypes, static_cast<Py_ssize_t>(i)) == object) return dtypes_[i];
  }
  return ParseDType(StrOf(object));
}

// MindSpore's: `data_ptr()` waits until the operators under way have written the tensor, and is not
// asked of a device's.
bool TensorReader::ReadAttributes(PyObject* tensor, HostTensor* out) const {
  static PyObject* const dtype_name = PyUnicode_InternFromString("_dtype");
  static PyObject* const shape_name = PyUnicode_InternFromString("shape");
  static PyObject* const stride_name = PyUnicode_InternFromString("stride");
  static PyObject* const device_name = PyUnicode_InternFromString("device");
  static PyObject* const pointer_name = PyUnicode_InternFromString("data_ptr");
  const Owned dtype(PyObject_GetAttr(tensor, dtype_name));
  const Owned shape(PyObject_GetAttr(tensor, shape_name));
  const Owned strides(PyObject_CallMethodNoArgs(tensor, stride_name));
  const Owned device(PyObject_GetAttr(tensor, device_name));
  if (!dtype || !shape || !strides || !device) return false;
  const std::optional<DType> known = DTypeOf(dtype.get());
  if (!known || !FillSizes(shape.get(), &out->inline_sizes, &out->sizes) ||
      !FillSizes(strides.get(), &out->inline_strides, &out->strides) ||
      out->sizes.size() != out->strides.size()) {
    return false;
  }
  out->dtype = *known;
  const std::string_view place = PyUnicode_Check(device.get()) ? TextOf(device.get()) : "";
  out->on_host = place.starts_with("CPU");
  if (!out->on_host) return !place.empty() && !place.starts_with("meta");
  const Owned pointer(PyObject_CallMethodNoArgs(tensor, pointer_name));
  if (!pointer) return false;
  const size_t address = PyLong_AsSize_t(pointer.get());
  if (PyErr_Occurred() != nullptr) return false;
  out->data = reinterpret_cast<const std::byte*>(address);
  return out->data != nullptr || out->view().element_count() == 0;
}

bool TensorReader::ReadThroughCapsule(PyObject* tensor, HostTensor* out) const {
  // detach(): __dlpack__ refuses tensors that require grad.
  PyObject* plain = PyObject_CallMethod(tensor, "detach", nullptr);
  PyObject* capsule =
      plain == nullptr ? nullptr : PyObject_CallMethod(plain, "__dlpack__", nullptr);
  Py_XDECREF(plain);
  void* const pointer = capsule == nullptr ? nullptr : PyCapsule_GetPointer(capsule, "dltensor");
  const auto* managed = static_cast<const dlpack::ManagedTensor*>(pointer);
  if (managed == nullptr) {
    DropError();
    Py_XDECREF(capsule);
    return false;
  }
  // Its end releases the memory when the view is done.
  Py_XDECREF(std::exchange(out->capsule, capsule));
  return Fill(managed->tensor, out);
}

}  // namespace plumbline::python

#include "tensor_identity.h"

#include <cstring>

#include "callback.h"

namespace plumbline::python {
namespace {

constexpr int64_t kSamples = 16;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * uint64_t{0x9e3779b97f4a7c15};
  return hash ^ (hash >> 32);
}

uint64_t GeometryOf(const HostTensor& host) {
  uint64_t hash = static_cast<uint64_t>(host.dtype) + host.sizes.size() * 64;
  for (const int64_t size : host.sizes) hash = Mix(hash, static_cast<uint64_t>(size));
  for (const int64_t stride : host.strides) hash = Mix(hash, static_cast<uint64_t>(stride));
  return hash;
}

// Bits of up to sixteen elements spread over the logical order, first and last included.
uint64_t SampleOf(const HostTensor& host) {
  int64_t count = 1;
  for (const int64_t size : host.sizes) count *= size;
  const size_t element = InfoOf(host.dtype).size_bytes;
  const int64_t samples = count < kSamples ? count : kSamples;
  uint64_t hash = 0;
  for (int64_t i = 0; i < samples; ++i) {
    int64_t index = samples < 2 ? 0 : (count - 1) / (samples - 1) * i;
    if (i + 1 == samples) index = count - 1;
    int64_t offset = 0;
    for (size_t d = host.sizes.size(); d-- > 0;) {
      offset += index % host.sizes[d] * host.strides[d];
      index /= host.sizes[d];
    }
    uint64_t bits[2] = {0, 0};
    std::memcpy(bits, host.data + offset * static_cast<int64_t>(element), element);
    hash = Mix(Mix(hash, bits[0]), bits[1]);
  }
  return hash;
}

}  // namespace

TensorIdentity IdentityOf(PyObject* tensor, const HostTensor& host) {
  static PyObject* const name = PyUnicode_InternFromString("_version");
  TensorIdentity identity{
      .data = host.data, .geometry = GeometryOf(host), .sample = host.on_host ? SampleOf(host) : 0};
  PyObject* version = PyObject_GetAttr(tensor, name);
  if (version != nullptr) identity.version = PyLong_AsLongLong(version);
  if (PyErr_Occurred() != nullptr) DropError();
  Py_XDECREF(version);
  return identity;
}

}  // namespace plumbline::python

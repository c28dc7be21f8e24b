#include "capture/tensor_identity.h"

#include <cstring>

namespace plumbline::capture {
namespace {

constexpr int64_t kSamples = 16;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * uint64_t{0x9e3779b97f4a7c15};
  return hash ^ (hash >> 32);
}

uint64_t GeometryOf(const TensorView& view) {
  uint64_t hash = static_cast<uint64_t>(view.dtype) + view.sizes.size() * 64;
  for (const int64_t size : view.sizes) hash = Mix(hash, static_cast<uint64_t>(size));
  for (const int64_t stride : view.strides) hash = Mix(hash, static_cast<uint64_t>(stride));
  return hash;
}

// Bits of up to sixteen elements spread over the logical order, first and last included.
uint64_t SampleOf(const TensorView& view) {
  int64_t count = 1;
  for (const int64_t size : view.sizes) count *= size;
  const size_t element = InfoOf(view.dtype).size_bytes;
  const int64_t samples = count < kSamples ? count : kSamples;
  uint64_t hash = 0;
  for (int64_t i = 0; i < samples; ++i) {
    int64_t index = samples < 2 ? 0 : (count - 1) / (samples - 1) * i;
    if (i + 1 == samples) index = count - 1;
    int64_t offset = 0;
    for (size_t d = view.sizes.size(); d-- > 0;) {
      offset += index % view.sizes[d] * view.strides[d];
      index /= view.sizes[d];
    }
    uint64_t bits[2] = {0, 0};
    std::memcpy(bits, view.data + offset * static_cast<int64_t>(element), element);
    hash = Mix(Mix(hash, bits[0]), bits[1]);
  }
  return hash;
}

}  // namespace

TensorIdentity IdentityOf(const TensorView& view, bool on_host, int64_t version) {
  return {.data = view.data,
          .version = version,
          .geometry = GeometryOf(view),
          .sample = on_host ? SampleOf(view) : 0};
}

std::vector<bool> ChangedBuffers(const BufferStates& before, const BufferStates& now) {
  if (now == before) return {};
  std::vector<bool> changed(now.size(), false);
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].tensor == nullptr) continue;
    const bool is_known = i < before.size() && now[i].is_sampled;
    changed[i] = !is_known || now[i] != before[i];
  }
  return changed;
}

}  // namespace plumbline::capture

#include "watch/perturb/noise.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/half.h"
#include "watch/perturb/strided_pair.h"

namespace plumbline::perturb {
namespace {

constexpr double kDefaultNoise = 1e-8;

// The bits of one floating type.
template <class BitsType, int kMantissaBits>
struct Layout {
  using Bits = BitsType;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  static constexpr Bits kMinNormal = static_cast<Bits>(Bits{1} << kMantissaBits);
  static constexpr Bits kInfinity =
      static_cast<Bits>(static_cast<Bits>(~kSign) & static_cast<Bits>(~(kMinNormal - 1)));
};
using Float64 = Layout<uint64_t, 52>;
using Float32 = Layout<uint32_t, 23>;
using Float16 = Layout<uint16_t, 10>;
using BFloat16 = Layout<uint16_t, 7>;

uint64_t Mixed(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// 64 signs at a time, by the number of the element alone.
bool IsUp(uint64_t seed, uint64_t index) {
  return ((Mixed(seed + index / 64) >> (index % 64)) & 1) != 0;
}

template <class L>
struct LowBit {
  using Bits = typename L::Bits;
  Bits operator()(Bits bits, uint64_t) const {
    const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~L::kSign));
    const bool changes = magnitude > L::kMinNormal && magnitude < L::kInfinity;
    return static_cast<Bits>(bits ^ static_cast<Bits>(changes ? 1 : 0));
  }
};

template <class L>
struct NextNumber {
  using Bits = typename L::Bits;
  uint64_t seed;
  Bits operator()(Bits bits, uint64_t index) const {
    const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~L::kSign));
    if (magnitude == 0 || magnitude >= L::kInfinity) return bits;
    // The largest finite number goes down.
    const bool up = IsUp(seed, index) && magnitude + 1 < L::kInfinity;
    return static_cast<Bits>(up ? bits + 1 : bits - 1);
  }
};

template <class L, class Real>
struct AddConstant {
  using Bits = typename L::Bits;
  Real noise, threshold;
  explicit AddConstant(double e)
      : noise(static_cast<Real>(e)), threshold(static_cast<Real>(std::sqrt(e))) {}
  Bits operator()(Bits bits, uint64_t) const {
    const Real value = std::bit_cast<Real>(bits);
    return std::abs(value) > threshold ? std::bit_cast<Bits>(value + noise) : bits;
  }
};

// Both numbers are rounded to the type, and so is the sum. Magnitudes are compared as bits.
struct AddNarrow {
  using Bits = uint16_t;
  const NarrowFormat& format;
  float noise;
  uint32_t threshold, absorbed_from;
  AddNarrow(const NarrowFormat& narrow, double e)
      : format(narrow),
        noise(NarrowToFloat(narrow, FloatToNarrow(narrow, static_cast<float>(e)))),
        threshold(FloatToNarrow(narrow, static_cast<float>(std::sqrt(e)))),
        // Above this, half the distance of neighbours is more than the noise.
        absorbed_from(FloatToNarrow(
            narrow, noise * static_cast<float>(int64_t{4} << narrow.mantissa_bits))) {}
  Bits operator()(Bits bits, uint64_t) const {
    const uint32_t magnitude = bits & 0x7FFFu;
    if (magnitude <= threshold || magnitude > absorbed_from) return bits;
    return static_cast<Bits>(FloatToNarrow(format, NarrowToFloat(format, bits) + noise));
  }
};

template <class Bits>
struct Keep {
  Bits operator()(Bits bits, uint64_t) const { return bits; }
};

template <class Bits, class Rule>
uint64_t ChangeRun(const Rule& rule, const PairRun& run) {
  uint64_t changed = 0;
  auto* out = const_cast<std::byte*>(run.right);
  const bool is_plain = run.left_step == static_cast<int64_t>(sizeof(Bits)) &&
                        run.right_step == static_cast<int64_t>(sizeof(Bits));
  const auto one = [&](size_t i, int64_t left_step, int64_t right_step) {
    Bits bits;
    std::memcpy(&bits, run.left + static_cast<int64_t>(i) * left_step, sizeof(bits));
    const Bits result = rule(bits, run.first + i);
    std::memcpy(out + static_cast<int64_t>(i) * right_step, &result, sizeof(result));
    changed += result != bits ? 1 : 0;
  };
  if (is_plain) {
    for (size_t i = 0; i < run.count; ++i) one(i, sizeof(Bits), sizeof(Bits));
  } else {
    for (size_t i = 0; i < run.count; ++i) one(i, run.left_step, run.right_step);
  }
  return changed;
}

// A run that several threads share.
template <class Bits, class Rule>
struct SharedRun {
  const Rule* rule;
  PairRun run;
  size_t workers;
  std::atomic<uint64_t> changed = 0;

  static void Work(void* self, int worker) {
    static_cast<SharedRun*>(self)->Share(static_cast<size_t>(worker));
  }
  void Share(size_t worker) {
    changed += ChangeRun<Bits>(*rule, ShareOf(run, worker, workers));
  }
};

struct Job {
  const TensorView& source;
  const Target& target;
  const kernels::Team* team;
};

template <class Bits, class Rule>
uint64_t ChangeAll(const Job& job, const Rule& rule) {
  constexpr size_t kShared = size_t{1} << 17;  // elements
  uint64_t changed = 0;
  const Side left{job.source.data, job.source.strides, sizeof(Bits)};
  const Side right{job.target.data, job.target.strides, sizeof(Bits)};
  VisitRuns(job.source.sizes, left, right, [&](const PairRun& run) {
    if (job.team == nullptr || job.team->size < 2 || run.count < kShared) {
      changed += ChangeRun<Bits>(rule, run);
      return;
    }
    SharedRun<Bits, Rule> shared{&rule, run, static_cast<size_t>(job.team->size)};
    job.team->run(job.team->size, SharedRun<Bits, Rule>::Work, &shared);
    changed += shared.changed.load();
  });
  return changed;
}

template <class L, class Add>
uint64_t ChangeAs(const Job& job, Noise noise, uint64_t seed, const Add& add) {
  using Bits = typename L::Bits;
  switch (noise) {
    case Noise::kAbsolute:
      return ChangeAll<Bits>(job, add);
    case Noise::kNext:
      return ChangeAll<Bits>(job, NextNumber<L>{seed});
    case Noise::kLowBit:
      return ChangeAll<Bits>(job, LowBit<L>{});
    case Noise::kSwap:
      break;
  }
  return ChangeAll<Bits>(job, Keep<Bits>{});
}

uint64_t ChangeAny(const Job& job, Noise noise, uint64_t seed) {
  const double e = NoiseOf(job.source.dtype);
  switch (job.source.dtype) {
    case DType::kFloat64:
      return ChangeAs<Float64>(job, noise, seed, AddConstant<Float64, double>(e));
    case DType::kFloat32:
      return ChangeAs<Float32>(job, noise, seed, AddConstant<Float32, float>(e));
    case DType::kFloat16:
      return ChangeAs<Float16>(job, noise, seed, AddNarrow(kFloat16Format, e));
    case DType::kBFloat16:
      return ChangeAs<BFloat16>(job, noise, seed, AddNarrow(kBFloat16Format, e));
    default:
      break;
  }
  return 0;
}

std::string_view SwapObstacle(std::span<const int64_t> sizes) {
  if (sizes.empty()) return "a tensor without dimensions has no two values to change over";
  if (sizes.size() == 1) {
    return sizes[0] < 2 ? "the tensor has fewer than 2 values to change over" : "";
  }
  if (sizes[0] == 0 || sizes[1] == 0) return "the tensor has no elements";
  return sizes[0] < 2 && sizes[1] < 2 ? "the first two sizes are 1: nothing to change over" : "";
}

// Changes the sub-tensors [0][0] and [-1][-1] of the target over; of a vector, its ends.
uint64_t SwapEnds(const TensorView& source, const Target& target) {
  const size_t depth = source.sizes.size() < 2 ? 1 : 2;
  int64_t last = 0;
  for (size_t k = 0; k < depth; ++k) last += (source.sizes[k] - 1) * target.strides[k];
  const size_t bytes = InfoOf(source.dtype).size_bytes;
  const Side first_side{target.data, target.strides.subspan(depth), bytes};
  const Side last_side{target.data + last * static_cast<int64_t>(bytes),
                       target.strides.subspan(depth), bytes};
  uint64_t changed = 0;
  VisitRuns(source.sizes.subspan(depth), first_side, last_side, [&](const PairRun& run) {
    for (size_t i = 0; i < run.count; ++i) {
      auto* one = const_cast<std::byte*>(run.left) + static_cast<int64_t>(i) * run.left_step;
      auto* other = const_cast<std::byte*>(run.right) + static_cast<int64_t>(i) * run.right_step;
      changed += std::memcmp(one, other, bytes) != 0 ? 2 : 0;
      std::swap_ranges(one, one + bytes, other);
    }
  });
  return changed;
}

std::string_view ObstacleOf(Noise noise, const TensorView& source) {
  if (InfoOf(source.dtype).kind != DTypeKind::kFloat) return "the tensor is not floating-point";
  if (NoiseOf(source.dtype) == 0) return "the dtype is not supported";
  if (noise == Noise::kSwap) return SwapObstacle(source.sizes);
  return source.element_count() == 0 ? "the tensor has no elements" : "";
}

}  // namespace

double NoiseOf(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return 1e-4;
    case DType::kFloat16:
      return 1e-6;
    case DType::kFloat32:
      return 1e-8;
    case DType::kFloat64:
      return 1e-16;
    default:
      return 0;
  }
}

double ToleranceOf(DType dtype) {
  const double noise = NoiseOf(dtype);
  return std::sqrt(noise == 0 ? kDefaultNoise : noise);
}

Change AddNoise(Noise noise, uint64_t seed, const TensorView& source, const Target& target,
                const kernels::Team* team) {
  Change change{.changed = 0, .obstacle = ObstacleOf(noise, source)};
  if (!change.obstacle.empty()) return change;
  change.changed = ChangeAny({source, target, team}, noise, seed);
  if (noise == Noise::kSwap) change.changed = SwapEnds(source, target);
  if (change.changed == 0) {
    change.obstacle = noise == Noise::kSwap ? "both values are the same"
                                            : "no value is of a size that the noise changes";
  }
  return change;
}

}  // namespace plumbline::perturb

// Speed of the element kernels against what memory can deliver.
//
//   plumbline_bench_kernels [--json] [--dtype NAME] [--samples N]
//
// One line per dtype, size, kernel and CPU target: GB/s (10^9 bytes read per second, both sides of
// a pair counted) and the share of a read probe of the same size, which is timed again for every
// case because the speed of a shared machine drifts. Each result is compared with the baseline
// target's, bit for bit, and the baseline's with a plain loop, before a ratio is printed; exit
// status 1 if one differs. Median of the samples; "spread" is their median absolute deviation, and
// a line with more than 3 % is marked noisy.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "base/memory/digest.h"
#include "kernels/kernel_table.h"
#include "kernels/tensor_scan.h"
#include "tensor/half.h"

namespace plumbline::kernels {
namespace {

constexpr size_t kSizes[] = {size_t{64} << 10, size_t{4} << 20, size_t{64} << 20,
                             size_t{256} << 20};

struct Options {
  bool json = false;
  std::string_view dtype;
  int samples = 20;
};

struct Timing {
  double seconds = 0;  // median
  double spread = 0;   // median absolute deviation over the median
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Runs `work` for at least a millisecond per sample.
Timing Time(const std::function<void()>& work, size_t bytes, int samples) {
  using Clock = std::chrono::steady_clock;
  const size_t repeats = std::max<size_t>(1, (size_t{16} << 20) / bytes);
  work();
  std::vector<double> seconds;
  for (int s = 0; s < samples; ++s) {
    const auto start = Clock::now();
    for (size_t r = 0; r < repeats; ++r) work();
    const std::chrono::duration<double> passed = Clock::now() - start;
    seconds.push_back(passed.count() / static_cast<double>(repeats));
  }
  const double median = Median(seconds);
  for (double& s : seconds) s = std::fabs(s - median);
  return {median, Median(seconds) / median};
}

// Reads memory and does as little as possible with it. Asks ahead like the kernels do: without that
// they would beat it where the hardware prefetcher gives up.
uint64_t ReadProbe(const std::byte* data, size_t bytes) {
  uint64_t sums[32] = {};
  for (size_t i = 0; i + sizeof(sums) <= bytes; i += sizeof(sums)) {
    for (size_t line = 0; line < sizeof(sums); line += 64) {
      __builtin_prefetch(data + i + 2048 + line);
    }
    uint64_t words[32];
    std::memcpy(words, data + i, sizeof(words));
    for (size_t k = 0; k < 32; ++k) sums[k] ^= words[k];
  }
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  return all;
}

template <class T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

// One part (of a complex number) of about normal distribution, or a random integer.
void StorePart(DType dtype, double value, uint64_t random, std::byte* at) {
  const auto single = static_cast<float>(value);
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return Store(at, single);
    case DType::kFloat64:
    case DType::kComplex128:
      return Store(at, value);
    case DType::kFloat16:
      return Store(at, static_cast<uint16_t>(FloatToNarrow(kFloat16Format, single)));
    case DType::kBFloat16:
      return Store(at, static_cast<uint16_t>(FloatToNarrow(kBFloat16Format, single)));
    case DType::kFloat8E4M3FN:
      return Store(at, static_cast<uint8_t>(FloatToNarrow(kFloat8E4M3FNFormat, single)));
    case DType::kFloat8E5M2:
      return Store(at, static_cast<uint8_t>(FloatToNarrow(kFloat8E5M2Format, single)));
    case DType::kFloat8E4M3FNUZ:
      return Store(at, static_cast<uint8_t>(FloatToNarrow(kFloat8E4M3FNUZFormat, single)));
    case DType::kFloat8E5M2FNUZ:
      return Store(at, static_cast<uint8_t>(FloatToNarrow(kFloat8E5M2FNUZFormat, single)));
    case DType::kBool:
      return Store(at, static_cast<uint8_t>(random & 1));
    default:
      std::memcpy(at, &random, InfoOf(dtype).size_bytes);
  }
}

size_t PartBytes(DType dtype) {
  const DTypeInfo& info = InfoOf(dtype);
  return info.kind == DTypeKind::kComplex ? info.size_bytes / 2 : info.size_bytes;
}

// The first 1 MiB is generated, the rest repeats it.
void Fill(DType dtype, double noise, std::span<std::byte> memory) {
  std::mt19937_64 random(7);
  std::mt19937_64 noise_random(8);
  const size_t part = PartBytes(dtype);
  const size_t period = std::min(memory.size(), size_t{1} << 20);
  for (size_t at = 0; at < period; at += part) {
    const uint64_t bits = random();
    double value = -6;
    for (int k = 0; k < 12; ++k) value += static_cast<double>((bits >> (5 * k)) & 31) / 31.0;
    value *= 1 + noise * (static_cast<double>(noise_random() >> 11) * 0x1p-53 - 0.5);
    const uint64_t integer = noise == 0 ? bits : bits ^ (noise_random() % 8 == 0 ? 1 : 0);
    StorePart(dtype, value, integer, memory.data() + at);
  }
  for (size_t at = period; at < memory.size(); at += period) {
    std::memcpy(memory.data() + at, memory.data(), std::min(period, memory.size() - at));
  }
}

bool SameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
bool Same(const Moments& a, const Moments& b) {
  return a.count == b.count && a.nan_count == b.nan_count && a.zero_count == b.zero_count &&
         SameBits(a.max, b.max) && SameBits(a.min, b.min) && SameBits(a.sum, b.sum) &&
         SameBits(a.sum_squares, b.sum_squares);
}
bool Same(const Pairwise& a, const Pairwise& b) {
  return a.count == b.count && a.mismatch_count == b.mismatch_count && SameBits(a.dot, b.dot) &&
         SameBits(a.difference_squares, b.difference_squares) && SameBits(a.max_abs, b.max_abs) &&
         SameBits(a.max_rel, b.max_rel) && a.max_ulp == b.max_ulp && a.below_1e3 == b.below_1e3;
}

Moments RunMoments(CpuTarget cpu, DType dtype, std::span<const std::byte> data) {
  MomentsState state;
  UpdateMoments(TableFor(cpu), dtype, data.data(), data.size() / InfoOf(dtype).size_bytes, &state);
  return FinishMoments(state);
}
Pairwise RunPairwise(CpuTarget cpu, DType dtype, std::span<const std::byte> target,
                     std::span<const std::byte> golden) {
  PairwiseState state;
  UpdatePairwise(
      TableFor(cpu),
      {dtype, target.data(), dtype, golden.data(), target.size() / InfoOf(dtype).size_bytes},
      &state);
  return FinishPairwise(state);
}

// The baseline against sums by a plain loop over widened elements: catches a kernel that is wrong
// in the same way on every target. Rounding differs, so only within 1e-9.
bool PlausibleBaseline(DType dtype, std::span<const std::byte> data) {
  const size_t count = std::min<size_t>(data.size() / InfoOf(dtype).size_bytes, 100000);
  std::vector<float> wide(count);
  TableFor(CpuTarget::kBaseline).to_float(dtype, data.data(), count, wide.data());
  double sum = 0, squares = 0, magnitudes = 0;
  for (const float x : wide) {
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
    magnitudes += std::fabs(static_cast<double>(x));
  }
  const size_t bytes = count * InfoOf(dtype).size_bytes;
  const Moments m = RunMoments(CpuTarget::kBaseline, dtype, data.first(bytes));
  return std::fabs(m.sum - sum) <= 1e-7 * magnitudes &&
         std::fabs(m.sum_squares - squares) <= 1e-6 * squares;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  int Run() {
    const size_t largest = kSizes[3];
    golden_memory_ = std::make_unique<std::byte[]>(largest);
    target_memory_ = std::make_unique<std::byte[]>(largest / 2);
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      if (!options_.dtype.empty() && options_.dtype != InfoOf(dtype).name) continue;
      Fill(dtype, 0, {golden_memory_.get(), largest});
      Fill(dtype, 1e-3, {target_memory_.get(), largest / 2});
      if (!PlausibleBaseline(dtype, {golden_memory_.get(), largest})) {
        Fail(InfoOf(dtype).name, "plain loop");
      }
      for (const size_t size : kSizes) RunSize(dtype, size);
    }
    return failed_ ? 1 : 0;
  }

 private:
  void Fail(std::string_view dtype, std::string_view what) {
    fmt::print(stderr, "{}: result differs ({})\n", dtype, what);
    failed_ = true;
  }

  void Report(DType dtype, size_t size, std::string_view kernel, CpuTarget cpu,
              const std::function<void()>& work) {
    const Timing probe = Time([&] { sink_ = sink_ ^ ReadProbe(golden_memory_.get(), size); }, size,
                              options_.samples);
    const Timing timing = Time(work, size, options_.samples);
    const double speed = static_cast<double>(size) / timing.seconds / 1e9;
    const double limit = static_cast<double>(size) / probe.seconds / 1e9;
    if (options_.json) {
      fmt::print(
          "{{\"benchmark\":\"kernels\",\"kernel\":\"{}\",\"dtype\":\"{}\",\"bytes\":{},"
          "\"target\":\"{}\",\"gb_per_s\":{:.3f},\"probe_gb_per_s\":{:.3f},\"ratio\":{:.3f},"
          "\"spread\":{:.4f},\"threads\":1,\"compiler\":\"{}\"}}\n",
          kernel, InfoOf(dtype).name, size, CpuTargetName(cpu), speed, limit, speed / limit,
          timing.spread, __VERSION__);
    } else {
      fmt::print("{:<16} {:>7} KiB {:<12} {:<8} {:>7.1f} GB/s  {:>4.0f} % of {:.1f}{}\n",
                 InfoOf(dtype).name, size >> 10, kernel, CpuTargetName(cpu), speed,
                 100 * speed / limit, limit, timing.spread > 0.03 ? "  noisy" : "");
    }
    std::fflush(stdout);
  }

  void RunSize(DType dtype, size_t size) {
    const std::span<const std::byte> data(golden_memory_.get(), size);
    const std::span<const std::byte> half = data.first(size / 2);
    const std::span<const std::byte> other(target_memory_.get(), size / 2);
    const Moments moments = RunMoments(CpuTarget::kBaseline, dtype, data);
    // Equal bytes at another place, as two files of equal runs have them.
    const std::span<const std::byte> same = data.last(size / 2);
    const Pairwise pair = RunPairwise(CpuTarget::kBaseline, dtype, other, half);
    const Pairwise equal = RunPairwise(CpuTarget::kBaseline, dtype, same, half);
    for (const CpuTarget cpu : UsableTargets()) {
      if (!Same(RunMoments(cpu, dtype, data), moments)) {
        Fail(InfoOf(dtype).name, "moments");
        continue;
      }
      Report(dtype, size, "moments", cpu,
             [&] { sink_ = sink_ ^ RunMoments(cpu, dtype, data).count; });
      if (!Same(RunPairwise(cpu, dtype, other, half), pair)) {
        Fail(InfoOf(dtype).name, "pairwise");
        continue;
      }
      Report(dtype, size, "pairwise", cpu,
             [&] { sink_ = sink_ ^ RunPairwise(cpu, dtype, other, half).count; });
      if (!Same(RunPairwise(cpu, dtype, same, half), equal)) {
        Fail(InfoOf(dtype).name, "pairwise of equal runs");
        continue;
      }
      Report(dtype, size, "pairwise-equal", cpu,
             [&] { sink_ = sink_ ^ RunPairwise(cpu, dtype, same, half).count; });
    }
    RunScan(dtype, data, moments);
  }

  void RunScan(DType dtype, std::span<const std::byte> data, const Moments& moments) {
    const Shape sizes = {static_cast<int64_t>(data.size() / InfoOf(dtype).size_bytes)};
    const std::vector<int64_t> strides = {1};
    const TensorView view = {dtype, data.data(), sizes, strides};
    const ScanWants wants = {.crc32 = true};
    const TensorScan scan = ScanTensor(view, wants);
    if (!Same(scan.moments, moments) || scan.crc32 != Crc32(data)) {
      return Fail(InfoOf(dtype).name, "scan");
    }
    const CpuTarget active = ActiveTable().target;
    Report(dtype, data.size(), "moments+crc", active,
           [&] { sink_ = sink_ ^ ScanTensor(view, wants).crc32; });
    const ScanWants digest = {.content = true};
    Report(dtype, data.size(), "moments+content", active,
           [&] { sink_ = sink_ ^ ScanTensor(view, digest).content.low; });
  }

  Options options_;
  std::unique_ptr<std::byte[]> golden_memory_;
  std::unique_ptr<std::byte[]> target_memory_;
  volatile uint64_t sink_ = 0;
  bool failed_ = false;
};

}  // namespace
}  // namespace plumbline::kernels

int main(int argc, char** argv) {
  plumbline::kernels::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--json") {
      options.json = true;
    } else if (arg == "--dtype" && has_value) {
      options.dtype = argv[++i];
    } else if (arg == "--samples" && has_value) {
      options.samples = std::max(1, std::atoi(argv[++i]));
    } else {
      fmt::print(stderr, "usage: plumbline_bench_kernels [--json] [--dtype NAME] [--samples N]\n");
      return 2;
    }
  }
  return plumbline::kernels::Bench(options).Run();
}

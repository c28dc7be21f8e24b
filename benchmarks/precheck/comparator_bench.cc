// Speed of the pre-check's comparator on one thread: a float16 device against a float32 benchmark.
//
//   comparator_bench DEVICE BENCH [ELEMENTS]
//
// The files hold as many elements of float16 and of float32. Prints one JSON line per standard: the
// numbers of the files' elements, for run.py to check, and the speed over ELEMENTS of them,
// repeated (default: 1 GiB of float16). Bytes are those of both sides, seconds those of the CPU,
// median of 7: a speed per core, whatever else runs. The numbers of a part are checked against a
// plain loop before anything is timed; exit status 1 if they differ.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file_bytes.h"
#include "base/process/parallel.h"
#include "kernels/kernel_table.h"
#include "precheck/output_metrics.h"
#include "tensor/half.h"

namespace plumbline::precheck {
namespace {

constexpr std::pair<const char*, Standard> kStandards[] = {
    {"benchmark", Standard::kBenchmark}, {"absolute_threshold", Standard::kAbsolute},
    {"ulp_compare", Standard::kUlp},     {"binary_consistency", Standard::kBinary}};

struct Arrays {
  const std::byte* device = nullptr;
  const std::byte* bench = nullptr;
  size_t count = 0;

  [[nodiscard]] OutputPair First(size_t n) const {
    return {DType::kFloat32, bench, DType::kFloat16, device, std::min(n, count)};
  }
};

// The largest absolute and the mean relative error of N by a plain loop.
bool IsPlausible(const Arrays& arrays) {
  const OutputPair pair = arrays.First(100000);
  const FloatMetrics metrics = MeasureFloats(pair, Standard::kBenchmark);
  double largest = 0, sum = 0;
  uint64_t normal = 0;
  for (size_t i = 0; i < pair.count; ++i) {
    uint16_t bits;
    float b;
    std::memcpy(&bits, arrays.device + 2 * i, sizeof(bits));
    std::memcpy(&b, arrays.bench + 4 * i, sizeof(b));
    const float error = std::fabs(NarrowToFloat(kFloat16Format, bits) - b);
    largest = std::max(largest, static_cast<double>(error));
    if (std::fabs(b) <= 0x1p-10F) continue;
    ++normal;
    sum += static_cast<double>(error / (std::fabs(b) + 0x1p-23F));
  }
  return metrics.normal == normal && metrics.max_abs_error == largest &&
         std::fabs(metrics.mean_rel_error * static_cast<double>(normal) / sum - 1) < 1e-9;
}

double MedianCpuSeconds(const OutputPair& pair, Standard standard) {
  std::vector<double> seconds;
  for (int sample = 0; sample < 7; ++sample) {
    const std::clock_t start = std::clock();
    const FloatMetrics metrics = MeasureFloats(pair, standard);
    const std::clock_t passed = std::clock() - start;
    if (metrics.count != pair.count) return 0;
    seconds.push_back(static_cast<double>(passed) / CLOCKS_PER_SEC);
  }
  std::nth_element(seconds.begin(), seconds.begin() + 3, seconds.end());
  return seconds[3];
}

void Report(const char* name, Standard standard, const Arrays& files, const Arrays& repeated) {
  const FloatMetrics m = MeasureFloats(files.First(files.count), standard);
  const double seconds = MedianCpuSeconds(repeated.First(repeated.count), standard);
  const double bytes = 6.0 * static_cast<double>(repeated.count);
  fmt::print(
      "{{\"benchmark\":\"comparator\",\"standard\":\"{}\",\"device\":\"float16\",\"bench\":"
      "\"float32\",\"elements\":{},\"bytes\":{:.0f},\"threads\":1,"
      "\"target\":\"{}\",\"cpu_seconds\":{:.4f},"
      "\"gb_per_s\":{:.2f},\"numbers\":{{\"cosine\":{},\"max_abs_error\":{},\"hundredth\":{},"
      "\"thousandth\":{},\"error_rate\":{},\"rel_error_ratio\":{},\"abs_error_ratio\":{},"
      "\"rmse\":{},\"max_rel_error\":{},\"mean_rel_error\":{},\"error_balance\":{},\"max_ulp\":{},"
      "\"mean_ulp\":{},\"ulp_proportion\":{}}}}}\n",
      name, repeated.count, bytes, kernels::CpuTargetName(kernels::ActiveTable().target), seconds,
      bytes / seconds / 1e9, m.cosine, m.max_abs_error, m.hundredth, m.thousandth, m.error_rate,
      m.rel_error_ratio, m.abs_error_ratio, m.rmse, m.max_rel_error, m.mean_rel_error,
      m.error_balance, m.max_ulp, m.mean_ulp, m.ulp_proportion);
  std::fflush(stdout);
}

std::unique_ptr<std::byte[]> Repeat(std::span<const std::byte> bytes, size_t size) {
  std::unique_ptr<std::byte[]> memory(new std::byte[size]);
  for (size_t at = 0; at < size; at += bytes.size()) {
    std::memcpy(memory.get() + at, bytes.data(), std::min(bytes.size(), size - at));
  }
  return memory;
}

int Run(const char* device_path, const char* bench_path, size_t elements) {
  const Result<FileBytes> device = FileBytes::Open(device_path);
  const Result<FileBytes> bench = FileBytes::Open(bench_path);
  if (!device || !bench || device->bytes().empty() ||
      2 * device->bytes().size() != bench->bytes().size()) {
    fmt::print(stderr, "comparator_bench: the files do not hold as many elements each\n");
    return 2;
  }
  const Arrays files = {device->bytes().data(), bench->bytes().data(), device->bytes().size() / 2};
  if (!IsPlausible(files)) {
    fmt::print(stderr, "comparator_bench: the result differs from a plain loop\n");
    return 1;
  }
  const auto device_memory = Repeat(device->bytes(), 2 * elements);
  const auto bench_memory = Repeat(bench->bytes(), 4 * elements);
  const Arrays repeated = {device_memory.get(), bench_memory.get(), elements};
  RunWithThreads(1, [&] {
    for (const auto& [name, standard] : kStandards) Report(name, standard, files, repeated);
  });
  return 0;
}

}  // namespace
}  // namespace plumbline::precheck

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: comparator_bench DEVICE BENCH [ELEMENTS]\n");
    return 2;
  }
  const size_t elements = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : size_t{1} << 29;
  return plumbline::precheck::Run(argv[1], argv[2], std::max<size_t>(elements, 1));
}

// Speed and memory of reference functions, on float32 as the pre-check raises 16-bit calls to it.
//
//   reference_bench [SEQUENCE [THREADS]]
//
// Prints a JSON line per case: attention, forward and gradient, of 8 heads of 128 elements over
// SEQUENCE rows (default: 8192), with the memory that it takes beside the tensors that it is given;
// the gradient of a rotary embedding, next to a copy of as many bytes. THREADS: default one per
// core. A row of each result is checked against its definition first; exit status 1 if it differs.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/process/parallel.h"
#include "precheck/reference/attention.h"
#include "precheck/reference/fused_operators.h"

namespace plumbline::precheck::reference {
namespace {

constexpr size_t kHeads = 8, kDim = 128;
constexpr int kSamples = 5;

struct Floats {
  Shape shape;
  std::vector<float> values;

  [[nodiscard]] Operand operand() const {
    return {DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()), shape};
  }
  [[nodiscard]] size_t bytes() const { return values.size() * sizeof(float); }
};

Floats Random(const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats tensor{shape, std::vector<float>(CountOf(shape))};
  for (float& value : tensor.values) value = uniform(engine);
  return tensor;
}

double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Bytes of a line of /proc/self/status.
size_t MemoryOf(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::strtoull(&line[field.size() + 1], nullptr, 10) << 10;
  }
  return 0;
}

bool IsNear(double value, double expected) {
  return std::fabs(value - expected) <= 1e-6 * std::max(1.0, std::fabs(expected));
}

std::vector<double> ValuesOf(const Array& array, size_t first, size_t count) {
  std::vector<double> values(count);
  Read(array.operand(), first, count, values.data());
  return values;
}

// ---- Attention ----

struct AttentionTensors {
  Floats query, key, value, dy;

  explicit AttentionTensors(int64_t rows) {
    const Shape shape = {1, kHeads, rows, kDim};
    query = Random(shape, 1), key = Random(shape, 2), value = Random(shape, 3);
    dy = Random(shape, 4);
  }
  [[nodiscard]] AttentionCall Call() const {
    AttentionCall call;
    call.query = query.operand(), call.key = key.operand(), call.value = value.operand();
    call.head_num = kHeads, call.input_layout = "BNSD";
    call.scale = 1 / std::sqrt(static_cast<double>(kDim));
    return call;
  }
};

// The last row of the first head by its definition.
bool IsAttention(const AttentionTensors& of, double scale, const Array& out) {
  const auto rows = static_cast<size_t>(of.query.shape[2]);
  std::vector<double> expected(kDim);
  double sum = 0;
  for (size_t j = 0; j < rows; ++j) {
    double score = 0;
    for (size_t d = 0; d < kDim; ++d) {
      score += static_cast<double>(of.query.values[(rows - 1) * kDim + d]) *
               static_cast<double>(of.key.values[j * kDim + d]);
    }
    const double weight = std::exp(score * scale);
    sum += weight;
    for (size_t d = 0; d < kDim; ++d) {
      expected[d] += weight * static_cast<double>(of.value.values[j * kDim + d]);
    }
  }
  const std::vector<double> row = ValuesOf(out, (rows - 1) * kDim, kDim);
  for (size_t d = 0; d < kDim; ++d) {
    if (!IsNear(row[d], expected[d] / sum)) return false;
  }
  return true;
}

bool ReportAttention(int64_t rows, int threads) {
  const AttentionTensors tensors(rows);
  const AttentionCall call = tensors.Call();
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak counts from here
  const size_t before = MemoryOf("VmRSS:");
  Result<AttentionResult> forward = Error(ErrorCode::kInternal, "");
  Result<std::array<Array, 3>> gradient = Error(ErrorCode::kInternal, "");
  const double forward_seconds = SecondsOf([&] { forward = FusionAttention(call); });
  const double gradient_seconds =
      SecondsOf([&] { gradient = FusionAttentionGrad(call, tensors.dy.operand()); });
  const size_t after = MemoryOf("VmHWM:");
  if (!forward || !gradient || !IsAttention(tensors, call.scale, forward->out)) return false;
  fmt::print(
      "{{\"benchmark\":\"reference_attention\",\"heads\":{},\"rows\":{},\"dim\":{},\"threads\":{},"
      "\"forward_seconds\":{:.2f},\"gradient_seconds\":{:.2f},\"extra_bytes\":{}}}\n",
      kHeads, rows, kDim, threads, forward_seconds, gradient_seconds,
      after > before ? after - before : 0);
  std::fflush(stdout);
  return true;
}

// ---- Rotary embedding ----

// dx of the first row: r1 g + (r2 g turned back).
bool IsRotaryGradient(const Floats& g, const Floats& r1, const Floats& r2, const Array& dx) {
  const std::vector<double> row = ValuesOf(dx, 0, kDim);
  const auto product = [&](const Floats& factor, size_t i) {
    return static_cast<double>(factor.values[i]) * static_cast<double>(g.values[i]);
  };
  for (size_t i = 0; i < kDim; ++i) {
    const bool is_first = i < kDim / 2;
    const double turned = product(r2, is_first ? i + kDim / 2 : i - kDim / 2);
    if (!IsNear(row[i], product(r1, i) + (is_first ? turned : -turned))) return false;
  }
  return true;
}

double MedianOf(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// Seconds of a copy that reads and writes `bytes` together.
double CopySeconds(size_t bytes) {
  std::vector<char> from(bytes / 2, 1), to(bytes / 2);
  std::vector<double> seconds;
  for (int sample = 0; sample < kSamples; ++sample) {
    seconds.push_back(SecondsOf([&] {
      ParallelBlocks(from.size(), size_t{1} << 20, [&](size_t begin, size_t end) {
        std::memcpy(&to[begin], &from[begin], end - begin);
      });
    }));
  }
  return MedianOf(seconds);
}

bool ReportRotary(int64_t rows, int threads) {
  const Shape shape = {1, 4 * kHeads, rows, kDim};
  const Floats x = Random(shape, 5), g = Random(shape, 6);
  const Floats r1 = Random({1, 1, rows, kDim}, 7), r2 = Random({1, 1, rows, kDim}, 8);
  std::vector<double> seconds;
  for (int sample = 0; sample < kSamples; ++sample) {
    Result<std::array<Array, 3>> gradient = Error(ErrorCode::kInternal, "");
    seconds.push_back(SecondsOf([&] {
      gradient = RotaryMulGrad(g.operand(), {x.operand(), r1.operand(), r2.operand()});
    }));
    if (!gradient || !IsRotaryGradient(g, r1, r2, (*gradient)[0])) return false;
  }
  const size_t bytes = x.bytes() + 2 * g.bytes() + 2 * (r1.bytes() + r2.bytes());
  const double copy = CopySeconds(bytes);
  fmt::print(
      "{{\"benchmark\":\"reference_rotary_gradient\",\"rows\":{},\"threads\":{},\"bytes\":{},"
      "\"seconds\":{:.4f},\"copy_seconds\":{:.4f},\"over_copy\":{:.1f}}}\n",
      rows * static_cast<int64_t>(4 * kHeads), threads, bytes, MedianOf(seconds), copy,
      MedianOf(seconds) / copy);
  std::fflush(stdout);
  return true;
}

int Run(int64_t rows, int threads) {
  bool is_right = true;
  RunWithThreads(threads,
                 [&] { is_right = ReportAttention(rows, threads) && ReportRotary(rows, threads); });
  if (!is_right) fmt::print(stderr, "reference_bench: a result differs from its definition\n");
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace plumbline::precheck::reference

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::strtoll(argv[1], nullptr, 10) : 8192;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  if (argc > 3 || rows < 1 || threads < 0) {
    fmt::print(stderr, "usage: reference_bench [SEQUENCE [THREADS]]\n");
    return 2;
  }
  return plumbline::precheck::reference::Run(rows, threads);
}

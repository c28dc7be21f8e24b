// Tensors and classifications for the tests of cause classes.

#ifndef PLUMBLINE_MEASURE_CAUSE_FOR_TEST_H_
#define PLUMBLINE_MEASURE_CAUSE_FOR_TEST_H_

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "measure/cause_class.h"
#include "tensor/half.h"

namespace plumbline::measure {

// A float tensor that owns its memory.
struct Made {
  Shape sizes;
  std::vector<int64_t> strides;
  std::vector<std::byte> bytes;
  DType dtype = DType::kFloat32;

  [[nodiscard]] TensorView view() const { return {dtype, bytes.data(), sizes, strides}; }
};

// Elements rounded to `dtype` (float32, float16, bfloat16 or bool).
inline Made Make(const Shape& sizes, const std::vector<double>& values,
                 DType dtype = DType::kFloat32) {
  Made made{sizes, ContiguousStrides(sizes), {}, dtype};
  made.bytes.resize(values.size() * InfoOf(dtype).size_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto single = static_cast<float>(values[i]);
    if (dtype == DType::kFloat32) {
      std::memcpy(&made.bytes[i * 4], &single, 4);
    } else if (dtype == DType::kBool) {
      made.bytes[i] = std::byte{values[i] != 0};
    } else {
      const auto bits = static_cast<uint16_t>(FloatToNarrow(*NarrowFormatOf(dtype), single));
      std::memcpy(&made.bytes[i * 2], &bits, 2);
    }
  }
  return made;
}

// Uniform in (-1, 1), or nearly normal; a fixed sequence per seed.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  double Uniform() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) / 4503599627370496.0 - 1;
  }
  double Normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += Uniform() / 2;
    return sum;
  }

 private:
  uint64_t state_;
};

inline std::vector<double> Normal(size_t count, uint64_t seed, double mean = 0) {
  Numbers numbers(seed);
  std::vector<double> values(count);
  for (double& value : values) value = mean + numbers.Normal();
  return values;
}

inline std::vector<double> Mapped(std::vector<double> values,
                                  const std::function<double(double, size_t)>& map) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = map(values[i], i);
  return values;
}

inline Cause Classify(const Made& target, const Made& golden,
                      const std::vector<CauseCandidate>& candidates = {},
                      const std::string& api = "f") {
  const Result<Cause> cause =
      ClassifyTensors({target.view(), golden.view(), api, false, 0, candidates});
  EXPECT_TRUE(cause.has_value());
  return cause ? *cause : Cause{};
}

inline const Shape kShape = {8, 6, 16};
inline constexpr size_t kCount = 768;

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_CAUSE_FOR_TEST_H_

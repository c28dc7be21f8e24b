// Recordings of one layer whose batch is cut into parts, for the tests of what these come to.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_PARTS_FOR_TEST_H_
#define PLUMBLINE_PIPELINE_CULPRIT_PARTS_FOR_TEST_H_

#include <fmt/format.h>

#include <string>
#include <vector>

#include "pipeline/two_dumps_for_test.h"

namespace plumbline {

struct Numbers {
  double max, min, mean, norm;
};

inline std::string Values(const Numbers& of, const std::string& shape,
                          const std::string& dtype = "float32") {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.{}", "shape": {}, )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false}})",
                     dtype, shape, of.max, of.min, of.mean, of.norm);
}
inline std::string Scalar(double value) { return Values({value, value, value, value}, "[]"); }

// One batch of eight samples and its halves: 10^2 = 8^2 + 6^2.
inline constexpr Numbers kWhole{4, -3, 0.5, 10}, kFirst{4, -2, 0.75, 8}, kSecond{1, -3, 0.25, 6};

inline Numbers Times(const Numbers& of, double factor) {
  return {of.max * factor, of.min * factor, of.mean * factor, of.norm * factor};
}

// A part: its data, its loss, and the weight of that.
struct Part {
  Numbers data;
  int samples;
  double loss, weight;
  double scale = 0.5;  // what the layer multiplies with
};

class PartsTest : public TwoDumpsTest {
 protected:
  // A layer, its loss, the weight and their gradients, part by part. `dtype`: of the layer.
  static void Record(const std::vector<Part>& parts, DumpForTest& side, bool has_backward = true,
                     const std::string& dtype = "float32") {
    int k = 0;
    for (const Part& part : parts) {
      const std::string shape = fmt::format("[{}, 3]", part.samples);
      const std::string seen = Values(Times(part.data, part.scale), shape, dtype);
      side.Add(fmt::format("Torch.tanh.{}.forward", k), Values(part.data, shape, dtype), seen)
          .Add(fmt::format("Functional.loss.{}.forward", k), seen, Scalar(part.loss))
          .Add(fmt::format("Tensor.__mul__.{}.forward", k),
               Scalar(part.loss) + "," + ScalarJson("float", fmt::format("{}", part.weight)),
               Scalar(part.loss * part.weight));
      if (has_backward) RecordBackward(part, k, side);
      ++k;
    }
  }
  static void RecordBackward(const Part& part, int k, DumpForTest& side) {
    const std::string shape = fmt::format("[{}, 3]", part.samples);
    const std::string spread = Values(Times(part.data, 0.01 * part.weight), shape);
    side.Add(fmt::format("Tensor.__mul__.{}.backward", k), Scalar(1), Scalar(part.weight))
        .Add(fmt::format("Functional.loss.{}.backward", k), Scalar(part.weight), spread)
        .Add(fmt::format("Torch.tanh.{}.backward", k), spread,
             Values(Times(part.data, 0.02 * part.weight), shape));
  }
  // What an optimizer reads, which must be the sum of all parts.
  static void RecordStep(double size, DumpForTest& side) {
    side.Add("Tensor.mul.0.forward", Values({size, -size, size / 9, 2 * size}, "[3]"),
             Values({size / 10, -size / 10, size / 90, size / 5}, "[3]"));
  }
};

// Losses that are sums over samples.
inline const std::vector<Part> kInOne{{kWhole, 8, 20.3, 0.125}};
inline const std::vector<Part> kInTwo{{kFirst, 4, 12.2, 0.125}, {kSecond, 4, 8.1, 0.125}};

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_PARTS_FOR_TEST_H_

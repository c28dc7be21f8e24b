// Comparisons and recordings made for a test: calls, dump.json files and tensor files.

#ifndef PLUMBLINE_VERDICT_COMPARISON_FOR_TEST_H_
#define PLUMBLINE_VERDICT_COMPARISON_FOR_TEST_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/memory/digest.h"
#include "formats/pytorch/torch_pt.h"
#include "plumbline/compare.h"

namespace plumbline::verdict {

// Comparisons for tests, row by row, without dumps behind them.

using StatisticsForTest = std::array<double, 4>;  // max, min, mean, norm

inline Item TensorForTest(const StatisticsForTest& statistics, Shape shape = {4, 4},
                          const std::string& dtype = "torch.float32") {
  Item item;
  item.is_tensor = true;
  item.dtype = dtype;
  item.shape = std::move(shape);
  for (size_t i = 0; i < statistics.size(); ++i) item.statistics[i] = statistics[i];
  return item;
}

// A comparison under construction: calls in recorded order, each with the rows added after it.
class ComparisonForTest {
 public:
  explicit ComparisonForTest(CompareMode mode = CompareMode::kStatistics) {
    comparison_.mode = mode;
  }

  ComparisonForTest& Pair(const std::string& name, Verdict verdict = Verdict::kSame) {
    return Call(name, name, {}, verdict);
  }
  // Of one side only; `reason` as in ComparedCall, "shape-differs" where the other has the name
  // too.
  ComparisonForTest& Target(const std::string& name, const std::string& reason = "no-golden") {
    return Call(name, {}, reason, Verdict::kNotComparable);
  }
  ComparisonForTest& Golden(const std::string& name, const std::string& reason = "no-target") {
    return Call({}, name, reason, Verdict::kNotComparable);
  }

  ComparisonForTest& Row(ItemRole role, std::optional<Item> target, std::optional<Item> golden) {
    ComparedRow row;
    row.call = static_cast<uint32_t>(comparison_.calls.size() - 1);
    for (std::optional<Item>* item : {&target, &golden}) {
      if (*item) (*item)->role = role;
    }
    if (target) row.target = std::move(*target);
    if (golden) row.golden = std::move(*golden);
    comparison_.rows.push_back(std::move(row));
    ++comparison_.calls.back().row_count;
    return *this;
  }
  // The same on both sides.
  ComparisonForTest& In(const Item& both) { return Row(ItemRole::kInput, both, both); }
  ComparisonForTest& Out(const Item& both) { return Row(ItemRole::kOutput, both, both); }
  ComparisonForTest& Out(const Item& target, const Item& golden) {
    return Row(ItemRole::kOutput, target, golden);
  }
  ComparisonForTest& TargetIn(const Item& item) { return Row(ItemRole::kInput, item, {}); }
  ComparisonForTest& TargetOut(const Item& item) { return Row(ItemRole::kOutput, item, {}); }
  ComparisonForTest& GoldenOut(const Item& item) { return Row(ItemRole::kOutput, {}, item); }

  ComparedRow& last_row() { return comparison_.rows.back(); }
  [[nodiscard]] const Comparison& get() const { return comparison_; }

 private:
  ComparisonForTest& Call(const std::string& target, const std::string& golden,
                          const std::string& reason, Verdict verdict) {
    ComparedCall call;
    call.target_name = target;
    call.golden_name = golden;
    call.unmatched_reason = reason;
    call.first_row = static_cast<uint32_t>(comparison_.rows.size());
    call.verdict = verdict;
    comparison_.calls.push_back(std::move(call));
    return *this;
  }

  Comparison comparison_;
};

}  // namespace plumbline::verdict

namespace plumbline {

// Small dump directories for tests, written as the recorders write them.

// Text of a float32 tensor with these statistics and a mean of max / 4; `extra` adds members (",
// \"md5\": ...").
inline std::string TensorJson(double max, double min, double norm, const std::string& shape = "[4]",
                              const std::string& extra = {}) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, )"
                     R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}, "requires_grad": false{}}})",
                     shape, max, min, max / 4, norm, extra);
}

inline std::string ScalarJson(const std::string& type, const std::string& value) {
  return fmt::format(R"({{"type": "{}", "value": {}}})", type, value);
}

// One side of a comparison under construction.
class DumpForTest {
 public:
  explicit DumpForTest(std::string directory) : directory_(std::move(directory)) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  DumpForTest& Add(const std::string& name, const std::string& inputs, const std::string& outputs,
                   const std::string& parent = {}) {
    entries_.push_back(
        fmt::format(R"("{}": {{"input_args": [{}], "input_kwargs": {{}}, "output": [{}]}})", name,
                    inputs, outputs));
    parents_.push_back(
        fmt::format(R"("{}": {})", name, parent.empty() ? "null" : "\"" + parent + "\""));
    return *this;
  }
  DumpForTest& AddEntry(const std::string& text) {
    entries_.push_back(text);
    return *this;
  }

  // Writes the files and returns the directory.
  std::string Write(const std::string& task = "statistics") const {
    std::ofstream(directory_ + "/dump.json")
        << fmt::format(R"({{"task": "{}", "level": "mix", "framework": "pytorch", )"
                       R"("dump_data_dir": null, "data": {{{}}}}})",
                       task, Joined(entries_));
    std::ofstream(directory_ + "/construct.json") << fmt::format("{{{}}}", Joined(parents_));
    return directory_;
  }

 private:
  static std::string Joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",\n") + part;
    return text;
  }

  std::string directory_;
  std::vector<std::string> entries_;
  std::vector<std::string> parents_;
};

// Tests that compare two small dumps.

class TwoDumpsTest : public ::testing::Test {
 protected:
  TwoDumpsTest() : target_(directory_.Path("target")), golden_(directory_.Path("golden")) {}

  Result<Comparison> Try(const CompareOptions& options = {}) {
    return CompareRuns(target_.Write(), golden_.Write(), options);
  }
  Comparison Compare() {
    Result<Comparison> result = Try();
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : Comparison();
  }
  // The first wrong call; empty where there is none.
  std::string Named() {
    const Comparison comparison = Compare();
    return comparison.first_wrong_call ? comparison.first_wrong_call->name : "";
  }

  testing::TestDirectory directory_;
  DumpForTest target_, golden_;
};

// Tensor files for tests.

// A .pt file of four floats.
inline void WritePt(const std::string& path, const std::array<float, 4>& values) {
  const std::span<const std::byte> data = std::as_bytes(std::span(values));
  const int64_t sizes[] = {4};
  const torch_pt::Frame frame =
      torch_pt::MakeFrame(DType::kFloat32, sizes, data.size(), Crc32(data));
  const std::string body(reinterpret_cast<const char*>(data.data()), data.size());
  ASSERT_TRUE(WriteFileAtomically(path, frame.head + body + frame.tail, false));
}

// Recordings of one layer whose batch is cut into parts, for the tests of what these come to.

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

#endif  // PLUMBLINE_VERDICT_COMPARISON_FOR_TEST_H_

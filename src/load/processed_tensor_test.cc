#include "load/processed_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "base/file/test_directory.h"
#include "formats/array/npy.h"
#include "tensor/element_value.h"

namespace plumbline::load {
namespace {

using StepKind = ProcessingStep::Kind;

Tensor Random(DType dtype, const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  const auto count = static_cast<size_t>(*ElementCount(shape));
  std::vector<std::byte> bytes(count * InfoOf(dtype).size_bytes);
  for (size_t i = 0; i < count; ++i) {
    const double value = normal(engine);
    const auto narrow = static_cast<float>(value);
    const auto whole = static_cast<int8_t>(std::clamp(value * 40, -127.0, 127.0));
    std::byte* const at = bytes.data() + i * InfoOf(dtype).size_bytes;
    if (dtype == DType::kFloat64) std::memcpy(at, &value, sizeof(value));
    if (dtype == DType::kFloat32) std::memcpy(at, &narrow, sizeof(narrow));
    if (dtype == DType::kInt8) std::memcpy(at, &whole, sizeof(whole));
  }
  const std::vector<int64_t> strides = ContiguousStrides(shape);
  return *Tensor::Copy({dtype, bytes.data(), shape, strides});
}

std::vector<double> ValuesOf(const TensorView& view) {
  std::vector<std::byte> bytes(view.size_bytes());
  CopyContiguous(view, bytes);
  std::vector<double> values(static_cast<size_t>(view.element_count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ElementAsDouble(view.dtype, bytes.data() + i * InfoOf(view.dtype).size_bytes);
  }
  return values;
}

class ProcessedTensorTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const Tensor& tensor) {
    const std::string path = directory_.Path(name);
    const TensorView view = tensor.view();
    std::ofstream file(path, std::ios::binary);
    file << *npy::MakeHeader(view.dtype, view.sizes);
    file.write(reinterpret_cast<const char*>(view.data),
               static_cast<std::streamsize>(view.size_bytes()));
    return path;
  }
  testing::TestDirectory directory_;
};

TEST_F(ProcessedTensorTest, NamesReadBack) {
  const std::vector<ProcessingStep> steps = {{StepKind::kKeepRows, 5, {}},
                                             {StepKind::kMultiplyLeft, 0, "/a b/50%;.npy"},
                                             {StepKind::kMultiply, 0, "/m.pt"}};
  const std::string name = ProcessedName("x.pt", steps);
  EXPECT_EQ(name.find('/'), std::string::npos);
  const auto read = ParseProcessedName(name);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->file, "x.pt");
  ASSERT_EQ(read->steps.size(), 3u);
  EXPECT_EQ(read->steps[0].rows, 5);
  EXPECT_EQ(read->steps[1].kind, StepKind::kMultiplyLeft);
  EXPECT_EQ(read->steps[1].matrix, "/a b/50%;.npy");
  EXPECT_EQ(read->steps[2].matrix, "/m.pt");
  for (const char* other : {"x.pt", "rows;x.pt", "processed;x.pt;rows=-1", "processed;x.pt;rows=",
                            "processed;x.pt;right=%2", "processed;x.pt;right=%2Fetc%2Fpasswd",
                            "processed;x.pt;turned=1"}) {
    EXPECT_FALSE(ParseProcessedName(other)) << other;
  }
}

// By definition, in long double.
std::vector<double> ProductOf(const std::vector<double>& a, const std::vector<double>& b,
                              size_t rows, size_t depth, size_t columns) {
  std::vector<double> c;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      long double sum = 0;
      for (size_t k = 0; k < depth; ++k) {
        sum += static_cast<long double>(a[i * depth + k]) * b[k * columns + j];
      }
      c.push_back(static_cast<double>(sum));
    }
  }
  return c;
}

TEST_F(ProcessedTensorTest, ProductsAreTheExactOnesRounded) {
  struct Case {
    DType dtype, of_matrix, result;
    double unit;
  };
  constexpr double kCancelled = 1e-12;  // roundings of terms that cancel
  for (const Case& each : {Case{DType::kFloat32, DType::kFloat32, DType::kFloat32, 6e-8},
                           Case{DType::kInt8, DType::kFloat32, DType::kFloat32, 6e-8},
                           Case{DType::kFloat32, DType::kFloat64, DType::kFloat64, 1e-13}}) {
    const Tensor x = Random(each.dtype, {2, 35, 300}, 1);
    const Tensor right = Random(each.of_matrix, {300, 11}, 2);
    const Tensor left = Random(each.of_matrix, {7, 35}, 3);
    const auto x_values = ValuesOf(x.view());
    const std::string right_path = Write("r.npy", right), left_path = Write("l.npy", left);
    const ProcessingStep from_right{StepKind::kMultiply, 0, right_path};
    const ProcessingStep from_left{StepKind::kMultiplyLeft, 0, left_path};
    const auto check = [&](const ProcessingStep& step, const Shape& shape,
                           const std::vector<double>& expected) {
      const Result<TensorFile> made = Process(x.view(), {&step, 1});
      ASSERT_TRUE(made) << made.error().message();
      EXPECT_EQ(made->view().dtype, each.result);
      EXPECT_EQ(Shape(made->view().sizes.begin(), made->view().sizes.end()), shape);
      const auto found = ValuesOf(made->view());
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], each.unit * std::abs(expected[i]) + kCancelled) << i;
      }
    };
    check(from_right, {2, 35, 11}, ProductOf(x_values, ValuesOf(right.view()), 70, 300, 11));
    std::vector<double> both;
    for (size_t b = 0; b < 2; ++b) {
      const auto begin = x_values.begin() + static_cast<std::ptrdiff_t>(b * 10500);
      const std::vector<double> part(begin, begin + 10500);
      const auto product = ProductOf(ValuesOf(left.view()), part, 7, 35, 300);
      both.insert(both.end(), product.begin(), product.end());
    }
    check(from_left, {2, 7, 300}, both);
  }
}

TEST_F(ProcessedTensorTest, VectorsAndEmptyTensorsMultiply) {
  const Tensor vector = Random(DType::kFloat32, {3}, 1), none = Random(DType::kFloat32, {0, 3}, 1);
  const ProcessingStep right{StepKind::kMultiply, 0,
                             Write("r.npy", Random(DType::kFloat32, {3, 2}, 2))};
  const ProcessingStep left{StepKind::kMultiplyLeft, 0,
                            Write("l.npy", Random(DType::kFloat32, {2, 3}, 3))};
  for (const ProcessingStep& step : {right, left}) {
    const auto made = Process(vector.view(), {&step, 1});
    ASSERT_TRUE(made);
    ASSERT_EQ(made->view().sizes.size(), 1u);
    EXPECT_EQ(made->view().sizes[0], 2);
  }
  const auto empty = Process(none.view(), {&right, 1});
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->view().element_count(), 0);
}

TEST_F(ProcessedTensorTest, TailsBecomeZerosWhateverWasThere) {
  std::vector<double> values = {1, 2, 3, std::numeric_limits<double>::quiet_NaN(), 5, 6};
  const Shape shape = {3, 2};
  const std::vector<int64_t> strides = ContiguousStrides(shape);
  const TensorView view{DType::kFloat64, reinterpret_cast<const std::byte*>(values.data()), shape,
                        strides};
  const auto kept = [&](int64_t rows) {
    const ProcessingStep step{StepKind::kKeepRows, rows, {}};
    return ValuesOf(Process(view, {&step, 1})->view());
  };
  EXPECT_EQ(kept(1), (std::vector<double>{1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(kept(0), std::vector<double>(6));
  for (const int64_t rows : {3, 4}) EXPECT_TRUE(std::isnan(kept(rows)[3]));
}

TEST_F(ProcessedTensorTest, WhatDoesNotFitIsNamed) {
  const Tensor x = Random(DType::kFloat32, {2, 3}, 1);
  const std::string path = Write("m.npy", Random(DType::kFloat32, {2, 3}, 2));
  const auto problem = [&](const std::string& matrix) {
    const ProcessingStep step{StepKind::kMultiply, 0, matrix};
    const auto made = Process(x.view(), {&step, 1});
    return made ? std::string() : made.error().message();
  };
  EXPECT_EQ(problem(path), path + ": its shape [2, 3] does not fit a tensor of shape [2, 3]");
  EXPECT_NE(problem("/nowhere.pt").find("/nowhere.pt"), std::string::npos);
  EXPECT_NE(problem("/etc/passwd").find("expected .npy, .pt or .pth"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::load

#include "precheck/overflow/overflow_judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace plumbline::precheck::overflow_judge_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const CallValue kNull;

// Values of one side, in memory of their own.
class SideMemory {
 public:
  CallValue Add(DType dtype, const std::vector<double>& elements) {
    TensorPlace place;
    place.dtype = dtype;
    place.shape = {static_cast<int64_t>(elements.size())};
    place.offset = bytes_.size();
    for (const double element : elements) Append(dtype, element);
    bytes_.resize((bytes_.size() + 63) / 64 * 64);
    return CallValue(place);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void Append(DType dtype, double element) {
    if (dtype == DType::kFloat64) return AppendBytes(element);
    if (dtype == DType::kFloat32) return AppendBytes(static_cast<float>(element));
    if (dtype == DType::kInt64) return AppendBytes(static_cast<int64_t>(element));
    if (dtype == DType::kBool) return AppendBytes(static_cast<uint8_t>(element != 0));
    // float16 of the few numbers that are used here.
    const uint16_t bits = std::isinf(element) ? 0x7C00 : element == 1 ? 0x3C00 : 0x7BFF;
    AppendBytes(bits);
  }
  template <class T>
  void AppendBytes(T value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof(T));
  }

  std::vector<std::byte> bytes_;
};

CallValue ListOf(std::vector<CallValue> items) {
  return CallValue(CallSequence{Sequence::kTuple, std::move(items)});
}

// A call with what both sides returned.
struct Case {
  CallToRun to_run;
  SideMemory inputs, bench, device;
  SideResult bench_result, device_result;

  Case() { to_run.call.name = "Torch.exp.0"; }

  OverflowRow Judge(const SideValue& on_cpu, const SideValue& on_device) {
    bench_result.forward = on_cpu;
    device_result.forward = on_device;
    RanCall ran;
    ran.to_run = &to_run;
    ran.inputs = inputs.bytes();
    ran.bench = &bench_result;
    ran.bench_memory = bench.bytes();
    ran.device = &device_result;
    ran.device_memory = device.bytes();
    return ClassifyOverflow(ran);
  }
  OverflowRow JudgeTensors(const std::vector<double>& on_cpu, const std::vector<double>& on_device,
                           DType cpu_type = DType::kFloat32, DType device_type = DType::kFloat32) {
    return Judge(bench.Add(cpu_type, on_cpu), device.Add(device_type, on_device));
  }
};

TEST(ClassifyOverflow, TheFourWaysOfTwoSides) {
  const auto result = [](double cpu, double device) {
    return Case().JudgeTensors({1, cpu}, {1, device}).result;
  };
  EXPECT_EQ(result(kInf, kInf), OverflowResult::kNormal);
  EXPECT_EQ(result(-kInf, NAN), OverflowResult::kNormal);
  EXPECT_EQ(result(1, 1), OverflowResult::kNotReproduced);
  EXPECT_EQ(result(1, NAN), OverflowResult::kAbnormal);
  EXPECT_EQ(result(NAN, 1), OverflowResult::kAbnormal);
}

TEST(ClassifyOverflow, TheMessageNamesOutputAndSide) {
  Case one;
  const OverflowRow row = one.Judge(
      ListOf({one.bench.Add(DType::kFloat32, {1}), one.bench.Add(DType::kFloat32, {2})}),
      ListOf({one.device.Add(DType::kFloat32, {1}), one.device.Add(DType::kFloat32, {kInf})}));
  EXPECT_EQ(row.result, OverflowResult::kAbnormal);
  EXPECT_EQ(row.cpu, false);
  EXPECT_EQ(row.device, true);
  EXPECT_EQ(row.message, "output.1 overflows on the device and not on the CPU");
}

TEST(ClassifyOverflow, AWiderResultIsRoundedToTheTypeOfTheDevice) {
  const auto row = [](double cpu, double device) {
    return Case().JudgeTensors({1, cpu}, {1, device}, DType::kFloat32, DType::kFloat16);
  };
  // 65520 is infinite as float16, 65519 is 65504.
  EXPECT_EQ(row(65520, kInf).result, OverflowResult::kNormal);
  EXPECT_EQ(row(-65520, kInf).result, OverflowResult::kNormal);
  EXPECT_EQ(row(65519, kInf).result, OverflowResult::kAbnormal);
  EXPECT_EQ(row(65519, 65504).result, OverflowResult::kNotReproduced);
  EXPECT_NE(row(65520, kInf).message.find("rounded to that of the device"), std::string::npos);
}

TEST(ClassifyOverflow, RaisedFloat32OverflowsWhereFloat32Does) {
  const auto result = [](double cpu) {
    return Case().JudgeTensors({cpu}, {kInf}, DType::kFloat64, DType::kFloat32).result;
  };
  EXPECT_EQ(result(1e39), OverflowResult::kNormal);
  EXPECT_EQ(result(1e38), OverflowResult::kAbnormal);
}

TEST(ClassifyOverflow, NumbersAndIntegers) {
  EXPECT_EQ(Case().Judge(CallValue(kInf), CallValue(kInf)).result, OverflowResult::kNormal);
  EXPECT_EQ(Case().Judge(CallValue(1.0), CallValue(NAN)).result, OverflowResult::kAbnormal);
  EXPECT_EQ(Case().Judge(CallValue(int64_t{7}), CallValue(int64_t{7})).result,
            OverflowResult::kNotReproduced);
  EXPECT_EQ(Case().JudgeTensors({7}, {7}, DType::kInt64, DType::kInt64).result,
            OverflowResult::kNotReproduced);
  // A tensor of truth values is looked at and never overflows; a bare one is nothing to look at.
  EXPECT_EQ(Case().JudgeTensors({1}, {1}, DType::kBool, DType::kBool).result,
            OverflowResult::kNotReproduced);
}

TEST(ClassifyOverflow, NothingToLookAtIsASkip) {
  EXPECT_EQ(Case().Judge(kNull, kNull).result, OverflowResult::kSkip);
  EXPECT_EQ(Case().Judge(CallValue(true), CallValue(true)).result, OverflowResult::kSkip);
  EXPECT_EQ(Case().Judge(ListOf({CallValue(true)}), ListOf({CallValue(true)})).result,
            OverflowResult::kSkip);
  const CallValue sparse(SpecialValue{Special::kOther, "", "sparse tensor"});
  const OverflowRow row = Case().Judge(sparse, sparse);
  EXPECT_EQ(row.result, OverflowResult::kSkip);
  EXPECT_EQ(row.message, "returns a sparse tensor, into which nobody can look");
  // None on one side alone is no agreement.
  EXPECT_EQ(Case().Judge(kNull, CallValue(1.0)).result, OverflowResult::kError);
}

TEST(ClassifyOverflow, FailuresAreNeverAResult) {
  const SideValue failed = tl::make_unexpected(Skip{SkipCause::kCpuFailed, "no kernel"});
  OverflowRow row = Case().Judge(failed, CallValue(kInf));
  EXPECT_EQ(row.result, OverflowResult::kError);
  EXPECT_EQ(row.message, "CPU: cpu-failed: no kernel");
  EXPECT_FALSE(row.cpu || row.device);
  const SideValue primitive = tl::make_unexpected(
      Skip{SkipCause::kCpuFailed,
           "RuntimeError: could not create a primitive descriptor for a matmul primitive"});
  EXPECT_EQ(Case().Judge(primitive, CallValue(1.0)).result, OverflowResult::kSkip);
}

TEST(ClassifyOverflow, InputsAreLookedAtToo) {
  Case one;
  one.to_run.call.args = {one.inputs.Add(DType::kFloat16, {1})};
  one.to_run.call.kwargs = {{"other", one.inputs.Add(DType::kFloat32, {1, kInf})}};
  const OverflowRow row = one.JudgeTensors({kInf}, {kInf});
  EXPECT_EQ(row.input, true);
  EXPECT_EQ(row.message, "output overflows on both sides; input_kwargs.other holds NaN or Inf");
  EXPECT_EQ(Case().JudgeTensors({1}, {1}).input, false);
}

TEST(SkippedRow, WhatIsLeftOutIsNoError) {
  EXPECT_EQ(SkippedRow("a", {SkipCause::kUnsupportedType, "x"}).result, OverflowResult::kSkip);
  EXPECT_EQ(SkippedRow("a", {SkipCause::kNotInInventory, "x"}).result, OverflowResult::kSkip);
  EXPECT_EQ(SkippedRow("a", {SkipCause::kMissingData, "x"}).result, OverflowResult::kError);
  EXPECT_EQ(SkippedRow("a", {SkipCause::kCrashed, "x"}).result, OverflowResult::kError);
  EXPECT_EQ(SkippedRow("a", {SkipCause::kMissingData, "x"}).message, "missing-data: x");
}

}  // namespace
}  // namespace plumbline::precheck::overflow_judge_test

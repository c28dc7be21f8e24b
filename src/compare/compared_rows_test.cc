#include "compare/compared_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/file/file.h"
#include "compare/pair_calls.h"
#include "compare/tensor_pass.h"
#include "verdict/comparison_for_test.h"

namespace plumbline {

// Values that are NaN on both sides prove nothing, and nothing good may be said of them.

namespace {

class NanOnBothTest : public TwoDumpsTest {
 protected:
  static std::string Tensor(const std::string& max, const std::string& min, const std::string& norm,
                            const std::string& shape = "[4]") {
    return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, )"
                       R"("Max": {}, "Min": {}, "Mean": {}, "Norm": {}}})",
                       shape, max, min, norm == "null" ? "null" : "NaN", norm);
  }
  static std::string Nan(const std::string& shape = "[4]") {
    return Tensor("NaN", "NaN", "NaN", shape);
  }
  void AddToBoth(const std::string& name, const std::string& inputs, const std::string& outputs) {
    target_.Add(name, inputs, outputs);
    golden_.Add(name, inputs, outputs);
  }
  static std::string FirstLine(const Comparison& comparison) {
    const std::string text = SummaryText(comparison);
    return text.substr(0, text.find('\n'));
  }

  const std::string good_ = TensorJson(1, -2, 4);
};

TEST_F(NanOnBothTest, IsNotJudged) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.log.0.forward", good_, Nan());
  AddToBoth("Torch.add.0.forward", Nan(), Nan());
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.missing_values, 3u);
  EXPECT_EQ(FirstLine(comparison),
            "not judged completely: 3 values are NaN on both sides; the 3 paired calls show no "
            "wrong one");
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(
      comparison.warnings[0],
      "Torch.log.0.forward: Torch.log.0.forward.output.0 is NaN on both sides, the first of 3 "
      "such values; nothing tells whether that is right");
  EXPECT_TRUE(FailsOn(comparison, {"any"}).value());
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  EXPECT_FALSE(FailsOn(comparison, {"suspicious", "broken"}).value());
}

TEST_F(NanOnBothTest, OtherMissingValuesAreToldApart) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.g.0.forward", good_, Tensor("NaN", "null", "NaN"));
  AddToBoth("Torch.h.0.forward", good_, Tensor("null", "null", "null"));
  EXPECT_EQ(FirstLine(Compare()),
            "not judged completely: 1 value without data or of another shape, 1 value is NaN on "
            "both sides; the 3 paired calls show no wrong one");
}

TEST_F(NanOnBothTest, NumbersToo) {
  AddToBoth("Torch.f.0.forward", good_ + ", " + ScalarJson("float", "NaN"), good_);
  EXPECT_EQ(Compare().counts.missing_values, 1u);
}

TEST_F(NanOnBothTest, NotInfinities) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.mask.0.forward", good_, Tensor("0", "-Infinity", "Infinity"));
  AddToBoth("Torch.mask.1.forward", good_, Tensor("Infinity", "-Infinity", "Infinity"));
  AddToBoth("Torch.mask.2.forward", good_, Tensor("null", "null", "Infinity"));
  EXPECT_EQ(FirstLine(Compare()), "no wrong call");
}

TEST_F(NanOnBothTest, AWrongCallStaysTheAnswer) {
  AddToBoth("Torch.log.0.forward", good_, Nan());
  target_.Add("Torch.tanh.0.forward", good_, TensorJson(0.9, -0.5, 2));
  golden_.Add("Torch.tanh.0.forward", good_, TensorJson(0.5, -0.5, 1));
  const std::string text = SummaryText(Compare());
  EXPECT_EQ(text.find("first wrong call: Torch.tanh.0.forward\n"), 0u);
  EXPECT_NE(text.find("\n  not judged: 1 value is NaN on both sides\n"), text.npos);
}

TEST_F(NanOnBothTest, MemoryThatNobodyWroteIsNoValue) {
  AddToBoth("Torch.empty.0.forward", ScalarJson("int", "4"), Nan());
  AddToBoth("Tensor.__getitem__.0.forward", Nan(), Nan("[2]"));
  AddToBoth("Tensor.fill_.0.forward", Nan("[2]"), TensorJson(1, 1, 2, "[2]"));
  AddToBoth("Tensor.copy_.0.forward", Nan() + ", " + good_, good_);
  const Comparison comparison = Compare();
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_EQ(comparison.rows[2].reason, "uninitialised");
}

TEST_F(NanOnBothTest, WhatIsComputedOfSuchMemoryIs) {
  AddToBoth("Torch.empty.0.forward", ScalarJson("int", "4"), Nan());
  AddToBoth("Torch.mul.0.forward", Nan() + ", " + good_, Nan());
  EXPECT_EQ(Compare().counts.missing_values, 1u);
}

TEST_F(NanOnBothTest, WhatIsCopiedOverSuchMemoryIs) {
  AddToBoth("Torch.f.0.forward", good_, good_);
  AddToBoth("Torch.empty.0.forward", ScalarJson("int", "4"), Nan());
  AddToBoth("Tensor.copy_.0.forward", Nan() + ", " + Nan(), Nan());
  EXPECT_EQ(Compare().counts.missing_values, 2u);  // and not the memory
}

}  // namespace

// Recordings of which one keeps less of each call.

namespace {

class NotRecordedTest : public TwoDumpsTest {
 protected:
  static std::string Entry(const std::string& name, const std::string& parts) {
    return fmt::format(R"("{}": {{{}}})", name, parts);
  }
  static std::string Inputs(const std::string& values) {
    return fmt::format(R"("input_args": [{}], "input_kwargs": {{}})", values);
  }
  static std::string Output(const std::string& values) {
    return fmt::format(R"("output": [{}])", values);
  }
  // Two calls, of which the second takes what the first returns.
  static void Record(DumpForTest& side, bool inputs, bool outputs, double factor = 1) {
    const std::string first = TensorJson(2, -1, 3), last = TensorJson(0.5 * factor, -0.25, 0.7);
    const auto add = [&](const std::string& name, const std::string& in, const std::string& out) {
      side.AddEntry(Entry(name, (inputs ? Inputs(in) : "") + (inputs && outputs ? ", " : "") +
                                    (outputs ? Output(out) : "")));
    };
    add("Torch.exp.0.forward", TensorJson(1, -2, 4), first);
    add("Torch.tanh.0.forward", first, last);
  }
  static size_t CountOf(const Comparison& comparison, const std::string& reason) {
    return static_cast<size_t>(std::ranges::count_if(
        comparison.rows, [&](const ComparedRow& row) { return row.reason == reason; }));
  }
};

TEST_F(NotRecordedTest, InputsOfOneSideAreNoDifference) {
  Record(target_, false, true);
  Record(golden_, true, true);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.calls, 2u);
  EXPECT_EQ(comparison.counts.unmatched_golden, 0u);
  EXPECT_EQ(comparison.counts.missing_values, 2u);
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 2u);
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "the target recorded no inputs of forward calls (data_mode?): 2 values of golden have "
            "nothing to be compared with");
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
  EXPECT_FALSE(FailsOn(comparison, {"suspicious"}).value());
}

TEST_F(NotRecordedTest, ResultsOfOneSideAreNoDifference) {
  Record(target_, true, true);
  Record(golden_, true, false);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 2u);
  EXPECT_EQ(CountOf(comparison, ""), 2u);  // the inputs are the same
}

TEST_F(NotRecordedTest, WhatBothRecordedIsCompared) {
  Record(target_, false, true, 1.5);
  Record(golden_, true, true);
  EXPECT_EQ(Named(), "Torch.tanh.0.forward");
}

TEST_F(NotRecordedTest, NothingInCommonIsNotJudged) {
  Record(target_, true, false);
  Record(golden_, false, true);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.counts.calls, 0u);
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 4u);
  EXPECT_TRUE(FailsOn(comparison, {"unmatched"}).value());
}

// One call without inputs among others stays another form of the call.
TEST_F(NotRecordedTest, OneCallWithoutInputsIsADifference) {
  Record(target_, true, true);
  Record(golden_, true, true);
  target_.AddEntry(Entry("Torch.sin.0.forward", Output(TensorJson(3, -3, 5))));
  golden_.Add("Torch.sin.0.forward", TensorJson(2, -3, 5), TensorJson(3, -3, 5));
  const Comparison comparison = Compare();
  EXPECT_EQ(CountOf(comparison, "not-recorded"), 0u);
  EXPECT_EQ(CountOf(comparison, "structure-differs"), 3u);
}

// Recorders of other makes know no buffers: what is compared with such a recording is not complete,
// and no other model.
TEST_F(NotRecordedTest, BuffersOfOneSideAreNoDifference) {
  Record(golden_, true, true);
  Record(target_, true, true);
  for (DumpForTest* side : {&target_, &golden_}) {
    const std::string buffers =
        fmt::format(R"("parameters": {{}}, "buffers": {{"mean": {}}})", TensorJson(1, 0, 1));
    const std::string call = Inputs(TensorJson(1, -2, 4)) + ", " + Output(TensorJson(1, -1, 2));
    side->AddEntry(Entry("Module.norm.BatchNorm1d.forward.0",
                         call + (side == &target_ ? ", " + buffers : "")));
  }
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.calls, 3u);
  EXPECT_EQ(comparison.counts.missing_values, 1u);
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "golden recorded no buffers that modules changed (data_mode?): 1 values of the target "
            "have nothing to be compared with");
}

}  // namespace

// Calls to which one side passes an argument that the other leaves to its default.

namespace {

class DefaultArgumentTest : public TwoDumpsTest {
 protected:
  // A call that is given `arguments` by keyword, and one that takes its result, `factor` times as
  // large as usual.
  static void Record(DumpForTest& side, const std::string& arguments, double factor = 1,
                     const std::string& name = "Functional.layer_norm.0.forward") {
    const std::string made = TensorJson(2 * factor, -factor, 3 * factor);
    side.AddEntry(fmt::format(R"("{}": {{"input_args": [{}], "input_kwargs": {{{}}}, )"
                              R"("output": [{}]}})",
                              name, TensorJson(1, -2, 4), arguments, made));
    side.Add("Torch.relu.0.forward", made, TensorJson(2 * factor, 0, 2.5 * factor));
  }
  static std::string Keyword(const std::string& name, const std::string& value) {
    return fmt::format(R"("{}": {})", name, ScalarJson("float", value));
  }
  // The place of the row among all, or their number.
  static size_t PlaceOf(const Comparison& comparison, const std::string& name) {
    const auto found = std::ranges::find_if(
        comparison.rows, [&](const ComparedRow& row) { return row.item().name == name; });
    return static_cast<size_t>(found - comparison.rows.begin());
  }
};

TEST_F(DefaultArgumentTest, ADefaultSpelledOutIsNoDifference) {
  Record(target_, Keyword("eps", "1e-05"));
  Record(golden_, "");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_TRUE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.calls, 2u);
  EXPECT_TRUE(comparison.warnings.empty());
  // Its row stands behind those of its call.
  const size_t place = PlaceOf(comparison, "Functional.layer_norm.0.forward.input.eps");
  ASSERT_EQ(place, 2u);
  const ComparedRow& row = comparison.rows[place];
  EXPECT_FALSE(row.golden);
  EXPECT_EQ(row.verdict, Verdict::kNotComparable);
  EXPECT_EQ(row.reason, "default-unknown");
  for (uint32_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    for (uint32_t k = 0; k < call.row_count; ++k) {
      EXPECT_EQ(comparison.rows[call.first_row + k].call, i);
      EXPECT_TRUE(comparison.rows[call.first_row + k].item().name.starts_with(call.name()));
    }
  }
  EXPECT_FALSE(FailsOn(comparison, {"any"}).value());
}

TEST_F(DefaultArgumentTest, AnotherValueIsNamedWithTheArgument) {
  Record(target_, Keyword("eps", "0.001"), 0.99);
  Record(golden_, "");
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Functional.layer_norm.0.forward");
  EXPECT_EQ(comparison.first_wrong_call->cause, "argument");
  const std::string said = "only the target passes eps=0.001, which golden leaves to its default";
  EXPECT_NE(comparison.first_wrong_call->what.find(said), std::string::npos);
  EXPECT_TRUE(comparison.first_wrong_call->cause_text.starts_with(said));
}

TEST_F(DefaultArgumentTest, GoldenMayPassItAlone) {
  Record(target_, "", 0.99);
  Record(golden_, Keyword("eps", "0.001"));
  const Comparison comparison = Compare();
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "Functional.layer_norm.0.forward");
  EXPECT_TRUE(comparison.first_wrong_call->cause_text.starts_with(
      "only golden passes eps=0.001, which the target leaves to its default"));
  EXPECT_LT(PlaceOf(comparison, "Functional.layer_norm.0.forward.input.eps"),
            comparison.rows.size());
}

TEST_F(DefaultArgumentTest, CallsOfOneSideBesideItMayStandForTheArgument) {
  Record(target_, Keyword("reduction", "1"), 4, "Functional.cross_entropy.0.forward");
  Record(golden_, "", 1, "Functional.cross_entropy.0.forward");
  target_.Add("Tensor.__truediv__.0.forward", TensorJson(8, -4, 12), TensorJson(2, -1, 3));
  const Comparison comparison = Compare();
  EXPECT_EQ(comparison.counts.unmatched_target, 2u);
  EXPECT_EQ(comparison.counts.unmatched_golden, 1u);
  const auto& calls = comparison.calls;
  EXPECT_EQ(std::ranges::count_if(calls,
                                  [](const ComparedCall& call) {
                                    return call.unmatched_reason == "structure-differs";
                                  }),
            2);
}

// Four numbers of eight bits are the same for another formula of gelu.
TEST_F(DefaultArgumentTest, StatisticsOfNarrowTypesTellTooLittle) {
  for (DumpForTest* side : {&target_, &golden_}) {
    std::string tensor = TensorJson(2, -1, 3);
    tensor.replace(tensor.find("float32"), 7, "bfloat16");
    side->AddEntry(fmt::format(
        R"("Functional.gelu.0.forward": {{"input_args": [{}], "input_kwargs": {{{}}}, "output": [{}]}})",
        tensor, side == &target_ ? Keyword("threshold", "0.5") : "", tensor));
  }
  EXPECT_EQ(Compare().counts.missing_values, 1u);
}

// In bfloat16 another formula of gelu is within rounding.
TEST_F(DefaultArgumentTest, WhatMayBeRoundingIsNotCalledRight) {
  Record(target_, Keyword("eps", "1e-06"), 1 + 1e-7);
  Record(golden_, "");
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.counts.missing_values, 1u);
  ASSERT_EQ(comparison.warnings.size(), 1u);
  EXPECT_EQ(comparison.warnings[0],
            "Functional.layer_norm.0.forward: only the target passes eps=1e-06, which golden "
            "leaves to its default; what it does cannot be told from rounding");
}

// The momentum acts on running statistics, which no row of the call shows.
TEST_F(DefaultArgumentTest, WhatActsUnseenIsNotCalledRight) {
  const std::string mean = fmt::format(R"("running_mean": {}, "training": {})", TensorJson(1, 0, 2),
                                       ScalarJson("bool", "true"));
  const std::string name = "Functional.batch_norm.0.forward";
  Record(target_, mean + ", " + Keyword("momentum", "0.5"), 1, name);
  Record(golden_, mean, 1, name);
  const Comparison comparison = Compare();
  EXPECT_FALSE(comparison.first_wrong_call);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_EQ(comparison.counts.missing_values, 1u);
}

}  // namespace

// Tensor files that hold something else than dump.json says.

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Values = std::array<float, 4>;

class FilesAgainstStatisticsTest : public TwoDumpsTest {
 protected:
  static std::string Tensor(const std::string& name) {
    return TensorJson(2, -2, 3, "[4]", fmt::format(R"(, "data_name": "{}.pt")", name));
  }
  // One call that reads finite values and returns these.
  Comparison Compare(const Values& of_target, const Values& of_golden) {
    for (DumpForTest* side : {&target_, &golden_}) {
      side->Add("Torch.f.0.forward", Tensor("Torch.f.0.forward.input.0"),
                Tensor("Torch.f.0.forward.output.0"));
      const std::string files = side->Write("tensor") + "/dump_tensor_data/";
      EXPECT_TRUE(MakeDirectories(files));
      WritePt(files + "Torch.f.0.forward.input.0.pt", {1, 2, -2, 0});
      WritePt(files + "Torch.f.0.forward.output.0.pt", side == &target_ ? of_target : of_golden);
    }
    Result<Comparison> result = CompareRuns(directory_.Path("target"), directory_.Path("golden"));
    EXPECT_TRUE(result);
    return result ? std::move(*result) : Comparison();
  }
  static std::string FirstLine(const Comparison& comparison) {
    const std::string text = SummaryText(comparison);
    return text.substr(0, text.find('\n'));
  }
};

TEST_F(FilesAgainstStatisticsTest, EqualFilesWithNanAreNotTheSame) {
  const Comparison comparison = Compare({kNan, 1, 2, 3}, {kNan, 1, 2, 3});
  EXPECT_EQ(comparison.rows[1].reason, "nonfinite-both");
  EXPECT_EQ(FirstLine(comparison),
            "not judged completely: 1 value is NaN on both sides; the 1 paired calls show no wrong "
            "one");
  ASSERT_EQ(comparison.warnings.size(), 2u);
  EXPECT_EQ(comparison.warnings[0],
            "Torch.f.0.forward.output.0: the tensor files hold NaN or infinities, which dump.json "
            "denies; what the files hold is compared");
}

TEST_F(FilesAgainstStatisticsTest, NorAreOthersWithNanAtTheSamePlaces) {
  const Comparison comparison = Compare({kNan, 1, 2, 3}, {kNan, 1, 2, 3.0000001f});
  EXPECT_EQ(comparison.rows[1].reason, "nonfinite-both");
  EXPECT_FALSE(comparison.is_complete());
}

TEST_F(FilesAgainstStatisticsTest, InfinitiesProveNothing) {
  const Comparison comparison = Compare({-kInfinity, 1, 2, 3}, {-kInfinity, 1, 2, 3});
  EXPECT_EQ(comparison.rows[1].reason, "nonfinite-both");
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
}

TEST_F(FilesAgainstStatisticsTest, NanOnOneSideIsWrong) {
  EXPECT_EQ(FirstLine(Compare({kNan, 1, 2, 3}, {0, 1, 2, 3})),
            "first wrong call: Torch.f.0.forward");
}

TEST_F(FilesAgainstStatisticsTest, FiniteFilesAreTheSame) {
  const Comparison comparison = Compare({2, -2, 1, 1}, {2, -2, 1, 1});
  EXPECT_EQ(comparison.rows[1].verdict, Verdict::kSame);
  EXPECT_TRUE(comparison.warnings.empty());
}

}  // namespace

}  // namespace plumbline

// CompareRuns() on two debug.json: values given to PrecisionDebugger.save() and their gradients.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "pipeline/dump_for_test.h"
#include "plumbline/compare.h"

namespace plumbline {
namespace {

const std::string kX = TensorJson(1.0, -1.0, 1.5);
const std::string kXWrong = TensorJson(1.4, -1.0, 1.8);
const std::string kY = TensorJson(2.0, -2.0, 3.0);
const std::string kYWrong = TensorJson(2.5, -2.0, 3.2);

class CompareSaves : public testing::Test {
 protected:
  CompareSaves()
      : root_((std::filesystem::path(testing::TempDir()) /
               testing::UnitTest::GetInstance()->current_test_info()->name())
                  .string()) {
    std::filesystem::remove_all(root_);
  }
  ~CompareSaves() override { std::filesystem::remove_all(root_); }

  // A rank directory with these entries ("name": value, ...); returns the directory.
  std::string Write(const std::string& side, const std::string& entries,
                    const std::string& level = "debug") {
    const std::string directory = root_ + "/" + side + "/rank";
    std::filesystem::create_directories(directory);
    std::ofstream(directory + (level == "debug" ? "/debug.json" : "/dump.json"))
        << fmt::format(R"({{"task": "statistics", "level": "{}", "framework": "pytorch", )"
                       R"("dump_data_dir": null, "data": {{{}}}}})",
                       level, entries);
    return directory;
  }
  Comparison Compare(const std::string& target, const std::string& golden) {
    Result<Comparison> result =
        CompareRuns(Write("target", target), Write("golden", golden), CompareOptions());
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : Comparison();
  }
  static std::string Entry(const std::string& name, const std::string& value) {
    return fmt::format("\"{}\": {}", name, value);
  }
  static std::string FirstLine(const Comparison& comparison) {
    const std::string text = SummaryText(comparison);
    return text.substr(0, text.find('\n'));
  }

  std::string root_;
};

TEST_F(CompareSaves, EqualValuesAreGoodAndTheFilesSayWhatTheyAre) {
  const std::string entries = Entry("x.0", kX) + ", " + Entry("x_grad.0", kY);
  Comparison comparison = Compare(entries, entries);
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_TRUE(comparison.of_saves);
  CompareOptions options;
  options.output_dir = root_ + "/out";
  ASSERT_TRUE(WriteComparison(comparison, options));
  ASSERT_EQ(comparison.files.size(), 4u);
  const std::string first = std::filesystem::path(comparison.files[0]).filename().string();
  EXPECT_TRUE(first.starts_with("debug_compare_result_")) << first;
  ASSERT_TRUE(WriteComparison(comparison, options));
  EXPECT_NE(comparison.files[4], comparison.files[0]);
}

TEST_F(CompareSaves, TheFirstWrongValueIsNamedWithItsPlace) {
  const std::string same = Entry("x.0", kX) + ", ";
  const Comparison comparison =
      Compare(same + Entry("y.0", fmt::format(R"({{"list": [{}, {}]}})", kX, kYWrong)),
              same + Entry("y.0", fmt::format(R"({{"list": [{}, {}]}})", kX, kY)));
  ASSERT_TRUE(comparison.first_wrong_call);
  EXPECT_EQ(comparison.first_wrong_call->name, "y.0");
  EXPECT_EQ(comparison.first_wrong_call->item, "y.0.list.1");
  EXPECT_NE(comparison.first_wrong_call->what.find("max 2.5 (golden 2)"), std::string::npos);
}

TEST_F(CompareSaves, AWrongValueComesBeforeTheGradientOfAnEarlierOne) {
  const auto entries = [](const std::string& gradient, const std::string& later) {
    return Entry("x.0", kX) + ", " + Entry("x_grad.0", gradient) + ", " + Entry("y.0", later);
  };
  EXPECT_EQ(FirstLine(Compare(entries(kYWrong, kXWrong), entries(kY, kX))),
            "first wrong call: y.0");
  EXPECT_EQ(FirstLine(Compare(entries(kYWrong, kX), entries(kY, kX))),
            "first wrong call: x_grad.0");
}

TEST_F(CompareSaves, OfTwoWrongGradientsTheOneOfTheLaterValueComesFirst) {
  const auto entries = [](const std::string& a, const std::string& b) {
    return Entry("x.0", kX) + ", " + Entry("x_grad.0", a) + ", " + Entry("y.0", kX) + ", " +
           Entry("y_grad.0", b);
  };
  EXPECT_EQ(FirstLine(Compare(entries(kYWrong, kXWrong), entries(kY, kX))),
            "first wrong call: y_grad.0");
}

TEST_F(CompareSaves, NamesAreTheUsersAndSayNothingAboutAValue) {
  // As API names these would be uninitialised memory, a forward call and a parameter gradient.
  for (const std::string name : {"a.empty.x.0", "forward.0", "parameters_grad.0", "x_grad.0"}) {
    const Comparison comparison = Compare(Entry(name, kYWrong), Entry(name, kY));
    EXPECT_EQ(FirstLine(comparison), "first wrong call: " + name);
  }
}

TEST_F(CompareSaves, ValuesWithoutCounterpartAreRows) {
  const Comparison comparison = Compare(Entry("x.0", kX) + ", " + Entry("only.0", kY),
                                        Entry("x.0", kX) + ", " + Entry("x.1", kY));
  ASSERT_EQ(comparison.rows.size(), 3u);
  EXPECT_EQ(comparison.rows[1].reason, "no-golden");
  EXPECT_EQ(comparison.rows[2].reason, "no-target");
  EXPECT_EQ(comparison.counts.unmatched_target, 1u);
  EXPECT_EQ(comparison.counts.unmatched_golden, 1u);
  EXPECT_FALSE(comparison.is_complete());
  EXPECT_TRUE(FirstLine(comparison).starts_with("not judged completely")) << FirstLine(comparison);
}

TEST_F(CompareSaves, AGradientOnOneSideOnlyIsWrong) {
  const std::string x = Entry("x.0", kX) + ", ";
  const Comparison comparison = Compare(x + Entry("x_grad.0", "null"), x + Entry("x_grad.0", kY));
  EXPECT_EQ(FirstLine(comparison), "first wrong call: x_grad.0");
}

TEST_F(CompareSaves, NoGradientOnEitherSideIsNoJudgement) {
  const std::string entries = Entry("x.0", fmt::format("[{}, {}]", kX, ScalarJson("int", "3"))) +
                              ", " + Entry("x_grad.0", fmt::format("[{}, null]", kY));
  const Comparison comparison = Compare(entries, entries);
  EXPECT_EQ(FirstLine(comparison), "no wrong call");
  EXPECT_EQ(comparison.rows.back().reason, "both-null");
  EXPECT_EQ(comparison.rows.back().verdict, Verdict::kNotComparable);
  const std::string nulls = Entry("x_grad.0", "[null, null]");
  EXPECT_EQ(FirstLine(Compare(nulls, nulls)), "not judged: no row could be compared");
}

TEST_F(CompareSaves, NanZeroAndOtherShapesAreNotGood) {
  const std::string nan = TensorJson(std::nan(""), -1.0, 1.5);
  std::string text = nan;
  while (text.find("nan") != std::string::npos) text.replace(text.find("nan"), 3, "NaN");
  for (const std::string& wrong :
       {text, TensorJson(0.0, 0.0, 0.0), TensorJson(1.0, -1.0, 1.5, "[2, 2]"),
        ScalarJson("float", "1.0"), "[" + kX + "]"}) {
    EXPECT_EQ(FirstLine(Compare(Entry("x.0", wrong), Entry("x.0", kX))), "first wrong call: x.0")
        << wrong;
  }
}

TEST_F(CompareSaves, ScalarsAreCompared) {
  EXPECT_EQ(FirstLine(Compare(Entry("n.0", ScalarJson("float", "2.5")),
                              Entry("n.0", ScalarJson("float", "2.0")))),
            "first wrong call: n.0");
  EXPECT_EQ(FirstLine(Compare(Entry("n.0", ScalarJson("float", "2.5")),
                              Entry("n.0", ScalarJson("float", "2.5")))),
            "no wrong call");
}

TEST_F(CompareSaves, BothFormsOfNamesPair) {
  const Comparison comparison =
      Compare(Entry("x.0.debug", "[" + kXWrong + "]") + ", " + Entry("x_grad.0.debug", kY),
              Entry("x.0", "[" + kX + "]") + ", " + Entry("x_grad.0", kY));
  EXPECT_EQ(comparison.counts.calls, 2u);
  EXPECT_EQ(FirstLine(comparison), "first wrong call: x.0");
  EXPECT_EQ(comparison.rows[0].target->name, "x.0.0");
  const Comparison newer = Compare(Entry("x.0.debug", kXWrong), Entry("x.0.debug", kX));
  EXPECT_EQ(FirstLine(newer), "first wrong call: x.0.debug");
}

TEST_F(CompareSaves, EmptyCutAndUnfinishedRecordingsAreNotGood) {
  EXPECT_EQ(FirstLine(Compare("", "")), "not judged: the dumps hold nothing to compare");
  const std::string golden = Write("golden", Entry("x.0", kX));
  const std::string cut = Write("target", Entry("x.0", kX) + ", " + Entry("y.0", kY));
  std::filesystem::resize_file(cut + "/debug.json",
                               std::filesystem::file_size(cut + "/debug.json") - 30);
  EXPECT_EQ(CompareRuns(cut, golden).error().code(), ErrorCode::kCorrupt);
  CompareOptions salvage;
  salvage.salvage = true;
  EXPECT_FALSE(CompareRuns(cut, golden, salvage)->is_complete());

  const std::string killed = Write("target", Entry("x.0", kX));
  std::ofstream(killed + "/.dump.journal") << "newer";
  std::filesystem::last_write_time(
      killed + "/debug.json",
      std::filesystem::last_write_time(killed + "/.dump.journal") - std::chrono::seconds(5));
  const Result<Comparison> unfinished = CompareRuns(killed, golden);
  ASSERT_TRUE(unfinished) << unfinished.error().message();
  EXPECT_FALSE(unfinished->is_complete());
}

TEST_F(CompareSaves, CallsAreNoCounterpart) {
  const std::string calls = Write("calls", "", "L1");
  const std::string saves = Write("saves", Entry("x.0", kX));
  for (const auto& [target, golden] : {std::pair(calls, saves), std::pair(saves, calls)}) {
    const Result<Comparison> result = CompareRuns(target, golden);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(result.error().message().find("saved values"), std::string::npos);
  }
}

}  // namespace
}  // namespace plumbline

#include "report/findings.h"

#include <gtest/gtest.h>

#include <limits>

namespace plumbline::report {

namespace {

std::string Html(std::string_view text) {
  std::string out;
  AppendHtmlText(text, out);
  return out;
}

std::string Xml(std::string_view text) {
  std::string out;
  AppendXmlText(text, out);
  return out;
}

TEST(MarkupText, TagsAndEntitiesAreText) {
  EXPECT_EQ(Html("</script>&amp;"), "&lt;/script&gt;&amp;amp;");
  EXPECT_EQ(Xml("]]> & <a>"), "]]&gt; &amp; &lt;a&gt;");
}

TEST(MarkupText, LinesStayInHtmlAndInAttributes) {
  EXPECT_EQ(Html("a\n\"b\""), "a\n\"b\"");
  EXPECT_EQ(Xml("a\n\"b\""), "a&#10;&quot;b&quot;");
}

TEST(MarkupText, XmlHasNoControlCharacters) {
  EXPECT_EQ(Xml(std::string_view("a\0b\x1F\t", 5)), "a?b??");
  EXPECT_EQ(Xml("\xC3\xA9"), "\xC3\xA9");
}

TEST(MarkupText, OnlyCharactersRemain) {
  for (const auto& write : {Html, Xml}) {
    EXPECT_EQ(write("a\xFF"), "a\xEF\xBF\xBD");
    EXPECT_EQ(write("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
    EXPECT_EQ(write("\xED\xA0\x80").find('\xED'), std::string::npos);  // a lone surrogate
    EXPECT_EQ(write("\xEF\xBF\xBF"), "\xEF\xBF\xBD");                  // U+FFFF
  }
  EXPECT_EQ(Html(std::string_view("\0", 1)), "\xEF\xBF\xBD");
}

}  // namespace

namespace {

Item TensorItem(const std::string& name, ItemRole role, std::array<Recorded, 4> statistics) {
  Item item;
  item.name = name;
  item.role = role;
  item.is_tensor = true;
  item.dtype = "torch.float32";
  item.shape_text = "[2]";
  item.shape = Shape{2};
  item.statistics = std::move(statistics);
  return item;
}

using Four = std::array<Recorded, 4>;

// One call with one input and one output in statistics mode.
Comparison OneCall(const Four& target_in, const Four& golden_in, const Four& target_out,
                   const Four& golden_out) {
  Comparison comparison;
  comparison.calls.push_back({"f", "f", 0, 2, Verdict::kSame, "", ""});
  ComparedRow in;
  in.target = TensorItem("f.input.0", ItemRole::kInput, target_in);
  in.golden = TensorItem("f.input.0", ItemRole::kInput, golden_in);
  ComparedRow out;
  out.target = TensorItem("f.output.0", ItemRole::kOutput, target_out);
  out.golden = TensorItem("f.output.0", ItemRole::kOutput, golden_out);
  comparison.rows = {in, out};
  return comparison;
}

const Four kOnes = {1.0, 1.0, 1.0, 1.0};

RowColor OutputColor(Comparison comparison) {
  FillTable(comparison);
  return comparison.rows[1].color;
}

TEST(Colors, EqualRowsHaveNone) {
  EXPECT_EQ(OutputColor(OneCall(kOnes, kOnes, kOnes, kOnes)), RowColor::kNone);
}

TEST(Colors, RelativeMaximumAboveHalfIsRed) {
  EXPECT_EQ(OutputColor(OneCall(kOnes, kOnes, Four{1.6, 1.0, 1.0, 1.0}, kOnes)), RowColor::kRed);
  EXPECT_EQ(OutputColor(OneCall(kOnes, kOnes, Four{1.2, 1.0, 1.0, 1.0}, kOnes)), RowColor::kYellow);
}

TEST(Colors, NegativeMaximumIsMeasuredByItsMagnitude) {
  // Upstream divides by max(2.2e-16, -5) and paints every such row red.
  const Four negative = {-5.0, -6.0, -5.5, 8.0};
  const Four near = {-5.001, -6.0, -5.5, 8.0};
  EXPECT_EQ(OutputColor(OneCall(kOnes, kOnes, near, negative)), RowColor::kNone);
}

TEST(Colors, NonFiniteStatisticsAreRed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(OutputColor(OneCall(kOnes, kOnes, Four{nan, nan, nan, nan}, kOnes)), RowColor::kRed);
  EXPECT_EQ(OutputColor(OneCall(kOnes, kOnes, Four{inf, 1.0, inf, inf}, kOnes)), RowColor::kRed);
}

TEST(Colors, TenfoldGrowthIsYellowAndReasonsAppearOnce) {
  Comparison comparison = OneCall(Four{1002.0, 1.0, 1.0, 1.0}, Four{1000.0, 1.0, 1.0, 1.0},
                                  Four{1050.0, 1.0, 1.0, 1.0}, Four{1000.0, 1.0, 1.0, 1.0});
  // A second input fires the same rule again.
  comparison.rows.insert(comparison.rows.begin(), comparison.rows.front());
  comparison.calls[0].row_count = 3;
  FillTable(comparison);
  EXPECT_EQ(comparison.rows[2].color, RowColor::kYellow);
  EXPECT_EQ(comparison.rows[2].notes.size(), 1u);
}

TEST(Results, NanCosineIsNo) {
  Comparison comparison = OneCall(kOnes, kOnes, kOnes, kOnes);
  comparison.mode = CompareMode::kTensor;
  for (ComparedRow& row : comparison.rows) {
    row.tensor =
        TensorMetrics{.cosine = Absent::kZeroNorm, .max_abs_error = 0.5, .max_relative_error = 1.0};
  }
  FillTable(comparison);
  EXPECT_EQ(comparison.rows[1].result, "No");
  EXPECT_EQ(comparison.rows[1].notes.front().code, "zero");
}

TEST(Results, UnmatchedRowsAreNotAvailable) {
  Comparison comparison = OneCall(kOnes, kOnes, kOnes, kOnes);
  comparison.calls[0].unmatched_reason = "no-golden";
  for (ComparedRow& row : comparison.rows) row.golden.reset();
  FillTable(comparison);
  EXPECT_EQ(comparison.rows[0].result, "N/A");
  EXPECT_EQ(comparison.rows[0].notes.front().code, "no-bench");
}

TEST(Advice, FirstSuspectRowIsNamed) {
  Comparison comparison = OneCall(kOnes, kOnes, Four{9.0, 1.0, 1.0, 1.0}, kOnes);
  FillTable(comparison);
  EXPECT_EQ(AdviceText(comparison).substr(0, 34), "Line: 1\nSuspect Nodes: f.output.0\n");
  EXPECT_EQ(AdviceText(OneCall(kOnes, kOnes, kOnes, kOnes)).substr(0, 8), "Line: NA");
}

TEST(FactLines, OneLineForEachFactAndNoneTwice) {
  FirstWrongCall call;
  call.what = "output.0: relative error 1, explained 0.1; max 2 (golden 1)";
  call.cause = "scale";
  call.confidence = "high";
  call.cause_text = "target is golden times 2; max 2 (golden 1)";
  EXPECT_EQ(FactLines(call),
            "  output.0: relative error 1, explained 0.1\n  max 2 (golden 1)\n"
            "  cause: scale (high confidence): target is golden times 2\n");
  call.cause = "unexplained";
  EXPECT_EQ(FactLines(call), "  output.0: relative error 1, explained 0.1\n  max 2 (golden 1)\n");
}

TEST(FactLines, TheHeadlineSaysWhichCallIsMissing) {
  FirstWrongCall call;
  call.what = "missing call: Tensor.div_.0 after Functional.topk.0; input.1: relative error 1";
  call.cause = "missing-call";
  call.confidence = "high";
  call.cause_text = "golden's value comes from Tensor.div_.0, which the target has not";
  EXPECT_EQ(FactLines(call),
            "  missing call: Tensor.div_.0 after Functional.topk.0\n  input.1: relative error 1\n");
  call.cause_text += "; target is golden times 2";
  EXPECT_EQ(FactLines(call),
            "  missing call: Tensor.div_.0 after Functional.topk.0\n  input.1: relative error 1\n"
            "  target is golden times 2\n");
}

}  // namespace

}  // namespace plumbline::report

#include "precheck/overflow/overflow_report.h"

#include <gtest/gtest.h>

namespace plumbline::precheck::overflow_report_test {
namespace {

OverflowRow Row(std::string name, OverflowResult result, std::string message = "") {
  OverflowRow row;
  row.name = std::move(name);
  row.result = result;
  row.message = std::move(message);
  return row;
}

std::string FirstLineOf(std::vector<OverflowRow> rows) {
  OverflowReplayReport report;
  report.rows = std::move(rows);
  const std::string text = AnswerText(report);
  return text.substr(0, text.find('\n'));
}

constexpr auto kAbnormal = OverflowResult::kAbnormal, kNormal = OverflowResult::kNormal,
               kNone = OverflowResult::kNotReproduced, kSkip = OverflowResult::kSkip,
               kError = OverflowResult::kError;

TEST(OverflowAnswer, TheFirstLineIsTheAnswer) {
  EXPECT_EQ(FirstLineOf({Row("a.0", kNormal), Row("b.0", kAbnormal, "why"), Row("c.0", kAbnormal)}),
            "abnormal overflow: b.0, why (and 1 more)");
  EXPECT_EQ(FirstLineOf({Row("a.0", kNormal), Row("b.0", kNone), Row("c.0", kError)}),
            "no abnormal overflow in 3 calls (2 judged); normal: a.0; 1 failed");
  EXPECT_EQ(FirstLineOf({Row("a.0", kNone)}),
            "no abnormal overflow in 1 call (1 judged), and none at all");
}

TEST(OverflowAnswer, WithoutAJudgementThereIsNoGoodWord) {
  EXPECT_EQ(FirstLineOf({}), "nothing judged: no calls of APIs are in the recording");
  EXPECT_EQ(FirstLineOf({Row("a.0", kSkip), Row("b.0", kError)}),
            "nothing judged: of 2 calls 1 skipped, 1 failed");
}

TEST(OverflowAnswer, TheFileHasARowPerCall) {
  OverflowRow judged = Row("Torch.exp.0", kNormal, "output, \"both\"");
  judged.input = false;
  judged.cpu = judged.device = true;
  EXPECT_EQ(OverflowCsv({judged, Row("Torch.log.0", kSkip, "filtered: x")}),
            "\xEF\xBB\xBF"
            "API Name,Input Overflow,CPU Overflow,Device Overflow,Result,Message\r\n"
            "Torch.exp.0,False,True,True,normal,\"output, \"\"both\"\"\"\r\n"
            "Torch.log.0,,,,skip,filtered: x\r\n");
}

TEST(OverflowAnswer, TheJsonHasEveryCall) {
  OverflowReplayReport report;
  report.rows = {Row("a.0", kAbnormal, "why"), Row("b.0", kSkip)};
  report.rows[0].cpu = false;
  const std::string text = AnswerJson(report);
  EXPECT_NE(text.find(R"("counts":{"normal":0,"abnormal":1,"not_reproduced":0,)"
                      R"("skip":1,"error":0})"),
            std::string::npos);
  EXPECT_NE(text.find(R"({"name":"a.0","input_overflow":null,"cpu_overflow":false,)"
                      R"("device_overflow":null,"result":"abnormal","message":"why"})"),
            std::string::npos);
}

}  // namespace
}  // namespace plumbline::precheck::overflow_report_test

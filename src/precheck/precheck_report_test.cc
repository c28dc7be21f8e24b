#include "precheck/precheck_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text/json.h"

namespace plumbline::precheck::precheck_report_test {
namespace {

OutputRow Row(const std::string& name, CheckStatus status, double hundredth = 1) {
  OutputRow row;
  row.name = name;
  row.status = status;
  row.hundredth = Number{hundredth};
  row.max_abs_error = Number{1};
  row.message = "a message\nof two lines";
  return row;
}

CallOutcome Passed(const std::string& name) {
  CallOutcome outcome;
  outcome.name = name;
  outcome.forward = {CheckStatus::kPass, {Row(name + ".forward.output.0", CheckStatus::kPass)}, {}};
  return outcome;
}

CallOutcome Wrong(const std::string& name, CheckStatus status, double hundredth) {
  CallOutcome outcome = Passed(name);
  outcome.backward = {status, {Row(name + ".backward.output.0", status, hundredth)}, {}};
  return outcome;
}

CallOutcome Skipped(const std::string& name, SkipCause cause) {
  CallOutcome outcome;
  outcome.name = name;
  outcome.forward.status = outcome.backward.status = CheckStatus::kSkip;
  outcome.forward.skip = outcome.backward.skip = Skip{cause, "why " + name};
  return outcome;
}

std::string FirstLineOf(const PrecheckReport& report) {
  const std::string text = AnswerText(report);
  return text.substr(0, text.find('\n'));
}

TEST(PrecheckReport, NamesTheWorstCall) {
  PrecheckReport report;
  report.Add(0, Wrong("Torch.add.0", CheckStatus::kError, 0.999));
  report.Add(1, Wrong("Torch.mul.0", CheckStatus::kWarning, 0.1));
  CallOutcome worst = Wrong("Functional.softmax.3", CheckStatus::kError, 0.875);
  worst.backward.rows[0].facts =
      FailureFacts{.worst_index = 7, .worst_bench = 0.29, .worst_device = 0.31, .histogram = {}};
  report.Add(2, std::move(worst));
  report.Finish();
  EXPECT_EQ(FirstLineOf(report),
            "wrong: Functional.softmax.3 backward output.0: 12.5 % of elements off by more than "
            "1 %, worst 0.31 against 0.29");
  EXPECT_EQ(report.not_passed()[1].outcome.name, "Torch.add.0");
  EXPECT_EQ(report.not_passed()[2].outcome.name, "Torch.mul.0");
}

TEST(PrecheckReport, AnErrorWithoutNumbersIsTheWorst) {
  PrecheckReport report;
  report.Add(0, Wrong("Torch.add.0", CheckStatus::kError, 0.01));
  CallOutcome other = Passed("Torch.topk.0");
  other.forward.status = other.forward.rows[0].status = CheckStatus::kError;
  other.forward.rows[0].hundredth = other.forward.rows[0].max_abs_error = std::nullopt;
  report.Add(1, std::move(other));
  report.Finish();
  EXPECT_EQ(FirstLineOf(report), "wrong: Torch.topk.0 forward output.0: a message of two lines");
}

TEST(PrecheckReport, OutputsThatAreAllZeroAreCountedAndTold) {
  PrecheckReport report;
  for (const size_t place : {size_t{2}, size_t{1}}) {
    CallOutcome zeros = Passed(fmt::format("Torch.mul.{}", place));
    zeros.forward.rows[0].is_all_zero = true;
    report.Add(place, std::move(zeros));
  }
  report.Add(0, Passed("Torch.add.0"));
  report.Finish();
  EXPECT_EQ(report.all_zero(), 2U);
  const std::string told =
      "2 outputs are all zero on both sides, which proves little, such as Torch.mul.1 forward "
      "output.0";
  EXPECT_EQ(AllZeroText(report), told);
  EXPECT_NE(AnswerText(report).find("  " + told + "\n"), std::string::npos);
  EXPECT_NE(AnswerJson(report).find("\"all_zero\":2,"), std::string::npos);
  EXPECT_EQ(AllZeroText(PrecheckReport()), "");
}

TEST(PrecheckReport, SaysThatNothingIsWrong) {
  PrecheckReport report;
  for (size_t i = 0; i < 3; ++i) report.Add(i, Passed(fmt::format("Torch.add.{}", i)));
  report.Add(3, Skipped("Torch.rand.0", SkipCause::kRandom));
  report.Add(4, Skipped("Torch.gone.0", SkipCause::kNotInInventory));
  report.Add(5, Skipped("Torch.rand.1", SkipCause::kRandom));
  report.Finish();
  EXPECT_EQ(FirstLineOf(report),
            "no wrong API in 3 of 6 calls (3 outputs judged): 3 not judged (2 random, 1 "
            "not-in-inventory)");
  ASSERT_EQ(report.causes().size(), 2U);
  EXPECT_EQ(report.causes()[0].cause, SkipCause::kRandom);
  EXPECT_EQ(report.causes()[0].calls, 2U);
  EXPECT_EQ(report.causes()[0].example_call, "Torch.rand.0");
}

TEST(PrecheckReport, NothingJudgedIsNoGoodNews) {
  PrecheckReport report;
  EXPECT_EQ(FirstLineOf(report), "nothing judged: no calls of APIs are in the recording");
  report.Add(0, Skipped("Torch.rand.0", SkipCause::kRandom));
  report.Finish();
  EXPECT_EQ(FirstLineOf(report), "nothing judged: all 1 call skipped");
}

TEST(PrecheckReport, ASkippedBackwardDoesNotHideAnError) {
  EXPECT_EQ(CallStatus(CheckStatus::kError, CheckStatus::kSkip), CheckStatus::kError);
  EXPECT_EQ(CallStatus(CheckStatus::kPass, CheckStatus::kSkip), CheckStatus::kSkip);
  EXPECT_EQ(CallStatus(CheckStatus::kPass, CheckStatus::kNone), CheckStatus::kPass);
  EXPECT_EQ(CallStatus(CheckStatus::kWarning, CheckStatus::kError), CheckStatus::kError);
}

TEST(PrecheckReport, TheWorstStayWhateverTheOrder) {
  PrecheckReport report(3);
  for (size_t i = 0; i < 100; ++i) {
    const size_t place = i * 37 % 100;
    report.Add(place, Wrong(fmt::format("Torch.add.{}", place), CheckStatus::kError,
                            1 - static_cast<double>(place) / 200));
  }
  report.Finish();
  ASSERT_EQ(report.not_passed().size(), 3U);
  EXPECT_EQ(report.not_passed()[0].place, 99U);
  EXPECT_EQ(report.not_passed()[2].place, 97U);
  EXPECT_EQ(report.left_out(), 97U);
  EXPECT_EQ(report.count(CheckStatus::kError), 100U);
}

TEST(PrecheckReport, EarlierErrorsCount) {
  PrecheckReport report;
  report.AddEarlier({.name = "Torch.add.0",
                     .forward = CheckStatus::kPass,
                     .backward = CheckStatus::kError,
                     .outputs = 2,
                     .skip = {}});
  report.Add(1, Passed("Torch.add.1"));
  report.Finish();
  EXPECT_EQ(FirstLineOf(report), "wrong: Torch.add.0 by an earlier run (1 of 2 calls is wrong)");
}

TEST(PrecheckReport, EarlierCallsCountAsThoseOfThisRun) {
  PrecheckReport report;
  report.AddEarlier(
      {.place = 0, .name = "Torch.add.0", .forward = CheckStatus::kPass, .outputs = 2, .skip = {}});
  report.AddEarlier({.place = 1,
                     .name = "Torch.rand.0",
                     .forward = CheckStatus::kSkip,
                     .backward = CheckStatus::kSkip,
                     .skip = Skip{SkipCause::kRandom, "why"}});
  report.AddEarlier({.place = 2, .name = "Torch.odd.0", .forward = CheckStatus::kSkip, .skip = {}});
  report.Add(3, Skipped("Torch.rand.1", SkipCause::kRandom));
  report.Add(4, Passed("Torch.add.1"));
  report.Finish();
  EXPECT_EQ(FirstLineOf(report),
            "no wrong API in 2 of 5 calls (3 outputs judged; 3 calls by an earlier run): 3 not "
            "judged (2 random, 1 other)");
  EXPECT_EQ(report.causes()[0].example_call, "Torch.rand.0");
}

TEST(PrecheckReport, WhatWasNotReachedIsNotJudged) {
  PrecheckReport report;
  report.Add(0, Passed("Torch.add.0"));
  report.Finish();
  report.planned_calls = 391;
  EXPECT_EQ(FirstLineOf(report), "no wrong API in 1 call (1 output judged)");
  report.was_interrupted = true;
  EXPECT_EQ(FirstLineOf(report),
            "no wrong API in 1 of 391 calls (1 output judged): 390 not judged (390 not reached)");
}

// What the device cannot run is told where everybody looks.
TEST(PrecheckReport, AFailureOfTheDeviceIsInTheFirstLine) {
  PrecheckReport report;
  report.framework = "pytorch";
  report.dump_json = "dump.json";
  report.device = "npu";
  report.Add(0, Passed("Torch.add.0"));
  report.Add(2, Skipped("Torch.mul.0", SkipCause::kDeviceFailed));
  CallOutcome backward = Passed("Torch.mul.1");
  backward.backward.status = CheckStatus::kSkip;
  backward.backward.skip = OnDevice({SkipCause::kCrashed, "it ended"});
  report.Add(1, std::move(backward));
  report.Finish();
  EXPECT_EQ(
      FirstLineOf(report),
      "failed on the device: 2; no wrong API in 1 of 3 calls (2 outputs judged): 2 not judged "
      "(1 device-failed, 1 crashed)");
  EXPECT_NE(
      AnswerText(report).find("  as a test: plumb extract dump.json Torch.mul.1 --device npu"),
      std::string::npos)
      << AnswerText(report);
  EXPECT_EQ(report.count(CheckStatus::kSkip), 2U);
  report.Add(3, Wrong("Torch.add.3", CheckStatus::kError, 0.5));
  report.Finish();
  EXPECT_TRUE(FirstLineOf(report).starts_with("wrong: Torch.add.3 backward output.0"));
  EXPECT_TRUE(FirstLineOf(report).ends_with("; failed on the device: 2"));
}

// Conditions of --fail-on that a report with these calls meets.
std::string Failing(std::vector<CallOutcome> outcomes) {
  PrecheckReport report;
  size_t place = 0;
  for (CallOutcome& outcome : outcomes) report.Add(place++, std::move(outcome));
  report.Finish();
  std::string met;
  for (const std::string condition : {"error", "warning", "skip"}) {
    if (FailsOn(report, {{condition}})) met += condition[0];
  }
  return met;
}

TEST(PrecheckReport, FailsOnWhatWasAskedFor) {
  EXPECT_EQ(Failing({}), "ews");  // nothing judged
  EXPECT_EQ(Failing({Skipped("Torch.rand.0", SkipCause::kRandom)}), "ews");
  EXPECT_EQ(Failing({Passed("a")}), "");
  EXPECT_EQ(Failing({Passed("a"), Skipped("b", SkipCause::kRandom)}), "s");
  EXPECT_EQ(Failing({Passed("a"), Wrong("b", CheckStatus::kWarning, 0.5)}), "w");
  EXPECT_EQ(Failing({Wrong("b", CheckStatus::kError, 0.5)}), "ew");
  EXPECT_EQ(Failing({Passed("a"), Skipped("b", SkipCause::kDeviceFailed)}), "ews");
}

// A warning beside a skipped backward is judged.
TEST(PrecheckReport, CausesOfTheHeadlineAddUp) {
  PrecheckReport report;
  CallOutcome warned = Passed("Torch.add.0");
  warned.forward.status = warned.forward.rows[0].status = CheckStatus::kWarning;
  warned.backward.status = CheckStatus::kSkip;
  warned.backward.skip = Skip{SkipCause::kBackwardSkipped, "why"};
  report.Add(0, std::move(warned));
  report.Add(1, Skipped("Torch.rand.0", SkipCause::kRandom));
  report.Finish();
  EXPECT_EQ(
      FirstLineOf(report),
      "no wrong API in 1 of 2 calls (1 output judged; 1 call with a warning): 1 not judged (1 "
      "random)");
  EXPECT_EQ(report.causes().size(), 2U);
}

TEST(PrecheckReport, NoNameBeginsALineOfItsOwn) {
  PrecheckReport report;
  report.framework = "pytorch";
  report.dump_json = "dump.json";
  report.Add(0, Wrong("Torch.a\nno wrong API\x1b[2J.0", CheckStatus::kError, 0.5));
  report.Add(1, Skipped("Torch.b\nno wrong API.0", SkipCause::kRandom));
  report.Finish();
  const std::string text = AnswerText(report);
  EXPECT_EQ(text.find("\nno wrong"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("as a test"), std::string::npos);  // nobody can type that name
  EXPECT_TRUE(FirstLine(report).starts_with("wrong: Torch.a_no wrong API_[2J.0 "));
}

TEST(PrecheckReport, ASlowRateHasADigitThatMeansSomething) {
  PrecheckReport report;
  report.device = "cpu";
  report.Add(0, Passed("Torch.add.0"));
  report.Finish();
  for (const auto& [seconds, rate] :
       std::vector<std::pair<double, std::string>>{{39.2, "0.026"}, {0.25, "4"}, {0.002, "500"}}) {
    report.seconds = seconds;
    EXPECT_NE(AnswerText(report).find(" s, " + rate + " calls/s\n"), std::string::npos)
        << AnswerText(report);
  }
}

TEST(PrecheckReport, TheCommandThatGoesOnCanBePasted) {
  PrecheckReport report;
  report.dump_json = "it's new/dump.json";
  report.result_path = "out/result.csv";
  report.resume_options = " --device_type npu --seed 7";
  EXPECT_EQ(ResumeCommand(report),
            "plumb precheck 'it'\\''s new/dump.json' --csv_path out/result.csv --device_type npu "
            "--seed 7");
}

TEST(PrecheckReport, JsonIsWellFormed) {
  PrecheckReport report;
  report.Add(0, Wrong("Torch.\"add\".0", CheckStatus::kError, 0.5));
  report.Add(1, Skipped("Torch.rand.0", SkipCause::kRandom));
  report.dump_json = "a\\b.json";
  report.Finish();
  const auto json = json::Value::Parse(AnswerJson(report));
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(*json->Find("dump_json")->AsText(), "a\\b.json");
  EXPECT_EQ(json->Find("calls")->Find("error")->AsInteger(), 1);
  EXPECT_EQ(*json->Find("worst")->AsList()->at(0).Find("call")->AsText(), "Torch.\"add\".0");
  EXPECT_EQ(*json->Find("skipped")->AsList()->at(0).Find("cause")->AsText(), "random");
}

}  // namespace
}  // namespace plumbline::precheck::precheck_report_test

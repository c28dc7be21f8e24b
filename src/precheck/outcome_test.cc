#include "precheck/outcome.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/text/json.h"
#include "precheck/parts/outcome_record.h"

namespace plumbline::precheck::outcome_test {
namespace {

TEST(Outcome, AnErrorIsWorseThanTheWarningBehindIt) {
  EXPECT_EQ(Worst({CheckStatus::kError, CheckStatus::kWarning}), CheckStatus::kError);
  EXPECT_EQ(Worst({CheckStatus::kPass, CheckStatus::kSkip, CheckStatus::kWarning}),
            CheckStatus::kWarning);
}

TEST(Outcome, NothingJudgedIsNoPass) {
  EXPECT_EQ(Worst({CheckStatus::kSkip, CheckStatus::kSkip}), CheckStatus::kSkip);
  EXPECT_EQ(Worst({}), CheckStatus::kNone);
}

TEST(Outcome, WordsOfBothReleasesAreRead) {
  EXPECT_EQ(ParseStatus("warning"), CheckStatus::kWarning);
  EXPECT_EQ(ParseStatus("Warning"), CheckStatus::kWarning);
  EXPECT_EQ(ParseStatus("skip"), CheckStatus::kSkip);
  EXPECT_EQ(ParseStatus(" "), CheckStatus::kNone);
  EXPECT_EQ(ParseStatus("TRUE"), std::nullopt);
}

TEST(Outcome, EveryCauseHasItsOwnName) {
  EXPECT_EQ((Skip{SkipCause::kTimeout, "no answer within 600 s"}).Text(),
            "timeout: no answer within 600 s");
  for (int i = 0; i <= static_cast<int>(SkipCause::kOther); ++i) {
    const auto cause = static_cast<SkipCause>(i);
    EXPECT_EQ(ParseCause(CauseName(cause)), cause);
    const Skip read = ParseSkip(Skip{cause, "a: b"}.Text());
    EXPECT_EQ(read.cause, cause);
    EXPECT_EQ(read.detail, "a: b");
  }
  EXPECT_EQ(ParseSkip("timeout").cause, SkipCause::kOther);
  EXPECT_EQ(ParseSkip("what went wrong: all").detail, "what went wrong: all");
}

TEST(Outcome, AFailureOfTheDeviceAloneIsTold) {
  for (const SkipCause cause : {SkipCause::kCrashed, SkipCause::kTimeout}) {
    EXPECT_FALSE(IsDeviceFailure({cause, "the executor ended"}));
    EXPECT_TRUE(IsDeviceFailure(OnDevice({cause, "the executor ended"})));
    EXPECT_TRUE(IsDeviceFailure(ParseSkip(OnDevice({cause, "the executor ended"}).Text())));
  }
  EXPECT_TRUE(IsDeviceFailure({SkipCause::kDeviceFailed, "RuntimeError"}));
  EXPECT_FALSE(IsDeviceFailure({SkipCause::kCpuFailed, "RuntimeError"}));
  EXPECT_FALSE(IsDeviceFailure(OnDevice({SkipCause::kOutOfMemory, "no room"})));
}

// Outcomes as processes hand them to each other.

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Cell OutputRow::*kCells[] = {
    &OutputRow::cosine,          &OutputRow::max_abs_error,
    &OutputRow::hundredth,       &OutputRow::thousandth,
    &OutputRow::ten_thousandth,  &OutputRow::error_rate,
    &OutputRow::error_balance,   &OutputRow::rmse,
    &OutputRow::max_rel_error,   &OutputRow::small_value_error_ratio,
    &OutputRow::mean_rel_error,  &OutputRow::inf_nan_error_ratio,
    &OutputRow::rel_error_ratio, &OutputRow::abs_error_ratio,
    &OutputRow::max_ulp,         &OutputRow::mean_ulp,
    &OutputRow::ulp_proportion};

bool IsSame(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

bool IsSame(const Cell& a, const Cell& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return IsSame(a->value, b->value) && a->is_double == b->is_double &&
         a->is_integer == b->is_integer;
}

void ExpectSame(const OutputRow& a, const OutputRow& b) {
  for (const auto& cell : kCells) EXPECT_TRUE(IsSame(a.*cell, b.*cell));
  for (const auto& text : {&OutputRow::name, &OutputRow::bench_dtype, &OutputRow::device_dtype,
                           &OutputRow::shape, &OutputRow::message}) {
    EXPECT_EQ(a.*text, b.*text);
  }
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.is_all_zero, b.is_all_zero);
  ASSERT_EQ(a.facts.has_value(), b.facts.has_value());
  if (!a.facts) return;
  EXPECT_EQ(a.facts->worst_index, b.facts->worst_index);
  EXPECT_TRUE(IsSame(a.facts->worst_bench, b.facts->worst_bench));
  EXPECT_TRUE(IsSame(a.facts->worst_device, b.facts->worst_device));
  EXPECT_EQ(a.facts->histogram, b.facts->histogram);
}

void ExpectSame(const DirectionOutcome& a, const DirectionOutcome& b) {
  EXPECT_EQ(a.status, b.status);
  ASSERT_EQ(a.skip.has_value(), b.skip.has_value());
  if (a.skip) {
    EXPECT_EQ(a.skip->cause, b.skip->cause);
    EXPECT_EQ(a.skip->detail, b.skip->detail);
  }
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (size_t i = 0; i < a.rows.size(); ++i) ExpectSame(a.rows[i], b.rows[i]);
}

CallOutcome HandedOn(const CallOutcome& outcome) {
  CallOutcome again;
  const Result<json::Value> value = json::Value::Parse(json::RecordText(outcome));
  EXPECT_TRUE(value && json::ReadRecord(*value, again));
  return again;
}

void ExpectHandedOn(const CallOutcome& outcome) {
  const CallOutcome again = HandedOn(outcome);
  EXPECT_EQ(again.name, outcome.name);
  EXPECT_EQ(again.merged_calls, outcome.merged_calls);
  EXPECT_EQ(again.note, outcome.note);
  ExpectSame(again.forward, outcome.forward);
  ExpectSame(again.backward, outcome.backward);
}

constexpr double kOddNumbers[] = {
    0.1, -0.0, kNan, kInfinity, -kInfinity, 5e-324, 1.7976931348623157e308, -1.0 / 3, 0, 1e22};

// No two fields of one kind are equal, so that none can stand in for another.
OutputRow FullRow(size_t number) {
  OutputRow row;
  row.name = "call.forward.output.0";
  row.bench_dtype = "torch.float64";
  row.device_dtype = "torch.float16";
  row.shape = "(2, 3)";
  for (size_t i = 0; i < std::size(kCells); ++i) {
    const size_t at = number + i;
    const double odd = at < std::size(kOddNumbers) ? kOddNumbers[at] : static_cast<double>(at);
    row.*kCells[i] = Number{odd, at % 2 == 0, at % 3 == 0};
  }
  row.status = CheckStatus::kWarning;
  row.is_all_zero = number % 2 == 1;
  row.message = "line\nbreak \"quoted\" \\ \t\x01 \u00e9\u4e2d\U0001f600,;";
  row.facts = FailureFacts{~uint64_t{0}, kNan, -kInfinity, {}};
  for (size_t i = 0; i < FailureFacts::kBins; ++i) row.facts->histogram[i] = ~uint64_t{0} - i;
  return row;
}

TEST(OutcomeRecord, KeepsEveryField) {
  CallOutcome outcome{"Functional.conv2d.0", {}, {}, ~uint64_t{0}, "a note\r\n"};
  outcome.forward.status = CheckStatus::kError;
  for (size_t i = 0; i < std::size(kOddNumbers); ++i) outcome.forward.rows.push_back(FullRow(i));
  outcome.forward.rows.emplace_back();
  outcome.backward = DirectionOutcome::Skipped({SkipCause::kOther, "\"why\": \xc3\xa9"});
  ExpectHandedOn(outcome);
  ExpectHandedOn({});
  ExpectHandedOn({"", DirectionOutcome::Skipped({SkipCause::kUnsupportedType, ""}), {}});
}

TEST(OutcomeRecord, KeepsEveryStatusAndCause) {
  for (int i = 0; i <= static_cast<int>(SkipCause::kOther); ++i) {
    ExpectHandedOn({"a", DirectionOutcome::Skipped({static_cast<SkipCause>(i), "b"}), {}});
  }
  for (int i = 0; i <= static_cast<int>(CheckStatus::kSkip); ++i) {
    CallOutcome outcome;
    outcome.forward.status = static_cast<CheckStatus>(i);
    ExpectHandedOn(outcome);
  }
}

TEST(OutcomeRecord, AnythingElseIsRefused) {
  const std::string text = json::RecordText(CallOutcome{"a", {}, {}, 0, "n"});
  ASSERT_EQ(text, R"(["a",[0,[],[]],[0,[],[]],0,"n"])");
  for (const char* const other :
       {R"(["a",[0,[],[]],[0,[],[]],0])", R"(["a",[5,[],[]],[0,[],[]],0,"n"])",
        R"(["a",[0,[],[[15,"b"]]],[0,[],[]],0,"n"])", R"(["a",[0,[],[]],[0,[],[]],-1,"n"])",
        R"(["a",[0,[[]],[]],[0,[],[]],0,"n"])", R"([1,[0,[],[]],[0,[],[]],0,"n"])",
        R"(["a",[0,[],[]],[0,[],[]],0,"n","more"])", R"({"name":"a"})", "null"}) {
    const Result<json::Value> value = json::Value::Parse(other);
    ASSERT_TRUE(value) << other;
    CallOutcome outcome;
    EXPECT_FALSE(json::ReadRecord(*value, outcome)) << other;
  }
}

}  // namespace
}  // namespace plumbline::precheck::outcome_test

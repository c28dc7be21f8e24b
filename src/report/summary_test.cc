#include <gtest/gtest.h>

#include "plumbline/compare.h"

namespace plumbline {
namespace {

// A complete comparison of one call with one row of each of `verdicts`.
Comparison WithRows(const std::vector<Verdict>& verdicts) {
  Comparison comparison;
  comparison.calls.push_back(
      {"f", "f", 0, static_cast<uint32_t>(verdicts.size()), Verdict::kSame, "", ""});
  comparison.counts.calls = 1;
  for (const Verdict verdict : verdicts) {
    ComparedRow row;
    row.verdict = verdict;
    comparison.rows.push_back(row);
    ++comparison.counts.rows[static_cast<size_t>(verdict)];
    // A wrong row has a call to name.
    if (verdict == Verdict::kBroken || verdict == Verdict::kSuspicious) {
      comparison.first_wrong_call.emplace();
    }
  }
  return comparison;
}

bool Fails(const Comparison& comparison, const std::string& condition) {
  const Result<bool> fails = FailsOn(comparison, {condition});
  EXPECT_TRUE(fails) << condition;
  return fails.value_or(false);
}

TEST(FailsOn, NoConditionNeverFails) {
  EXPECT_FALSE(FailsOn(WithRows({Verdict::kBroken}), {}).value());
}

TEST(FailsOn, EachConditionHasItsRows) {
  const Comparison good = WithRows({Verdict::kSame, Verdict::kWithinNoise});
  for (const char* condition : {"suspicious", "broken", "unmatched", "any"}) {
    EXPECT_FALSE(Fails(good, condition)) << condition;
  }
  const Comparison suspicious = WithRows({Verdict::kSame, Verdict::kSuspicious});
  EXPECT_TRUE(Fails(suspicious, "suspicious"));
  EXPECT_FALSE(Fails(suspicious, "broken"));
  EXPECT_TRUE(Fails(suspicious, "any"));
  const Comparison broken = WithRows({Verdict::kSame, Verdict::kBroken});
  EXPECT_TRUE(Fails(broken, "suspicious"));
  EXPECT_TRUE(Fails(broken, "broken"));
  EXPECT_FALSE(Fails(broken, "unmatched"));
}

TEST(FailsOn, WhatIsMissingIsUnmatched) {
  Comparison comparison = WithRows({Verdict::kSame});
  comparison.counts.unreadable_files = 1;
  EXPECT_TRUE(Fails(comparison, "unmatched"));
  EXPECT_TRUE(Fails(comparison, "any"));
  EXPECT_FALSE(Fails(comparison, "suspicious"));
  EXPECT_TRUE(Fails(Comparison(), "unmatched"));
}

// A call is named, something is not judged, calls go another way: each meets its own gate.
TEST(FailsOn, ThreeGates) {
  Comparison named = WithRows({Verdict::kSame, Verdict::kBroken});
  EXPECT_TRUE(Fails(named, "wrong"));
  EXPECT_FALSE(Fails(named, "unjudged"));
  Comparison open = WithRows({Verdict::kSame});
  open.counts.unmatched_golden = 3;
  EXPECT_FALSE(Fails(open, "wrong"));
  EXPECT_TRUE(Fails(open, "unjudged"));
  for (int i = 0; i < 3; ++i) open.calls.push_back({"", "g", 1, 0, {}, "other-way", ""});
  EXPECT_FALSE(Fails(open, "wrong"));
  EXPECT_FALSE(Fails(open, "unjudged"));
  EXPECT_TRUE(Fails(open, "any"));
  EXPECT_TRUE(open.is_complete());
  EXPECT_TRUE(Fails(open, "unmatched"));
  open.calls.pop_back();
  EXPECT_TRUE(Fails(open, "unjudged"));
  // Rows that differ although no call is named for them are not judged.
  named.first_wrong_call.reset();
  EXPECT_FALSE(Fails(named, "wrong"));
  EXPECT_TRUE(Fails(named, "unjudged"));
}

// Only the last of them is compared.
TEST(FailsOn, EntriesRecordedTwiceAreUnmatched) {
  Comparison comparison = WithRows({Verdict::kSame});
  comparison.golden_loss.duplicate_names = 1;
  EXPECT_TRUE(Fails(comparison, "any"));
  EXPECT_TRUE(Fails(comparison, "unmatched"));
  EXPECT_FALSE(Fails(comparison, "suspicious"));
  const std::string text = SummaryText(comparison);
  EXPECT_EQ(text.substr(0, text.find(';')),
            "not judged completely: 1 golden entry recorded more than once");
}

TEST(FailsOn, WhatCouldNotBeJudgedIsUnmatched) {
  const Comparison unjudged = WithRows({Verdict::kNotComparable, Verdict::kNotComparable});
  EXPECT_EQ(SummaryText(unjudged).substr(0, 10), "not judged");
  EXPECT_TRUE(Fails(unjudged, "any"));
  EXPECT_TRUE(Fails(unjudged, "unmatched"));
  EXPECT_FALSE(Fails(unjudged, "suspicious"));
}

TEST(SummaryText, SaysDamagedFilesWithTheAnswerAndOnce) {
  Comparison comparison = WithRows({Verdict::kSame});
  comparison.target_loss.side_files.push_back("t/stack.json: byte 3: not JSON");
  comparison.warnings = {"t/stack.json: byte 3: not JSON. Compared without it", "other"};
  const std::string text = SummaryText(comparison);
  const size_t at = text.find("stack.json");
  EXPECT_LT(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'), 2) << text;
  EXPECT_EQ(text.find("stack.json", at + 1), std::string::npos) << text;
  EXPECT_NE(text.find("warning: other\n"), std::string::npos);
}

// A call of another form has no row that could be measured.
TEST(FailsOn, ANamedCallIsBrokenWhereNothingOfItIsMeasured) {
  Comparison named = WithRows({Verdict::kSame, Verdict::kNotComparable});
  named.first_wrong_call.emplace();
  named.counts.unmatched_target = named.counts.unmatched_golden = 1;
  EXPECT_EQ(SummaryText(named).substr(0, 16), "first wrong call");
  for (const char* condition : {"suspicious", "broken", "unmatched", "any"}) {
    EXPECT_TRUE(Fails(named, condition)) << condition;
  }
}

TEST(FailsOn, ANamedCallIsAsBadAsItsRows) {
  const Comparison named = WithRows({Verdict::kSame, Verdict::kSuspicious});
  EXPECT_TRUE(Fails(named, "suspicious"));
  EXPECT_FALSE(Fails(named, "broken"));
}

TEST(SummaryText, NothingIsCalledRightAboveRowsThatDiffer) {
  Comparison comparison = WithRows({Verdict::kSame, Verdict::kBroken});
  comparison.first_wrong_call.reset();
  comparison.counts.unmatched_target = 1;
  const std::string text = SummaryText(comparison);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "not judged completely: 1 target call without counterpart, 1 row differs for which no "
            "call can be named");
  comparison.counts.rows[static_cast<size_t>(Verdict::kBroken)] = 0;
  EXPECT_NE(SummaryText(comparison).find("the 1 paired calls show no wrong one"),
            std::string::npos);
}

TEST(SummaryText, SaysWhereTheFirstRowDiffersThatNoCallExplains) {
  Comparison comparison = WithRows({Verdict::kSame, Verdict::kBroken, Verdict::kSuspicious});
  comparison.first_wrong_call.reset();
  comparison.counts.unmatched_target = 1;
  Item item;
  item.name = "Torch.f.0.backward.output.0";
  for (ComparedRow& row : comparison.rows) row.target = item;
  comparison.rows[1].reason = "inherited";
  comparison.rows[2].reason = "exceeds-noise";
  EXPECT_NE(SummaryText(comparison)
                .find("\n  the first of them: Torch.f.0.backward.output.0 (exceeds-noise); record "
                      "tensors of such calls to settle it (--next-config)\n"),
            std::string::npos)
      << SummaryText(comparison);
}

TEST(FailsOn, UnknownConditionIsRefusedEvenAfterAMatch) {
  const Result<bool> fails = FailsOn(WithRows({Verdict::kBroken}), {"broken", "worse"});
  ASSERT_FALSE(fails);
  EXPECT_EQ(fails.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(fails.error().message().find("worse"), std::string::npos);
}

}  // namespace
}  // namespace plumbline

#include "report/html_report.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace plumbline::report {
namespace {

std::atomic<int> spelled{0};

std::string Spell(const StackTexts::Frames& frames) {
  ++spelled;
  std::string text;
  for (const std::string& frame : frames) text += frame + ";";
  return text;
}

TEST(StackTexts, SharedStacksAreSpelledOnce) {
  Comparison comparison;
  const Shared<StackTexts::Frames> shared = StackTexts::Frames{"a", "b"};
  for (int i = 0; i < 10; ++i) comparison.stacks.push_back(shared);
  comparison.stacks.emplace_back();  // a call without stack
  spelled = 0;
  const StackTexts texts(comparison, &Spell);
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_NE(texts.Find(i), nullptr);
    EXPECT_EQ(*texts.Find(i), "a;b;");
    EXPECT_EQ(texts.Of(i), "a;b;");
  }
  EXPECT_EQ(spelled, 1);
  EXPECT_EQ(texts.Find(10), nullptr);
  EXPECT_EQ(texts.Of(10), "");
  EXPECT_EQ(texts.Find(11), nullptr);  // no such call
  EXPECT_EQ(texts.Of(11), "");
}

TEST(StackTexts, WhatIsNotKeptIsSpelledWhenAskedFor) {
  Comparison comparison;
  constexpr size_t kStacks = 5000;  // more than are kept
  for (size_t i = 0; i < kStacks; ++i) {
    comparison.stacks.emplace_back(StackTexts::Frames{std::to_string(i)});
  }
  const StackTexts texts(comparison, &Spell);
  size_t kept = 0;
  for (size_t i = 0; i < kStacks; ++i) {
    EXPECT_EQ(texts.Of(i), std::to_string(i) + ";");
    if (texts.Find(i) != nullptr) ++kept;
  }
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, kStacks);
}

}  // namespace
}  // namespace plumbline::report

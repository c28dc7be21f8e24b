#include "config/graph_dump/kernel_entries.h"

#include <gtest/gtest.h>

namespace plumbline::graph_dump {
namespace {

constexpr const char* kKernels[] = {"Default/net/conv1-Conv2d/Conv2D-op12", "Default/Conv3D-op7",
                                    "Gradients/Default/gradConv2D/Conv2DBackpropInput-op3"};

// One letter per kernel: y or n.
std::string Answers(const std::vector<std::string>& entries) {
  const Result<KernelEntries> parsed = KernelEntries::Parse(entries);
  if (!parsed) return parsed.error().message();
  std::string text;
  for (const char* kernel : kKernels) text += parsed->Select(kernel) ? 'y' : 'n';
  return text;
}

TEST(KernelEntries, SelectAsTheTableOfTheDocumentsSays) {
  EXPECT_EQ(Answers({"conv"}), "yyy");
  EXPECT_EQ(Answers({"Conv2D"}), "yny");
  EXPECT_EQ(Answers({"Default/Conv3D-op7"}), "nyn");
  EXPECT_EQ(Answers({"name-regex(Default/.+)"}), "yyn");
  EXPECT_EQ(Answers({"name-regex(Conv)"}), "nnn");
  EXPECT_EQ(Answers({"conv2d-op12"}), "nnn");
}

TEST(KernelEntries, QuotesAndBlanksAroundDoNotCount) {
  EXPECT_EQ(Answers({" \"Conv2D\" "}), "yny");
  EXPECT_EQ(Answers({}), "yyy");
  EXPECT_EQ(Answers({"  ", "\"\""}), "yyy");
  EXPECT_EQ(KernelEntries::Parse({"  ", "a", "a"})->warnings().size(), 2U);
  EXPECT_EQ(KernelEntries::Parse({"a", " a"})->entries().size(), 1U);
}

TEST(KernelEntries, ExpressionsComeBeforeNamesBeforeTypes) {
  const auto parsed =
      KernelEntries::Parse({"conv", "Default/Conv3D-op7", "name-regex(.*Conv2D-op12)"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->Select(kKernels[0]), 2U);
  EXPECT_EQ(parsed->Select(kKernels[1]), 1U);
  EXPECT_EQ(parsed->Select(kKernels[2]), 0U);
}

TEST(KernelEntries, DamagedExpressionsAreNamedWithTheirPlace) {
  EXPECT_NE(Answers({"x", "name-regex([)"})
                .find("kernels[1]: \"name-regex([)\" is no regular "
                      "expression from position 11"),
            std::string::npos);
  EXPECT_NE(Answers({"name-regex(ab(c)"}).find("position 13"), std::string::npos);
  EXPECT_NE(Answers({"name-regex(ab)c)"}).find("position 13"), std::string::npos);
  EXPECT_NE(Answers({"name-regex(*a)"}).find("position 11"), std::string::npos);
  EXPECT_NE(Answers({"name-regex(" + std::string(2000, '(') + ")"}).find("2012 characters"),
            std::string::npos);
  EXPECT_EQ(Answers({"name-regex()"}), "nnn");
}

TEST(KernelEntries, WithoutClosingBracketAnExpressionIsAName) {
  const auto parsed = KernelEntries::Parse({"name-regex(Default/.+"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->entries()[0].kind, EntryKind::kName);
  EXPECT_EQ(parsed->warnings().size(), 1U);
  EXPECT_FALSE(parsed->Select(kKernels[0]));
}

}  // namespace
}  // namespace plumbline::graph_dump

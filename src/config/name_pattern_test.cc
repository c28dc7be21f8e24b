#include "config/name_pattern.h"

#include <gtest/gtest.h>

#include <chrono>

namespace plumbline {
namespace {

NamePattern Pattern(std::string_view text) {
  Result<NamePattern> pattern = NamePattern::Create("list", text);
  EXPECT_TRUE(pattern) << text;
  return pattern ? *pattern : NamePattern();
}

// The characters of "yn" say what each pattern makes of the name, in a list and in a scope.
std::string Answers(std::string_view name, const std::vector<std::string>& texts) {
  std::string answers;
  for (const std::string& text : texts) {
    const NamePattern pattern = Pattern(text);
    answers += pattern.Selects(name) ? 'y' : 'n';
    answers += pattern.Names(name) ? 'y' : 'n';
    answers += ' ';
  }
  return answers;
}

std::string ErrorOf(std::string_view text) {
  const Result<NamePattern> pattern = NamePattern::Create("statistics.list", text);
  return pattern ? "" : pattern.error().message();
}

constexpr std::string_view kLinear = "Module.layers.17.q_proj.Linear.forward.0";

TEST(NamePattern, APlainTextIsPartOfAListedNameAndAllOfOneInAScope) {
  EXPECT_EQ(Answers("Functional.relu.0.forward",
                    {"relu", "Functional.relu.0.forward", "Relu", "", "relu.0.forward."}),
            "yn yy nn yn nn ");
}

TEST(NamePattern, AGlobIsOfTheWholeName) {
  EXPECT_EQ(Answers(kLinear, {"Module.*", "*q_proj*", "q_proj*", "Module.layers.??.q_proj*",
                              "Module.layers.?.*", "*.[Ll]inear.*", "*.[!L]inear.*", "*[0-9]",
                              "*.layers.1[0-79].*", "*.layers.1[^7].*", "*", "**.0", "*.forward"}),
            "yy yy nn yy nn yy nn yy yy nn yy yy nn ");
}

TEST(NamePattern, WildcardsThatANameHoldsMatchThemselves) {
  EXPECT_EQ(Answers("Module.a[0].b", {"a[0]", "Module.a[0].b", "Module.a[[]0].?", "a[0"}),
            "yn yy yy yn ");
  EXPECT_EQ(Answers("Module.a*b", {"a*b", "*[*]b", "*[]*]b", "*[*"}), "yn yy yy nn ");
  // Without ']' a bracket is a letter, and a star at the end takes it.
  EXPECT_EQ(Answers("x[y", {"x[*", "?[y", "[", "[]"}), "yy yy yn nn ");
  EXPECT_EQ(Answers("a-b", {"a[+-]b", "?[!-]?", "a[--/]b"}), "yy nn yy ");
}

TEST(NamePattern, AnExpressionMatchesAnywhere) {
  EXPECT_EQ(Answers(kLinear, {"re:q_proj", "re:^q_proj", "re:^Module\\.layers\\.(1|17)\\.",
                              "re:\\.0$", "re:Linear$", "re:(?!x)forward", "re:LINEAR", "re:",
                              "re:^$", "re:layers\\.[0-9]{1,2}\\.", "re:a|q", "re:^q|b$"}),
            "yy nn yy yy nn yy nn yy nn yy yy nn ");
}

TEST(NamePattern, ABadExpressionIsOneLineWithItsPlace) {
  EXPECT_EQ(ErrorOf("re:a(b"),
            "statistics.list: is \"re:a(b\" (expected behind re: a regular expression in "
            "ECMAScript syntax of at most 1000 characters, without back references and with at "
            "most 100 repeats by {}; wrong from its character 2 on)");
  // Brackets that only fit once the expression is inside others.
  EXPECT_NE(ErrorOf("re:a)|(?:b").find("character 2 on"), std::string::npos);
  EXPECT_NE(ErrorOf("re:[").find("character 1 on"), std::string::npos);
  EXPECT_NE(ErrorOf("re:*a").find("character 1 on"), std::string::npos);
  EXPECT_NE(ErrorOf("re:(a)\\1"), "");
  EXPECT_NE(ErrorOf("re:((a?){100}){100}").find("character 6 on"), std::string::npos);
  EXPECT_NE(ErrorOf("re:a{1,1000}"), "");
  EXPECT_EQ(ErrorOf("re:a{2,100}\\{5000}"), "");
  EXPECT_NE(ErrorOf("re:" + std::string(1001, 'a')).find("character 1001 on"), std::string::npos);
  EXPECT_EQ(ErrorOf("re:" + std::string(1000, 'a')), "");
}

TEST(NamePattern, TimeIsThatOfTheLength) {
  const std::string name = std::string(4000, 'a') + "b";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Pattern("re:(a|aa)+$").Selects(name));
  EXPECT_FALSE(Pattern("re:(a*)*c").Selects(name));
  EXPECT_FALSE(Pattern("*a*a*a*a*a*a*a*c").Selects(name));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_FALSE(Pattern("re:a").Selects(std::string(4097, 'a')));
}

TEST(NamePatterns, OneOfThemSuffices) {
  const auto patterns = NamePatterns::Create("list", {"relu", "re:add\\.[02]\\.", "Torch.*"});
  ASSERT_TRUE(patterns);
  for (int i = 0; i < 2; ++i) {  // asked again, the answers are remembered ones
    EXPECT_TRUE(patterns->SelectAny("Functional.relu.0.forward"));
    EXPECT_TRUE(patterns->SelectAny("Tensor.add.2.forward"));
    EXPECT_FALSE(patterns->SelectAny("Tensor.add.1.forward"));
    EXPECT_TRUE(patterns->SelectAny("Torch.add.1.forward"));
    EXPECT_FALSE(patterns->Names(0, "Functional.relu.0.forward"));
    EXPECT_TRUE(patterns->Names(1, "Tensor.add.2.forward"));
  }
  for (int i = 0; i < 70000; ++i) {  // more than are remembered
    EXPECT_FALSE(patterns->SelectAny("Tensor.mul." + std::to_string(i)));
  }
  EXPECT_TRUE(patterns->SelectAny("Tensor.add.2.forward"));
  EXPECT_FALSE(NamePatterns::Create("list", {"relu", "re:("}));
  EXPECT_FALSE(NamePatterns::Create("list", {})->SelectAny("x"));
}

}  // namespace
}  // namespace plumbline

#include "base/memory/name_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace plumbline {
namespace {

TEST(NameTable, AgreesWithAMap) {
  std::mt19937 random(3);
  std::vector<std::string> names;
  for (int i = 0; i < 20000; ++i) names.push_back("call." + std::to_string(random() % 9000));
  names[17].clear();  // the empty name is one too
  const auto name_at = [&](size_t i) { return std::string_view(names[i]); };
  NameTable table(names.size());
  std::map<std::string, size_t> expected;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t first = expected.try_emplace(names[i], i).first->second;
    ASSERT_EQ(table.Add(i, name_at), first);
  }
  for (int i = 0; i < 12000; ++i) {
    const std::string name = "call." + std::to_string(i);
    const auto found = table.Find(name, name_at);
    const auto known = expected.find(name);
    ASSERT_EQ(found.has_value(), known != expected.end()) << name;
    if (found) {
      EXPECT_EQ(*found, known->second);
    }
  }
  EXPECT_EQ(table.Find("", name_at), 17U);
}

TEST(NameTable, GrowsAsIfItHadBeenToldTheRows) {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back("call." + std::to_string(i % 4000));
  const auto name_at = [&](size_t i) { return std::string_view(names[i]); };
  for (NameTable table : {NameTable(), NameTable(0), NameTable(63), NameTable(names.size())}) {
    for (size_t i = 0; i < names.size(); ++i) {
      ASSERT_EQ(table.Add(i, name_at), i % 4000);
      ASSERT_EQ(table.Find(names[i / 2], name_at), i / 2 % 4000);
      ASSERT_FALSE(table.Find("none", name_at));
    }
  }
}

TEST(NameTable, EmptyOnesHoldNothing) {
  const auto name_at = [](size_t) { return std::string_view("x"); };
  EXPECT_FALSE(NameTable().Find("x", name_at));
  EXPECT_FALSE(NameTable(0).Find("x", name_at));
}

}  // namespace
}  // namespace plumbline

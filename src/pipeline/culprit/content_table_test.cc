#include "pipeline/culprit/content_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumbline::pipeline {
namespace {

Item Tensor(double max) {
  Item item;
  item.is_tensor = true;
  item.shape = Shape{4};
  item.statistics = {max, 0.0, max / 2, max};
  return item;
}

size_t HashOf(const Item& item) { return ContentKeyHash()(*KeyOf(item)); }

std::optional<uint32_t> Find(const ContentTable& known, const Item& item) {
  return known.Find(HashOf(item), [&] { return KeyOf(item); });
}

std::vector<ComparedRow> Rows(size_t count, double step) {
  std::vector<ComparedRow> rows(count);
  for (size_t i = 0; i < count; ++i) rows[i].golden = Tensor(1 + step * static_cast<double>(i));
  return rows;
}

TEST(ContentTable, EveryRowIsFoundByItsOwnContents) {
  const std::vector<ComparedRow> rows = Rows(5000, 0.25);  // grows several times
  ContentTable known(rows);
  EXPECT_FALSE(Find(known, *rows[0].golden));
  for (uint32_t i = 0; i < rows.size(); ++i) known.Remember(HashOf(*rows[i].golden), i);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(Find(known, *rows[i].golden), i);
  }
  EXPECT_FALSE(Find(known, Tensor(0.5)));
}

TEST(ContentTable, TheLastRowOfEqualContentsCounts) {
  const std::vector<ComparedRow> rows = Rows(3000, 0);
  ContentTable known(rows);
  for (uint32_t i = 0; i < rows.size(); ++i) known.Remember(HashOf(*rows[i].golden), i);
  EXPECT_EQ(Find(known, Tensor(1)), 2999U);
}

// NaN is content like any other: the same bits came from the same place.
TEST(ContentTable, ContentsAreBits) {
  std::vector<ComparedRow> rows(2);
  rows[0].golden = Tensor(std::nan(""));
  rows[1].golden = Tensor(-0.0);
  ContentTable known(rows);
  for (uint32_t i = 0; i < rows.size(); ++i) known.Remember(HashOf(*rows[i].golden), i);
  EXPECT_EQ(Find(known, Tensor(std::nan(""))), 0U);
  EXPECT_EQ(Find(known, Tensor(-0.0)), 1U);
  EXPECT_FALSE(Find(known, Tensor(0.0)));
}

}  // namespace
}  // namespace plumbline::pipeline

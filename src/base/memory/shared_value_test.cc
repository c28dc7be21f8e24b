#include "plumbline/recorded.h"
#include "plumbline/shared_value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

namespace plumbline {
namespace {

TEST(Text, BehavesAsTheStringItWasMadeOf) {
  const Text text = std::string("Functional.linear.0.forward");
  EXPECT_EQ(text, "Functional.linear.0.forward");
  EXPECT_EQ(text.size(), 27U);
  EXPECT_TRUE(text.starts_with("Functional") && text.ends_with("forward"));
  EXPECT_EQ(text.substr(11, 6), "linear");
  EXPECT_EQ(text + ".input", "Functional.linear.0.forward.input");
  EXPECT_EQ(std::string("x.") + text, "x.Functional.linear.0.forward");
  const std::string copy = text;
  EXPECT_EQ(copy, text);
}

TEST(Text, EmptyTextsAreEqualWhateverTheyWereMadeOf) {
  EXPECT_EQ(Text(), Text(""));
  EXPECT_EQ(Text(), "");
  EXPECT_TRUE(Text(std::string()).empty());
  EXPECT_NE(Text(), Text("x"));
}

TEST(Text, ZeroBytesArePartOfIt) {
  const Text text(std::string_view("a\0b", 3));
  EXPECT_EQ(text.size(), 3U);
  EXPECT_NE(text, Text("a"));
}

TEST(Text, CopiesOutliveTheFirst) {
  Text kept;
  {
    const Text first = "a text that is not kept inside of the handle itself";
    kept = first;
    EXPECT_TRUE(kept.Shares(first));
  }
  EXPECT_EQ(kept, "a text that is not kept inside of the handle itself");
  const Text& same = kept;
  kept = same;  // to itself
  EXPECT_FALSE(kept.empty());
}

// Under ThreadSanitizer this also shows that the count needs no lock.
TEST(Text, CopiesMayBeMadeAndDroppedOnAnyThread) {
  const Text text = "shared";
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&text] {
      for (int i = 0; i < 10'000; ++i) {
        const Text copy = text;
        ASSERT_EQ(copy.size(), 6U);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(text, "shared");
}

TEST(Shared, StandsForTheDefaultUntilItIsSet) {
  Shared<std::vector<int>> shape;
  EXPECT_TRUE(shape.empty());
  shape = std::vector<int>{2, 3};
  const Shared<std::vector<int>> copy = shape;
  EXPECT_EQ(&*copy, &*shape);
  shape.Edit([](std::vector<int>& sizes) { sizes.push_back(4); });
  EXPECT_EQ(*copy, (std::vector<int>{2, 3}));  // copies do not see it
  EXPECT_EQ(shape.size(), 3U);
}

TEST(Slot, OwnValuesAreCopiedAndReferencesAreNot) {
  Slot<std::string> own = std::string("own");
  Slot<std::string> copy = own;
  *copy = "changed";
  EXPECT_EQ(*own, "own");
  std::string kept = "kept";
  Slot<std::string> reference = Slot<std::string>::ReferTo(kept);
  copy = reference;
  *copy = "changed";
  EXPECT_EQ(kept, "changed");
  EXPECT_EQ(&*reference, &kept);
  reference.reset();
  EXPECT_FALSE(reference);
  EXPECT_EQ(kept, "changed");
  own.emplace() = "new";
  EXPECT_EQ(own->size(), 3U);
}

TEST(OptionalText, NoneIsNotEmpty) {
  OptionalText text;
  EXPECT_FALSE(text);
  EXPECT_NE(text, "");
  EXPECT_EQ(text.value_or("other"), "other");
  text = std::string();
  EXPECT_TRUE(text.has_value());
  EXPECT_TRUE(text->empty());
  EXPECT_EQ(text, "");
  EXPECT_NE(text, OptionalText());
  const OptionalText copy = text = "torch.float32";
  text = std::nullopt;
  EXPECT_EQ(text, OptionalText());
  EXPECT_EQ(*copy, "torch.float32");
}

TEST(RecordedStatistics, HoldsWhatAnArrayWould) {
  const RecordedStatistics::Array values = {1.5, int64_t{2}, true, Text("kept")};
  RecordedStatistics statistics = values;
  EXPECT_EQ(statistics.array(), values);
  EXPECT_EQ(*statistics.As<Text>(3), "kept");
  EXPECT_EQ(statistics.As<double>(1), nullptr);
  const RecordedStatistics copy = statistics;
  statistics[3] = std::monostate();
  statistics[0] = statistics[1] = Text("new");
  EXPECT_EQ(copy, RecordedStatistics(values));
  EXPECT_NE(copy, statistics);
  EXPECT_EQ(Recorded(statistics[0]), Recorded(Text("new")));
  const RecordedStatistics moved = std::move(statistics);
  EXPECT_EQ(moved.array(), (RecordedStatistics::Array{Text("new"), Text("new"), true, {}}));
  statistics = copy;
  statistics.fill(std::nan(""));
  EXPECT_NE(statistics, statistics);  // as numbers are
}

}  // namespace
}  // namespace plumbline

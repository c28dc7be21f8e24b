#include "base/process/shards.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

// The part of five items.
Shard PartOf(const ShardPlace& place) {
  Shard shard{"overflow", place, {"--output=out", "runs"}, "/somewhere", {"state", 5, "", {}}};
  shard.part.note = "part " + std::to_string(place.index);
  for (uint64_t i = place.index; i < shard.part.all; i += place.count) {
    shard.part.items[i] = std::to_string(i * i);
  }
  return shard;
}

class ShardsTest : public ::testing::Test {
 protected:
  std::string Write(const Shard& shard) {
    std::string path = ShardPath(directory_.Path("overflow"), shard.place);
    EXPECT_TRUE(plumbline::WriteShard(path, shard));
    return path;
  }
  static std::string ProblemOf(const std::vector<std::string>& files) {
    const auto read = ReadShardedItems(files);
    return read ? "" : read.error().message();
  }
  TestDirectory directory_;
};

TEST_F(ShardsTest, TogetherHaveAllItemsInOrder) {
  for (const uint64_t count : {1U, 2U, 5U, 9U}) {
    std::vector<std::string> files;
    for (uint64_t i = 0; i < count; ++i) files.push_back(Write(PartOf({i, count})));
    std::reverse(files.begin(), files.end());
    files.push_back(files.front());
    const auto read = ReadShardedItems(files);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->state, "state");
    ASSERT_EQ(read->items.size(), 5U);
    ASSERT_EQ(read->notes.size(), count);
    for (uint64_t i = 0; i < count; ++i) EXPECT_EQ(read->notes[i], "part " + std::to_string(i));
    for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(read->items[i].AsNatural(), i * i);
    const auto request = RequestOfShard(files.front());
    ASSERT_TRUE(request);
    EXPECT_EQ(request->command, "overflow");
    EXPECT_EQ(request->words, (std::vector<std::string>{"--output=out", "runs"}));
  }
}

TEST_F(ShardsTest, NameWhatIsMissing) {
  const std::string one = Write(PartOf({1, 4}));
  EXPECT_NE(ProblemOf({one}).find("of 4 shards missing: 0, 2, 3. Run `plumb overflow ... --shard "
                                  "0/4`"),
            std::string::npos);
}

TEST_F(ShardsTest, OfTwoCommandsAreRefused) {
  const std::string one = Write(PartOf({0, 2}));
  for (const auto& change :
       std::vector<void (*)(Shard&)>{[](Shard& shard) { shard.words.emplace_back("--json"); },
                                     [](Shard& shard) { shard.command = "watch"; },
                                     [](Shard& shard) { shard.directory = "/elsewhere"; },
                                     [](Shard& shard) { shard.part.state = "other"; },
                                     [](Shard& shard) { shard.part.all = 6; }}) {
    Shard other = PartOf({1, 2});
    change(other);
    EXPECT_NE(ProblemOf({one, Write(other)}).find("Merge the shards of one command"),
              std::string::npos);
  }
}

TEST_F(ShardsTest, DamagedOnesAreRefused) {
  const std::string path = Write(PartOf({0, 1}));
  const std::string text = *ReadFile(path);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == '0' ? '1' : '0';
    ASSERT_TRUE(WriteFileAtomically(path, changed, false));
    const bool is_sealed = i < text.rfind('{');
    EXPECT_TRUE(!is_sealed || !ReadShardedItems({path})) << i;
    ASSERT_TRUE(WriteFileAtomically(path, text.substr(0, i), false));
    EXPECT_FALSE(ReadShardedItems({path})) << i;
  }
  ASSERT_TRUE(WriteFileAtomically(path, text, false));
  EXPECT_TRUE(ReadShardedItems({path}));
  ASSERT_TRUE(WriteFileAtomically(path, "{\"format\":\"plumbline shard\"}\n", false));
  EXPECT_EQ(RequestOfShard(path)->command, "");
}

TEST_F(ShardsTest, TextsWithoutUtf8AreSaid) {
  Shard shard = PartOf({0, 1});
  shard.part.items[0] = "\"\\udc80\"";
  const Status written = plumbline::WriteShard(directory_.Path("a.shard"), shard);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace plumbline

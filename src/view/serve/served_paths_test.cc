#include "view/serve/served_paths.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "view/serve/recording_entries.h"
#include "view/serve/store_cache.h"

namespace plumbline::view {
namespace {

namespace fs = std::filesystem;

TEST(ServedPaths, NothingBesideARootIsFound) {
  const testing::TestDirectory directory;
  const fs::path top = fs::canonical(directory.path());
  fs::create_directories(top / "root" / "in");
  fs::create_directories(top / "root-beside");
  fs::create_directory_symlink(top / "root-beside", top / "root" / "out");
  fs::create_directory_symlink(top / "root" / "in", top / "root" / "again");
  ServedPaths paths;
  ASSERT_TRUE(paths.Add((top / "root").string()));
  EXPECT_EQ(*paths.Resolve((top / "root" / "in").string()), (top / "root" / "in").string());
  EXPECT_EQ(*paths.Resolve("in"), (top / "root" / "in").string());
  EXPECT_EQ(*paths.Resolve("again"), (top / "root" / "in").string());
  EXPECT_EQ(*paths.Resolve("in/.."), (top / "root").string());
  const std::string nul("in\0/../..", 9);
  for (const std::string& bad : {std::string(), std::string(".."), std::string("out"),
                                 (top / "root-beside").string(), top.string(), std::string("/"),
                                 nul, std::string(100'000, 'a'), std::string("in/../../x")}) {
    const auto found = paths.Resolve(bad);
    ASSERT_FALSE(found) << bad.substr(0, 100);
    EXPECT_EQ(found.error().code(), ErrorCode::kNotFound);
  }
}

TEST(ServedPaths, AFileIsNoDirectory) {
  const testing::TestDirectory directory;
  const fs::path top = fs::canonical(directory.path());
  ASSERT_TRUE(WriteFileAtomically((top / "a.vis").string(), "{}", false));
  ASSERT_TRUE(WriteFileAtomically((top / "a.vis2").string(), "{}", false));
  ServedPaths paths;
  ASSERT_TRUE(paths.Add((top / "a.vis").string()));
  EXPECT_TRUE(paths.Resolve((top / "a.vis").string()));
  EXPECT_FALSE(paths.Resolve((top / "a.vis2").string()));
  EXPECT_FALSE(paths.Resolve((top / "a.vis" / "x").string()));
}

TEST(RecordingEntries, KindsAreTold) {
  const testing::TestDirectory directory;
  const fs::path top = fs::canonical(directory.path());
  fs::create_directories(top / "run" / "step0" / "rank0");
  fs::create_directories(top / "other");
  for (const char* name :
       {"run/step0/rank0/dump.json", "a.vis", "b.vis.db", "c.trend.db", "d.csv", "e.txt"}) {
    ASSERT_TRUE(WriteFileAtomically((top / name).string(), "{}", false));
  }
  const auto kind = [&](const char* name) { return KindOfEntry((top / name).string()); };
  EXPECT_EQ(kind("run"), EntryKind::kRecording);
  EXPECT_EQ(kind("run/step0/rank0/dump.json"), EntryKind::kRecording);
  EXPECT_EQ(kind("other"), EntryKind::kDirectory);
  EXPECT_EQ(kind("a.vis"), EntryKind::kVis);
  EXPECT_EQ(kind("b.vis.db"), EntryKind::kVisDb);
  EXPECT_EQ(kind("c.trend.db"), EntryKind::kTrendDb);
  EXPECT_EQ(kind("d.csv"), EntryKind::kTable);
  EXPECT_EQ(kind("e.txt"), EntryKind::kOther);
  EXPECT_EQ(kind("none"), EntryKind::kOther);
}

TEST(StoreCache, AKeyFollowsWhatThePathsHold) {
  const testing::TestDirectory directory;
  const fs::path top = directory.path();
  fs::create_directories(top / "run");
  ASSERT_TRUE(WriteFileAtomically((top / "run" / "dump.json").string(), "{}", false));
  const auto key = [&](const char* options) {
    return *InputsKey({(top / "run").string()}, options);
  };
  const std::string first = key("");
  EXPECT_EQ(key(""), first);
  EXPECT_NE(key("fuzzy"), first);
  ASSERT_TRUE(WriteFileAtomically((top / "run" / "dump.json").string(), "{ }", false));
  EXPECT_NE(key(""), first);
  EXPECT_FALSE(InputsKey({(top / "none").string()}, ""));
}

}  // namespace
}  // namespace plumbline::view

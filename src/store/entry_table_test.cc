#include "store/entry_table.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/json/dump_json.h"
#include "record/value.h"
#include "store/recover.h"
#include "store/run_writer.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

TEST(DebugEntry, PartsArePutInTheirPlaces) {
  ValueMap inner;
  inner.emplace_back("a.b", Value());
  inner.emplace_back("c", ValueList{Value(), Value(int64_t{7})});
  ValueMap members;
  members.emplace_back("", ValueList{Value(), Value(std::move(inner))});
  members.emplace_back("1.0", Value(int64_t{1}));
  members.emplace_back("1.1.0", Value(int64_t{2}));
  debug_entry::Compose(members);

  ASSERT_EQ(members.size(), 1u);
  const auto* top = members[0].second.As<ValueList>();
  ASSERT_NE(top, nullptr);
  EXPECT_TRUE((*top)[0].is_null());
  EXPECT_EQ(*(*top)[1].Find("a.b")->As<int64_t>(), 1);
  const auto* list = (*top)[1].Find("c")->As<ValueList>();
  EXPECT_EQ(*(*list)[0].As<int64_t>(), 2);
  EXPECT_EQ(*(*list)[1].As<int64_t>(), 7);
}

TEST(DebugEntry, PartsWithoutAPlaceAreDropped) {
  for (const char* place : {"2", "0.0", "x", "1.", "99999999999999999999999"}) {
    ValueMap members;
    members.emplace_back("", ValueList{Value(int64_t{1}), Value(ValueList{})});
    members.emplace_back(place, Value(int64_t{9}));
    debug_entry::Compose(members);
    ASSERT_EQ(members.size(), 1u) << place;
    const auto* top = members[0].second.As<ValueList>();
    if (std::string(place) == "1.") continue;  // a trailing dot names item 1 itself
    EXPECT_EQ(*(*top)[0].As<int64_t>(), 1) << place;
    EXPECT_TRUE((*top)[1].As<ValueList>()->empty()) << place;
  }
}

TEST(DebugEntry, OtherEntriesAreLeftAlone) {
  ValueMap members;
  members.emplace_back("output", ValueList{Value(int64_t{1})});
  members.emplace_back("0", Value(int64_t{2}));
  debug_entry::Compose(members);
  EXPECT_EQ(members.size(), 2u);
}

RunOptions DebugOptions(const std::string& dump_path) {
  RunOptions options;
  options.header = {"statistics", "debug", "pytorch", ""};
  options.dump_path = dump_path;
  options.step.reset();
  options.files = EntryTable::Files::kDebug;
  options.run_id = "test";
  return options;
}

void AddInt(RunWriter& writer, std::string_view name, std::string_view place, int64_t value) {
  EntryPacker packer;
  packer.Begin(name, nullptr, 0);
  packer.Key(place);
  packer.Int(value);
  writer.AddEntry(packer.Finish());
}

void AddNulls(RunWriter& writer, std::string_view name) {
  EntryPacker packer;
  packer.Begin(name, nullptr, 0);
  packer.Key("");
  packer.BeginList();
  packer.Null();
  packer.Null();
  packer.EndList();
  writer.AddEntry(packer.Finish());
}

constexpr std::string_view kExpected =
    "{\n \"task\": \"statistics\",\n \"level\": \"debug\",\n \"framework\": \"pytorch\",\n"
    " \"dump_data_dir\": null,\n \"data\": {\n  \"x.0\": 3,\n  \"x_grad.0\": [\n   null,\n   5\n"
    "  ]\n }\n}";

TEST(DebugRun, OneFileForTheWholeRun) {
  const TestDirectory dir;
  StoreThreads threads;
  auto writer = *RunWriter::Open(DebugOptions(dir.path()), threads);
  EXPECT_EQ(writer->directory(), dir.path() + "/rank");
  AddInt(*writer, "x.0", "", 3);
  AddNulls(*writer, "x_grad.0");
  AddInt(*writer, "x_grad.0", "1", 4);
  AddInt(*writer, "x_grad.0", "1", 5);  // a later backward pass
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(*ReadFile(dir.path() + "/rank/debug.json"), kExpected);
  AddInt(*writer, "x.0", "", 3);
  ASSERT_TRUE(writer->Finish());
  writer.reset();
  threads.sync.Drain();
  EXPECT_EQ(*ReadFile(dir.path() + "/rank/debug.json"), kExpected);
  EXPECT_EQ(*ListDirectory(dir.path() + "/rank"), (std::vector<std::string>{".run", "debug.json"}));
}

TEST(DebugRun, PublishingALongRunIsNotRepeatedForEveryStep) {
  const TestDirectory dir;
  StoreThreads threads;
  auto writer = *RunWriter::Open(DebugOptions(dir.path()), threads);
  const std::string path = dir.path() + "/rank/debug.json";
  const std::string text(1000, 'x');
  int published = 0;
  std::string last;
  constexpr int kSteps = 2000;
  for (int step = 0; step < kSteps; ++step) {
    EntryPacker packer;
    packer.Begin("v." + std::to_string(step), nullptr, 0);
    packer.Key("");
    packer.String(text);
    writer->AddEntry(packer.Finish());
    ASSERT_TRUE(writer->PublishIfGrown());
    const bool is_small = step < 200;
    const uint64_t size = *FileSize(path);
    if (is_small) {
      ASSERT_GT(size, 1000u * static_cast<uint64_t>(step + 1));
    }
    ASSERT_GT(size * 10, 1000u * static_cast<uint64_t>(step + 1) * 8);
    if (!is_small && size != last.size()) ++published;
    last.resize(size);
  }
  EXPECT_LT(published, 80);
  ASSERT_TRUE(writer->Finish());
  EXPECT_GT(*FileSize(path), 1000u * kSteps);
}

TEST(DebugRun, KilledRunIsRecoveredIntoDebugJson) {
  const TestDirectory dir;
  const std::string kept = dir.path() + "/kept";
  {
    StoreThreads threads;
    auto writer = *RunWriter::Open(DebugOptions(dir.path()), threads);
    AddInt(*writer, "x.0", "", 3);
    AddNulls(*writer, "x_grad.0");
    AddInt(*writer, "x_grad.0", "1", 5);
    ASSERT_TRUE(WriteFileAtomically(kept, *ReadFile(dir.path() + "/rank/.dump.journal"), false));
    ASSERT_TRUE(writer->Finish());
  }
  ASSERT_TRUE(RenameFile(kept, dir.path() + "/rank/.dump.journal"));
  ASSERT_TRUE(WriteFileAtomically(dir.path() + "/rank/debug.json", "", false));
  const auto recovered = RecoverDirectory(dir.path() + "/rank");
  ASSERT_TRUE(recovered) << recovered.error().message();
  EXPECT_EQ(recovered->calls, 2u);
  EXPECT_EQ(*ReadFile(dir.path() + "/rank/debug.json"), kExpected);
  EXPECT_EQ(*ListDirectory(dir.path() + "/rank"),
            (std::vector<std::string>{".run", "debug.json", "dump_error_info.log"}));
}

}  // namespace
}  // namespace plumbline

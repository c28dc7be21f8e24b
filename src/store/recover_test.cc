#include "store/recover.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/file/test_directory.h"
#include "base/process/log.h"
#include "formats/json/dump_json.h"
#include "formats/json/error_log.h"
#include "record/value.h"
#include "store/full_disk_for_test.h"
#include "store/run_writer.h"

namespace plumbline {
namespace {

using testing::FailingCalls;
using testing::TestDirectory;

RunOptions Options(const std::string& dump_path, int64_t step = 0) {
  RunOptions options;
  options.header = {"statistics", "L1", "pytorch", ""};
  options.dump_path = dump_path;
  options.step = step;
  return options;
}

void Add(RunWriter& writer, std::string_view name, std::string_view data_name = {}) {
  EntryPacker packer;
  packer.Begin(name, nullptr, 1);
  packer.Key("output");
  packer.BeginList();
  PackedTensor tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.max = 1.5;
  tensor.data_name = data_name;
  packer.Tensor(tensor);
  packer.EndList();
  writer.AddEntry(packer.Finish());
}

// Runs `act` in a process of its own; it ends by _exit, without destructors, as after SIGKILL.
void InKilledProcess(const std::function<void()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    act();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

// A killed recording of `calls` calls; returns its rank directory.
std::string Killed(const std::string& dump_path, int calls, int64_t step = 0) {
  InKilledProcess([&] {
    StoreThreads threads;
    const auto writer = RunWriter::Open(Options(dump_path, step), threads);
    if (!writer) return;
    (*writer)->AddStack(1, std::vector<std::string>{"frame"});
    for (int i = 0; i < calls; ++i) Add(**writer, "call" + std::to_string(i) + ".forward");
    (*writer)->AddLoss("calls_dropped", 4, "why");
    ::_exit(0);
  });
  return run_layout::RankDirectory(dump_path, step, std::nullopt);
}

size_t Calls(const std::string& directory) {
  const auto dump = dump_json::ReadDump(directory + "/dump.json", false);
  return dump ? dump->calls.size() : 9999;
}

// A recording whose disk fills up after `calls` calls, and that is killed `more` calls later.
std::string KilledOnAFullDisk(const std::string& dump_path, int calls, int more, bool publish) {
  InKilledProcess([&] {
    SetLogLevel(LogLevel::kSilent);
    StoreThreads threads;
    const auto writer = RunWriter::Open(Options(dump_path), threads);
    if (!writer) return;
    for (int i = 0; i < calls; ++i) Add(**writer, "call" + std::to_string(i) + ".forward");
    {
      const testing::FullDisk full;
      for (int i = 0; i < more; ++i) Add(**writer, "later" + std::to_string(i) + ".forward");
    }
    if (publish) (void)(*writer)->Publish();
    ::_exit(0);
  });
  return run_layout::RankDirectory(dump_path, 0, std::nullopt);
}

TEST(Recover, ACutByAFullDiskIsToldFromAKill) {
  const TestDirectory dir;
  const std::string rank = KilledOnAFullDisk(dir.path(), 2, 3, false);
  for (int i = 0; i < 2; ++i) {
    const auto losses = error_log::Read(rank + "/dump_error_info.log");
    ASSERT_TRUE(losses);
    EXPECT_EQ(error_log::CountMissing(*losses), 3U);
    if (i == 1) break;
    const auto recovery = RecoverDirectory(rank);
    ASSERT_TRUE(recovery) << recovery.error().message();
    EXPECT_EQ(recovery->calls, 2U);
    const Loss* cut = CutOf(*recovery);
    ASSERT_NE(cut, nullptr);
    EXPECT_EQ(cut->count, 3U);
    EXPECT_NE(cut->sentence.find("No space left"), std::string::npos) << cut->sentence;
  }
  EXPECT_EQ(Calls(rank), 2U);
  const TestDirectory other;
  const std::string of_kill = Killed(other.path(), 2);
  const auto killed = RecoverDirectory(of_kill);
  ASSERT_TRUE(killed);
  EXPECT_EQ(CutOf(*killed), nullptr);
  const auto counted = error_log::Read(of_kill + "/dump_error_info.log");
  ASSERT_TRUE(counted);
  EXPECT_NE(FindLoss(*counted, error_log::kEndedEarly), nullptr);
}

// The files were written when there was space again; the journal ends where there was none.
TEST(Recover, FilesThatHoldMoreThanTheJournalAreKept) {
  const TestDirectory dir;
  const std::string rank = KilledOnAFullDisk(dir.path(), 2, 3, true);
  EXPECT_EQ(Calls(rank), 5U);
  const auto recovery = RecoverDirectory(rank);
  ASSERT_TRUE(recovery) << recovery.error().message();
  EXPECT_TRUE(recovery->files_are_newer);
  EXPECT_EQ(Calls(rank), 5U);
  EXPECT_EQ(KindOf(rank + "/.dump.journal"), PathKind::kMissing);
}

TEST(Recover, KilledRunGivesAllItsCalls) {
  const TestDirectory dir;
  const std::string rank = Killed(dir.path(), 5);
  EXPECT_EQ(Calls(rank), 0U);
  const auto recovery = RecoverDirectory(rank);
  ASSERT_TRUE(recovery) << recovery.error().message();
  EXPECT_EQ(recovery->calls, 5U);
  EXPECT_EQ(recovery->bytes_dropped, 0U);
  EXPECT_EQ(Calls(rank), 5U);
  ASSERT_EQ(recovery->losses.size(), 1U);
  EXPECT_EQ(recovery->losses[0].count, 4U);
  const auto stack = dump_json::ReadStack(rank + "/stack.json");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->size(), 5U);
}

TEST(Recover, FilesEqualThoseOfAFinishedRun) {
  const TestDirectory killed;
  const TestDirectory finished;
  const std::string rank = Killed(killed.path(), 5);
  ASSERT_TRUE(RecoverDirectory(rank));
  StoreThreads threads;
  const auto writer = RunWriter::Open(Options(finished.path()), threads);
  ASSERT_TRUE(writer);
  (*writer)->AddStack(1, std::vector<std::string>{"frame"});
  for (int i = 0; i < 5; ++i) Add(**writer, "call" + std::to_string(i) + ".forward");
  ASSERT_TRUE((*writer)->Finish());
  for (const char* name : {"/dump.json", "/stack.json", "/construct.json"}) {
    EXPECT_EQ(*ReadFile(rank + name), *ReadFile((*writer)->directory() + name));
  }
}

TEST(Recover, SecondTimeFindsNothing) {
  const TestDirectory dir;
  const std::string rank = Killed(dir.path(), 3);
  ASSERT_TRUE(RecoverDirectory(rank));
  const std::string first = *ReadFile(rank + "/dump.json");
  EXPECT_EQ(RecoverDirectory(rank).error().code(), ErrorCode::kNotFound);
  EXPECT_TRUE(RecoverAll(dir.path())->directories.empty());
  EXPECT_EQ(*ReadFile(rank + "/dump.json"), first);
}

TEST(Recover, WholeDumpPathIsSearched) {
  const TestDirectory dir;
  for (int step = 0; step < 3; ++step) Killed(dir.path(), step + 1, step);
  const auto report = RecoverAll(dir.path());
  ASSERT_TRUE(report);
  ASSERT_EQ(report->directories.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(report->directories[i].calls, i + 1);
  EXPECT_TRUE(report->failures.empty());
}

TEST(Recover, MissingDirectoryIsNotFound) {
  EXPECT_EQ(RecoverAll("/nonexistent/plumbline").error().code(), ErrorCode::kNotFound);
}

TEST(Recover, CutTailIsCountedAndTheJournalGone) {
  const TestDirectory dir;
  const std::string rank = Killed(dir.path(), 3);
  const std::string journal = rank + "/.dump.journal";
  const std::string text = *ReadFile(journal);
  ASSERT_TRUE(WriteFileAtomically(journal, text.substr(0, text.size() - 60), false));
  const auto recovery = RecoverDirectory(rank);
  ASSERT_TRUE(recovery);
  EXPECT_EQ(recovery->calls, 2U);
  EXPECT_GT(recovery->bytes_dropped, 0U);
  EXPECT_EQ(ListDirectory(rank)->size(), 5U);  // with dump_error_info.log
}

TEST(Recover, DamagedJournalIsKept) {
  const TestDirectory dir;
  const std::string rank = Killed(dir.path(), 3);
  const std::string journal = rank + "/.dump.journal";
  std::string text = *ReadFile(journal);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(journal, text, false));
  const auto recovery = RecoverDirectory(rank);
  ASSERT_TRUE(recovery);
  EXPECT_TRUE(recovery->journal_damaged);
  EXPECT_LT(recovery->calls, 3U);
  EXPECT_EQ(*ReadFile(rank + "/.dump.journal.damaged"), text);
  EXPECT_EQ(Calls(rank), recovery->calls);
}

TEST(Recover, ForeignJournalIsAFailureThatStopsNoOther) {
  const TestDirectory dir;
  Killed(dir.path(), 2, 1);
  ASSERT_TRUE(MakeDirectories(dir.Path("step0/rank")));
  ASSERT_TRUE(WriteFileAtomically(dir.Path("step0/rank/.dump.journal"), "something", false));
  const auto report = RecoverAll(dir.path());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->directories.size(), 1U);
  ASSERT_EQ(report->failures.size(), 1U);
  EXPECT_EQ(report->failures[0].code(), ErrorCode::kCorrupt);
  EXPECT_NE(report->failures[0].message().find("step0/rank/.dump.journal"), std::string::npos);
  EXPECT_EQ(*ReadFile(dir.Path("step0/rank/.dump.journal")), "something");
}

TEST(Recover, TensorsWithoutAFileAreDroppedAndCounted) {
  const TestDirectory dir;
  InKilledProcess([&] {
    StoreThreads threads;
    RunOptions options = Options(dir.path());
    options.has_tensors = true;
    const auto writer = RunWriter::Open(options, threads);
    if (!writer) return;
    Add(**writer, "a", "a.pt");
    Add(**writer, "b", "b.pt");
    ::_exit(0);
  });
  const std::string rank = dir.Path("step0/rank");
  ASSERT_TRUE(WriteFileAtomically(rank + "/dump_tensor_data/a.pt", "", false));
  const auto recovery = RecoverDirectory(rank);
  ASSERT_TRUE(recovery);
  EXPECT_EQ(recovery->calls, 2U);
  EXPECT_EQ(recovery->tensors_missing, 1U);
  const std::string text = *ReadFile(rank + "/dump.json");
  EXPECT_NE(text.find("a.pt"), std::string::npos);
  EXPECT_EQ(text.find("b.pt"), std::string::npos);
}

TEST(Recover, ShardedTensorsWithoutAFileAreDroppedToo) {
  const TestDirectory dir;
  InKilledProcess([&] {
    StoreThreads threads;
    RunOptions options = Options(dir.path());
    options.has_tensors = true;
    const auto writer = RunWriter::Open(options, threads);
    if (!writer) return;
    for (const char* name : {"a", "b"}) {  // tensors with keys of their own are packed as maps
      EntryPacker packer;
      packer.Begin(name, nullptr, 1);
      packer.Key("output");
      packer.BeginMap();
      packer.Key("requires_grad");
      packer.Bool(false);
      packer.Key("data_name");
      packer.String(std::string(name) + ".pt");
      packer.EndMap();
      (*writer)->AddEntry(packer.Finish());
    }
    ::_exit(0);
  });
  const std::string rank = dir.Path("step0/rank");
  ASSERT_TRUE(WriteFileAtomically(rank + "/dump_tensor_data/a.pt", "", false));
  const auto recovery = RecoverDirectory(rank);
  ASSERT_TRUE(recovery);
  EXPECT_EQ(recovery->tensors_missing, 1U);
  const std::string text = *ReadFile(rank + "/dump.json");
  EXPECT_NE(text.find("a.pt"), std::string::npos);
  EXPECT_EQ(text.find("b.pt"), std::string::npos);
}

TEST(Recover, DirectoryInUseIsLeftAlone) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = RunWriter::Open(Options(dir.path()), threads);
  ASSERT_TRUE(writer);
  Add(**writer, "a");
  const auto recovery = RecoverDirectory((*writer)->directory());
  ASSERT_TRUE(recovery);
  EXPECT_TRUE(recovery->in_use);
  EXPECT_EQ(Calls((*writer)->directory()), 0U);
  ASSERT_TRUE((*writer)->Finish());
}

TEST(Recover, JournalCutInItsHeaderLeavesTheFilesAlone) {
  const TestDirectory dir;
  const std::string rank = Killed(dir.path(), 1);
  ASSERT_TRUE(WriteFileAtomically(rank + "/.dump.journal", "PLJR", false));
  const auto recovery = RecoverDirectory(rank);
  ASSERT_TRUE(recovery);
  EXPECT_EQ(recovery->calls, 0U);
  EXPECT_EQ(recovery->bytes_dropped, 4U);
  EXPECT_EQ(Calls(rank), 0U);
}

// Every system call of a recovery fails in turn: the journal survives until the files stand.
TEST(Recover, FailureLosesNothing) {
  bool succeeded = false;
  for (int n = 0; !succeeded; ++n) {
    ASSERT_LT(n, 60);
    const TestDirectory dir;
    const std::string rank = Killed(dir.path(), 3);
    Status status;
    {
      const FailingCalls faults(n, EIO);
      const auto recovery = RecoverDirectory(rank);
      if (!recovery) status = recovery.error();
      succeeded = !FailingCalls::fired();
    }
    EXPECT_EQ(status.has_value(), succeeded) << n;
    const auto again = RecoverDirectory(rank);
    EXPECT_TRUE(again || again.error().code() == ErrorCode::kNotFound) << n;
    EXPECT_EQ(Calls(rank), 3U) << n;
  }
}

}  // namespace
}  // namespace plumbline

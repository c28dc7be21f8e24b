#include "store/journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "base/file/test_directory.h"

namespace plumbline {

namespace {

Error Failure(const char* message) { return Error(ErrorCode::kIo, message); }

TEST(Trouble, DirectoryAndCauseAreSaidOnce) {
  Trouble trouble;
  EXPECT_TRUE(trouble.Report(Harm::kJournal, "a", Failure("a/x: write: No space left"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kJournal, "a", Failure("a/y: write: No space left"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kJournal, "b", Failure("b/x: sync: No space left"), ""));
  EXPECT_TRUE(trouble.Report(Harm::kPlace, "c", Failure("c: was removed"), ""));
}

TEST(Trouble, EachHarmOfOneCauseIsNews) {
  Trouble trouble;
  const Error full = Failure("a/x: write: No space left");
  for (const Harm harm : {Harm::kTensors, Harm::kJournal, Harm::kFiles, Harm::kSteps}) {
    EXPECT_TRUE(trouble.Report(harm, "a", full, ""));
    EXPECT_FALSE(trouble.Report(harm, "b", full, ""));
  }
}

TEST(Trouble, OfStepsSaysItAll) {
  Trouble trouble;
  const Error full = Failure("a: make: File exists");
  EXPECT_TRUE(trouble.Report(Harm::kSteps, "a", full, ""));
  EXPECT_FALSE(trouble.Report(Harm::kFiles, "a/step1", full, ""));
  EXPECT_FALSE(trouble.Report(Harm::kJournal, "a/step1", full, ""));
  EXPECT_TRUE(trouble.Report(Harm::kTensors, "a/step1", full, ""));
}

TEST(Trouble, CauseThatWasHeldBackIsSaidOfTheNextDirectory) {
  Trouble trouble;
  EXPECT_TRUE(trouble.Report(Harm::kPlace, "a", Failure("a: was removed"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kPlace, "a", Failure("a: create directory: File exists"), ""));
  EXPECT_TRUE(trouble.Report(Harm::kPlace, "b", Failure("a: create directory: File exists"), ""));
  EXPECT_FALSE(trouble.Report(Harm::kPlace, "c", Failure("a: create directory: File exists"), ""));
}

using testing::FailingCalls;
using testing::TestDirectory;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

JournalHeader Header() {
  return {{"statistics", "L1", "pytorch", "out/step0/rank/dump_tensor_data"}, "0.1.0", "run"};
}

std::vector<std::string> Payloads(int count) {
  std::mt19937 random(7);
  std::vector<std::string> payloads;
  for (int i = 0; i < count; ++i) {
    std::string payload(random() % 300, '\0');
    for (char& c : payload) c = static_cast<char>(random());
    payloads.push_back(payload);
  }
  return payloads;
}

// A journal of those entries as it stands in the file.
std::string JournalText(const std::vector<std::string>& payloads, bool sealed = false) {
  const TestDirectory dir;
  auto journal = Journal::Start(*File::OpenAppend(dir.Path("j")), Header());
  EXPECT_TRUE(journal);
  for (const std::string& payload : payloads) {
    EXPECT_TRUE(journal->Append(RecordKind::kEntry, Bytes(payload)));
  }
  if (sealed) {
    EXPECT_TRUE(journal->AppendSeal());
  }
  EXPECT_TRUE(journal->Close());
  return *ReadFile(dir.Path("j"));
}

struct ReadBack {
  JournalScan scan;
  std::vector<std::string> entries;
};

Result<ReadBack> Read(std::string_view text) {
  ReadBack back;
  PL_TRY_ASSIGN(back.scan, ReadJournal(Bytes(text), [&](const JournalRecord& record) -> Status {
                  if (record.kind != RecordKind::kEntry) return {};
                  back.entries.emplace_back(reinterpret_cast<const char*>(record.payload.data()),
                                            record.payload.size());
                  return {};
                }));
  return back;
}

TEST(Journal, EveryRecordKindReadsBack) {
  const TestDirectory dir;
  auto journal = Journal::Start(*File::OpenAppend(dir.Path("j")), Header());
  ASSERT_TRUE(journal);
  const std::vector<std::string> frames = {"File a.py, line 1, in f, \n x", "", "\xff\0 tail"};
  ASSERT_TRUE(journal->AppendStack(7, frames));
  ASSERT_TRUE(journal->AppendLoss({"calls_dropped", 3, "why"}));
  ASSERT_TRUE(journal->AppendRemove("Module.a.parameters_grad"));
  ASSERT_TRUE(journal->Append(RecordKind::kEntry, {}));
  ASSERT_TRUE(journal->AppendSeal());
  const std::string text = *ReadFile(dir.Path("j"));
  std::vector<RecordKind> kinds;
  const auto scan = ReadJournal(Bytes(text), [&](const JournalRecord& record) -> Status {
    kinds.push_back(record.kind);
    if (record.kind == RecordKind::kHeader) {
      PL_TRY_ASSIGN(const JournalHeader header, ParseJournalHeader(record.payload));
      EXPECT_EQ(header.run.level, "L1");
      EXPECT_EQ(header.run.dump_data_dir, Header().run.dump_data_dir);
      EXPECT_EQ(header.run_id, "run");
    } else if (record.kind == RecordKind::kStack) {
      PL_TRY_ASSIGN(const StackDefinition stack, ParseStack(record.payload));
      EXPECT_EQ(stack.id, 7U);
      EXPECT_EQ(stack.frames, frames);
    } else if (record.kind == RecordKind::kLoss) {
      PL_TRY_ASSIGN(const Loss loss, ParseLoss(record.payload));
      EXPECT_EQ(loss.count, 3U);
      EXPECT_EQ(loss.sentence, "why");
    } else if (record.kind == RecordKind::kRemove) {
      EXPECT_EQ(ParseRemove(record.payload).value_or(""), "Module.a.parameters_grad");
    }
    return {};
  });
  ASSERT_TRUE(scan);
  using enum RecordKind;
  EXPECT_EQ(kinds, (std::vector{kHeader, kStack, kLoss, kRemove, kEntry, kSeal}));
  EXPECT_TRUE(scan->sealed);
  EXPECT_EQ(scan->bytes_dropped, 0U);
}

TEST(Journal, CutAnywhereYieldsThePrefixAndCountsTheRest) {
  const std::vector<std::string> payloads = Payloads(5);
  const std::string text = JournalText(payloads);
  size_t most = 0;
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const auto back = Read(std::string_view(text).substr(0, cut));
    ASSERT_TRUE(back) << cut;
    EXPECT_GE(back->entries.size(), most);
    most = back->entries.size();
    for (size_t i = 0; i < most; ++i) EXPECT_EQ(back->entries[i], payloads[i]);
    EXPECT_LE(back->scan.bytes_dropped, 309U + 8);
    EXPECT_FALSE(back->scan.damaged);
  }
  EXPECT_EQ(most, payloads.size());
}

TEST(Journal, AnyFlippedByteIsNoticed) {
  const std::vector<std::string> payloads = Payloads(4);
  const std::string text = JournalText(payloads, /*sealed=*/true);
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const auto back = Read(damaged);
    if (at < 8) {
      EXPECT_FALSE(back) << at;
      continue;
    }
    ASSERT_TRUE(back);
    EXPECT_GT(back->scan.bytes_dropped, 0U) << at;
    EXPECT_FALSE(back->scan.sealed) << at;
    for (size_t i = 0; i < back->entries.size(); ++i) EXPECT_EQ(back->entries[i], payloads[i]);
  }
}

TEST(Journal, ForeignBytesAreNotAJournal) {
  EXPECT_EQ(Read("{\"task\": 1}").error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(Read(std::string(100, '\0')).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(Read("PLJRNL2\nxxxxxxxx").error().code(), ErrorCode::kUnsupported);
}

TEST(Journal, EmptyFileHoldsNoRecords) {
  const auto back = Read("");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->scan.records, 0U);
  EXPECT_FALSE(back->scan.sealed);
}

TEST(Journal, HugeLengthFieldIsACut) {
  std::string text = JournalText({"abc"});
  text += std::string("\xff\xff\xff\xff", 4) + std::string(20, 'x');
  const auto back = Read(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->entries.size(), 1U);
  EXPECT_EQ(back->scan.bytes_dropped, 24U);
}

TEST(Journal, RecordsAfterASealUnsealIt) {
  const std::string sealed = JournalText({"abc"}, true);
  const std::string other = JournalText({"abc", "d"});
  const std::string last = other.substr(JournalText({"abc"}).size());
  EXPECT_TRUE(Read(sealed)->scan.sealed);
  EXPECT_FALSE(Read(sealed + last)->scan.sealed);
}

TEST(Journal, DamagedPayloadsAreCorrupt) {
  EXPECT_FALSE(ParseJournalHeader(Bytes("")));
  EXPECT_FALSE(ParseStack(Bytes(std::string(8, '\xff'))));
  EXPECT_FALSE(ParseLoss(Bytes("abc")));
  EXPECT_FALSE(ParseRemove(Bytes(std::string("\1\0\0\0", 4))));
  EXPECT_FALSE(ParseRemove(Bytes(std::string("\1\0\0\0ab", 6))));
}

TEST(Journal, FullDiskIsReportedByAppend) {
  const TestDirectory dir;
  auto journal = Journal::Start(*File::OpenAppend(dir.Path("j")), Header());
  ASSERT_TRUE(journal);
  const FailingCalls faults(0, ENOSPC);
  const Status status = journal->Append(RecordKind::kEntry, Bytes("abc"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kIo);
}

TEST(Journal, OneWriteCallPerRecord) {
  const TestDirectory dir;
  auto journal = Journal::Start(*File::OpenAppend(dir.Path("j")), Header());
  ASSERT_TRUE(journal);
  const SyscallTable real = Syscalls();
  static int writes;
  writes = 0;
  Syscalls().write = [](int fd, const void* bytes, size_t size) {
    ++writes;
    return ::write(fd, bytes, size);
  };
  const bool appended = journal->Append(RecordKind::kEntry, Bytes("abc")).has_value();
  Syscalls() = real;
  EXPECT_TRUE(appended);
  EXPECT_EQ(writes, 1);
}

TEST(Losses, OfOneCounterAddUp) {
  std::vector<Loss> losses;
  MergeLoss(losses, {"a", 1, "first"});
  MergeLoss(losses, {"b", 5, "other"});
  MergeLoss(losses, {"a", 2, "second"});
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].count, 3U);
  EXPECT_EQ(losses[0].sentence, "second");
}

class LossRecordTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Directory> Opened() {
    auto directory = Directory::Open(directory_.path());
    return directory ? std::make_shared<const Directory>(*std::move(directory)) : nullptr;
  }
  LossRecord Reserved() {
    auto record = LossRecord::Reserve(Opened());
    return record ? *std::move(record) : LossRecord();
  }
  std::string Log() { return ReadFile(directory_.Path("dump_error_info.log")).value_or("none"); }
  std::vector<std::string> Files() {
    return ListDirectory(directory_.path()).value_or(std::vector<std::string>{"?"});
  }

  ino_t Inode(const std::string& name) {
    struct stat info {};
    return ::stat(directory_.Path(name).c_str(), &info) == 0 ? info.st_ino : 0;
  }

  const TestDirectory directory_;
  const std::vector<Loss> losses_ = {{"records_dropped", 3, "no space"}};
};

TEST_F(LossRecordTest, LeavesNothingWhereNothingWasLost) {
  {
    const LossRecord record = Reserved();
    EXPECT_EQ(Files(), std::vector<std::string>{".dump_losses.tmp"});
    EXPECT_EQ(FileSize(directory_.Path(".dump_losses.tmp")).value_or(0), 4096U);
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(LossRecordTest, IsWrittenIntoTheSpaceItHas) {
  LossRecord record = Reserved();
  const ino_t before = Inode(".dump_losses.tmp");
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_EQ(Files(), std::vector<std::string>{"dump_error_info.log"});
  EXPECT_NE(Log().find("[ERROR] records_dropped: 3 (no space)\n"), std::string::npos) << Log();
  EXPECT_EQ(Inode("dump_error_info.log"), before);
  const std::vector<Loss> more = {{"calls_dropped", 1, std::string(300, 'x')}, losses_[0]};
  ASSERT_TRUE(record.Write(more));
  EXPECT_NE(Log().find("calls_dropped"), std::string::npos);
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_EQ(Log().find("calls_dropped"), std::string::npos);
  EXPECT_TRUE(Log().ends_with("(no space)\n")) << Log();
}

TEST_F(LossRecordTest, WhatCouldNotBeWrittenIsTriedAgainAtTheEnd) {
  {
    LossRecord record = Reserved();
    const auto pwrite = Syscalls().pwrite;
    Syscalls().pwrite = [](int, const void*, size_t, off_t) {
      errno = ENOSPC;
      return ssize_t{-1};
    };
    {
      const FailingCalls faults(0, ENOSPC, /*sticky=*/true);
      EXPECT_FALSE(record.Write(losses_));
    }
    Syscalls().pwrite = pwrite;
    EXPECT_EQ(Files(), std::vector<std::string>{".dump_losses.tmp"});
  }
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
}

TEST_F(LossRecordTest, WithoutSpaceOfItsOwnItIsAFileLikeOthers) {
  LossRecord record(Opened());
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
  EXPECT_FALSE(LossRecord().Write(losses_));
}

TEST_F(LossRecordTest, IsMadeAgainWhereItWasRemoved) {
  LossRecord record = Reserved();
  ASSERT_TRUE(record.Write(losses_));
  ASSERT_TRUE(RemoveFile(directory_.Path("dump_error_info.log")));
  ASSERT_TRUE(record.Write(losses_));
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
}

TEST_F(LossRecordTest, AForkedChildLeavesItAlone) {
  LossRecord record = Reserved();
  const pid_t child = ::fork();
  if (child == 0) {
    { const LossRecord gone = std::move(record); }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(Files(), std::vector<std::string>{".dump_losses.tmp"});
}

TEST_F(LossRecordTest, TheLastOneTakesLaterLosses) {
  LastLossRecord last;
  EXPECT_FALSE(last.Add({"steps_dropped", 1, "step 1"}));
  last.Keep(Reserved(), losses_);
  EXPECT_TRUE(last.Add({"steps_dropped", 1, "step 1"}));
  EXPECT_TRUE(last.Add({"steps_dropped", 1, "step 2"}));
  EXPECT_NE(Log().find("records_dropped: 3"), std::string::npos);
  EXPECT_NE(Log().find("steps_dropped: 2 (step 2)"), std::string::npos);
  last.Drop();
  EXPECT_FALSE(last.Add({"steps_dropped", 1, "step 3"}));
}

}  // namespace

}  // namespace plumbline

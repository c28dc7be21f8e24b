#include "store/journal.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/test_directory.h"

namespace plumbline {
namespace {

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

}  // namespace
}  // namespace plumbline

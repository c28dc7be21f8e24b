#include "store/run_writer.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/file/test_directory.h"
#include "base/process/log.h"
#include "formats/json/dump_json.h"
#include "formats/json/error_log.h"
#include "record/value.h"
#include "store/full_disk_for_test.h"
#include "store/recover.h"

namespace plumbline {

namespace {

using testing::FailingCalls;
using testing::FullDisk;
using testing::OpenDescriptors;
using testing::TestDirectory;

RunOptions WriterOptions(const std::string& dump_path, bool tensors = false) {
  RunOptions options;
  options.header = {"statistics", "L1", "pytorch", ""};
  options.dump_path = dump_path;
  options.has_tensors = tensors;
  options.run_id = "test";
  return options;
}

// An entry of that stack and parent, with one member `key`: a list holding the integer 1.
void AddPlaced(RunWriter& writer, std::string_view name, uint32_t stack_id,
               const std::string_view* parent) {
  EntryPacker packer;
  packer.Begin(name, parent, stack_id);
  packer.Key("output");
  packer.BeginList();
  packer.Int(1);
  packer.EndList();
  writer.AddEntry(packer.Finish());
}

// An entry with one member `key`: a list holding the integer `value`.
void Add(RunWriter& writer, std::string_view name, std::string_view key, int64_t value) {
  EntryPacker packer;
  packer.Begin(name, nullptr, 0);
  packer.Key(key);
  packer.BeginList();
  packer.Int(value);
  packer.EndList();
  writer.AddEntry(packer.Finish());
}

// "name: key=value key=value; ..." in file order.
std::string Entries(const std::string& directory) {
  const auto dump = dump_json::ReadDump(directory + "/dump.json", false);
  if (!dump) return dump.error().message();
  std::string text;
  for (const Call& call : dump->calls) {
    text += call.name + ":";
    for (const auto& [key, value] : call.members) {
      const auto* list = value.As<ValueList>();
      text += " " + key + "=";
      if (list != nullptr && !list->empty()) {
        const auto* number = list->front().As<int64_t>();
        text += number != nullptr ? std::to_string(*number) : "?";
      }
    }
    text += "; ";
  }
  return text;
}

std::unique_ptr<RunWriter> Open(const RunOptions& options, StoreThreads& threads) {
  auto writer = RunWriter::Open(options, threads);
  EXPECT_TRUE(writer) << writer.error().message();
  return writer ? *std::move(writer) : nullptr;
}

TEST(RunWriter, OpenMakesValidEmptyFiles) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.Path("out")), threads);
  EXPECT_EQ(writer->directory(), dir.Path("out/step0/rank"));
  const auto dump = dump_json::ReadDump(writer->directory() + "/dump.json", false);
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->header.level, "L1");
  EXPECT_TRUE(dump->calls.empty());
  EXPECT_EQ(ReadFile(writer->directory() + "/stack.json").value_or(""), "{}");
  EXPECT_EQ(ReadFile(writer->directory() + "/construct.json").value_or(""), "{}");
  EXPECT_EQ(KindOf(writer->directory() + "/dump_tensor_data"), PathKind::kMissing);
}

TEST(RunWriter, LaterPartsMergeIntoTheFirstEntry) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  Add(*writer, "a.forward", "input_args", 1);
  Add(*writer, "b.parameters_grad", "weight", 2);
  Add(*writer, "a.forward", "output", 3);
  Add(*writer, "b.parameters_grad", "bias", 4);
  Add(*writer, "b.parameters_grad", "weight", 5);
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(Entries(writer->directory()),
            "a.forward: input_args=1 output=3; b.parameters_grad: weight=5 bias=4; ");
}

TEST(RunWriter, RemovedEntryIsGoneAndMayComeBackAtTheEnd) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  Add(*writer, "a", "x", 1);
  Add(*writer, "b", "x", 2);
  writer->RemoveEntry("a");
  writer->RemoveEntry("never there");
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(Entries(writer->directory()), "b: x=2; ");
  Add(*writer, "a", "x", 3);
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(Entries(writer->directory()), "b: x=2; a: x=3; ");
}

TEST(RunWriter, StacksAndParentsGoToTheirFiles) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  writer->AddStack(1, std::vector<std::string>{"frame a", "frame b"});
  const std::string_view root;
  const std::string_view parent = "m.forward.0";
  AddPlaced(*writer, "x.0.forward", 1, &parent);
  AddPlaced(*writer, "m.forward.0", 1, &root);
  Add(*writer, "x.0.backward", "output", 1);
  // Filtered by data_mode: only listed.
  EntryPacker packer;
  packer.Begin("y.0.forward", &parent, 1);
  writer->AddEntry(packer.Finish());
  ASSERT_TRUE(writer->Publish());
  const auto stack = dump_json::ReadStack(writer->directory() + "/stack.json");
  ASSERT_TRUE(stack);
  ASSERT_EQ(stack->size(), 3U);
  EXPECT_EQ((*stack)[0].first, "x.0.forward");
  EXPECT_EQ((*stack)[2].first, "y.0.forward");
  EXPECT_EQ((*stack)[2].second, (std::vector<std::string>{"frame a", "frame b"}));
  const auto tree = dump_json::ReadCallTree(writer->directory() + "/construct.json");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->rows, (std::vector<dump_json::CallTree::Row>{{"x.0.forward", "m.forward.0"},
                                                               {"m.forward.0", ""},
                                                               {"y.0.forward", "m.forward.0"}}));
  EXPECT_EQ(Entries(writer->directory()).find("y.0.forward"), std::string::npos);
}

TEST(RunWriter, FinishRemovesTheJournalOncePublished) {
  const TestDirectory dir;
  std::string directory;
  {
    StoreThreads threads;
    const auto writer = Open(WriterOptions(dir.path()), threads);
    directory = writer->directory();
    Add(*writer, "a", "x", 1);
    EXPECT_EQ(KindOf(directory + "/.dump.journal"), PathKind::kFile);
    ASSERT_TRUE(writer->Publish());
    EXPECT_EQ(KindOf(directory + "/.dump.journal"), PathKind::kFile);
    ASSERT_TRUE(writer->Finish());
  }
  EXPECT_EQ(Entries(directory), "a: x=1; ");
  EXPECT_EQ(ListDirectory(directory).value_or(std::vector<std::string>{}),
            (std::vector<std::string>{".run", "construct.json", "dump.json", "stack.json"}));
}

// Which is what readers tell a complete dump.json by, within one tick of the file system's clock
// too, where a process ends before its journal is removed.
TEST(RunWriter, TheJournalIsOlderThanAPublishedDumpAndNoOlderThanOneThatLacksCalls) {
  const auto is_older = [](const std::string& directory) {
    return ModifiedAt(directory + "/.dump.journal").value() <
           ModifiedAt(directory + "/dump.json").value();
  };
  for (int i = 0; i < 20; ++i) {  // a tick ends somewhere
    const TestDirectory dir;
    StoreThreads threads;
    const auto writer = Open(WriterOptions(dir.path()), threads);
    EXPECT_FALSE(is_older(writer->directory()));
    Add(*writer, "a", "x", 1);
    ASSERT_TRUE(writer->Publish());
    EXPECT_TRUE(is_older(writer->directory()));
    Add(*writer, "b", "x", 2);
    EXPECT_FALSE(is_older(writer->directory()));
    ASSERT_TRUE(writer->Publish());
    EXPECT_TRUE(is_older(writer->directory()));
  }
}

TEST(RunWriter, PublishWithoutNewsTouchesNothing) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  Add(*writer, "a", "x", 1);
  ASSERT_TRUE(writer->Publish());
  threads.sync.Drain();
  const FailingCalls faults(1000);
  ASSERT_TRUE(writer->Publish());
  threads.sync.Drain();
  EXPECT_EQ(Entries(writer->directory()), "a: x=1; ");
}

// Each system call of Publish() fails in turn.
TEST(RunWriter, FailedPublishKeepsTheOldFilesAndCanBeRepeated) {
  bool succeeded = false;
  for (int n = 0; !succeeded; ++n) {
    ASSERT_LT(n, 60);
    const TestDirectory dir;
    StoreThreads threads;
    const auto writer = Open(WriterOptions(dir.path()), threads);
    Add(*writer, "a", "x", 1);
    ASSERT_TRUE(writer->Publish());
    threads.sync.Drain();
    Add(*writer, "b", "x", 2);
    const size_t descriptors = OpenDescriptors();
    Status status;
    {
      const FailingCalls faults(n, ENOSPC);
      status = writer->Publish();
      threads.sync.Drain();
      succeeded = !FailingCalls::fired();
    }
    EXPECT_EQ(OpenDescriptors(), descriptors) << n;
    EXPECT_EQ(Entries(writer->directory()), status ? "a: x=1; b: x=2; " : "a: x=1; ") << n;
    EXPECT_EQ(ListDirectory(writer->directory())->size(), 6U) << n;
    if (!status) {
      EXPECT_NE(status.error().message().find("No space left"), std::string::npos);
    }
    ASSERT_TRUE(writer->Publish()) << n;
    EXPECT_EQ(Entries(writer->directory()), "a: x=1; b: x=2; ") << n;
    EXPECT_TRUE(writer->Finish());
  }
}

// Each system call of Open() fails in turn: an error, or a writer that works.
TEST(RunWriter, FailedOpenIsAClearErrorAndLeaksNothing) {
  bool succeeded = false;
  for (int n = 0; !succeeded; ++n) {
    ASSERT_LT(n, 60);
    const TestDirectory dir;
    StoreThreads threads;
    const size_t descriptors = OpenDescriptors();
    {
      const FailingCalls faults(n, EACCES);
      const auto writer = RunWriter::Open(WriterOptions(dir.Path("out"), true), threads);
      succeeded = !FailingCalls::fired();
      if (!writer) {
        EXPECT_EQ(writer.error().code(), ErrorCode::kIo) << writer.error().message();
        EXPECT_NE(writer.error().message().find("out"), std::string::npos);
      }
      // Not creating a directory that exists is no failure.
      EXPECT_TRUE(writer || !succeeded) << n;
    }
    EXPECT_EQ(OpenDescriptors(), descriptors) << n;
    // Whatever stood there, the next attempt works.
    EXPECT_TRUE(RunWriter::Open(WriterOptions(dir.Path("out"), true), threads));
  }
}

TEST(RunWriter, FullDiskSwitchesTheJournalOffOnceAndRecordingGoesOn) {
  SetLogLevel(LogLevel::kInfo);
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  Add(*writer, "a", "x", 1);
  ::testing::internal::CaptureStderr();
  {
    const FailingCalls faults(0, ENOSPC, /*sticky=*/true);
    for (int i = 0; i < 5; ++i) Add(*writer, "b" + std::to_string(i), "x", i);
    writer->AddStack(1, std::vector<std::string>{"f"});
    writer->RemoveEntry("b4");
    EXPECT_FALSE(writer->Publish());
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(writer->failed());
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_NE(log.find(".dump.journal: cannot write"), std::string::npos) << log;
  EXPECT_NE(log.find("No space left"), std::string::npos) << log;
  // Space is back: nothing was lost.
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(Entries(writer->directory()), "a: x=1; b0: x=0; b1: x=1; b2: x=2; b3: x=3; ");
  const std::string errors = ReadFile(writer->directory() + "/dump_error_info.log").value_or("");
  EXPECT_NE(errors.find("records_not_journaled: 5"), std::string::npos) << errors;
  EXPECT_EQ(errors.find("records_dropped"), std::string::npos) << errors;
}

TEST(RunWriter, WhatAFullDiskKeepsInMemoryCountsAsLostUntilItIsWritten) {
  SetLogLevel(LogLevel::kSilent);
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  Add(*writer, "a", "x", 1);
  const auto losses = [&] {
    const auto read = error_log::Read(writer->directory() + "/dump_error_info.log");
    return read ? error_log::CountMissing(*read) : 0;
  };
  {
    const FullDisk full;
    Add(*writer, "b", "x", 2);
    EXPECT_EQ(losses(), 1U);
    Add(*writer, "c", "x", 3);
    writer->AddLoss("calls_dropped", 1, "why");
    EXPECT_EQ(losses(), 3U);
    EXPECT_FALSE(writer->Publish());
    EXPECT_EQ(losses(), 3U);
  }
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(losses(), 1U);
  EXPECT_EQ(Entries(writer->directory()), "a: x=1; b: x=2; c: x=3; ");
  Add(*writer, "d", "x", 4);
  EXPECT_EQ(losses(), 2U);
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(losses(), 1U);
}

TEST(RunWriter, HandsTheRecordOfItsLossesOver) {
  SetLogLevel(LogLevel::kSilent);
  const TestDirectory dir;
  StoreThreads threads;
  LastLossRecord last;
  const std::string log = dir.Path("step0/rank/dump_error_info.log");
  {
    const auto writer = Open(WriterOptions(dir.path()), threads);
    Add(*writer, "a", "x", 1);
    ASSERT_TRUE(writer->Finish());
    writer->HandOver(last);
  }
  EXPECT_EQ(KindOf(log), PathKind::kMissing);
  const FullDisk full;
  EXPECT_TRUE(last.Add({"steps_dropped", 1, "step 1"}));
  EXPECT_NE(ReadFile(log).value_or("").find("steps_dropped: 1 (step 1)"), std::string::npos);
}

TEST(RunWriter, LossesAreStoredWithTheOutput) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  writer->AddLoss("calls_dropped", 2, "argument\nwalk failed");
  writer->AddLoss("calls_dropped", 1, "again");
  ASSERT_TRUE(writer->Publish());
  ASSERT_EQ(writer->losses().size(), 1U);
  EXPECT_EQ(writer->losses()[0].count, 3U);
  const std::string errors = ReadFile(writer->directory() + "/dump_error_info.log").value_or("");
  EXPECT_NE(errors.find("[ERROR] calls_dropped: 3 (again)"), std::string::npos) << errors;
}

TEST(RunWriter, DamagedEntryIsCountedNotWritten) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  writer->AddEntry({});
  ASSERT_EQ(writer->losses().size(), 1U);
  EXPECT_EQ(writer->losses()[0].counter, "calls_dropped");
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(Entries(writer->directory()), "");
}

// An entry whose output is a tensor with values under `number`.
void AddLate(RunWriter& writer, std::string_view name, uint64_t number) {
  EntryPacker packer;
  packer.Begin(name, nullptr, 0);
  packer.Key("output");
  PackedTensor tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.late = number;
  packer.Tensor(tensor);
  writer.AwaitValues(number, {DType::kFloat32, false, {}});
  writer.AddEntry(packer.Finish());
}

Statistic MaxOf(const std::string& directory, size_t call) {
  const auto dump = dump_json::ReadDump(directory + "/dump.json", false);
  return dump->calls.at(call).Find("output")->As<TensorRecord>()->max;
}

TEST(RunWriter, FilesWaitForTheLastValue) {
  const TestDirectory top;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(top.path()), threads);
  AddLate(*writer, "Torch.add.0.forward", 8);
  AddLate(*writer, "Torch.add.1.forward", 9);
  int published = 0;
  writer->WhenComplete(
      [&](RunWriter& complete) { published += complete.Publish().has_value() ? 1 : 0; });
  const auto values = [](uint64_t index, const RunWriter::LateTensor&) {
    LateValues of_index;
    of_index.stats.max = static_cast<double>(index) + 2;
    return of_index;
  };
  writer->AddValues(6, 3, values);  // 6 and 7 belong to another writer
  EXPECT_TRUE(writer->is_awaiting());
  EXPECT_EQ(published, 0);
  writer->AddValues(9, 1, values);
  EXPECT_EQ(published, 1);
  EXPECT_EQ(MaxOf(writer->directory(), 0), Statistic(4.0));
  EXPECT_EQ(MaxOf(writer->directory(), 1), Statistic(2.0));
  writer->WhenComplete([&](RunWriter&) { ++published; });
  EXPECT_EQ(published, 2) << "nothing is awaited: at once";
}

TEST(RunWriter, ValuesThatWillNotComeAreLost) {
  const TestDirectory top;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(top.path()), threads);
  AddLate(*writer, "Torch.add.0.forward", 8);
  writer->DropValues(8, 1, "device lost");
  EXPECT_FALSE(writer->is_awaiting());
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(MaxOf(writer->directory(), 0), Statistic());
  const auto losses = error_log::Read(writer->directory() + "/dump_error_info.log").value();
  const Loss* loss = FindLoss(losses, error_log::kValuesDropped);
  ASSERT_NE(loss, nullptr);
  EXPECT_EQ(loss->count, 1U);
}

TEST(RunWriter, SecondWriterOfADirectoryGetsItsOwnWithAWarning) {
  SetLogLevel(LogLevel::kInfo);
  const TestDirectory dir;
  StoreThreads threads;
  const auto first = Open(WriterOptions(dir.path()), threads);
  ::testing::internal::CaptureStdout();
  const pid_t child = ::fork();
  if (child == 0) {
    StoreThreads own;
    auto second = RunWriter::Open(WriterOptions(dir.path()), own);
    if (!second) ::_exit(1);
    Add(**second, "child", "x", 1);
    const bool ok = (*second)->Publish().has_value();
    ::_exit(ok && (*second)->directory() == first->directory() + "_" + std::to_string(::getpid())
                ? 0
                : 2);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(status, 0);
  EXPECT_NE(log.find("another process is recording"), std::string::npos) << log;
  Add(*first, "parent", "x", 2);
  ASSERT_TRUE(first->Finish());
  EXPECT_EQ(Entries(first->directory()), "parent: x=2; ");
  EXPECT_EQ(Entries(first->directory() + "_" + std::to_string(child)), "child: x=1; ");
}

TEST(RunWriter, UnfinishedJournalOfAnEarlierRunIsMovedAside) {
  SetLogLevel(LogLevel::kInfo);
  const TestDirectory dir;
  const pid_t child = ::fork();
  if (child == 0) {
    StoreThreads own;
    auto writer = RunWriter::Open(WriterOptions(dir.path()), own);
    if (writer) Add(**writer, "old", "x", 1);
    ::_exit(0);  // no destructors: as after a kill
  }
  ::waitpid(child, nullptr, 0);
  StoreThreads threads;
  ::testing::internal::CaptureStdout();
  const auto writer = Open(WriterOptions(dir.path()), threads);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("earlier run"), std::string::npos);
  Add(*writer, "new", "x", 2);
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(Entries(writer->directory()), "new: x=2; ");
  size_t stale = 0;
  const auto names = ListDirectory(writer->directory());
  ASSERT_TRUE(names);
  for (const std::string& name : *names) {
    stale += run_layout::IsStaleJournal(name) ? 1U : 0U;
  }
  EXPECT_EQ(stale, 1U);
}

TEST(RunWriter, JournalWithoutCallsIsNotKept) {
  const TestDirectory dir;
  StoreThreads threads;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(RunWriter::Open(WriterOptions(dir.path()), threads));
  EXPECT_EQ(ListDirectory(dir.Path("step0/rank"))->size(), 5U);
}

TEST(RunWriter, ForkedChildLeavesTheParentsFilesAlone) {
  const TestDirectory dir;
  StoreThreads threads;
  auto writer = Open(WriterOptions(dir.path(), true), threads);
  Add(*writer, "a", "x", 1);
  ASSERT_TRUE(writer->Publish());
  TensorBuffer buffer = writer->AcquireBuffer(100);
  Add(*writer, "b", "x", 2);
  const pid_t child = ::fork();
  if (child == 0) {
    // As at the exit of a data loader's worker: destructors run, or the debugger's exit handler.
    (void)writer->Publish();
    (void)writer->Finish();
    writer.reset();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Entries(writer->directory()), "a: x=1; ");
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(Entries(writer->directory()), "a: x=1; b: x=2; ");
}

// Calls with one tensor each, as the recorder makes them.
void AddCalls(RunWriter& writer, int count) {
  writer.AddStack(1, std::vector<std::string>{"frame a", "frame b"});
  const int64_t shape[] = {2, 128, 512};
  EntryPacker packer;
  for (int i = 0; i < count; ++i) {
    packer.Begin("Torch.mul." + std::to_string(i) + ".forward", nullptr, 1);
    packer.Key("output");
    packer.BeginList();
    PackedTensor tensor;
    tensor.type = "torch.Tensor";
    tensor.dtype_text = "torch.float32";
    tensor.shape = shape;
    tensor.max = tensor.min = tensor.mean = tensor.norm = 0.1 * i;
    packer.Tensor(tensor);
    packer.EndList();
    writer.AddEntry(packer.Finish());
  }
}

// What a step costs the disk: once its final files, and less than that for the journal.
TEST(RunWriter, StepIsWrittenOnceAndJournaledForLess) {
  static std::atomic<uint64_t> written;
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  const SyscallTable real = Syscalls();
  static const SyscallTable* calls;
  calls = &real;
  Syscalls().write = [](int fd, const void* bytes, size_t size) {
    const ssize_t n = calls->write(fd, bytes, size);
    if (n > 0) written += static_cast<uint64_t>(n);
    return n;
  };
  written = 0;
  AddCalls(*writer, 2000);
  const uint64_t journal = written;
  EXPECT_TRUE(writer->Publish());  // as stop() does
  EXPECT_TRUE(writer->Finish());   // as step() does
  threads.sync.Drain();
  Syscalls() = real;
  uint64_t files = 0;
  for (const char* name : {"/dump.json", "/stack.json", "/construct.json"}) {
    files += FileSize(writer->directory() + name).value_or(0);
  }
  EXPECT_GT(files, 500'000U);
  EXPECT_LE(written - journal, files + files / 10);
  EXPECT_LE(journal, files + files / 10);
}

TEST(RunWriter, ManyThreadsLoseNothing) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(WriterOptions(dir.path()), threads);
  {
    std::vector<std::jthread> producers;
    for (int t = 0; t < 4; ++t) {
      producers.emplace_back([&writer, t] {
        for (int i = 0; i < 50; ++i) {
          Add(*writer, std::to_string(t) + "." + std::to_string(i), "x", i);
        }
      });
    }
  }
  ASSERT_TRUE(writer->Finish());
  const auto dump = dump_json::ReadDump(writer->directory() + "/dump.json", false);
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->calls.size(), 200U);
}

}  // namespace

// Tensor files of a rank directory: names, links, losses.

namespace {

RunOptions TensorOptions(const std::string& dump_path) {
  RunOptions options;
  options.header = {"tensor", "L1", "pytorch", ""};
  options.dump_path = dump_path;
  options.has_tensors = true;
  return options;
}

TEST(RunWriterTensors, TensorTaskNamesItsDirectory) {
  const TestDirectory dir;
  StoreThreads threads;
  RunOptions options = TensorOptions(dir.path());
  options.step = 4;
  options.rank = 2;
  const auto writer = Open(options, threads);
  EXPECT_EQ(writer->header().dump_data_dir, dir.Path("step4/rank2/dump_tensor_data"));
  EXPECT_EQ(KindOf(writer->header().dump_data_dir), PathKind::kDirectory);
}

// Stores `text` as a byte tensor called `name`, as the recorder does.
std::string Save(RunWriter& writer, const std::string& name, const std::string& text,
                 RunWriter::NameUse use = RunWriter::NameUse::kNew) {
  std::string file = writer.ReserveTensorName(name, use);
  const auto bytes = std::as_bytes(std::span(text));
  const int64_t sizes[] = {static_cast<int64_t>(text.size())};
  Xxh3 hash;
  hash.Update(bytes);
  const ContentKey key = MakeContentKey(hash.Finish(), DType::kUInt8, sizes);
  if (!writer.LinkIfKnown(key, file)) {
    TensorBuffer buffer = writer.AcquireBuffer(bytes.size());
    if (!buffer.is_valid()) {
      writer.CountLostTensor();
      file.clear();
    } else {
      std::copy(bytes.begin(), bytes.end(), buffer.bytes().begin());
      writer.SaveTensor({file, DType::kUInt8, sizes, Crc32(bytes), key}, std::move(buffer));
    }
  }
  EntryPacker packer;
  packer.Begin(name, nullptr, 0);
  packer.Key("output");
  packer.BeginList();
  PackedTensor tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.uint8";
  tensor.shape = sizes;
  tensor.data_name = file;
  packer.Tensor(tensor);
  packer.EndList();
  writer.AddEntry(packer.Finish());
  return file;
}

TEST(RunWriterTensors, TensorFilesStandWhenPublishReturns) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(TensorOptions(dir.path()), threads);
  for (int i = 0; i < 30; ++i) Save(*writer, "t" + std::to_string(i), std::string(100000, 'a'));
  Save(*writer, "other", "b");
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(ListDirectory(writer->header().dump_data_dir)->size(), 31U);
  EXPECT_EQ(threads.tensors.stats().files, 2U);
  EXPECT_EQ(threads.tensors.stats().links, 29U);
}

TEST(RunWriterTensors, LeftOversOfAnEarlierRunAreListedExactly) {
  SetLogLevel(LogLevel::kInfo);
  const TestDirectory dir;
  const std::string rank = dir.Path("step0/rank");
  {
    StoreThreads threads;
    const auto writer = Open(TensorOptions(dir.path()), threads);
    for (const char* name : {"a", "b", "c"}) Save(*writer, name, std::string("old ") + name);
    writer->AddLoss("calls_dropped", 1, "of the first run");
    ASSERT_TRUE(writer->Finish());
  }
  ASSERT_TRUE(WriteFileAtomically(rank + "/dump_tensor_data/.x.pt.tmp", "cut", false));
  StoreThreads threads;
  const auto writer = Open(TensorOptions(dir.path()), threads);
  EXPECT_EQ(KindOf(rank + "/dump_error_info.log"), PathKind::kMissing);
  EXPECT_EQ(KindOf(rank + "/dump_tensor_data/.x.pt.tmp"), PathKind::kMissing);
  Save(*writer, "b", "new");
  ::testing::internal::CaptureStdout();
  ASSERT_TRUE(writer->Finish());
  const std::string log = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(log.find("2 files of an earlier run were left, which dump.json does not name: a.pt, "
                     "c.pt."),
            std::string::npos)
      << log;
  EXPECT_EQ(ListDirectory(rank + "/dump_tensor_data")->size(), 3U);  // never deleted
  EXPECT_NE(ReadFile(rank + "/dump_tensor_data/b.pt")->find("new"), std::string::npos);
}

// A file of an earlier run is not taken for the one that could not be written.
TEST(RunWriterTensors, LostTensorIsNotNamedAlthoughAnOldFileHasItsName) {
  SetLogLevel(LogLevel::kSilent);
  const TestDirectory dir;
  const std::string tensors = dir.Path("step0/rank/dump_tensor_data");
  ASSERT_TRUE(MakeDirectories(tensors));
  ASSERT_TRUE(WriteFileAtomically(tensors + "/a.pt", "old", false));
  StoreThreads threads({.max_bytes = 1});
  const auto writer = Open(TensorOptions(dir.path()), threads);
  Save(*writer, "a", "one");
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(ReadFile(writer->directory() + "/dump.json")->find("a.pt"), std::string::npos);
  EXPECT_EQ(KindOf(tensors + "/a.pt"), PathKind::kMissing);
  // The next step begins with writing switched off: its losses are counted with it.
  RunOptions next = TensorOptions(dir.path());
  next.step = 1;
  const auto second = Open(next, threads);
  Save(*second, "a", "one");
  ASSERT_TRUE(second->Finish());
  const std::string log = ReadFile(second->directory() + "/dump_error_info.log").value_or("");
  EXPECT_NE(log.find("tensors_dropped: 1 ("), std::string::npos) << log;
  EXPECT_NE(log.find("max_bytes"), std::string::npos) << log;
  SetLogLevel(LogLevel::kInfo);
}

TEST(RunWriterTensors, ReplacedFileIsNoLongerAKnownContent) {
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(TensorOptions(dir.path()), threads);
  const auto replace = RunWriter::NameUse::kReplace;
  const std::string first = Save(*writer, "g.weight", "old", replace);
  EXPECT_EQ(Save(*writer, "g.weight", "new", replace), first);
  const std::string copy = Save(*writer, "copy", "old");
  ASSERT_TRUE(writer->Publish());
  const std::string tensors = writer->header().dump_data_dir;
  EXPECT_NE(ReadFile(JoinPath(tensors, first))->find("new"), std::string::npos);
  EXPECT_NE(ReadFile(JoinPath(tensors, copy))->find("old"), std::string::npos);
}

TEST(RunWriterTensors, TensorsThatCouldNotBeWrittenAreNotNamed) {
  SetLogLevel(LogLevel::kSilent);
  const TestDirectory dir;
  StoreThreads threads;
  const auto writer = Open(TensorOptions(dir.path()), threads);
  Save(*writer, "a", "one");
  threads.tensors.WaitFor(1);
  {
    const SyscallTable real = Syscalls();
    Syscalls().renameat = [](int, const char*, int, const char*) {
      errno = ENOSPC;
      return -1;
    };
    Save(*writer, "b", "two");
    threads.tensors.WaitFor(2);
    Syscalls() = real;
  }
  Save(*writer, "c", "three");
  ASSERT_TRUE(writer->Finish());
  SetLogLevel(LogLevel::kInfo);
  const std::string text = *ReadFile(writer->directory() + "/dump.json");
  EXPECT_NE(text.find("\"data_name\": \"a.pt\""), std::string::npos);
  EXPECT_EQ(text.find("b.pt"), std::string::npos);
  EXPECT_EQ(text.find("c.pt"), std::string::npos);
  EXPECT_NE(text.find("\"c\": {"), std::string::npos);
  EXPECT_EQ(threads.tensors.stats().lost, 2U);
  EXPECT_NE(ReadFile(writer->directory() + "/dump_error_info.log")->find("tensors_dropped: 2"),
            std::string::npos);
}

}  // namespace

}  // namespace plumbline

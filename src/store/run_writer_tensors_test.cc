// Tensor files of a rank directory: names, links, losses.

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/test_directory.h"
#include "record/value.h"
#include "store/run_writer.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

RunOptions Options(const std::string& dump_path) {
  RunOptions options;
  options.header = {"tensor", "L1", "pytorch", ""};
  options.dump_path = dump_path;
  options.has_tensors = true;
  return options;
}

std::unique_ptr<RunWriter> Open(const RunOptions& options, StoreThreads& threads) {
  auto writer = RunWriter::Open(options, threads);
  EXPECT_TRUE(writer) << writer.error().message();
  return writer ? *std::move(writer) : nullptr;
}

TEST(RunWriterTensors, TensorTaskNamesItsDirectory) {
  const TestDirectory dir;
  StoreThreads threads;
  RunOptions options = Options(dir.path());
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
  const auto writer = Open(Options(dir.path()), threads);
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
    const auto writer = Open(Options(dir.path()), threads);
    for (const char* name : {"a", "b", "c"}) Save(*writer, name, std::string("old ") + name);
    writer->AddLoss("calls_dropped", 1, "of the first run");
    ASSERT_TRUE(writer->Finish());
  }
  ASSERT_TRUE(WriteFileAtomically(rank + "/dump_tensor_data/.x.pt.tmp", "cut", false));
  StoreThreads threads;
  const auto writer = Open(Options(dir.path()), threads);
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
  const auto writer = Open(Options(dir.path()), threads);
  Save(*writer, "a", "one");
  ASSERT_TRUE(writer->Publish());
  EXPECT_EQ(ReadFile(writer->directory() + "/dump.json")->find("a.pt"), std::string::npos);
  EXPECT_EQ(KindOf(tensors + "/a.pt"), PathKind::kMissing);
  // The next step begins with writing switched off: its losses are counted with it.
  RunOptions next = Options(dir.path());
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
  const auto writer = Open(Options(dir.path()), threads);
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
  const auto writer = Open(Options(dir.path()), threads);
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

// Both ends in one process: credits, memory, and what happens when there is nobody.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/process/log.h"
#include "online/receiver.h"
#include "online/sender.h"
#include "online/troubles.h"
#include "record/value.h"
#include "store/run_writer.h"

namespace plumbline::online {
namespace {

using std::chrono::milliseconds;
using testing::TestDirectory;

class Quiet : public ::testing::Test {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kSilent); }
  void TearDown() override { SetLogLevel(LogLevel::kInfo); }
  TestDirectory directory_;
};
using Online = Quiet;

ReceiverOptions ReceiverAt(const TestDirectory& directory) {
  ReceiverOptions options;
  options.host = "127.0.0.1";
  options.spool = directory.Path("spool");
  return options;
}

SenderOptions SenderTo(int port) {
  SenderOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.farewell = milliseconds(3000);
  return options;
}

// One entry with a tensor of `bytes` bytes, as a recorder hands it on.
void Add(TensorChannel& channel, StoreThreads& threads, const std::string& name, size_t bytes,
         int64_t step = 0) {
  EntryPacker packer;
  packer.Begin(name, nullptr, 0);
  packer.Key("output");
  packer.Null();
  std::vector<ChannelTensor> tensors(1);
  tensors[0].name = name + ".output.0.pt";
  tensors[0].dtype = DType::kUInt8;
  tensors[0].sizes = {static_cast<int64_t>(bytes)};
  tensors[0].buffer = threads.tensors.AcquireWithin(bytes);
  const bool is_whole = tensors[0].buffer.is_valid();
  if (is_whole) {
    for (std::byte& byte : tensors[0].buffer.bytes()) byte = std::byte{7};
  }
  channel.AddEntry(step, packer.Finish(), std::move(tensors), is_whole);
}

std::vector<std::string> NamesIn(const ReceivedStep& step) {
  std::vector<std::string> names;
  const auto map = *MappedFile::Open(step.path);
  VisitFrames(map->bytes(), [&](const FrameHeader& header, std::span<const std::byte> body) {
    if (header.kind != FrameKind::kRecord) return;
    const Record record = *ParseRecord(body);
    names.emplace_back(PeekEntry(record.packed)->name);
    EXPECT_EQ(record.tensors.size(), 1U);
    EXPECT_EQ(record.tensors[0].bytes.back(), std::byte{7});
  });
  return names;
}

TEST_F(Online, RecordsArriveStepByStepInOrder) {
  StoreThreads threads;
  const auto receiver = *Receiver::Start(ReceiverAt(directory_), {});
  const auto sender = *Sender::Open(SenderTo(receiver->port()));
  for (int64_t step = 0; step < 3; ++step) {
    Add(*sender, threads, "a", 1000, step);
    Add(*sender, threads, "b", 1, step);
    sender->EndStep(step);
  }
  for (int64_t number = 0; number < 3; ++number) {
    const auto step = receiver->NextStep(milliseconds(5000));
    ASSERT_TRUE(step);
    EXPECT_EQ(step->step, number);
    EXPECT_TRUE(step->is_whole);
    EXPECT_EQ(NamesIn(*step), (std::vector<std::string>{"a", "b"}));
    receiver->Finished(*step);
    EXPECT_EQ(KindOf(step->path), PathKind::kMissing);
  }
  EXPECT_FALSE(receiver->IsOver());
  sender->Close();
  EXPECT_EQ(sender->counts().unsent + sender->counts().dropped, 0U);
  EXPECT_TRUE(receiver->IsOver());
}

TEST_F(Online, WithoutCreditsRecordsAreDroppedAndCounted) {
  StoreThreads threads;
  ReceiverOptions options = ReceiverAt(directory_);
  options.most_spool_bytes = 1;  // the first record takes all
  const auto receiver = *Receiver::Start(options, {});
  const auto sender = *Sender::Open(SenderTo(receiver->port()));
  Add(*sender, threads, "a", 100);
  for (int i = 0; i < 100 && receiver->Sessions().empty(); ++i) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  std::this_thread::sleep_for(milliseconds(500));  // the answer
  Add(*sender, threads, "b", 100);
  Add(*sender, threads, "c", 100);
  EXPECT_EQ(sender->counts().dropped, 2U);
  sender->EndStep(0);
  sender->Close();
  EXPECT_EQ(receiver->Sessions().at(0).dropped, 2U);
  EXPECT_EQ(NamesIn(*receiver->NextStep(milliseconds(5000))), std::vector<std::string>{"a"});
}

TEST_F(Online, MemoryIsBoundedAndNothingWaitsForNobody) {
  TensorLimits limits;
  limits.budget_bytes = 10000;
  StoreThreads threads(limits);
  SenderOptions options = SenderTo(9);  // where nobody listens
  options.may_block = true;
  options.farewell = milliseconds(300);
  const auto sender = *Sender::Open(options);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) Add(*sender, threads, "a", 3000);
  const SenderCounts queued = sender->counts();
  EXPECT_EQ(queued.records, 10U);
  EXPECT_GE(queued.dropped, 7U);
  sender->Close();
  EXPECT_EQ(sender->counts().unsent, 10U - queued.dropped);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(3000));
}

TEST_F(Online, AnotherRankIsRefusedAndASecondTrainingOfARankToo) {
  StoreThreads threads;
  ReceiverOptions options = ReceiverAt(directory_);
  options.ranks = {0};
  const auto receiver = *Receiver::Start(options, {});
  const auto first = *Sender::Open(SenderTo(receiver->port()));
  for (int i = 0; i < 100 && receiver->Sessions().empty(); ++i) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  SenderOptions of_other = SenderTo(receiver->port());
  of_other.rank = 1;
  for (const SenderOptions& refused : {of_other, SenderTo(receiver->port())}) {
    const auto sender = *Sender::Open(refused);
    Add(*sender, threads, "a", 10);
    std::this_thread::sleep_for(milliseconds(500));
    Add(*sender, threads, "b", 10);
    EXPECT_EQ(sender->counts().dropped, 1U);
    sender->Close();
    EXPECT_EQ(sender->counts().unsent, 1U);
  }
  EXPECT_EQ(receiver->Sessions().size(), 1U);
}

TEST_F(Online, ReceiverGoesOnWithTheSpoolOfOneThatWasKilled) {
  StoreThreads threads;
  uint64_t session = 0;
  {
    const auto receiver = *Receiver::Start(ReceiverAt(directory_), {});
    const auto sender = *Sender::Open(SenderTo(receiver->port()));
    Add(*sender, threads, "a", 100);
    Add(*sender, threads, "b", 100);
    sender->EndStep(0);
    sender->Close();
    session = receiver->Sessions().at(0).session;
  }
  const std::string path = directory_.Path("spool/" + (*ListDirectory(directory_.Path("spool")))[0]);
  {
    File torn = *File::OpenAppend(path);
    ASSERT_TRUE(torn.Write("PLOC half a frame"));
  }
  const auto receiver = *Receiver::Start(ReceiverAt(directory_), {});
  EXPECT_TRUE(receiver->IsOver());
  const auto step = receiver->NextStep({});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->session, session);
  EXPECT_EQ(step->last_sequence, 3U);
  EXPECT_EQ(NamesIn(*step), (std::vector<std::string>{"a", "b"}));
}

TEST(Troubles, MessagesThatDifferInNumbersAloneAreToldOnceAndCounted) {
  Troubles troubles;
  const auto full_at = [&](int frame) {
    return "/s/0/1/.00a7-" + std::to_string(frame) + ".frame.tmp: no space left";
  };
  EXPECT_TRUE(troubles.IsNew(full_at(12)));
  EXPECT_FALSE(troubles.IsNew(full_at(13)));
  EXPECT_FALSE(troubles.IsNew(full_at(1400)));
  EXPECT_TRUE(troubles.IsNew("127.0.0.1:40312: the connection was closed"));
  EXPECT_FALSE(troubles.IsNew("127.0.0.1:5: the connection was closed"));
  EXPECT_TRUE(troubles.IsNew("127.0.0.2:40312: the connection was closed"));  // another machine
  EXPECT_EQ(troubles.Repeated(),
            (std::vector<std::string>{"2 times more: " + full_at(12),
                                      "1 time more: 127.0.0.1:40312: the connection was closed"}));
}

}  // namespace
}  // namespace plumbline::online

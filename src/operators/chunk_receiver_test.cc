#include "operators/chunk_receiver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file/test_directory.h"
#include "formats/acl/acl_dump.h"
#include "formats/array/npy.h"

namespace plumbline::operators {
namespace {

constexpr int32_t kFloat = 1;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

// A dump file with one output of `count` float32 elements, all of them `value`.
std::string DumpOf(float value, size_t count) {
  std::string data;
  for (size_t i = 0; i < count; ++i) {
    data.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  acl::Message message;
  message.version = "2.0";
  acl::DumpedTensor& output = message.outputs.emplace_back();
  output.data_type = kFloat;
  output.format = DeviceFormat::kND;
  output.shape = output.original_shape = acl::Dims{count};
  output.data = BytesOf(data);
  output.size = data.size();
  return acl::MakeHeader(message) + data;
}

// What a test wants of the next write of a piece, and whether it has begun.
struct Gate {
  std::atomic<bool> is_writing = false;
  std::atomic<bool> fails = false;
};
Gate gate;

// While it lives, the next pwrite takes its time, or fails as on a full disk.
class SlowWrite {
 public:
  explicit SlowWrite(bool fails) : real_(Syscalls()) {
    gate.is_writing = false;
    gate.fails = fails;
    Syscalls().pwrite = [](int fd, const void* data, size_t size, off_t offset) -> ssize_t {
      if (gate.is_writing.exchange(true)) return ::pwrite(fd, data, size, offset);
      if (gate.fails) {
        errno = ENOSPC;
        return -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      return ::pwrite(fd, data, size, offset);
    };
  }
  ~SlowWrite() { Syscalls() = real_; }
  SlowWrite(const SlowWrite&) = delete;
  SlowWrite& operator=(const SlowWrite&) = delete;

  static void AwaitWrite() {
    while (!gate.is_writing) std::this_thread::yield();
  }

 private:
  const SyscallTable real_;
};

class ChunkReceiverTest : public ::testing::Test {
 protected:
  ChunkReceiverTest() : receiver_(*ChunkReceiver::Open(root_.path())) {}

  [[nodiscard]] static std::string NameOf(size_t number) {
    return fmt::format("Add.op{}.{}.7.1735011096000001", number, number);
  }
  Status Send(size_t number, std::string_view bytes, int64_t offset, bool is_last) {
    const std::string path = root_.Path(NameOf(number));
    return receiver_->Receive({path, BytesOf(bytes), offset, is_last});
  }
  [[nodiscard]] std::string OutputOf(size_t number) const {
    return root_.Path(NameOf(number) + ".output.0.ND.FLOAT.npy");
  }
  // Whether the output has `count` elements, all of them `value`.
  [[nodiscard]] bool Holds(size_t number, float value, size_t count) const {
    const Result<npy::NpyFile> file = npy::NpyFile::Open(OutputOf(number));
    if (!file || file->view().element_count() != static_cast<int64_t>(count)) return false;
    for (size_t i = 0; i < count; ++i) {
      float element = 0;
      std::memcpy(&element, file->view().data + i * sizeof(element), sizeof(element));
      if (element != value) return false;
    }
    return true;
  }

  testing::TestDirectory root_;
  std::unique_ptr<ChunkReceiver> receiver_;
};

TEST_F(ChunkReceiverTest, AHoleBetweenChunksIsAFailure) {
  const std::string dump = DumpOf(2, 64);
  const std::string_view bytes = dump;
  // The whole, out of order and with bytes that come twice; then without some in the middle.
  const auto at = [](size_t place) { return static_cast<int64_t>(place); };
  EXPECT_TRUE(Send(0, bytes.substr(100), at(100), false));
  EXPECT_TRUE(Send(0, bytes.substr(40, 80), at(40), false));
  EXPECT_TRUE(Send(0, bytes.substr(0, 40), 0, true));
  EXPECT_TRUE(Send(1, bytes.substr(0, 150), 0, false));
  EXPECT_TRUE(Send(1, bytes.substr(160), at(160), true));
  const ReceiverReport report = receiver_->Close();
  EXPECT_EQ(report.files, 1U);
  EXPECT_EQ(report.failed, 1U);
  EXPECT_TRUE(Holds(0, 2, 64));
  EXPECT_EQ(KindOf(OutputOf(1)), PathKind::kMissing);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("bytes 150 to 159 never came"), std::string::npos)
      << report.problems[0];
}

TEST_F(ChunkReceiverTest, BytesThatComeTwiceAreTheSame) {
  const std::string dump = DumpOf(2, 64);
  const std::string_view bytes = dump;
  std::string other = dump;
  other[150] = static_cast<char>(other[150] ^ 1);
  EXPECT_TRUE(Send(0, bytes.substr(0, 200), 0, false));
  const Status contradicted =
      Send(0, std::string_view(other).substr(100, 100), /*offset=*/100, false);
  ASSERT_FALSE(contradicted);
  EXPECT_EQ(contradicted.error().code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(Send(0, bytes.substr(200), 200, true));
  EXPECT_TRUE(Send(1, bytes.substr(0, 200), 0, false));
  EXPECT_TRUE(Send(1, bytes.substr(100), 100, false));
  EXPECT_TRUE(Send(1, bytes, 0, true));
  const ReceiverReport report = receiver_->Close();
  EXPECT_EQ(report.files, 1U);
  EXPECT_EQ(report.failed, 1U);
  EXPECT_TRUE(Holds(1, 2, 64));
  EXPECT_EQ(KindOf(OutputOf(0)), PathKind::kMissing);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("byte 150 came twice"), std::string::npos)
      << report.problems[0];
}

// Without a place a chunk that comes again, or never, moves those behind it.
TEST_F(ChunkReceiverTest, BytesThatHaveMovedAreNoTensors) {
  const std::string dump = DumpOf(2, 64);
  const std::string_view bytes = dump;
  for (const size_t begin : {size_t{0}, size_t{0}, size_t{100}}) {
    EXPECT_TRUE(Send(0, bytes.substr(begin, begin == 0 ? 100 : bytes.npos), -1, begin > 0));
  }
  EXPECT_TRUE(Send(1, dump + "abc", -1, true));
  EXPECT_TRUE(Send(2, bytes.substr(0, 200), -1, false));
  EXPECT_TRUE(Send(2, bytes.substr(240), -1, true));
  const ReceiverReport report = receiver_->Close();
  EXPECT_EQ(report.failed, 3U);
  ASSERT_EQ(report.problems.size(), 3U);
  EXPECT_NE(report.problems[0].find("100 bytes behind the last part"), std::string::npos)
      << report.problems[0];
  EXPECT_NE(report.problems[2].find("cut at output 0"), std::string::npos) << report.problems[2];
  EXPECT_EQ(KindOf(OutputOf(0)), PathKind::kMissing);
  EXPECT_EQ(KindOf(OutputOf(2)), PathKind::kMissing);
  const auto kept = ReadFile(root_.Path(NameOf(0) + ".delivery-2"));
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, dump.substr(0, 100) + dump);
  // Of one piece nothing has moved.
  EXPECT_NE(report.problems[1].find("3 bytes behind the last part"), std::string::npos)
      << report.problems[1];
  EXPECT_TRUE(Holds(1, 2, 64));
}

TEST_F(ChunkReceiverTest, AFileThatComesAgainTakesNothingAway) {
  const std::string first = DumpOf(2, 64), other = DumpOf(3, 64);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Send(0, first, -1, true));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Send(0, other, -1, true));
  EXPECT_TRUE(Send(0, first, -1, true));
  const ReceiverReport report = receiver_->Close();
  EXPECT_EQ(report.failed, 2U);
  EXPECT_TRUE(Holds(0, 2, 64));
  for (const char* number : {"2", "3"}) {
    const auto kept = ReadFile(root_.Path(NameOf(0) + ".delivery-" + number));
    ASSERT_TRUE(kept) << number;
    EXPECT_EQ(*kept, other);
  }
  ASSERT_EQ(report.problems.size(), 4U);
  EXPECT_NE(report.problems[0].find("is there with other contents, and stays"), std::string::npos);
  EXPECT_NE(report.problems[1].find(".delivery-2"), std::string::npos) << report.problems[1];
}

TEST_F(ChunkReceiverTest, RowsOfATableThatComesAgainAreAddedOnce) {
  const std::string table =
      "Input/Output,Index,Data Size,Data Type,Format,Shape,Count,Max Value\n"
      "Input,0,8,DT_FLOAT,ND,(2,),2,1.5\n";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Send(0, table, -1, true));
  EXPECT_TRUE(Send(1, table, -1, true));
  const ReceiverReport report = receiver_->Close();
  EXPECT_EQ(report.failed, 0U) << (report.problems.empty() ? "" : report.problems[0]);
  const auto rows = ReadFile(root_.Path("statistic.csv"));
  ASSERT_TRUE(rows);
  EXPECT_EQ(std::ranges::count(*rows, '\n'), 3);
}

TEST_F(ChunkReceiverTest, CloseWaitsForAChunkOnItsWay) {
  const std::string dump = DumpOf(2, 8);
  const SlowWrite slow(/*fails=*/false);
  Status received;
  std::thread device([&] { received = Send(1, dump, -1, /*is_last=*/true); });
  SlowWrite::AwaitWrite();
  const ReceiverReport report = receiver_->Close();
  device.join();
  EXPECT_TRUE(received) << received.error().message();
  EXPECT_EQ(report.files, 1U);
  EXPECT_EQ(report.failed + report.unended, 0U);
  EXPECT_TRUE(report.problems.empty()) << report.problems[0];
  EXPECT_TRUE(Holds(1, 2, 8));
  EXPECT_FALSE(Send(2, dump, -1, /*is_last=*/true));
}

TEST_F(ChunkReceiverTest, TheLastChunkWaitsForThoseInFrontOfIt) {
  const std::string dump = DumpOf(3, 8);
  const size_t half = dump.size() / 2;
  const SlowWrite slow(/*fails=*/false);
  std::thread device(
      [&] { EXPECT_TRUE(Send(1, std::string_view(dump).substr(0, half), 0, /*is_last=*/false)); });
  SlowWrite::AwaitWrite();
  const auto offset = static_cast<int64_t>(half);
  EXPECT_TRUE(Send(1, std::string_view(dump).substr(half), offset, /*is_last=*/true));
  EXPECT_TRUE(Holds(1, 3, 8));
  device.join();
  EXPECT_EQ(receiver_->Close().failed, 0U);
}

// A piece without one of its chunks would have zeros, or what comes behind it, in its place.
TEST_F(ChunkReceiverTest, AFileWithoutOneOfItsChunksIsNotConverted) {
  const std::string dump = DumpOf(4, 64);
  const std::string_view text(dump);
  const size_t start = dump.size() - 100;
  ASSERT_TRUE(Send(1, text.substr(0, start), 0, /*is_last=*/false));
  {
    const SlowWrite full(/*fails=*/true);
    const Status lost = Send(1, text.substr(start, 50), static_cast<int64_t>(start), false);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code(), ErrorCode::kIo);
  }
  EXPECT_TRUE(Send(1, text.substr(start + 50), static_cast<int64_t>(start) + 50, true));
  const ReceiverReport report = receiver_->Close();
  EXPECT_EQ(report.files, 0U);
  EXPECT_EQ(report.failed, 1U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find("a chunk is lost"), std::string::npos);
  EXPECT_EQ(KindOf(OutputOf(1)), PathKind::kMissing);
}

// Every file of which all chunks were taken is there, whenever the receiver was closed.
TEST_F(ChunkReceiverTest, ClosingAmongManyThreadsLosesNothingThatWasTaken) {
  constexpr size_t kThreads = 4, kFiles = 200, kPieces = 3, kElements = 16;
  const std::string dump = DumpOf(5, kElements);
  std::atomic<size_t> taken = 0;
  std::vector<std::vector<size_t>> complete(kThreads);
  std::vector<std::thread> devices;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    devices.emplace_back([&, thread] {
      const size_t size = dump.size() / kPieces + 1;
      for (size_t number = thread; number < kFiles; number += kThreads) {
        bool all = true;
        for (size_t piece = 0; piece < kPieces; ++piece) {
          const auto bytes = std::string_view(dump).substr(piece * size, size);
          all = Send(number, bytes, -1, piece + 1 == kPieces).has_value() && all;
        }
        if (all) complete[thread].push_back(number);
        ++taken;
      }
    });
  }
  while (taken < kFiles / 4) std::this_thread::yield();
  const ReceiverReport report = receiver_->Close();
  for (std::thread& device : devices) device.join();
  EXPECT_EQ(report.failed, 0U);
  uint64_t count = 0;
  for (const auto& numbers : complete) {
    count += numbers.size();
    for (const size_t number : numbers) EXPECT_TRUE(Holds(number, 5, kElements)) << number;
  }
  EXPECT_GE(count, kFiles / 4);
  EXPECT_EQ(report.files, count);
}

}  // namespace
}  // namespace plumbline::operators

// Thousands of damaged files. The library itself crashes on some (docs/design/crash_safety.md), so
// each is read in a fork: what is read there is right, or an error, or the fork ends.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/isolated_run.h"
#include "base/test_directory.h"
#include "formats/hdf5_reader.h"
#include "formats/hdf5_writer.h"

namespace plumbline::hdf5 {
namespace {

constexpr int kFiles = 2000;
constexpr unsigned kSeconds = 20;  // for one file: a hang is no answer
constexpr std::array<float, 6> kElements = {1.5F, -2, 0, 3e30F, -1e-30F, 7};

enum Outcome : int { kRight, kRefused, kWrong };

std::vector<Argument> Arguments() {
  static const Shape kSizes = {2, 3};
  static const std::vector<int64_t> kStrides = {3, 1};
  const auto* data = reinterpret_cast<const std::byte*>(kElements.data());
  return {{"self", ValueKind::kTensor, TensorValue{{DType::kFloat32, data, kSizes, kStrides}}},
          {"alpha", ValueKind::kScalar, 0.75},
          {"dims", ValueKind::kIntegers, std::vector<int64_t>{4, 5, 6}}};
}

// Three calls of two operators.
std::string Dump(const testing::TestDirectory& root) {
  const std::string path = root.Path("whole.h5");
  Result<DumpWriter> writer = DumpWriter::Create(path);
  EXPECT_TRUE(writer);
  const std::vector<Argument> arguments = Arguments();
  int64_t id = 0;
  for (const char* operation : {"add", "add", "mul"}) {
    EXPECT_TRUE(writer->Write({operation, ++id, Side::kInput}, arguments));
  }
  EXPECT_TRUE(writer->Commit());
  return *ReadFile(path);
}

// A value that can be read is the one that was written; a tensor of another name has no checksum
// that fits.
Outcome OutcomeOf(const DumpReader& reader, const CallPlace& place, const StoredValue& value) {
  const auto right = [](bool is_right) { return is_right ? kRight : kWrong; };
  if (value.kind == ValueKind::kTensor) {
    const auto tensor = reader.Load(place, value);
    if (!tensor) return kRefused;
    return right(value.name == "self" && tensor->dtype == DType::kFloat32 &&
                 tensor->sizes == Shape{2, 3} && tensor->strides == std::vector<int64_t>{3, 1} &&
                 std::memcmp(tensor->bytes.data(), kElements.data(), sizeof(kElements)) == 0);
  }
  if (value.name == "alpha") return right(std::get<double>(value.number) == 0.75);
  return right(value.name == "dims" &&
               std::get<std::vector<int64_t>>(value.number) == std::vector<int64_t>{4, 5, 6});
}

// Everything that a file of that path gives. Names of operators have no checksum: one of another
// name is a call without a counterpart, and no number of it is wrong.
Outcome Read(const std::string& path) {
  const auto reader = DumpReader::Open(path);
  if (!reader) return kRefused;
  Outcome all = kRight;
  size_t calls = 0;
  for (const auto& [operation, ids] : reader->calls()) {
    calls += ids.size();
    for (const int64_t id : ids) {
      const CallPlace place{operation, id, Side::kInput};
      const auto values = reader->Values(place);
      if (values && values->size() != Arguments().size()) return kWrong;
      if (!values) all = kRefused;
      for (const StoredValue& value : values.value_or(std::vector<StoredValue>())) {
        const Outcome one = OutcomeOf(*reader, place, value);
        if (one == kWrong) return kWrong;
        if (one == kRefused) all = kRefused;
      }
    }
  }
  return calls == 3 ? all : kWrong;
}

// One to four bytes are others, or the end is cut off.
std::string Damaged(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t end) {
    return std::uniform_int_distribution<size_t>(0, end - 1)(random);
  };
  if (below(10) == 0) {
    bytes.resize(below(bytes.size()));
    return bytes;
  }
  for (size_t left = 1 + below(4); left > 0; --left) {
    const size_t bit = below(8), place = below(bytes.size());
    const bool is_flip = below(2) == 0;
    bytes[place] =
        is_flip ? static_cast<char>(bytes[place] ^ (1 << bit)) : static_cast<char>(below(256));
  }
  return bytes;
}

TEST(DamagedDumps, NoWrongNumberAndNoHang) {
  const testing::TestDirectory root;
  const std::string whole = Dump(root);
  const std::string path = root.Path("damaged.h5");
  std::mt19937 random(1);
  std::array<int, 3> outcomes{};
  int crashes = 0;
  for (int i = 0; i < kFiles; ++i) {
    const std::string bytes = Damaged(whole, random);
    ASSERT_TRUE(WriteFileAtomically(path, bytes, false));
    const Result<int> outcome = RunIsolated([&]() -> int {
      ::alarm(kSeconds);
      return Read(path);
    });
    if (!outcome) {
      ASSERT_EQ(outcome.error().message().find("signal 14"), std::string::npos) << "file " << i;
      ++crashes;
      continue;
    }
    EXPECT_NE(*outcome, kWrong) << "file " << i;
    ++outcomes[static_cast<size_t>(*outcome)];
  }
  EXPECT_EQ(Read(root.Path("whole.h5")), kRight);
  // The damage reaches what is read, and not all of it.
  EXPECT_GT(outcomes[kRight], kFiles / 20);
  EXPECT_GT(outcomes[kRefused], kFiles / 20);
  EXPECT_LT(crashes, kFiles / 4);
  RecordProperty("crashes", crashes);
}

}  // namespace
}  // namespace plumbline::hdf5

#include "formats/table/event_file.h"

#include <gtest/gtest.h>

#include "base/file/test_directory.h"
#include "base/memory/bytes.h"

namespace plumbline::event_file {
namespace {

// The message of each record; its checksums are for TensorBoard to look at (tests/compat).
std::vector<std::string> Records(const std::string& bytes) {
  std::vector<std::string> records;
  ByteReader reader(std::as_bytes(std::span(bytes)));
  while (reader.remaining() > 0) {
    const uint64_t size = *reader.ReadU64();
    EXPECT_TRUE(reader.Skip(4));
    records.emplace_back(*reader.ReadText(size));
    EXPECT_TRUE(reader.Skip(4));
  }
  return records;
}

TEST(EventFile, AFileWithoutScalarsIsTheOneOfTensorBoard) {
  const testing::TestDirectory root;
  Result<Writer> writer = Writer::Create(root.path(), "x", 1.0);
  ASSERT_TRUE(writer && writer->Close());
  // Length 24, masked checksums, wall time 1.0, file version.
  const std::string bytes = *ReadFile(root.Path("x"));
  EXPECT_EQ(bytes.size(), 8U + 4 + 24 + 4);
  EXPECT_EQ(Records(bytes), std::vector<std::string>{std::string("\x09\0\0\0\0\0\0\xF0\x3F", 9) +
                                                     "\x1A\x0D" + "brain.Event:2"});
}

TEST(EventFile, AStepIsOneRecord) {
  const testing::TestDirectory root;
  const std::string path = root.Path("x");
  Result<Writer> writer = Writer::Create(root.path(), "x", 1.0);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->AddScalar("a", 0, 0.5F));
  ASSERT_TRUE(writer->AddScalar("b", 0, 0));
  ASSERT_TRUE(writer->AddScalar("a", 300, 2));
  EXPECT_EQ(KindOf(path), PathKind::kMissing);
  ASSERT_TRUE(writer->Close());
  const std::vector<std::string> records = Records(*ReadFile(path));
  ASSERT_EQ(records.size(), 3U);
  const std::string time("\x09\0\0\0\0\0\0\xF0\x3F", 9);
  EXPECT_EQ(records[1], time + "\x2A\x14" + std::string("\x0A\x08\x0A\x01", 4) + "a" +
                            std::string("\x15\0\0\0\x3F", 5) + std::string("\x0A\x08\x0A\x01", 4) +
                            "b" + std::string("\x15\0\0\0\0", 5));
  EXPECT_EQ(records[2], time + "\x10\xAC\x02" + "\x2A\x0A" + std::string("\x0A\x08\x0A\x01", 4) +
                            "a" + std::string("\x15\0\0\0\x40", 5));
}

}  // namespace
}  // namespace plumbline::event_file

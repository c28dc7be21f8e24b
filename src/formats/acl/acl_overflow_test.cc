#include "formats/acl/acl_overflow.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/memory/bytes.h"

namespace plumbline::acl {

namespace {

Message WithAttribute(std::string value) {
  Message message;
  message.attributes.push_back({"_ffts", std::move(value)});
  return message;
}

constexpr const char* kText =
    R"({"threadMode": true, "slice_instance_num": 2, "other": [{}], "outputCutList": [[2, 1]],
        "input_tensor_slice": [[[{"lower": 0, "higher": 3}, {"lower": 0, "higher": 4}]],
                               [[{"lower": 3, "higher": 5}, {"lower": 0, "higher": 4}]]],
        "output_tensor_slice": [[[{"higher": 1, "lower": 0}]], []]})";

TEST(AclThreads, SizesOfEachPart) {
  const auto slices = ReadThreadSlices(WithAttribute(kText));
  ASSERT_TRUE(slices) << slices.error().message();
  ASSERT_TRUE(*slices);
  EXPECT_TRUE((*slices)->is_automatic);
  EXPECT_EQ((*slices)->instance_count, 2);
  EXPECT_EQ((*slices)->output_cuts, (std::vector<Shape>{{2, 1}}));
  EXPECT_EQ((*slices)->InputOf(1, 0), (Shape{2, 4}));
  EXPECT_EQ((*slices)->OutputOf(0, 0), Shape{1});
  EXPECT_EQ((*slices)->OutputOf(1, 0), std::nullopt);
  EXPECT_EQ((*slices)->output_starts, (std::vector<std::vector<Shape>>{{{0}}, {}}));
  EXPECT_EQ((*slices)->InputOf(2, 0), std::nullopt);
}

TEST(AclThreads, ThreadModeAsNumber) {
  const auto slices = ReadThreadSlices(WithAttribute(R"({"threadMode": 0})"));
  ASSERT_TRUE(slices && *slices);
  EXPECT_FALSE((*slices)->is_automatic);
}

TEST(AclThreads, OtherOperators) {
  EXPECT_FALSE(*ReadThreadSlices(Message()));
  EXPECT_FALSE(*ReadThreadSlices(WithAttribute("some text")));
}

TEST(AclThreads, CutTextIsCorrupt) {
  const std::string text = kText;
  for (size_t size = 13; size < text.size(); ++size) {
    const auto slices = ReadThreadSlices(WithAttribute(text.substr(0, size)));
    ASSERT_FALSE(slices) << size;
    EXPECT_EQ(slices.error().code(), ErrorCode::kCorrupt);
  }
}

std::span<const std::byte> BytesOfText(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void Put(std::string& record, size_t offset, const std::vector<uint64_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&record[offset + 8 * i], &values[i], 8);
}

std::string OldRecord() {
  std::string record(2048, '\0');
  Put(record, 0, {1, 2, 3, 4, 26, 27});
  Put(record, 128, {11, 12, 13, 14, 15, 16});
  Put(record, 256, {21, 22, 23, 24, 0x1200, 0x3400});
  Put(record, 512, {1});
  Put(record, 1024, {0xabc, 7, 16});
  return record;
}

std::string NewRecord(uint32_t version, uint32_t kind, uint64_t fields) {
  std::string record;
  for (const uint32_t value : {0x5a5a5a5aU, version, 1U, kind, 0U, 88U}) AppendU32(value, record);
  for (uint64_t i = 1; i <= fields; ++i) AppendU64(i, record);
  return record;
}

TEST(AclOverflow, OldRecord) {
  const auto record = ReadOverflow(BytesOfText(OldRecord()));
  ASSERT_TRUE(record) << record.error().message();
  ASSERT_EQ(record->parts.size(), 3U);
  EXPECT_TRUE(record->parts[0].has_overflow());
  EXPECT_FALSE(record->parts[1].has_overflow());
  EXPECT_TRUE(record->parts[2].has_overflow());
  EXPECT_EQ(record->parts[2].Value("task_id"), 23U);
  EXPECT_EQ(OverflowJson(*record), R"({
    "DHA Atomic Add": {
        "model_id": 1,
        "stream_id": 2,
        "task_id": 3,
        "task_type": 4,
        "pc_start": "0x1a",
        "para_base": "0x1b",
        "status": 1
    },
    "L2 Atomic Add": {
        "model_id": 11,
        "stream_id": 12,
        "task_id": 13,
        "task_type": 14,
        "pc_start": "0xf",
        "para_base": "0x10",
        "status": 0
    },
    "AI Core": {
        "model_id": 21,
        "stream_id": 22,
        "task_id": 23,
        "task_type": 24,
        "pc_start": "0x1200",
        "para_base": "0x3400",
        "kernel_code": "0xabc",
        "block_idx": 7,
        "status": 16
    }
})");
}

TEST(AclOverflow, NewRecordOfEachKind) {
  const struct {
    uint32_t kind;
    uint64_t fields;
    const char* name;
    const char* last;
  } kinds[] = {{0, 11, "AIC", "block_id"},
               {1, 11, "AIV", "core_id"},
               {2, 8, "AICPU", "cpu_id"},
               {3, 10, "SDMA", "channel_id"}};
  for (const auto& one : kinds) {
    for (const uint32_t version : {0U, 1U}) {
      const uint64_t fields = one.fields + (version == 1 && one.kind < 2 ? 3 : 0);
      const auto record = ReadOverflow(BytesOfText(NewRecord(version, one.kind, fields)));
      ASSERT_TRUE(record) << one.name;
      EXPECT_EQ(record->parts[0].kind, one.name);
      EXPECT_EQ(record->parts[0].Value("status"), one.fields);
      EXPECT_TRUE(record->parts[0].Value(one.last));
      EXPECT_EQ(record->parts[0].fields.back().values.size(), version == 1 && one.kind < 2 ? 4 : 1);
      EXPECT_FALSE(ReadOverflow(BytesOfText(NewRecord(version, one.kind, fields - 1))));
    }
  }
}

TEST(AclOverflow, NewRecordAsJson) {
  const auto record = ReadOverflow(BytesOfText(NewRecord(1, 1, 14)));
  ASSERT_TRUE(record);
  EXPECT_EQ(OverflowJson(*record), R"({
    "magic": "0x5a5a5a5a",
    "version": 1,
    "acc_list": {
        "valid": 1,
        "acc_type": "AIV",
        "rsv": 0,
        "data_len": 88,
        "data": {
            "model_id": 1,
            "stream_id": 2,
            "task_id": 3,
            "task_type": 4,
            "context_id": 5,
            "thread_id": 6,
            "pc_start": "0x7",
            "para_base": "0x8",
            "core_id": 9,
            "block_id": 10,
            "status": [
                11,
                12,
                13,
                14
            ]
        }
    }
})");
}

TEST(AclOverflow, OtherBytes) {
  for (const size_t size : {0U, 1U, 2047U, 2049U}) {
    const auto record = ReadOverflow(BytesOfText(std::string(size, '\0')));
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error().code(), ErrorCode::kCorrupt);
  }
  const auto unknown = ReadOverflow(BytesOfText(NewRecord(0, 9, 11)));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::kUnsupported);
}

}  // namespace

}  // namespace plumbline::acl

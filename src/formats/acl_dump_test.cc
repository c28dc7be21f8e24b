#include "formats/acl_dump.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/bytes.h"
#include "base/protobuf_wire.h"
#include "base/test_directory.h"

namespace plumbline::acl {
namespace {

using protobuf::MessageWriter;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

DumpedTensor Tensor16(std::string_view data, Dims shape) {
  DumpedTensor tensor;
  tensor.data_type = 5;
  tensor.format = DeviceFormat::kND;
  tensor.shape = std::move(shape);
  tensor.data = BytesOf(data);
  return tensor;
}

// One input of two int16, outputs of one and two, a buffer and a workspace: 6 + 4 + 3 + 3 bytes.
std::string Sound() {
  Message message;
  message.version = "2.0";
  message.op_name = "Default/MatMul-op1";
  message.inputs = {Tensor16("aabb", {2})};
  message.outputs = {Tensor16("cc", {}), Tensor16("ddee", {2, 1})};
  message.buffers = {{0, 0, BytesOf("buf")}};
  message.spaces = {{0, 0, BytesOf("log")}};
  std::string text = MakeHeader(message);
  for (const auto* side : {&message.inputs, &message.outputs}) {
    for (const DumpedTensor& one : *side) text += AsText(one.data);
  }
  return text + "buflog";
}

std::string Write(const testing::TestDirectory& directory, const std::string& name,
                  const std::string& text) {
  const std::string path = directory.Path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(AclDump, PartsStandInTheirOrder) {
  const std::string text = Sound();
  const auto file = DumpFile::Parse(BytesOf(text));
  ASSERT_TRUE(file) << file.error().message();
  const Message& message = file->message();
  EXPECT_EQ(file->container(), Container::kVersion2);
  EXPECT_EQ(message.op_name, "Default/MatMul-op1");
  EXPECT_EQ(AsText(message.inputs[0].data), "aabb");
  EXPECT_EQ(AsText(message.outputs[0].data), "cc");
  EXPECT_EQ(AsText(message.outputs[1].data), "ddee");
  EXPECT_EQ(AsText(message.buffers[0].data), "buf");
  EXPECT_EQ(AsText(message.spaces[0].data), "log");
  EXPECT_EQ(file->surplus_bytes(), 0U);
  EXPECT_EQ(file->FirstCutPart(), "");
  auto elements = ElementsOf(message.outputs[1]);
  ASSERT_TRUE(elements);
  elements->Align();
  EXPECT_EQ(elements->view().element_count(), 2);
  EXPECT_EQ(elements->view().sizes.size(), 2U);
}

TEST(AclDump, WhatIsCutIsNamedAndTheRestIsRead) {
  const std::string text = Sound();
  const size_t data = text.size() - 16;
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    const auto file = DumpFile::Parse(BytesOf(cut));
    if (size < data) {
      ASSERT_FALSE(file) << size;
      EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
      continue;
    }
    ASSERT_TRUE(file) << size;
    const size_t left = size - data;
    EXPECT_EQ(file->FirstCutPart(), left < 4    ? "input 0"
                                    : left < 6  ? "output 0"
                                    : left < 10 ? "output 1"
                                    : left < 13 ? "buffer 0"
                                                : "space 0");
    EXPECT_EQ(ElementsOf(file->message().inputs[0]).has_value(), left >= 4);
    EXPECT_EQ(ElementsOf(file->message().outputs[1]).has_value(), left >= 10);
  }
}

TEST(AclDump, SurplusBytesAreCounted) {
  const std::string text = Sound() + "x";
  const auto file = DumpFile::Parse(BytesOf(text));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->surplus_bytes(), 1U);
}

TEST(AclDump, LengthsThatCannotBe) {
  std::string text = Sound();
  for (const uint64_t length : {uint64_t{1} << 63, UINT64_MAX, uint64_t{text.size()}}) {
    std::memcpy(text.data(), &length, 8);
    const auto file = DumpFile::Parse(BytesOf(text));
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
  }
  for (const size_t size : {0U, 7U, 8U})
    EXPECT_FALSE(DumpFile::Parse(BytesOf(std::string(size, 0))));
  const auto empty = DumpFile::Parse(BytesOf(std::string(9, 0)));
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->surplus_bytes(), 1U);
}

TEST(AclDump, DamagedHeaderNamesTheByte) {
  MessageWriter message;
  message.AddBytes(1, "2.0");
  std::string text;
  AppendU64(message.text().size() + 1, text);
  text += message.text() + "\x1a";
  const auto file = DumpFile::Parse(BytesOf(text));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message().find("byte 14"), std::string::npos) << file.error().message();
}

TEST(AclDump, Version1HoldsItsData) {
  MessageWriter shape;
  shape.AddPacked(1, std::vector<uint64_t>{2});
  MessageWriter input;
  input.AddNumber(1, 5);
  input.AddMessage(3, shape.text());
  input.AddBytes(4, "aabb");
  MessageWriter message;
  message.AddBytes(1, "1.0");
  message.AddMessage(4, input.text());
  const auto file = DumpFile::Parse(BytesOf(message.text()));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->container(), Container::kVersion1);
  EXPECT_EQ(AsText(file->message().inputs[0].data), "aabb");
  EXPECT_EQ(ElementsOf(file->message().inputs[0])->sizes, Shape{2});
  const std::string cut = message.text().substr(0, message.text().size() - 1);
  EXPECT_FALSE(DumpFile::Parse(BytesOf(cut)));
}

TEST(AclDump, UnknownSizesAreNoShape) {
  EXPECT_EQ(KnownShape(std::nullopt), std::nullopt);
  EXPECT_EQ(KnownShape(Dims{2, UINT64_MAX}), std::nullopt);
  EXPECT_EQ(KnownShape(Dims{}), Shape{});
  DumpedTensor tensor = Tensor16("aabb", {UINT64_MAX});
  tensor.size = 4;
  EXPECT_EQ(ElementsOf(tensor)->sizes, Shape{2});
}

// --- nano -------------------------------------------------------------------------------------

std::string NanoRecord(bool is_output, uint64_t size) {
  std::string text;
  AppendU32(3, text);  // INT32
  AppendU32(2, text);
  AppendU32(1, text);
  if (is_output) {
    for (const uint32_t field : {7U, 1U, 0U}) AppendU32(field, text);
  }
  for (const uint64_t field : {uint64_t{0x1000}, uint64_t{16}, size}) AppendU64(field, text);
  std::string tail;
  AppendU32(0, tail);
  AppendU32(16, tail);
  AppendU64(1, tail);
  AppendU64(2, tail);
  if (is_output) {
    AppendU32(2, tail);
    AppendU32(4, tail);
    tail += "conv";
  }
  AppendU32(static_cast<uint32_t>(tail.size()), text);
  return text + tail;
}

std::string NanoList(uint32_t tag, const std::string& record) {
  std::string text;
  AppendU32(tag, text);
  AppendU32(static_cast<uint32_t>(record.size() + 4), text);
  AppendU32(1, text);
  return text + record;
}

std::string Nano() {
  std::string header;
  AppendU32(0x5a5a5a5a, header);
  AppendU32(1, header);
  header += NanoList(4, NanoRecord(false, 8)) + NanoList(5, NanoRecord(true, 8));
  std::string text;
  AppendU64(header.size(), text);
  return text + header + "aaaabbbbccccdddd";
}

TEST(AclDump, NanoRecordsAreRead) {
  const testing::TestDirectory directory;
  const auto file = DumpFile::Open(Write(directory, "Conv2D.conv1.3.4.1700000000000001", Nano()));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->container(), Container::kNano);
  const Message& message = file->message();
  EXPECT_EQ(message.op_name, "conv1");
  EXPECT_EQ(message.dump_time, 1700000000000001U);
  ASSERT_EQ(message.outputs.size(), 1U);
  const DumpedTensor& output = message.outputs[0];
  EXPECT_EQ(TypeName(output.data_type), "INT32");
  EXPECT_EQ(TypeName(output.original_op->data_type), "FLOAT16");
  EXPECT_EQ(output.original_op->name, "conv");
  EXPECT_EQ(output.original_op->output_index, 7U);
  EXPECT_EQ(output.address, 0x1000U);
  EXPECT_EQ(output.shape, (Dims{1, 2}));
  EXPECT_EQ(AsText(output.data), "ccccdddd");
  EXPECT_FALSE(DumpFile::Open(Write(directory, "Conv2D.conv1.3.4", Nano())));
}

TEST(AclDump, NanoIsNamedAsTheRecorderNamedIt) {
  const testing::TestDirectory directory;
  const std::string path = Write(directory, "17", Nano());
  const auto file = DumpFile::Open(path, "Conv2D.conv1.3.4.1700000000000001");
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->message().op_name, "conv1");
  EXPECT_EQ(file->message().dump_time, 1700000000000001U);
  EXPECT_FALSE(DumpFile::Open(path));
}

TEST(AclDump, DamagedNanoIsCorrupt) {
  const std::string text = Nano();
  for (size_t size = 13; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    const auto file = DumpFile::Parse(BytesOf(cut));
    if (file) {
      EXPECT_NE(file->FirstCutPart(), "") << size;
    } else {
      EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
    }
  }
  for (size_t at = 16; at < text.size() - 16; ++at) {  // any damage: an answer or an error
    std::string damaged = text;
    damaged[at] = '\xff';
    (void)DumpFile::Parse(BytesOf(damaged));
  }
}

// --- files ------------------------------------------------------------------------------------

TEST(AclDump, ArraysAreOutputs) {
  const testing::TestDirectory directory;
  const auto header = npy::MakeHeader(DType::kInt16, Shape{2, 1});
  ASSERT_TRUE(header);
  const auto file = DumpFile::Open(Write(directory, "a.npy", *header + "aabb"));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->container(), Container::kNpy);
  ASSERT_EQ(file->message().outputs.size(), 1U);
  const DumpedTensor& output = file->message().outputs[0];
  EXPECT_EQ(output.format, DeviceFormat::kReserved);
  EXPECT_EQ(output.shape, (Dims{2, 1}));
  EXPECT_EQ(AsText(output.data), "aabb");
  EXPECT_FALSE(DumpFile::Open(Write(directory, "b.npy", Sound())));
}

TEST(AclDump, WritesWhatItReads) {
  const testing::TestDirectory directory;
  const std::string text = Sound();
  const auto file = DumpFile::Parse(BytesOf(text));
  ASSERT_TRUE(file);
  ASSERT_TRUE(WriteDump(directory.Path("copy"), file->message()));
  EXPECT_EQ(*ReadFile(directory.Path("copy")), text);
  EXPECT_EQ(DumpFile::Open(directory.Path("missing")).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::acl

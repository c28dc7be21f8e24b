#include "formats/acl/acl_dump.h"

#include <dump_data.pb.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/file/test_directory.h"
#include "base/memory/bytes.h"
#include "base/text/protobuf_wire.h"

namespace plumbline::acl {

// The message of a device dump against the stock protobuf library.

namespace {

namespace stock = toolkit::dumpdata;
using Random = std::mt19937_64;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Small, large and largest numbers.
uint64_t Number(Random& random) { return random() >> (random() % 65 == 64 ? 63 : random() % 64); }
int32_t Signed(Random& random) { return static_cast<int32_t>(Number(random)); }

std::string Text(Random& random) {
  std::string text(random() % 12, ' ');
  for (char& one : text) one = static_cast<char>('!' + random() % 90);
  return text;
}

template <class Function>
void Repeat(Random& random, Function function) {
  for (uint64_t left = random() % 21; left > 0; --left) function();
}

void Fill(Random& random, stock::Shape& shape) {
  Repeat(random, [&] { shape.add_dim(Number(random)); });
}

template <class Tensor>
void FillTensor(Random& random, Tensor& tensor) {
  tensor.set_data_type(Signed(random));
  tensor.set_format(Signed(random));
  if (random() % 4 != 0) Fill(random, *tensor.mutable_shape());
  if (random() % 2 != 0) Fill(random, *tensor.mutable_original_shape());
  tensor.set_data(Text(random));
  tensor.set_size(Number(random));
  tensor.set_sub_format(Signed(random));
  tensor.set_address(Number(random));
  tensor.set_offset(Number(random));
}

void FillOutput(Random& random, stock::OpOutput& output) {
  FillTensor(random, output);
  if (random() % 2 != 0) {
    stock::OriginalOp& op = *output.mutable_original_op();
    op.set_name(Text(random));
    op.set_output_index(static_cast<uint32_t>(Number(random)));
    op.set_data_type(Signed(random));
    op.set_format(Signed(random));
  }
  Repeat(random, [&] {
    stock::DimRange& range = *output.add_dim_range();
    range.set_dim_start(Number(random));
    range.set_dim_end(Number(random));
  });
}

stock::DumpData AnyMessage(Random& random) {
  stock::DumpData message;
  message.set_version(Text(random));
  message.set_dump_time(Number(random));
  message.set_op_name(Text(random));
  Repeat(random, [&] { FillTensor(random, *message.add_input()); });
  Repeat(random, [&] { FillOutput(random, *message.add_output()); });
  Repeat(random, [&] {
    stock::OpBuffer& buffer = *message.add_buffer();
    buffer.set_buffer_type(Signed(random));
    buffer.set_data(Text(random));
    buffer.set_size(Number(random));
  });
  Repeat(random, [&] {
    stock::OpAttr& attribute = *message.add_attr();
    attribute.set_name(Text(random));
    attribute.set_value(Text(random));
  });
  Repeat(random, [&] {
    stock::Workspace& space = *message.add_space();
    space.set_type(Signed(random));
    space.set_data(Text(random));
    space.set_size(Number(random));
  });
  return message;
}

std::optional<Dims> DimsOf(bool has, const stock::Shape& shape) {
  if (!has) return std::nullopt;
  return Dims(shape.dim().begin(), shape.dim().end());
}

template <class Stock>
void ExpectTensor(const DumpedTensor& ours, const Stock& theirs) {
  EXPECT_EQ(ours.data_type, theirs.data_type());
  EXPECT_EQ(static_cast<int32_t>(ours.format), theirs.format());
  EXPECT_EQ(ours.shape, DimsOf(theirs.has_shape(), theirs.shape()));
  EXPECT_EQ(ours.original_shape, DimsOf(theirs.has_original_shape(), theirs.original_shape()));
  EXPECT_EQ(ours.size, theirs.size());
  EXPECT_EQ(ours.sub_format, theirs.sub_format());
  EXPECT_EQ(ours.address, theirs.address());
  EXPECT_EQ(ours.offset, theirs.offset());
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void ExpectOutput(const DumpedTensor& ours, const stock::OpOutput& theirs) {
  ExpectTensor(ours, theirs);
  ASSERT_EQ(ours.original_op.has_value(), theirs.has_original_op());
  if (ours.original_op) {
    EXPECT_EQ(ours.original_op->name, theirs.original_op().name());
    EXPECT_EQ(ours.original_op->output_index, theirs.original_op().output_index());
    EXPECT_EQ(ours.original_op->data_type, theirs.original_op().data_type());
    EXPECT_EQ(static_cast<int32_t>(ours.original_op->format), theirs.original_op().format());
  }
  ASSERT_EQ(ours.dim_ranges.size(), static_cast<size_t>(theirs.dim_range_size()));
  for (int i = 0; i < theirs.dim_range_size(); ++i) {
    EXPECT_EQ(ours.dim_ranges[static_cast<size_t>(i)].start, theirs.dim_range(i).dim_start());
    EXPECT_EQ(ours.dim_ranges[static_cast<size_t>(i)].end, theirs.dim_range(i).dim_end());
  }
}

void ExpectRest(const Message& ours, const stock::DumpData& theirs) {
  EXPECT_EQ(ours.version, theirs.version());
  EXPECT_EQ(ours.dump_time, theirs.dump_time());
  EXPECT_EQ(ours.op_name, theirs.op_name());
  ASSERT_EQ(ours.buffers.size(), static_cast<size_t>(theirs.buffer_size()));
  for (int i = 0; i < theirs.buffer_size(); ++i) {
    EXPECT_EQ(ours.buffers[static_cast<size_t>(i)].type, theirs.buffer(i).buffer_type());
    EXPECT_EQ(ours.buffers[static_cast<size_t>(i)].size, theirs.buffer(i).size());
  }
  ASSERT_EQ(ours.spaces.size(), static_cast<size_t>(theirs.space_size()));
  for (int i = 0; i < theirs.space_size(); ++i) {
    EXPECT_EQ(ours.spaces[static_cast<size_t>(i)].type, theirs.space(i).type());
    EXPECT_EQ(ours.spaces[static_cast<size_t>(i)].size, theirs.space(i).size());
  }
  ASSERT_EQ(ours.attributes.size(), static_cast<size_t>(theirs.attr_size()));
  for (int i = 0; i < theirs.attr_size(); ++i) {
    EXPECT_EQ(ours.attributes[static_cast<size_t>(i)].name, theirs.attr(i).name());
    EXPECT_EQ(ours.attributes[static_cast<size_t>(i)].value, theirs.attr(i).value());
  }
}

void ExpectSame(const Message& ours, const stock::DumpData& theirs) {
  ExpectRest(ours, theirs);
  ASSERT_EQ(ours.inputs.size(), static_cast<size_t>(theirs.input_size()));
  for (int i = 0; i < theirs.input_size(); ++i) {
    ExpectTensor(ours.inputs[static_cast<size_t>(i)], theirs.input(i));
  }
  ASSERT_EQ(ours.outputs.size(), static_cast<size_t>(theirs.output_size()));
  for (int i = 0; i < theirs.output_size(); ++i) {
    ExpectOutput(ours.outputs[static_cast<size_t>(i)], theirs.output(i));
  }
}

TEST(AclMessage, ReadsWhatTheStockLibraryWrites) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const stock::DumpData theirs = AnyMessage(random);
    const std::string bytes = theirs.SerializeAsString();
    const Result<Message> ours = ReadMessage(BytesOf(bytes), 0);
    ASSERT_TRUE(ours) << ours.error().message();
    ExpectSame(*ours, theirs);
    for (int i = 0; i < theirs.input_size(); ++i) {
      EXPECT_EQ(TextOf(ours->inputs[static_cast<size_t>(i)].data), theirs.input(i).data());
    }
  }
}

TEST(AclMessage, TheStockLibraryReadsWhatIsWritten) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const std::string bytes = AnyMessage(random).SerializeAsString();
    Result<Message> ours = ReadMessage(BytesOf(bytes), 0);
    ASSERT_TRUE(ours);
    stock::DumpData back;
    ASSERT_TRUE(back.ParseFromString(WriteMessage(*ours)));
    // Sizes are those of the data, which the message itself does not hold.
    for (DumpedTensor& one : ours->inputs) one.size = one.data.size();
    for (DumpedTensor& one : ours->outputs) one.size = one.data.size();
    for (DumpedBytes& one : ours->buffers) one.size = one.data.size();
    for (DumpedBytes& one : ours->spaces) one.size = one.data.size();
    ExpectSame(*ours, back);
  }
}

TEST(AclMessage, UnknownFieldsAreSteppedOver) {
  Random random(3);
  const stock::DumpData theirs = AnyMessage(random);
  protobuf::MessageWriter unknown;
  unknown.AddNumber(100, 7);
  unknown.AddBytes(2000, "text");
  const std::string fixed(
      "\x51"
      "12345678"
      "\x55"
      "1234",
      14);  // field 10, 8 and 4 bytes
  const std::string bytes = unknown.text() + theirs.SerializeAsString() + fixed;
  const Result<Message> ours = ReadMessage(BytesOf(bytes), 0);
  ASSERT_TRUE(ours) << ours.error().message();
  ExpectSame(*ours, theirs);
}

TEST(AclMessage, CutAnywhereIsReadAsTheStockLibraryReadsIt) {
  Random random(4);
  const std::string bytes = AnyMessage(random).SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const Result<Message> ours = ReadMessage(BytesOf(cut), 0);
    ASSERT_EQ(ours.has_value(), stock::DumpData().ParseFromString(cut)) << size;
    if (!ours) {
      EXPECT_EQ(ours.error().code(), ErrorCode::kCorrupt);
    }
  }
}

using protobuf::MessageWriter;

std::span<const std::byte> BytesOfText(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

DumpedTensor Tensor16(std::string_view data, Dims shape) {
  DumpedTensor tensor;
  tensor.data_type = 5;
  tensor.format = DeviceFormat::kND;
  tensor.shape = std::move(shape);
  tensor.data = BytesOfText(data);
  return tensor;
}

// One input of two int16, outputs of one and two, a buffer and a workspace: 6 + 4 + 3 + 3 bytes.
std::string Sound() {
  Message message;
  message.version = "2.0";
  message.op_name = "Default/MatMul-op1";
  message.inputs = {Tensor16("aabb", {2})};
  message.outputs = {Tensor16("cc", {}), Tensor16("ddee", {2, 1})};
  message.buffers = {{0, 0, BytesOfText("buf")}};
  message.spaces = {{0, 0, BytesOfText("log")}};
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
  const auto file = DumpFile::Parse(BytesOfText(text));
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
    const auto file = DumpFile::Parse(BytesOfText(cut));
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
  const auto file = DumpFile::Parse(BytesOfText(text));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->surplus_bytes(), 1U);
}

TEST(AclDump, LengthsThatCannotBe) {
  std::string text = Sound();
  for (const uint64_t length : {uint64_t{1} << 63, UINT64_MAX, uint64_t{text.size()}}) {
    std::memcpy(text.data(), &length, 8);
    const auto file = DumpFile::Parse(BytesOfText(text));
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
  }
  for (const size_t size : {0U, 7U, 8U})
    EXPECT_FALSE(DumpFile::Parse(BytesOfText(std::string(size, 0))));
  const auto empty = DumpFile::Parse(BytesOfText(std::string(9, 0)));
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->surplus_bytes(), 1U);
}

TEST(AclDump, DamagedHeaderNamesTheByte) {
  MessageWriter message;
  message.AddBytes(1, "2.0");
  std::string text;
  AppendU64(message.text().size() + 1, text);
  text += message.text() + "\x1a";
  const auto file = DumpFile::Parse(BytesOfText(text));
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
  const auto file = DumpFile::Parse(BytesOfText(message.text()));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->container(), Container::kVersion1);
  EXPECT_EQ(AsText(file->message().inputs[0].data), "aabb");
  EXPECT_EQ(ElementsOf(file->message().inputs[0])->sizes, Shape{2});
  const std::string cut = message.text().substr(0, message.text().size() - 1);
  EXPECT_FALSE(DumpFile::Parse(BytesOfText(cut)));
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
    const auto file = DumpFile::Parse(BytesOfText(cut));
    if (file) {
      EXPECT_NE(file->FirstCutPart(), "") << size;
    } else {
      EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
    }
  }
  for (size_t at = 16; at < text.size() - 16; ++at) {  // any damage: an answer or an error
    std::string damaged = text;
    damaged[at] = '\xff';
    (void)DumpFile::Parse(BytesOfText(damaged));
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
  const auto file = DumpFile::Parse(BytesOfText(text));
  ASSERT_TRUE(file);
  ASSERT_TRUE(WriteDump(directory.Path("copy"), file->message()));
  EXPECT_EQ(*ReadFile(directory.Path("copy")), text);
  EXPECT_EQ(DumpFile::Open(directory.Path("missing")).error().code(), ErrorCode::kNotFound);
}

}  // namespace

}  // namespace plumbline::acl

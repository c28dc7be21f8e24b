// The message of a device dump against the stock protobuf library.

#include "formats/acl_message.h"

#include <dump_data.pb.h>
#include <gtest/gtest.h>

#include <random>

#include "base/protobuf_wire.h"

namespace plumbline::acl {
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

}  // namespace
}  // namespace plumbline::acl

#include "formats/hdf5/hdf5_dump.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/process/isolated_run.h"
#include "formats/hdf5/hdf5_handle.h"
#include "formats/hdf5/hdf5_reader.h"

// The leak checker asks for this: HDF5 1.10 loses a few blocks of its own when it closes a file
// with damaged headers. Blocks that our code allocates and loses are reported all the same.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5_serial"; }

namespace plumbline::hdf5 {
namespace {

const CallPlace kInput{"add_Tensor", 1, Side::kInput};

// A contiguous tensor that owns what it refers to.
template <class T>
struct Made {
  Made(DType type, std::vector<int64_t> shape, std::vector<T> numbers)
      : dtype(type), sizes(std::move(shape)), values(std::move(numbers)) {}
  [[nodiscard]] TensorValue value() const {
    return {{dtype, reinterpret_cast<const std::byte*>(values.data()), sizes, strides}, kCpu, true};
  }
  DType dtype;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides = ContiguousStrides(sizes);
  std::vector<T> values;
};

template <class T>
std::vector<T> NumbersOf(const StoredTensor& tensor) {
  std::vector<T> numbers(tensor.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

class Hdf5DumpTest : public ::testing::Test {
 protected:
  void Write(const std::vector<Argument>& arguments, const CallPlace& place = kInput) {
    Result<DumpWriter> writer = DumpWriter::Create(path_);
    ASSERT_TRUE(writer) << writer.error().message();
    const Status written = writer->Write(place, arguments);
    ASSERT_TRUE(written) << written.error().message();
    const Status committed = writer->Commit();
    ASSERT_TRUE(committed) << committed.error().message();
  }
  std::vector<StoredValue> Read(const CallPlace& place = kInput) {
    Result<DumpReader> reader = DumpReader::Open(path_);
    EXPECT_TRUE(reader) << reader.error().message();
    if (!reader) return {};
    reader_.emplace(*std::move(reader));
    Result<std::vector<StoredValue>> values = reader_->Values(place);
    EXPECT_TRUE(values) << values.error().message();
    return values ? *std::move(values) : std::vector<StoredValue>();
  }
  StoredTensor Load(const StoredValue& value, const CallPlace& place = kInput) {
    Result<StoredTensor> tensor = reader_->Load(place, value);
    EXPECT_TRUE(tensor) << tensor.error().message();
    return tensor ? *std::move(tensor) : StoredTensor();
  }

  testing::TestDirectory directory_;
  std::string path_ = directory_.Path("x.h5");
  std::optional<DumpReader> reader_;
};

TEST_F(Hdf5DumpTest, TensorsComeBack) {
  const Made<float> floats(DType::kFloat32, {2, 3}, {1, -2, 3, 0.5F, -0.0F, 6e30F});
  const Made<uint8_t> bytes(DType::kUInt8, {2}, {200, 7});
  const Made<uint16_t> halves(DType::kFloat16, {}, {0x3C01});
  const Made<double> complex(DType::kComplex128, {1}, {1.5, -2.5});
  const Made<float> none(DType::kFloat32, {0, 4}, {});
  Write({{"self", ValueKind::kTensor, floats.value()},
         {"mask", ValueKind::kTensor, bytes.value()},
         {"half", ValueKind::kTensor, halves.value()},
         {"pair", ValueKind::kTensor, complex.value()},
         {"none", ValueKind::kTensor, none.value()}});
  const std::vector<StoredValue> values = Read();
  ASSERT_EQ(values.size(), 5U);
  EXPECT_EQ(values[0].name, "half");
  EXPECT_EQ(values[0].dtype, DType::kFloat16);
  EXPECT_EQ(NumbersOf<float>(Load(values[0]))[0], 1.0F + 1.0F / 1024);
  EXPECT_EQ(values[1].name, "mask");
  EXPECT_EQ(NumbersOf<uint8_t>(Load(values[1])), bytes.values);
  EXPECT_EQ(values[2].sizes, (Shape{0, 4}));
  EXPECT_TRUE(Load(values[2]).bytes.empty());
  EXPECT_EQ(NumbersOf<double>(Load(values[3])), complex.values);
  EXPECT_EQ(values[4].sizes, floats.sizes);
  EXPECT_EQ(values[4].strides, floats.strides);
  EXPECT_EQ(NumbersOf<float>(Load(values[4])), floats.values);
}

TEST_F(Hdf5DumpTest, EveryDTypeComesBack) {
  std::vector<Argument> arguments;
  const std::vector<std::byte> bytes(64, std::byte{1});
  const std::vector<int64_t> sizes{3}, strides{1};
  for (int i = 0; i < kDTypeCount; ++i) {
    const TensorView view{static_cast<DType>(i), bytes.data(), sizes, strides};
    arguments.push_back({"a" + std::to_string(i), ValueKind::kTensor, TensorValue{view}});
  }
  Write(arguments);
  const std::vector<StoredValue> values = Read();
  ASSERT_EQ(values.size(), static_cast<size_t>(kDTypeCount));
  for (int i = 0; i < kDTypeCount; ++i) {
    const StoredTensor tensor = Load(values[static_cast<size_t>(i)]);
    EXPECT_EQ(tensor.recorded_dtype, static_cast<DType>(i));
    EXPECT_EQ(tensor.bytes.size(), 3U * InfoOf(tensor.dtype).size_bytes);
    EXPECT_TRUE(tensor.dtype != tensor.recorded_dtype || tensor.bytes[1] == bytes[1]);
  }
}

TEST_F(Hdf5DumpTest, NumbersListsAndOptionsComeBack) {
  const Made<float> part(DType::kFloat32, {1}, {2});
  Write({{"size", ValueKind::kIntegers, std::vector<int64_t>{2, -1}},
         {"none", ValueKind::kIntegers, std::vector<int64_t>{}},
         {"dim", ValueKind::kInteger, int64_t{-3}},
         {"keep", ValueKind::kBool, true},
         {"p", ValueKind::kDouble, 0.1},
         {"alpha", ValueKind::kScalar, int64_t{1} << 60},
         {"dtype", ValueKind::kScalarType, int64_t{11}},
         {"options", ValueKind::kTensorOptions, OptionsValue{kCpu, DType::kInt64, true}},
         {"lost", ValueKind::kTensor, TensorValue{{}, kCpu, false}},
         {"tensors", ValueKind::kTensorList, std::vector<TensorValue>(11, part.value())}});
  std::map<std::string, StoredValue> values;
  for (const StoredValue& value : Read()) values[value.name] = value;
  using Integers = std::vector<int64_t>;
  EXPECT_EQ(std::get<Integers>(values["size"].number), (Integers{2, -1}));
  EXPECT_EQ(std::get<Integers>(values["none"].number), Integers());
  EXPECT_EQ(std::get<Integers>(values["dim"].number), Integers{-3});
  EXPECT_EQ(std::get<Integers>(values["keep"].number), Integers{1});
  EXPECT_EQ(std::get<double>(values["p"].number), 0.1);
  EXPECT_EQ(std::get<Integers>(values["alpha"].number), Integers{int64_t{1} << 60});
  EXPECT_EQ(std::get<Integers>(values["dtype"].number), Integers{11});
  EXPECT_EQ(values["options"].dtype, DType::kInt64);
  EXPECT_TRUE(values["options"].requires_grad);
  EXPECT_FALSE(values["lost"].has_data);
  EXPECT_EQ(values["tensors"].kind, ValueKind::kTensorList);
  EXPECT_EQ(NumbersOf<float>(Load(values["tensors/tensors_10"])), part.values);
  EXPECT_EQ(values.size(), 21U);
}

TEST_F(Hdf5DumpTest, CallsAreOrderedByNumber) {
  Result<DumpWriter> writer = DumpWriter::Create(path_);
  ASSERT_TRUE(writer);
  for (int64_t call = 1; call <= 12; ++call) {
    ASSERT_TRUE(writer->Write({"relu", call, Side::kInput}, {}));
  }
  ASSERT_TRUE(writer->Commit());
  const Result<DumpReader> reader = DumpReader::Open(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->calls().at("relu"),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST_F(Hdf5DumpTest, NamesThatWouldBePathsAreRefused) {
  for (const char* name : {"", ".", "a/b"}) {
    Result<DumpWriter> writer = DumpWriter::Create(path_);
    ASSERT_TRUE(writer);
    const Status status = writer->Write(kInput, {{{name, ValueKind::kInteger, int64_t{1}}}});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_FALSE(writer->Commit());
  }
  EXPECT_EQ(KindOf(path_), PathKind::kMissing);
}

// One call more per commit; whatever write the process dies in, all committed calls are there.
TEST_F(Hdf5DumpTest, EveryInterruptedWriteLeavesWholeCalls) {
  const Made<float> data(DType::kFloat32, {600}, std::vector<float>(600, 1.25F));
  bool died = true;
  std::set<size_t> seen;
  for (int write = 0; died && write < 1000; write += 1 + write / 16) {
    ASSERT_TRUE(RemoveFile(path_));
    died = testing::DiesInWrite(write, [&] {
      Result<DumpWriter> writer = DumpWriter::Create(path_);
      for (int64_t call = 1; call <= 20; ++call) {
        const CallPlace place{call % 2 == 0 ? "mul_Tensor" : "relu", call, Side::kInput};
        const Argument argument{"self", ValueKind::kTensor, data.value()};
        if (!writer->Write(place, {&argument, 1}) || !writer->Commit()) ::abort();
      }
    });
    if (KindOf(path_) == PathKind::kMissing) continue;
    const Result<DumpReader> reader = DumpReader::Open(path_);
    ASSERT_TRUE(reader) << "write " << write << ": " << reader.error().message();
    size_t calls = 0;
    for (const auto& [operation, ids] : reader->calls()) {
      for (const int64_t id : ids) {
        const CallPlace place{operation, id, Side::kInput};
        const auto values = reader->Values(place);
        ASSERT_TRUE(values) << values.error().message();
        ASSERT_EQ(values->size(), 1U);
        const auto tensor = reader->Load(place, values->front());
        ASSERT_TRUE(tensor) << tensor.error().message();
        EXPECT_EQ(NumbersOf<float>(*tensor), data.values);
        ++calls;
      }
    }
    seen.insert(calls);
  }
  EXPECT_FALSE(died);
  EXPECT_GE(seen.size(), 10U);
  EXPECT_TRUE(seen.contains(20));
}

// A dataset of a file of PyTorch 1.5 that a tool has packed since.
void WritePacked(const std::string& path, const std::vector<float>& values) {
  const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const Handle parents(H5Pcreate(H5P_LINK_CREATE)), properties(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_create_intermediate_group(parents, 1);
  const hsize_t sizes[] = {values.size() / 8, 8}, chunk[] = {5, 3};
  H5Pset_chunk(properties, 2, chunk);
  H5Pset_shuffle(properties);
  H5Pset_deflate(properties, 6);
  H5Pset_fletcher32(properties);
  const Handle space(H5Screate_simple(2, sizes, nullptr)), one(H5Screate(H5S_SCALAR));
  const Handle dataset(H5Dcreate2(file, "/add_Tensor/1/input/self", H5T_IEEE_F32LE, space, parents,
                                  properties, H5P_DEFAULT));
  ASSERT_GE(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  for (const auto& [name, value] :
       {std::pair("Type", 0), std::pair("DeviceType", 0), std::pair("DataType", 1)}) {
    const Handle attribute(H5Acreate2(dataset, name, H5T_STD_I32LE, one, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(H5Awrite(attribute, H5T_NATIVE_INT, &value), 0);
  }
}

TEST_F(Hdf5DumpTest, PackedElementsAreRead) {
  std::vector<float> values(88);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 4;
  WritePacked(path_, values);
  const std::vector<StoredValue> stored = Read();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].sizes, (Shape{11, 8}));
  EXPECT_EQ(NumbersOf<float>(Load(stored[0])), values);
}

// The library would read behind the end of the unpacked chunk.
TEST_F(Hdf5DumpTest, ChunksShorterThanTheirShapeAreErrors) {
  WritePacked(path_, std::vector<float>(88, 1));
  std::string bytes = ReadFile(path_).value();
  const uint32_t chunk[] = {5, 3, 4}, larger[] = {5, 4, 4};  // with the bytes of an element
  const size_t at = bytes.find(std::string_view(reinterpret_cast<const char*>(chunk), 12));
  ASSERT_NE(at, std::string::npos);
  std::memcpy(bytes.data() + at, larger, sizeof(larger));
  ASSERT_TRUE(WriteFileAtomically(path_, bytes, false));
  const Result<DumpReader> reader = DumpReader::Open(path_);
  ASSERT_TRUE(reader) << reader.error().message();
  const auto values = reader->Values(kInput);
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code(), ErrorCode::kCorrupt);
  EXPECT_NE(values.error().message().find("chunk"), std::string::npos) << values.error().message();
}

// The library would look for the bits of such a number outside of its bytes.
TEST_F(Hdf5DumpTest, NumbersWithBitsOutsideAreErrors) {
  const Made<float> data(DType::kFloat32, {2}, {1, 2});
  Write({{"self", ValueKind::kTensor, data.value()}});
  std::string bytes = ReadFile(path_).value();
  const std::string type("\x04\0\0\0\0\0\x20\0", 8);  // four bytes, offset 0, 32 bits
  size_t damaged = 0;
  for (size_t at = bytes.find(type); at != std::string::npos; at = bytes.find(type, at + 1)) {
    bytes[at + 4] = '\x7f';
    ++damaged;
  }
  ASSERT_GT(damaged, 0U);
  ASSERT_TRUE(WriteFileAtomically(path_, bytes, false));
  const Result<DumpReader> reader = DumpReader::Open(path_);
  const auto values = reader ? reader->Values(kInput) : reader.error();
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code(), ErrorCode::kCorrupt);
}

TEST_F(Hdf5DumpTest, CutFilesAreErrors) {
  const Made<float> data(DType::kFloat32, {512}, std::vector<float>(512, 1));
  Write({{"self", ValueKind::kTensor, data.value()}});
  const std::string good = ReadFile(path_).value();
  for (const size_t size : {size_t{0}, size_t{8}, size_t{100}, good.size() / 2, good.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(path_, good.substr(0, size), false));
    const Result<DumpReader> reader = DumpReader::Open(path_);
    ASSERT_FALSE(reader) << size;
    EXPECT_EQ(reader.error().code(), ErrorCode::kCorrupt);
    EXPECT_TRUE(reader.error().message().starts_with(path_)) << reader.error().message();
  }
}

}  // namespace
// Thousands of damaged files. The library itself crashes on some (docs/design/crash_safety.md), so
// they are read in forks: what is read there is right, or an error, or the fork ends.

namespace {

constexpr int kFiles = 2500;
constexpr int kOfOneBit = 500;     // files where one bit is another
constexpr unsigned kSeconds = 20;  // for one file: a hang is no answer
constexpr std::array<float, 6> kElements = {1.5F, -2, 0, 3e30F, -1e-30F, 7};

constexpr int kCannotWrite = 77;  // status of a process that reads

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

// Reads damaged files [begin, end), each made from its number, and says in `outcomes` what each
// gave.
int ReadDamaged(const std::string& whole, const std::string& path, int begin, int end,
                std::span<int> outcomes) {
  for (int i = begin; i < end; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    std::string bytes = whole;
    if (i < kOfOneBit) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1U << random() % 8);
    } else {
      bytes = Damaged(whole, random);
    }
    if (!WriteFileAtomically(path, bytes, false)) return kCannotWrite;
    ::alarm(kSeconds);
    outcomes[static_cast<size_t>(i)] = Read(path);
  }
  return 0;
}

TEST(DamagedDumps, NoWrongNumberAndNoHang) {
  const testing::TestDirectory root;
  const std::string whole = Dump(root);
  const std::string path = root.Path("damaged.h5");
  // Shared with the processes that read; forks are dear under sanitizers, so that each reads many.
  constexpr int kUnread = -1, kCrashed = -2, kPerProcess = 100;
  void* const shared = ::mmap(nullptr, kFiles * sizeof(int), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  const std::span<int> read(static_cast<int*>(shared), kFiles);
  std::ranges::fill(read, kUnread);
  for (int next = 0; next < kFiles;) {
    const int end = std::min(next + kPerProcess, kFiles);
    const Result<int> status =
        RunIsolated([&]() -> int { return ReadDamaged(whole, path, next, end, read); });
    while (next < end && read[static_cast<size_t>(next)] != kUnread) ++next;
    if (status && *status == 0) {
      ASSERT_EQ(next, end);
      continue;
    }
    // By a signal, or by what a sanitizer saw.
    const std::string message = status ? std::string() : status.error().message();
    ASSERT_FALSE(status && *status == kCannotWrite);
    ASSERT_EQ(message.find("signal 14"), std::string::npos) << "file " << next;
    ASSERT_LT(next, end) << message;
    read[static_cast<size_t>(next++)] = kCrashed;
  }
  EXPECT_EQ(Read(root.Path("whole.h5")), kRight);
  for (int i = 0; i < kFiles; ++i) EXPECT_NE(read[static_cast<size_t>(i)], kWrong) << "file " << i;
  // The damage reaches what is read, and not all of it.
  EXPECT_GT(std::ranges::count(read, kRight), kFiles / 20);
  EXPECT_GT(std::ranges::count(read, kRefused), kFiles / 20);
  EXPECT_LT(std::ranges::count(read, kCrashed), kFiles / 4);
  RecordProperty("crashes", static_cast<int>(std::ranges::count(read, kCrashed)));
  ::munmap(shared, kFiles * sizeof(int));
}

}  // namespace

}  // namespace plumbline::hdf5

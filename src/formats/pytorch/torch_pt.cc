#include "formats/pytorch/torch_pt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/memory/bytes.h"
#include "formats/array/npy.h"
#include "formats/pytorch/torch_pickle.h"
#include "formats/pytorch/zip.h"

namespace plumbline::torch_pt {

namespace {

// A view may repeat elements with stride 0; a count beyond both this and the storage is no data.
constexpr int64_t kMaxExpandedElements = int64_t{1} << 36;

// Index of the last element that a non-empty tensor addresses.
Result<int64_t> LastIndex(const PickledTensor& tensor) {
  int64_t last = tensor.offset;
  bool overflow = last < 0;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t step = 0;
    overflow = overflow || tensor.strides[i] < 0 ||
               __builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &step) ||
               __builtin_add_overflow(last, step, &last);
  }
  if (overflow) {
    return Error(ErrorCode::kCorrupt, "the tensor's offset and strides make no sense");
  }
  return last;
}

}  // namespace

Status CheckStorage(const PickledTensor& tensor, uint64_t storage_bytes) {
  const uint64_t unit = tensor.storage.is_untyped ? 1 : InfoOf(tensor.storage.dtype).size_bytes;
  const auto count = static_cast<uint64_t>(tensor.storage.count);
  if (count > storage_bytes / unit || count * unit != storage_bytes) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the storage has the wrong length (expected {} x {} bytes, got {})",
                             count, unit, storage_bytes));
  }
  PL_TRY_ASSIGN(const int64_t elements, ElementCount(tensor.sizes));
  if (elements == 0) return {};
  PL_TRY_ASSIGN(const int64_t last, LastIndex(tensor));
  const uint64_t size = InfoOf(tensor.dtype).size_bytes;
  if (static_cast<uint64_t>(last) >= storage_bytes / size) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the storage is too short (expected more than {} elements, got {})",
                             last, storage_bytes / size));
  }
  if (elements > kMaxExpandedElements && static_cast<uint64_t>(elements) > storage_bytes / size) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{} elements expanded from {} bytes", elements, storage_bytes));
  }
  return {};
}

Result<std::string> ArchiveDirectory(const std::vector<zip::Member>& members) {
  for (const zip::Member& member : members) {
    if (!member.name.ends_with(kPickleName)) continue;
    const std::string_view directory =
        member.name.substr(0, member.name.size() - kPickleName.size());
    if (directory.ends_with('/') && directory.find('/') + 1 == directory.size()) {
      return std::string(directory);
    }
  }
  return Error(ErrorCode::kUnsupported,
               "a zip archive without data.pkl (expected a file of torch.save)");
}

namespace {

constexpr uint64_t kAlignment = 64;  // of the element data, as PyTorch's own files
constexpr std::string_view kVersion = "3\n";

// The pickle of one tensor, opcode by opcode as torch.save writes it.
class PickleText {
 public:
  void Raw(std::string_view bytes) { text_ += bytes; }
  void Global(std::string_view module, std::string_view name) {
    text_ += 'c';
    text_ += module;
    text_ += '\n';
    text_ += name;
    text_ += '\n';
    Put();
  }
  void Unicode(std::string_view text) {
    text_ += 'X';
    AppendU32(static_cast<uint32_t>(text.size()), text_);
    text_ += text;
    Put();
  }
  // Requires: value >= 0.
  void Int(int64_t value) {
    const auto number = static_cast<uint64_t>(value);
    if (number < 0x100) {
      text_ += 'K';
      text_ += static_cast<char>(number);
    } else if (number < 0x10000) {
      text_ += 'M';
      AppendU16(static_cast<uint16_t>(number), text_);
    } else if (number < 0x80000000) {
      text_ += 'J';
      AppendU32(static_cast<uint32_t>(number), text_);
    } else {
      Long(number);
    }
  }
  void IntTuple(std::span<const int64_t> values) {
    constexpr std::string_view kTuples = ")\x85\x86\x87";
    if (values.size() > 3) text_ += '(';
    for (const int64_t value : values) Int(value);
    text_ += values.size() > 3 ? 't' : kTuples[values.size()];
    if (!values.empty()) Put();
  }
  void Put() {
    text_ += 'q';
    text_ += static_cast<char>(memo_++);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  // LONG1: the fewest bytes of two's complement.
  void Long(uint64_t number) {
    std::string bytes;
    for (; number != 0; number >>= 8) bytes += static_cast<char>(number & 0xff);
    if ((bytes.back() & 0x80) != 0) bytes += '\0';
    text_ += '\x8a';
    text_ += static_cast<char>(bytes.size());
    text_ += bytes;
  }

  std::string text_;
  uint8_t memo_ = 0;  // one tensor needs at most 13
};

std::string TensorPickle(DType dtype, std::span<const int64_t> sizes, uint64_t data_bytes) {
  const DTypeInfo& info = InfoOf(dtype);
  const std::string_view storage = StorageClass(dtype);
  const bool typed = !storage.empty();
  const auto count = static_cast<int64_t>(typed ? data_bytes / info.size_bytes : data_bytes);
  PickleText pickle;
  pickle.Raw("\x80\x02");
  pickle.Global("torch._utils", typed ? kRebuildV2 : kRebuildV3);
  pickle.Raw("((");
  pickle.Unicode("storage");
  pickle.Global(typed ? "torch" : "torch.storage", typed ? storage : kUntypedStorage);
  pickle.Unicode("0");
  pickle.Unicode("cpu");
  pickle.Int(count);
  pickle.Raw("t");
  pickle.Put();
  pickle.Raw("QK");
  pickle.Raw(std::string_view("\0", 1));
  pickle.IntTuple(sizes);
  pickle.IntTuple(ContiguousStrides(sizes));
  pickle.Raw("\x89");  // requires_grad
  pickle.Global("collections", "OrderedDict");
  pickle.Raw(")R");
  pickle.Put();
  if (!typed) pickle.Global("torch", info.torch_name.substr(std::string_view("torch.").size()));
  pickle.Raw("t");
  pickle.Put();
  pickle.Raw("R");
  pickle.Put();
  pickle.Raw(".");
  return pickle.text();
}

const zip::Member* FindMember(const std::vector<zip::Member>& members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [name](const zip::Member& m) { return m.name == name; });
  return found == members.end() ? nullptr : &*found;
}

Result<const zip::Member*> RequireMember(const std::vector<zip::Member>& members,
                                         const std::string& name) {
  const zip::Member* member = FindMember(members, name);
  if (member != nullptr) return member;
  return Error(ErrorCode::kCorrupt, fmt::format("the archive has no {}", name));
}

}  // namespace

// What both container forms yield.
struct PtFile::Contents {
  PickledTensor tensor;
  std::span<const std::byte> storage;
  bool is_big_endian = false;
};

namespace {

Result<int64_t> IntegerResult(const PickleMachine& machine) {
  if (machine.result().kind == PickleNode::Kind::kInt) return machine.result().number;
  return Error(ErrorCode::kCorrupt, "the legacy header is damaged");
}

}  // namespace

Frame MakeFrame(DType dtype, std::span<const int64_t> sizes, uint64_t data_bytes,
                uint32_t data_crc32) {
  zip::Writer archive;
  archive.text().reserve(1024);
  archive.Add("archive/data.pkl", TensorPickle(dtype, sizes, data_bytes));
  archive.Add("archive/byteorder", "little");
  archive.Add("archive/version", kVersion);
  archive.BeginLast("archive/data/0", data_bytes, data_crc32, kAlignment);
  Frame frame;
  frame.tail = archive.Directory();
  frame.head = std::move(archive.text());
  return frame;
}

Result<PtFile::Contents> PtFile::ReadZip(std::span<const std::byte> file, DataCheck check) {
  PL_TRY_ASSIGN(const auto members, zip::ReadDirectory(file));
  PL_TRY_ASSIGN(const std::string directory, ArchiveDirectory(members));
  Contents contents;
  if (const zip::Member* order = FindMember(members, directory + "byteorder")) {
    PL_TRY_ASSIGN(const auto text, zip::Data(file, *order, true));
    contents.is_big_endian = AsText(text) == "big";
  }
  PL_TRY_ASSIGN(const zip::Member* pickle,
                RequireMember(members, directory + std::string(kPickleName)));
  PL_TRY_ASSIGN(const auto pickle_bytes, zip::Data(file, *pickle, true));
  ByteReader in(pickle_bytes);
  PickleMachine machine;
  PL_TRY(machine.Run(in));
  PL_TRY_ASSIGN(contents.tensor, machine.Tensor());
  PL_TRY_ASSIGN(
      const zip::Member* data,
      RequireMember(members, fmt::format("{}data/{}", directory, contents.tensor.storage.key)));
  PL_TRY_ASSIGN(contents.storage, zip::Data(file, *data, check == DataCheck::kVerify));
  return contents;
}

// Magic number, protocol, machine description, the object, the storage keys; then per storage its
// element count and elements, little-endian whatever machine wrote them.
Result<PtFile::Contents> PtFile::ReadLegacy(std::span<const std::byte> file) {
  ByteReader in(file);
  PickleMachine machine;
  PL_TRY(machine.Run(in));
  if (machine.result().kind != PickleNode::Kind::kLong || machine.result().text != kLegacyMagic) {
    return Error(ErrorCode::kUnsupported, "a pickle, but not one of torch.save");
  }
  PL_TRY(machine.Run(in));
  PL_TRY_ASSIGN(const int64_t protocol, IntegerResult(machine));
  if (protocol != kLegacyProtocol) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("legacy protocol {} (expected {})", protocol, kLegacyProtocol));
  }
  PL_TRY(machine.Run(in));
  PL_TRY(machine.Run(in));
  Contents contents;
  PL_TRY_ASSIGN(contents.tensor, machine.Tensor());
  PL_TRY(machine.Run(in));
  const PickleNode& keys = machine.result();
  const bool one_key = keys.kind == PickleNode::Kind::kList && keys.items.size() == 1 &&
                       machine.node(keys.items[0]).text == contents.tensor.storage.key;
  if (!one_key) {
    return Error(ErrorCode::kUnsupported, "a legacy file of several storages (expected one)");
  }
  PL_TRY_ASSIGN(const uint64_t count, in.ReadU64());
  const PickledTensor& tensor = contents.tensor;
  const uint64_t unit = tensor.storage.is_untyped ? 1 : InfoOf(tensor.storage.dtype).size_bytes;
  if (count != static_cast<uint64_t>(tensor.storage.count) || count > in.remaining() / unit) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("the storage has the wrong length (expected {} elements, got {} in {} "
                             "bytes)",
                             tensor.storage.count, count, in.remaining()));
  }
  PL_TRY_ASSIGN(contents.storage, in.ReadBytes(count * unit));
  return contents;
}

Status PtFile::Bind(Contents contents) {
  PL_TRY(CheckStorage(contents.tensor, contents.storage.size()));
  std::span<const std::byte> storage = contents.storage;
  dtype_ = contents.tensor.dtype;
  if (contents.is_big_endian && InfoOf(dtype_).size_bytes > 1) {
    converted_.assign(storage.begin(), storage.end());
    SwapElementBytes(dtype_, converted_);
    storage = converted_;
  }
  sizes_ = std::move(contents.tensor.sizes);
  strides_ = std::move(contents.tensor.strides);
  // The offset of an empty tensor may point anywhere.
  const bool empty = std::find(sizes_.begin(), sizes_.end(), 0) != sizes_.end();
  const auto offset = empty ? 0 : static_cast<size_t>(contents.tensor.offset);
  data_ = storage.data() + offset * InfoOf(dtype_).size_bytes;
  return {};
}

Result<PtFile> PtFile::Parse(std::span<const std::byte> bytes, DataCheck check) {
  const std::string_view text = AsText(bytes);
  PtFile file;
  if (text.starts_with(kZipMagic)) {
    PL_TRY_ASSIGN(Contents contents, ReadZip(bytes, check));
    PL_TRY(file.Bind(std::move(contents)));
    return file;
  }
  if (text.starts_with(kPickleMagic)) {
    PL_TRY_ASSIGN(Contents contents, ReadLegacy(bytes));
    PL_TRY(file.Bind(std::move(contents)));
    return file;
  }
  return Error(ErrorCode::kCorrupt,
               fmt::format("no file of torch.save (expected a zip archive or a pickle, got {})",
                           bytes.empty() ? "nothing" : "other bytes"));
}

Result<PtFile> PtFile::Open(const std::string& path, DataCheck check) {
  PL_TRY_ASSIGN(auto mapped, MappedFile::Open(path));
  auto file = Parse(mapped->bytes(), check);
  if (!file) return file.error().In(path);
  file->file_ = std::move(mapped);
  return file;
}

TensorView PtFile::view() const { return {dtype_, data_, sizes_, strides_}; }

}  // namespace plumbline::torch_pt

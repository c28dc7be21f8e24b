#include "formats/pytorch/torch_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"
#include "formats/pytorch/torch_pickle.h"
#include "formats/pytorch/torch_pt.h"
#include "formats/pytorch/zip.h"

namespace plumbline::torch_pt {
namespace {

using Kind = PickleNode::Kind;

constexpr int kMaxDepth = 256;
// Values met on the way to tensors. Containers may be shared, so this is more than there are nodes.
constexpr size_t kMaxVisits = 20000000;
// Plain values that are kept: bounds memory.
constexpr size_t kMaxValues = 1000000;

std::string KeyText(const PickleNode& key) {
  if (key.kind == Kind::kText) return std::string(key.text);
  if (key.kind == Kind::kInt) return fmt::format("{}", key.number);
  return "?";
}

std::string Below(const std::string& prefix, const std::string& key) {
  return prefix.empty() ? key : fmt::format("{}.{}", prefix, key);
}

// Of an integer beyond 64 bits, given as its little-endian two's complement.
std::string HexText(std::string_view bytes) {
  std::string text = "0x";
  for (size_t i = bytes.size(); i > 0; --i) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i - 1]));
  }
  return text;
}

bool IsPlain(const PickleNode& node) {
  return node.kind <= Kind::kText || node.kind == Kind::kGlobal;
}

// Requires: IsPlain().
PlainValue PlainValueOf(const PickleNode& node) {
  switch (node.kind) {
    case Kind::kNone:
      return std::monostate();
    case Kind::kBool:
      return node.number != 0;
    case Kind::kInt:
      return node.number;
    case Kind::kLong:
      return HexText(node.text);
    case Kind::kFloat:
      return std::bit_cast<double>(node.number);
    case Kind::kGlobal:
      return fmt::format("{}.{}", node.module, node.text);
    default:
      return std::string(node.text);
  }
}

// Finds the tensors and the plain values below a value, in the order of the pickle.
class TensorFinder {
 public:
  struct Found {
    std::string name;
    const PickleNode* node;  // kTensor, or a kObject that a tensor function would have made
  };

  explicit TensorFinder(const PickleMachine& machine) : machine_(machine) {}

  Status Run(const PickleNode& root) {
    Visit(root, "", 0);
    if (visits_ <= kMaxVisits && !is_too_deep_) return {};
    return Error(ErrorCode::kUnsupported,
                 fmt::format("values nested more than {} deep or met {} times, which are not read",
                             kMaxDepth, kMaxVisits));
  }
  [[nodiscard]] const std::vector<Found>& found() const { return found_; }
  [[nodiscard]] std::vector<ArchiveValue>& values() { return values_; }
  [[nodiscard]] uint64_t other_count() const { return other_count_; }

 private:
  void Visit(const PickleNode& node, const std::string& name, int depth) {
    is_too_deep_ = is_too_deep_ || depth > kMaxDepth;
    if (++visits_ > kMaxVisits || is_too_deep_) return;
    const bool is_other_tensor = node.kind == Kind::kObject && node.module.starts_with("torch") &&
                                 node.text.starts_with("_rebuild");
    if (node.kind == Kind::kTensor || is_other_tensor) {
      found_.push_back({name, &node});
      return;
    }
    if (IsPlain(node) && values_.size() < kMaxValues) {
      values_.push_back({name, PlainValueOf(node)});
      return;
    }
    const bool is_state = node.kind == Kind::kObject && node.items.size() == 1;
    const bool is_container =
        node.kind == Kind::kDict || node.kind == Kind::kList || node.kind == Kind::kTuple;
    if (!is_state && !is_container) {
      ++other_count_;
      return;
    }
    if (std::find(path_.begin(), path_.end(), &node) != path_.end()) return;  // holds itself
    path_.push_back(&node);
    VisitItems(node, name, depth);
    path_.pop_back();
  }

  void VisitItems(const PickleNode& node, const std::string& name, int depth) {
    if (node.kind == Kind::kDict) {
      for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
        Visit(machine_.node(node.items[i + 1]), Below(name, KeyText(machine_.node(node.items[i]))),
              depth + 1);
      }
      return;
    }
    if (node.kind == Kind::kObject) {
      Visit(machine_.node(node.items[0]), name, depth + 1);
      return;
    }
    const bool is_set = node.kind == Kind::kList && node.text == kSetMark;
    const std::vector<uint32_t> items = is_set ? InOrder(node.items) : node.items;
    for (size_t i = 0; i < items.size(); ++i) {
      Visit(machine_.node(items[i]), Below(name, fmt::format("{}", i)), depth + 1);
    }
  }

  // Items of a set: Python's order of texts is another one in every process.
  [[nodiscard]] std::vector<uint32_t> InOrder(std::vector<uint32_t> items) const {
    std::ranges::stable_sort(items, [&](uint32_t a, uint32_t b) {
      const PickleNode &left = machine_.node(a), &right = machine_.node(b);
      return std::tie(left.kind, left.text, left.number) <
             std::tie(right.kind, right.text, right.number);
    });
    return items;
  }

  const PickleMachine& machine_;
  std::vector<Found> found_;
  std::vector<ArchiveValue> values_;
  uint64_t other_count_ = 0;
  std::vector<const PickleNode*> path_;  // containers that are being visited
  size_t visits_ = 0;
  bool is_too_deep_ = false;
};

Result<int64_t> IntegerOf(const PickleMachine& machine) {
  if (machine.result().kind == Kind::kInt) return machine.result().number;
  return Error(ErrorCode::kCorrupt, "the legacy header is damaged");
}

}  // namespace

// Where the elements are, by storage key.
struct TorchArchive::Storages {
  struct Bytes {
    std::span<const std::byte> bytes;
    std::optional<uint32_t> crc;
    bool is_stored = true;
  };
  std::unordered_map<std::string_view, Bytes> by_key;
  bool is_big_endian = false;
};

void TorchArchive::Add(const std::string& name, const PickledTensor& tensor,
                       const Storages& storages) {
  ArchiveTensor& out = tensors_.emplace_back();
  out.name = name;
  out.dtype = tensor.dtype;
  out.sizes = tensor.sizes;
  out.strides = tensor.strides;
  const auto found = storages.by_key.find(tensor.storage.key);
  if (found == storages.by_key.end()) {
    out.problem = fmt::format("the file has no storage {}", tensor.storage.key);
    return;
  }
  const Storages::Bytes& storage = found->second;
  const bool swapped = storages.is_big_endian && InfoOf(tensor.dtype).size_bytes > 1;
  if (!storage.is_stored) out.problem = "its storage is compressed (expected stored)";
  if (swapped) out.problem = "written by a big-endian machine";
  if (const Status fits = CheckStorage(tensor, storage.bytes.size()); !fits) {
    out.problem = fits.error().message();
  }
  if (!out.problem.empty()) return;
  out.storage = storage.bytes;
  out.storage_crc = storage.crc;
  // The offset of an empty tensor may point anywhere.
  const bool empty = std::find(out.sizes.begin(), out.sizes.end(), 0) != out.sizes.end();
  const auto offset = empty ? 0 : static_cast<size_t>(tensor.offset);
  out.data = storage.bytes.data() + offset * InfoOf(tensor.dtype).size_bytes;
}

Status TorchArchive::Collect(const Storages& storages) {
  TensorFinder finder(machine_);
  PL_TRY(finder.Run(root()));
  for (const TensorFinder::Found& found : finder.found()) {
    if (found.node->kind == Kind::kTensor) {
      Add(found.name, machine_.tensor(*found.node), storages);
      continue;
    }
    ArchiveTensor& out = tensors_.emplace_back();
    out.name = found.name;
    out.problem = fmt::format("made by {}, which is not read", found.node->text);
  }
  values_ = std::move(finder.values());
  other_count_ = finder.other_count();
  return {};
}

Status TorchArchive::ReadZip(std::span<const std::byte> file) {
  PL_TRY_ASSIGN(const auto members, zip::ReadDirectory(file));
  PL_TRY_ASSIGN(const std::string directory, ArchiveDirectory(members));
  const std::string data = directory + "data/";
  Storages storages;
  const zip::Member* pickle = nullptr;
  for (const zip::Member& member : members) {
    if (member.name == directory + std::string(kPickleName)) pickle = &member;
    if (member.name == directory + "byteorder") {
      PL_TRY_ASSIGN(const auto text, zip::Data(file, member, true));
      storages.is_big_endian = AsText(text) == "big";
    }
    if (!member.name.starts_with(data)) continue;
    const bool is_stored = member.is_stored;
    std::span<const std::byte> bytes;
    if (is_stored) bytes = file.subspan(member.data_offset, member.size_bytes);
    storages.by_key.try_emplace(member.name.substr(data.size()),
                                Storages::Bytes{bytes, member.crc32, is_stored});
  }
  if (pickle == nullptr) return Error(ErrorCode::kCorrupt, "the archive has no data.pkl");
  PL_TRY_ASSIGN(const auto pickle_bytes, zip::Data(file, *pickle, true));
  ByteReader in(pickle_bytes);
  PL_TRY(machine_.Run(in));
  root_ = machine_.result_index();
  return Collect(storages);
}

Status TorchArchive::ReadLegacy(std::span<const std::byte> file) {
  ByteReader in(file);
  PL_TRY(machine_.Run(in));
  if (machine_.result().kind != Kind::kLong || machine_.result().text != kLegacyMagic) {
    return Error(ErrorCode::kUnsupported, "a pickle, but not one of torch.save");
  }
  PL_TRY(machine_.Run(in));
  PL_TRY_ASSIGN(const int64_t protocol, IntegerOf(machine_));
  if (protocol != kLegacyProtocol) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("legacy protocol {} (expected {})", protocol, kLegacyProtocol));
  }
  PL_TRY(machine_.Run(in));
  PL_TRY(machine_.Run(in));
  root_ = machine_.result_index();
  PL_TRY(machine_.Run(in));
  const PickleNode keys = machine_.result();
  if (keys.kind != Kind::kList) {
    return Error(ErrorCode::kCorrupt, "the list of storages is damaged");
  }
  std::unordered_map<std::string_view, const StorageRef*> known;
  for (const StorageRef& storage : machine_.storages()) known.try_emplace(storage.key, &storage);
  Storages storages;
  for (const uint32_t index : keys.items) {
    const std::string_view key = machine_.node(index).text;
    const auto found = known.find(key);
    if (found == known.end()) {
      return Error(ErrorCode::kCorrupt, fmt::format("storage {} belongs to no tensor", key));
    }
    const StorageRef& storage = *found->second;
    const uint64_t unit = storage.is_untyped ? 1 : InfoOf(storage.dtype).size_bytes;
    PL_TRY_ASSIGN(const uint64_t count, in.ReadU64());
    if (count > in.remaining() / unit) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("storage {} is cut (expected {} elements, got {} bytes)", key, count,
                               in.remaining()));
    }
    PL_TRY_ASSIGN(const auto bytes, in.ReadBytes(count * unit));
    storages.by_key.try_emplace(key, Storages::Bytes{bytes, std::nullopt, true});
  }
  return Collect(storages);
}

Result<TorchArchive> TorchArchive::Parse(std::span<const std::byte> bytes) {
  const std::string_view text = AsText(bytes);
  TorchArchive archive;
  if (text.starts_with(kZipMagic)) {
    PL_TRY(archive.ReadZip(bytes));
    return archive;
  }
  if (text.starts_with(kPickleMagic)) {
    PL_TRY(archive.ReadLegacy(bytes));
    return archive;
  }
  return Error(ErrorCode::kCorrupt,
               fmt::format("no file of torch.save (expected a zip archive or a pickle, got {})",
                           bytes.empty() ? "nothing" : "other bytes"));
}

Result<TorchArchive> TorchArchive::Open(const std::string& path) {
  PL_TRY_ASSIGN(auto mapped, MappedFile::Open(path));
  auto archive = Parse(mapped->bytes());
  if (!archive) return archive.error().In(path);
  archive->file_ = std::move(mapped);
  return archive;
}

Status CheckBytes(const ArchiveTensor& tensor) {
  if (!tensor.storage_crc || Crc32(tensor.storage) == *tensor.storage_crc) return {};
  return Error(ErrorCode::kCorrupt, "its bytes do not have their recorded checksum");
}

}  // namespace plumbline::torch_pt

#include "pipeline/device_dump/chunk_receiver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/text_digest.h"
#include "base/text_parts.h"
#include "pipeline/device_dump/received_file.h"
#include "pipeline/device_dump/received_statistics.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kPieces = ".receiving-";
constexpr std::string_view kLock = "lock";
constexpr size_t kMostOpenFiles = 256;
constexpr size_t kMostProblems = 20;

// rank, time, step, time, device, model name, model id, iteration, name.
constexpr size_t kModelLevels = 9;
constexpr size_t kKeptLevels = 3;

Status RemoveDirectory(const std::string& path) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) PL_TRY(RemoveFile(JoinPath(path, name)));
  if (::rmdir(path.c_str()) == 0) return {};
  return ErrnoError(errno, path, "remove");
}

}  // namespace

// One file on its way.
struct ChunkReceiver::Assembly {
  std::mutex mutex;  // of the next members; not waited for while the receiver's is held
  File file;         // closed while others are at work
  std::map<uint64_t, uint64_t> ranges;  // of the bytes that are there, apart: begin, end
  [[nodiscard]] uint64_t end() const { return ranges.empty() ? 0 : ranges.rbegin()->second; }
  bool is_appended = false;  // chunks without a place lie behind others
  std::string lost;          // why a chunk is not in the piece; empty: all are
  std::string piece;
  std::atomic<uint64_t> last_use = 0;
  // Of the receiver's mutex.
  size_t deliveries = 0;  // chunks that are being written
  bool has_ended = false;
};

namespace {

void AddRange(std::map<uint64_t, uint64_t>& ranges, uint64_t begin, uint64_t end) {
  if (begin == end) return;
  auto next = ranges.upper_bound(begin);
  if (next != ranges.begin() && std::prev(next)->second >= begin) --next;
  while (next != ranges.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ranges.erase(next);
  }
  ranges.emplace(begin, end);
}

// The first byte of a chunk for `place` that is there as another one; nothing if there is none.
Result<std::optional<uint64_t>> FindOther(const File& file,
                                          const std::map<uint64_t, uint64_t>& ranges,
                                          std::span<const std::byte> chunk, uint64_t place) {
  auto range = ranges.upper_bound(place);
  if (range != ranges.begin()) --range;
  std::vector<std::byte> there;
  for (; range != ranges.end() && range->first < place + chunk.size(); ++range) {
    const uint64_t begin = std::max(range->first, place);
    const uint64_t end = std::min(range->second, place + chunk.size());
    if (begin >= end) continue;
    there.resize(end - begin);
    PL_TRY_ASSIGN(const size_t count, file.ReadAt(there, begin));
    const auto given = chunk.subspan(begin - place, end - begin);
    const auto other = std::ranges::mismatch(given, std::span(there).first(count)).in1;
    if (other != given.end())
      return std::optional(begin + static_cast<uint64_t>(other - given.begin()));
  }
  return std::optional<uint64_t>();
}

// What lies between chunks and never came; empty: nothing.
std::string MissingBytes(const std::map<uint64_t, uint64_t>& ranges) {
  uint64_t end = 0;
  for (const auto& [begin, behind] : ranges) {
    if (begin > end) return fmt::format("bytes {} to {} never came", end, begin - 1);
    end = behind;
  }
  return "";
}

}  // namespace

Result<std::string> ReceivedPath(const std::string& dump_path, std::string_view path) {
  const Error outside(ErrorCode::kInvalidArgument,
                      fmt::format("{}: not below the dump path (expected {})", path, dump_path));
  PL_TRY_ASSIGN(const std::string root, AbsolutePath(dump_path));
  PL_TRY_ASSIGN(const std::string full, AbsolutePath(std::string(path)));
  if (!full.starts_with(root + "/")) return outside;
  const std::string_view below = std::string_view(full).substr(root.size() + 1);
  const std::vector<std::string_view> parts = SplitAt(below, '/');
  if (parts.size() < kModelLevels) return std::string(below);
  std::string kept;
  for (size_t i = 0; i < kKeptLevels; ++i) kept += fmt::format("{}/", parts[i]);
  return kept + std::string(parts.back());
}

ChunkReceiver::ChunkReceiver(std::string dump_path, std::string pieces, File lock)
    : dump_path_(std::move(dump_path)), pieces_(std::move(pieces)), lock_(std::move(lock)) {}

Result<std::unique_ptr<ChunkReceiver>> ChunkReceiver::Open(const std::string& dump_path) {
  static std::atomic<int> count = 0;
  PL_TRY(MakeDirectories(dump_path));
  const std::string pieces =
      JoinPath(dump_path, fmt::format("{}{}-{}", kPieces, ::getpid(), count++));
  PL_TRY(MakeDirectories(pieces));
  PL_TRY_ASSIGN(File lock, File::OpenUpdate(JoinPath(pieces, kLock)));
  PL_TRY_ASSIGN(const bool locked, lock.TryLock());
  if (!locked) {
    return Error(ErrorCode::kIo, fmt::format("{}: another process has its pieces there", pieces));
  }
  std::unique_ptr<ChunkReceiver> receiver(new ChunkReceiver(dump_path, pieces, std::move(lock)));
  PL_TRY(receiver->RemoveAbandoned());
  return receiver;
}

// Pieces of processes that are gone: nobody holds their lock.
Status ChunkReceiver::RemoveAbandoned() const {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(dump_path_));
  for (const std::string& name : names) {
    const std::string path = JoinPath(dump_path_, name);
    if (!name.starts_with(kPieces) || path == pieces_) continue;
    Result<File> lock = File::OpenUpdate(JoinPath(path, kLock));
    if (!lock || !lock->TryLock().value_or(false)) continue;
    PL_TRY(RemoveDirectory(path));
  }
  return {};
}

ChunkReceiver::~ChunkReceiver() { Close(); }

Result<std::shared_ptr<ChunkReceiver::Assembly>> ChunkReceiver::Begin(const std::string& file) {
  const std::scoped_lock lock(mutex_);
  if (is_closing_) {
    return Error(ErrorCode::kInvalidArgument, file + ": came after the receiver was closed");
  }
  std::shared_ptr<Assembly>& assembly = assemblies_[file];
  if (assembly == nullptr) {
    assembly = std::make_shared<Assembly>();
    assembly->piece = JoinPath(pieces_, std::to_string(next_piece_++));
  }
  assembly->last_use = ++uses_;
  ++assembly->deliveries;
  ++deliveries_;
  return assembly;
}

// Closes those that were idle longest.
void ChunkReceiver::LimitOpenFiles() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Assembly>> open;
  for (const auto& [file, assembly] : assemblies_) {
    const std::unique_lock own(assembly->mutex, std::try_to_lock);
    if (own.owns_lock() && assembly->file.is_open()) open.push_back(assembly);
  }
  if (open.size() <= kMostOpenFiles) return;
  std::ranges::sort(open, {}, [](const auto& one) { return one->last_use.load(); });
  open.resize(open.size() - kMostOpenFiles / 2);
  for (const auto& assembly : open) {
    const std::unique_lock own(assembly->mutex, std::try_to_lock);
    if (own.owns_lock()) assembly->file = File();
  }
}

Status ChunkReceiver::Receive(const Chunk& chunk) {
  PL_TRY_ASSIGN(const std::string target, ReceivedPath(dump_path_, chunk.file));
  if (chunk.bytes.empty() && !chunk.is_last) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: a chunk has no bytes", chunk.file));
  }
  PL_TRY_ASSIGN(const std::shared_ptr<Assembly> assembly, Begin(std::string(chunk.file)));
  const Status written = Put(chunk, *assembly);
  if (Ends(chunk, *assembly)) Finish(target, *assembly);
  const std::scoped_lock lock(mutex_);
  --deliveries_;
  changed_.notify_all();
  return written;
}

Status ChunkReceiver::Put(const Chunk& chunk, Assembly& assembly) {
  bool was_closed = false;
  const auto write = [&]() -> Status {
    was_closed = !assembly.file.is_open();
    if (was_closed) {
      PL_TRY_ASSIGN(assembly.file, File::OpenUpdate(assembly.piece));
    }
    const uint64_t place = chunk.offset < 0 ? assembly.end() : static_cast<uint64_t>(chunk.offset);
    PL_TRY_ASSIGN(const auto other, FindOther(assembly.file, assembly.ranges, chunk.bytes, place));
    if (other) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: byte {} came twice, as two different ones (expected the same "
                               "again). The file is not converted",
                               BaseName(chunk.file), *other));
    }
    const auto* text = reinterpret_cast<const char*>(chunk.bytes.data());
    PL_TRY(assembly.file.WriteAt({text, chunk.bytes.size()}, place));
    AddRange(assembly.ranges, place, place + chunk.bytes.size());
    if (chunk.offset < 0 && place > 0 && !chunk.bytes.empty()) assembly.is_appended = true;
    return {};
  };
  {
    const std::scoped_lock own(assembly.mutex);
    const Status written = write();
    if (!written) {
      if (assembly.lost.empty()) assembly.lost = written.error().message();
      return written;
    }
  }
  if (was_closed) LimitOpenFiles();
  return {};
}

// Whether `chunk`, which was written, is the last one of its file; waits for those that other
// threads are writing. From here on chunks of this name belong to another file.
bool ChunkReceiver::Ends(const Chunk& chunk, Assembly& assembly) {
  std::unique_lock lock(mutex_);
  --assembly.deliveries;
  changed_.notify_all();
  if (!chunk.is_last || assembly.has_ended) return false;
  assembly.has_ended = true;
  assemblies_.erase(std::string(chunk.file));
  changed_.wait(lock, [&] { return assembly.deliveries == 0; });
  return true;
}

// Requires: nobody else is at work in it.
void ChunkReceiver::Finish(const std::string& file, Assembly& assembly) {
  const Status closed = assembly.file.Close();
  if (!closed) assembly.lost = closed.error().message();
  if (assembly.lost.empty()) assembly.lost = MissingBytes(assembly.ranges);
  {
    // Deliveries of one file write the same outputs.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finishing_.insert(file).second; });
  }
  ReceivedFile received;
  if (!assembly.lost.empty()) {
    received.problems.push_back(fmt::format("{}: a chunk is lost: {}", file, assembly.lost));
  } else if (!IsRepeatedTable(file, assembly.piece)) {
    received = ConvertReceived(assembly.piece, JoinPath(dump_path_, file), assembly.is_appended);
  }
  static_cast<void>(RemoveFile(assembly.piece));
  const std::scoped_lock lock(mutex_);
  finishing_.erase(file);
  changed_.notify_all();
  if (assembly.lost.empty()) ++report_.files;
  report_.outputs += received.outputs;
  if (!received.problems.empty()) ++report_.failed;
  for (const std::string& problem : received.problems) Fail(problem);
}

// Rows are added to a table that has them of all operators: those of a file must not come twice.
bool ChunkReceiver::IsRepeatedTable(const std::string& file, const std::string& piece) {
  if (!IsDeviceTable(piece)) return false;
  const Result<std::string> table = ReadFile(piece);
  if (!table) return false;  // said where it is converted
  const std::string text = file + '\0' + *table;
  const std::string digest = Md5Hex(std::as_bytes(std::span(text)));
  const std::scoped_lock lock(mutex_);
  return !tables_.insert(digest).second;
}

// Requires: mutex_ is held.
void ChunkReceiver::Fail(std::string problem) {
  if (report_.problems.size() < kMostProblems) report_.problems.push_back(std::move(problem));
}

ReceiverReport ChunkReceiver::Close() {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(is_closing_, true)) {
      changed_.wait(lock, [&] { return is_closed_; });
      return report_;
    }
    changed_.wait(lock, [&] { return deliveries_ == 0; });
  }
  // Nobody else is at work from here on.
  for (const auto& [file, assembly] : std::exchange(assemblies_, {})) {
    const Result<std::string> target = ReceivedPath(dump_path_, file);
    const bool is_lost = !assembly->lost.empty();
    if (target && (is_lost || IsWhole(assembly->piece, BaseName(*target)))) {
      Finish(*target, *assembly);
      continue;
    }
    const std::scoped_lock lock(mutex_);
    ++report_.unended;
    Fail(fmt::format("{}: its last chunk never came ({} bytes did)", file, assembly->end()));
  }
  const Status removed = RemoveDirectory(pieces_);
  const std::scoped_lock lock(mutex_);
  if (!removed) Fail(removed.error().message());
  is_closed_ = true;
  changed_.notify_all();
  return report_;
}

}  // namespace plumbline::pipeline

#include "store/tensor_writer.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "formats/torch_pt.h"

namespace plumbline {
namespace {

// Measured on ext4 (large folios): 1 MiB writes reach 3.7 GB/s into the page cache; one write of a
// whole large tensor is up to 5 times slower, preallocation makes deletion 10 times slower.
constexpr size_t kWriteBytes = size_t{1} << 20;
// Files up to this size are put together in memory and written by one call.
constexpr size_t kSmallFileBytes = size_t{64} << 10;
// Zeros become holes in pieces of this size; smaller ones would only scatter the file.
constexpr size_t kHoleBytes = size_t{64} << 10;
constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;
// A free buffer may be this many times larger than what is asked for.
constexpr size_t kMaxSlack = 2;

// Sizes in steps of a quarter of a power of two, so that buffers fit the next similar tensor.
size_t RoundCapacity(size_t size) {
  if (size <= kPageBytes) return kPageBytes;
  const size_t step = std::bit_floor(size - 1) / 4;
  return (size + step - 1) / step * step;
}

std::byte* AllocateBlock(size_t capacity) {
  const bool large = capacity >= 2 * kHugePageBytes;
  const size_t alignment = large ? kHugePageBytes : kPageBytes;
  const size_t bytes = (capacity + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes);
  // Fresh memory costs a fault per page: huge pages make it 500 times fewer. Best effort.
  if (memory != nullptr && large) (void)::madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

Status WriteInPieces(AtomicFile& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kWriteBytes);
    PL_TRY(file.Write(bytes.first(n)));
    bytes = bytes.subspan(n);
  }
  return {};
}

bool AreZeros(std::span<const std::byte> bytes) {
  if (bytes.front() != std::byte{0}) return false;
  return std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// The same, with holes for the zeros: gradients of embeddings are mostly zeros. Something must be
// written behind the last byte.
Status WriteWithHoles(AtomicFile& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    size_t zeros = 0;
    while (bytes.size() - zeros >= kHoleBytes && AreZeros(bytes.subspan(zeros, kHoleBytes))) {
      zeros += kHoleBytes;
    }
    if (zeros > 0) PL_TRY(file.Skip(zeros));
    bytes = bytes.subspan(zeros);
    size_t filled = 0;
    while (filled < std::min(bytes.size(), kWriteBytes)) {
      const size_t piece = std::min(kHoleBytes, bytes.size() - filled);
      if (piece == kHoleBytes && AreZeros(bytes.subspan(filled, piece))) break;
      filled += piece;
    }
    PL_TRY(file.Write(bytes.first(filled)));
    bytes = bytes.subspan(filled);
  }
  return {};
}

Status CopyFile(const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const auto source, MappedFile::Open(from));
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(to));
  PL_TRY(WriteInPieces(file, source->bytes()));
  return file.Commit(/*durable=*/false);
}

}  // namespace

ContentKey MakeContentKey(const Digest128& content, DType dtype, std::span<const int64_t> sizes) {
  Xxh3 hash;
  hash.Update(std::as_bytes(std::span(&content, 1)));
  hash.Update(std::as_bytes(std::span(&dtype, 1)));
  hash.Update(std::as_bytes(sizes));
  return hash.Finish();
}

TensorBuffer::TensorBuffer(TensorBuffer&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      data_(other.data_),
      size_(other.size_),
      capacity_(other.capacity_) {}

TensorBuffer& TensorBuffer::operator=(TensorBuffer&& other) noexcept {
  if (this != &other) {
    if (owner_ != nullptr) owner_->Release(data_, capacity_);
    owner_ = std::exchange(other.owner_, nullptr);
    data_ = other.data_;
    size_ = other.size_;
    capacity_ = other.capacity_;
  }
  return *this;
}

TensorBuffer::~TensorBuffer() {
  if (owner_ != nullptr) owner_->Release(data_, capacity_);
}

TensorWriter::TensorWriter(size_t budget_bytes) : budget_bytes_(budget_bytes), pid_(::getpid()) {}

TensorWriter::~TensorWriter() {
  if (::getpid() != pid_) {
    // Forked child: the thread, and whoever holds the mutex, exist in the parent only. Jobs still
    // queued are the parent's; their buffers go with this object.
    if (thread_.joinable()) thread_.detach();
    for (TensorJob& job : jobs_) job.buffer.owner_ = nullptr;
    return;
  }
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  for (const Block& block : free_) std::free(block.data);
}

std::optional<TensorWriter::Block> TensorWriter::TakeFree(size_t capacity) {
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->capacity < capacity || it->capacity > capacity * kMaxSlack) continue;
    if (best == free_.end() || it->capacity < best->capacity) best = it;
  }
  if (best == free_.end()) return std::nullopt;
  const Block block = *best;
  *best = free_.back();
  free_.pop_back();
  free_bytes_ -= block.capacity;
  return block;
}

TensorBuffer TensorWriter::Acquire(size_t size) {
  TensorBuffer buffer;
  if (failed() || ::getpid() != pid_) return buffer;
  size_t capacity = RoundCapacity(size);
  std::byte* data = nullptr;
  {
    std::unique_lock lock(mutex_);
    // Only jobs under way can free memory: without any, waiting would be for ever.
    const auto may_go = [&] {
      return handed_out_bytes_ + capacity <= budget_bytes_ || submitted_ == finished_;
    };
    if (!may_go()) {
      const auto start = std::chrono::steady_clock::now();
      changed_.wait(lock, may_go);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      ++stats_.waits;
      stats_.wait_seconds += waited.count();
    }
    if (const auto block = TakeFree(capacity)) {
      data = block->data;
      capacity = block->capacity;
    }
    handed_out_bytes_ += capacity;
  }
  if (data == nullptr) data = AllocateBlock(capacity);
  if (data == nullptr) {
    const std::lock_guard lock(mutex_);
    handed_out_bytes_ -= capacity;
    return buffer;
  }
  buffer.owner_ = this;
  buffer.data_ = data;
  buffer.size_ = size;
  buffer.capacity_ = capacity;
  return buffer;
}

void TensorWriter::Release(std::byte* data, size_t capacity) {
  bool keep = false;
  {
    const std::lock_guard lock(mutex_);
    handed_out_bytes_ -= capacity;
    keep = free_bytes_ + capacity <= budget_bytes_;
    if (keep) {
      free_.push_back({data, capacity});
      free_bytes_ += capacity;
    }
  }
  changed_.notify_all();
  if (!keep) std::free(data);
}

uint64_t TensorWriter::Submit(TensorJob job) {
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++submitted_;
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Run(); });
      ::pthread_setname_np(thread_.native_handle(), "plumb-tensors");
    }
  }
  changed_.notify_all();
  return ticket;
}

void TensorWriter::WaitFor(uint64_t ticket) {
  if (::getpid() != pid_) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ >= ticket; });
}

void TensorWriter::CountLost(uint64_t tensors) {
  const std::lock_guard lock(mutex_);
  stats_.lost += tensors;
}

TensorWriterStats TensorWriter::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void TensorWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    TensorJob job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Process(job);
    job.buffer = TensorBuffer();  // back to the pool before the producer wakes up
    lock.lock();
    ++finished_;
    changed_.notify_all();
  }
}

void TensorWriter::Process(TensorJob& job) {
  const bool is_link = !job.link_from.empty();
  Status status;
  if (!failed()) status = is_link ? WriteLink(job) : WriteFile(job);
  if (!failed() && status) {
    const std::lock_guard lock(mutex_);
    ++(is_link ? stats_.links : stats_.files);
    if (!is_link) stats_.bytes += job.buffer.bytes().size();
    return;
  }
  CountLost(1);
  if (failed_.exchange(true)) return;
  LogError(fmt::format(
      "{}. No more tensor files are written from here on; statistics continue. Free the "
      "disk or choose another dump_path, then record again",
      status.error().message()));
}

Status TensorWriter::WriteFile(const TensorJob& job) {
  const std::span<const std::byte> data = job.buffer.bytes();
  const torch_pt::Frame frame = torch_pt::MakeFrame(job.dtype, job.sizes, data.size(), job.crc32);
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(job.path));
  if (data.size() <= kSmallFileBytes) {
    std::string whole = frame.head;
    whole.append(reinterpret_cast<const char*>(data.data()), data.size());
    whole += frame.tail;
    PL_TRY(file.Write(whole));
  } else {
    PL_TRY(file.Write(frame.head));
    PL_TRY(WriteWithHoles(file, data));
    PL_TRY(file.Write(frame.tail));
  }
  return file.Commit(/*durable=*/false);
}

Status TensorWriter::WriteLink(const TensorJob& job) {
  if (job.path == job.link_from) return {};
  Status linked = LinkFile(job.link_from, job.path);
  if (linked) return linked;
  if (linked.error().code() == ErrorCode::kIo && KindOf(job.path) == PathKind::kFile) {
    // A file of an earlier run has this name.
    PL_TRY(RemoveFile(job.path));
    linked = LinkFile(job.link_from, job.path);
  }
  if (!linked && linked.error().code() == ErrorCode::kUnsupported) {
    return CopyFile(job.link_from, job.path);
  }
  return linked;
}

}  // namespace plumbline

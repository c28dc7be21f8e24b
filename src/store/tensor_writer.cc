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
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
#include "formats/array/npy.h"
#include "formats/pytorch/torch_pt.h"
#include "store/run_layout.h"

namespace plumbline {

Worker::Worker(std::string name) : name_(std::move(name)) {}

Worker::~Worker() {
  // In a forked child the mutex may be locked for ever.
  if (!thread_.is_here() || !thread_->joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_->notify_all();
  thread_->join();
}

void Worker::Submit(std::string key, std::function<void()> job) {
  if (!thread_.is_here()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!key.empty()) std::erase_if(jobs_, [&](const Job& j) { return j.key == key; });
    jobs_.push_back({std::move(key), std::move(job)});
    if (!thread_->joinable()) {
      *thread_ = std::thread([this] { Run(); });
      ::pthread_setname_np(thread_->native_handle(), name_.c_str());
    }
  }
  changed_->notify_all();
}

void Worker::WaitForAtMost(size_t jobs) {
  if (!thread_.is_here()) return;
  std::unique_lock lock(mutex_);
  changed_->wait(lock, [&] { return jobs_.size() + (busy_ ? 1 : 0) <= jobs; });
}

void Worker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_->wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job.run();
    job.run = nullptr;  // what it holds goes before Drain() returns
    lock.lock();
    busy_ = false;
    changed_->notify_all();
  }
}

Result<std::shared_ptr<TensorDirectory>> TensorDirectory::Adopt(Directory directory) {
  auto tensors = std::make_shared<TensorDirectory>(std::move(directory));
  PL_TRY_ASSIGN(const std::vector<std::string> names, tensors->directory_.List());
  for (const std::string& name : names) {
    if (run_layout::IsTemporary(name)) {
      PL_TRY(tensors->directory_.Remove(name));
    } else {
      tensors->old_.insert(name);
    }
  }
  return tensors;
}

void TensorDirectory::Claim(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    if (old_.erase(name) == 0) return;
  }
  if (!directory_.Remove(name)) Lose(name);
}

std::vector<std::string> TensorDirectory::LeftOvers() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names(old_.begin(), old_.end());
  std::ranges::sort(names);
  return names;
}

void TensorDirectory::Lose(const std::string& name) {
  const std::lock_guard lock(mutex_);
  lost_.insert(name);
  has_losses_.store(true);
}

void TensorDirectory::Found(const std::string& name) {
  if (!has_losses_.load()) return;
  const std::lock_guard lock(mutex_);
  lost_.erase(name);
}

uint64_t TensorDirectory::LostFiles() const {
  const std::lock_guard lock(mutex_);
  return lost_.size();
}

bool TensorDirectory::HasLost(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return lost_.contains(name);
}

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

Status CopyFile(const Directory& directory, const std::string& from, const std::string& to) {
  PL_TRY_ASSIGN(const auto source, MappedFile::Open(JoinPath(directory.path(), from)));
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(directory, to));
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

TensorWriter::TensorWriter(Trouble& trouble, const TensorLimits& limits)
    : trouble_(trouble), limits_(limits) {}

TensorWriter::~TensorWriter() {
  if (!thread_.is_here()) {
    // Forked child: the thread, and whoever holds the mutex, exist in the parent only. Jobs still
    // queued are the parent's; their buffers go with this object.
    for (TensorJob& job : jobs_) job.buffer.owner_ = nullptr;
    return;
  }
  if (thread_->joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_->notify_all();
    thread_->join();
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

TensorBuffer TensorWriter::Take(size_t size, bool may_wait, bool is_within) {
  TensorBuffer buffer;
  if (failed() || !thread_.is_here()) return buffer;
  size_t capacity = RoundCapacity(size);
  std::byte* data = nullptr;
  {
    std::unique_lock lock(mutex_);
    const bool is_beyond =
        handed_out_bytes_ > 0 && handed_out_bytes_ + capacity > limits_.budget_bytes;
    if (is_within && is_beyond) return buffer;
    if (!MayGo(capacity)) {
      if (!may_wait) return buffer;
      const auto start = std::chrono::steady_clock::now();
      changed_->wait(lock, [&] { return MayGo(capacity); });
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
  if (!thread_.is_here()) return std::free(data);
  bool keep = false;
  {
    const std::lock_guard lock(mutex_);
    handed_out_bytes_ -= capacity;
    keep = free_bytes_ + capacity <= limits_.budget_bytes;
    if (keep) {
      free_.push_back({data, capacity});
      free_bytes_ += capacity;
    }
  }
  changed_->notify_all();
  if (!keep) std::free(data);
}

uint64_t TensorWriter::Submit(TensorJob job) {
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++submitted_;
    jobs_.push_back(std::move(job));
    if (!thread_->joinable()) {
      *thread_ = std::thread([this] { Run(); });
      ::pthread_setname_np(thread_->native_handle(), "plumb-tensors");
    }
  }
  changed_->notify_all();
  return ticket;
}

void TensorWriter::WaitFor(uint64_t ticket) {
  if (!thread_.is_here()) return;
  std::unique_lock lock(mutex_);
  changed_->wait(lock, [&] { return finished_ >= ticket; });
}

void TensorWriter::CountLost(uint64_t tensors) {
  const std::lock_guard lock(mutex_);
  stats_.lost += tensors;
}

std::string TensorWriter::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

TensorWriterStats TensorWriter::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void TensorWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_->wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    TensorJob job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Process(job);
    job.buffer = TensorBuffer();  // back to the pool before the producer wakes up
    lock.lock();
    ++finished_;
    changed_->notify_all();
  }
}

void TensorWriter::Process(TensorJob& job) {
  Status status;
  const bool is_off = failed() || job.directory->is_closed();
  if (!is_off) status = Write(job);
  if (!is_off && status) {
    job.directory->Found(job.name);
    const bool is_link = !job.link_from.empty();
    const std::lock_guard lock(mutex_);
    ++(is_link ? stats_.links : stats_.files);
    if (!is_link) stats_.bytes += job.buffer.bytes().size();
    return;
  }
  job.directory->Lose(job.name);
  CountLost(1);
  if (!is_off) Fail(job, status.error());
}

void TensorWriter::Fail(const TensorJob& job, const Error& error) {
  const Directory& directory = job.directory->directory();
  const std::string rank_directory(DirectoryOf(directory.path()));
  if (const Status place = directory.CheckPlace(); !place) {
    job.directory->Close();
    trouble_.Report(Harm::kPlace, rank_directory, place.error(),
                    "The tensor files of this step are lost; statistics continue, and what is lost "
                    "is counted");
    return;
  }
  if (error.code() == ErrorCode::kNotFound) {
    // Somebody removes files here, perhaps the directory next; the disk itself is sound.
    trouble_.Report(
        Harm::kPlace, rank_directory,
        Error(ErrorCode::kNotFound,
              directory.path() + ": a file in it was removed while it was recorded into"),
        "Tensor files of this step are lost and counted; statistics continue");
    return;
  }
  failed_.store(true);
  {
    const std::lock_guard lock(mutex_);
    reason_ = error.message();
  }
  trouble_.Report(Harm::kTensors, rank_directory, error,
                  "No more tensor files are written from here on, and what is lost is counted. "
                  "Statistics go on while there is room for them, which takes less. Make room or "
                  "choose another dump_path, then record again");
}

Status TensorWriter::CheckLimits(const TensorJob& job, uint64_t file_bytes) {
  // Asking costs a system call: once per this many bytes is enough to keep a distance.
  constexpr uint64_t kAskEveryBytes = uint64_t{16} << 20;
  constexpr uint64_t kSmallShare = 50;  // 2 %
  const Directory& directory = job.directory->directory();
  if (limits_.max_bytes > 0) {
    // Files of earlier runs are gone from under this name: what stands there was counted.
    const uint64_t kept = kept_bytes_ - std::min(directory.BytesFreedBy(job.name), kept_bytes_);
    if (kept + file_bytes > limits_.max_bytes) {
      return Error(ErrorCode::kIo,
                   fmt::format("{}: tensor files would take more than max_bytes = {} bytes",
                               directory.path(), limits_.max_bytes));
    }
    kept_bytes_ = kept + file_bytes;
  }
  unchecked_bytes_ += file_bytes;
  if (space_was_asked_ && unchecked_bytes_ < kAskEveryBytes) return {};
  if (limits_.min_free_bytes == 0) return {};
  const Result<Directory::Space> space = directory.SpaceLeft();
  // Some file systems do not say; writing will tell.
  if (!space || space->total_bytes == 0) return {};
  space_was_asked_ = true;
  unchecked_bytes_ = 0;
  const uint64_t wanted = limits_.min_free_bytes.value_or(
      std::min(TensorLimits::kDefaultFreeBytes, space->total_bytes / kSmallShare));
  if (space->free_bytes >= wanted + file_bytes) return {};
  return Error(ErrorCode::kIo,
               fmt::format("{}: only {} bytes are free on this file system (min_free_bytes is {})",
                           directory.path(), space->free_bytes, wanted));
}

Status TensorWriter::Write(const TensorJob& job) {
  // The directory is held open: without this look, files would go where nobody finds them.
  PL_TRY(job.directory->directory().CheckPlace());
  return job.link_from.empty() ? WriteFile(job) : WriteLink(job);
}

Status TensorWriter::WriteFile(const TensorJob& job) {
  std::span<const std::byte> data = job.buffer.bytes();
  torch_pt::Frame frame;
  npy::Contents array;
  if (job.name.ends_with(".npy")) {  // as TensorFile::Open() tells them apart
    PL_TRY_ASSIGN(array, npy::MakeContents(job.dtype, job.sizes, data));
    frame.head = std::move(array.header);
    data = array.data;
  } else {
    frame = torch_pt::MakeFrame(job.dtype, job.sizes, data.size(), job.crc32);
  }
  PL_TRY(CheckLimits(job, frame.head.size() + data.size() + frame.tail.size()));
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(job.directory->directory(), job.name));
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
  if (job.name == job.link_from) return {};
  const Directory& directory = job.directory->directory();
  Status linked = directory.Link(job.link_from, job.name);
  if (linked) return linked;
  if (linked.error().code() == ErrorCode::kIo && directory.KindOf(job.name) != PathKind::kMissing) {
    // An earlier tensor of this name, or what somebody put there.
    PL_TRY(directory.Remove(job.name));
    linked = directory.Link(job.link_from, job.name);
  }
  if (!linked && linked.error().code() == ErrorCode::kUnsupported) {
    return CopyFile(directory, job.link_from, job.name);
  }
  return linked;
}

}  // namespace plumbline

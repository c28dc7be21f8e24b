// Tensor files of a rank directory, written in the background; and the thread for jobs that may
// wait.

#ifndef PLUMBLINE_STORE_TENSOR_WRITER_H_
#define PLUMBLINE_STORE_TENSOR_WRITER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/memory/digest.h"
#include "base/process/of_process.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"
#include "store/journal.h"

namespace plumbline {

// One background thread that runs jobs in order: syncing and cleaning up after the recorder.

// Thread-safe. The thread starts with the first job. Destruction waits for all jobs. In a forked
// child, which has no such thread, nothing here does anything.
class Worker {
 public:
  // `name` shows in thread lists; at most 15 bytes.
  explicit Worker(std::string name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues `job`. A job of the same non-empty key that has not started yet is dropped: the new one
  // does its work too.
  void Submit(std::string key, std::function<void()> job);
  // Waits until no job is queued or running.
  void Drain() { WaitForAtMost(0); }
  // Waits until at most that many jobs are queued or running.
  void WaitForAtMost(size_t jobs);

 private:
  struct Job {
    std::string key;
    std::function<void()> run;
  };
  void Run();

  const std::string name_;
  std::mutex mutex_;  // guards what follows
  OfProcess<std::condition_variable> changed_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool stopping_ = false;
  OfProcess<std::thread> thread_;
};

// The tensor files of one rank directory, and which of them are not there.

// Shared by the run writer, which names files, and the tensor writer, which writes them.
// Thread-safe.
class TensorDirectory {
 public:
  // Removes temporary files that a killed process left, and lists the files of earlier runs.
  // `directory` was just opened.
  static Result<std::shared_ptr<TensorDirectory>> Adopt(Directory directory);
  explicit TensorDirectory(Directory directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const Directory& directory() const { return directory_; }

  // To be called before `name` is recorded: a file of an earlier run with this name is removed, so
  // that one that stands there is of this run, whatever happens next.
  void Claim(const std::string& name);
  // Files of earlier runs that were not claimed, in order.
  [[nodiscard]] std::vector<std::string> LeftOvers() const;

  // The file of that name could not be written, or is not what was recorded last.
  void Lose(const std::string& name);
  void Found(const std::string& name);  // it was written after all
  [[nodiscard]] bool HasLost(const std::string& name) const;
  [[nodiscard]] bool HasLosses() const { return has_losses_.load(); }
  [[nodiscard]] uint64_t LostFiles() const;

  // Nothing is written any more, because the directory is gone.
  void Close() { is_closed_.store(true); }
  [[nodiscard]] bool is_closed() const { return is_closed_.load(std::memory_order_relaxed); }

 private:
  const Directory directory_;
  std::atomic<bool> has_losses_ = false;
  std::atomic<bool> is_closed_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_set<std::string> lost_;
  std::unordered_set<std::string> old_;
};

// Background writing of tensor files, with a byte budget and recycled buffers.

class TensorWriter;

// Identity of a tensor's contents: equal keys mean equal files.
using ContentKey = Digest128;
// `content` is kernels::TensorScan::content of the elements.
ContentKey MakeContentKey(const Digest128& content, DType dtype, std::span<const int64_t> sizes);

// Memory for one tensor's bytes, borrowed from the writer's pool and given back on destruction.
// Move-only. Must not outlive the writer.
class TensorBuffer {
 public:
  TensorBuffer() = default;
  TensorBuffer(TensorBuffer&& other) noexcept;
  TensorBuffer& operator=(TensorBuffer&& other) noexcept;
  ~TensorBuffer();

  [[nodiscard]] bool is_valid() const { return owner_ != nullptr; }
  // Exactly the bytes asked for; 64-byte aligned.
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  friend class TensorWriter;
  TensorWriter* owner_ = nullptr;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// A tensor to store. `buffer` holds contiguous elements.
struct TensorJob {
  std::shared_ptr<TensorDirectory> directory;
  std::string name;       // appears there by rename when complete; ends in .pt or .npy
  std::string link_from;  // not empty: make `name` a hard link of this file (copy where there are
                          // no links); the rest is unused
  DType dtype = DType::kFloat32;
  Shape sizes;
  uint32_t crc32 = 0;  // of the element bytes
  TensorBuffer buffer;
};

struct TensorWriterStats {
  uint64_t files = 0;  // written with their contents
  uint64_t links = 0;  // hard links (or copies) of a file written before
  uint64_t bytes = 0;  // written, links not counted
  uint64_t lost = 0;   // tensors without a file because writing failed
  uint64_t waits = 0;  // times Acquire had to wait for the budget
  double wait_seconds = 0;
};

// What tensor files may take of the memory and of the disk.
struct TensorLimits {
  static constexpr size_t kDefaultBudgetBytes = size_t{512} << 20;
  static constexpr uint64_t kDefaultFreeBytes = uint64_t{1} << 30;

  size_t budget_bytes = kDefaultBudgetBytes;  // of memory, waiting to be written
  // Bytes of contents this process may write: links count nothing, a file that is replaced gives
  // its bytes back. 0: no limit.
  uint64_t max_bytes = 0;
  // What must stay free on the file system. Nullopt: 1 GiB or 2 %, whichever is less. 0: nothing.
  std::optional<uint64_t> min_free_bytes = std::nullopt;
};

// Writes files on one thread, in the order of Submit. The first failure (disk full, a limit)
// switches writing off: one line is logged, later tensors are counted as lost, nothing else
// happens. A directory that was removed or replaced is given up alone, and so is a file.
// Thread-safe. The thread starts with the first job; a forked child owns nothing.
class TensorWriter {
 public:
  // `trouble` must outlive the writer.
  explicit TensorWriter(Trouble& trouble, const TensorLimits& limits = {});
  ~TensorWriter();  // waits for all jobs
  TensorWriter(const TensorWriter&) = delete;
  TensorWriter& operator=(const TensorWriter&) = delete;

  // Memory for `size` bytes. Waits while the buffers handed out exceed the budget (one larger
  // buffer alone is allowed). Invalid when memory runs out or writing is switched off: count the
  // tensor with CountLost() and go on.
  TensorBuffer Acquire(size_t size) { return Take(size, /*may_wait=*/true); }
  // The same without waiting: invalid when Acquire would wait, too.
  TensorBuffer TryAcquire(size_t size) { return Take(size, /*may_wait=*/false); }
  // Without waiting, and never beyond the budget, whoever frees memory: for buffers that are no
  // jobs of this writer. One larger buffer alone is allowed.
  TensorBuffer AcquireWithin(size_t size) { return Take(size, /*may_wait=*/false, true); }
  // Returns a ticket for WaitFor.
  uint64_t Submit(TensorJob job);
  // Waits until the job of that ticket and all before it are done.
  void WaitFor(uint64_t ticket);
  void CountLost(uint64_t tensors);

  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // Why nothing is written any more; empty while files are written.
  [[nodiscard]] std::string reason() const;
  [[nodiscard]] TensorWriterStats stats() const;

 private:
  friend class TensorBuffer;
  struct Block {
    std::byte* data;
    size_t capacity;
  };
  TensorBuffer Take(size_t size, bool may_wait, bool is_within = false);
  void Run();
  void Process(TensorJob& job);
  Status Write(const TensorJob& job);
  Status WriteFile(const TensorJob& job);
  Status WriteLink(const TensorJob& job);
  Status CheckLimits(const TensorJob& job, uint64_t file_bytes);
  void Fail(const TensorJob& job, const Error& error);
  // Requires mutex_.
  [[nodiscard]] bool MayGo(size_t capacity) const {
    // Only jobs under way can free memory: without any, waiting would be for ever.
    return handed_out_bytes_ + capacity <= limits_.budget_bytes || submitted_ == finished_;
  }
  void Release(std::byte* data, size_t capacity);
  std::optional<Block> TakeFree(size_t capacity);

  Trouble& trouble_;
  const TensorLimits limits_;
  std::atomic<bool> failed_ = false;
  // Of the writing thread alone.
  uint64_t kept_bytes_ = 0;       // against max_bytes
  uint64_t unchecked_bytes_ = 0;  // written since the free space was asked for
  bool space_was_asked_ = false;

  mutable std::mutex mutex_;  // guards what follows
  OfProcess<std::condition_variable> changed_;
  std::deque<TensorJob> jobs_;
  uint64_t submitted_ = 0;
  uint64_t finished_ = 0;
  size_t handed_out_bytes_ = 0;
  size_t free_bytes_ = 0;
  std::vector<Block> free_;
  TensorWriterStats stats_;
  std::string reason_;
  bool stopping_ = false;
  OfProcess<std::thread> thread_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_TENSOR_WRITER_H_

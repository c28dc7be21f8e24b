// The tensor files of one rank directory, and which of them are not there.

#ifndef PLUMBLINE_STORE_TENSOR_DIRECTORY_H_
#define PLUMBLINE_STORE_TENSOR_DIRECTORY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/directory.h"

namespace plumbline {

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

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_TENSOR_DIRECTORY_H_

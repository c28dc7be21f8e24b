// Results that several questions need, kept while they are asked.

#ifndef PLUMBLINE_VIEW_STORE_KEPT_ANSWERS_H_
#define PLUMBLINE_VIEW_STORE_KEPT_ANSWERS_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace plumbline::view {

// Values by key, each of the type that its key has. What is asked for last stays, up to some number
// of bytes. Thread-safe.
class KeptAnswers {
 public:
  explicit KeptAnswers(size_t most_bytes = size_t{64} << 20) : most_bytes_(most_bytes) {}

  // Null: not kept, or not any more.
  template <class T>
  std::shared_ptr<const T> Find(std::string_view key) {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->key != key) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return std::static_pointer_cast<const T>(entry->value);
    }
    return nullptr;
  }

  // `bytes`: of the value, about; unsaid: some of the lists that a page asks for.
  void Keep(std::string key, std::shared_ptr<const void> value, size_t bytes = size_t{4} << 20) {
    const std::lock_guard lock(mutex_);
    bytes += key.size();
    bytes_ += bytes;
    entries_.push_front({std::move(key), std::move(value), bytes});
    for (; bytes_ > most_bytes_ && !entries_.empty(); entries_.pop_back()) {
      bytes_ -= entries_.back().bytes;
    }
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const void> value;
    size_t bytes;
  };

  const size_t most_bytes_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the last one asked for in front
  size_t bytes_ = 0;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_KEPT_ANSWERS_H_

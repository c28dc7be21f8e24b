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

// The last few values by key. What stands under one key has one type, that of who put it there.
// Thread-safe.
class KeptAnswers {
 public:
  // A page asks with one or two queries at a time; a bitmap of two million nodes has 250 KB.
  explicit KeptAnswers(size_t most = 16) : most_(most) {}

  // Null: not kept (any more).
  template <class T>
  std::shared_ptr<const T> Find(std::string_view key) {
    return std::static_pointer_cast<const T>(FindAny(key));
  }
  void Keep(std::string_view key, std::shared_ptr<const void> value) {
    const std::lock_guard lock(mutex_);
    kept_.remove_if([&](const auto& entry) { return entry.first == key; });
    kept_.emplace_front(std::string(key), std::move(value));
    if (kept_.size() > most_) kept_.pop_back();
  }

 private:
  std::shared_ptr<const void> FindAny(std::string_view key) {
    const std::lock_guard lock(mutex_);
    for (auto entry = kept_.begin(); entry != kept_.end(); ++entry) {
      if (entry->first != key) continue;
      kept_.splice(kept_.begin(), kept_, entry);
      return entry->second;
    }
    return nullptr;
  }

  const size_t most_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<const void>>> kept_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_KEPT_ANSWERS_H_

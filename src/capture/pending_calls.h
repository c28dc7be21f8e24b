// Calls that returned before they were complete: communication in the background.

#ifndef PLUMBLINE_CAPTURE_PENDING_CALLS_H_
#define PLUMBLINE_CAPTURE_PENDING_CALLS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/recorded_program.h"

namespace plumbline::capture {

// A call is complete when the program has waited for all handles that it returned. Handles are
// kept: the framework may make a new object for one that was dropped. `Call` is what the caller
// wants back then. Requires the program's lock.
template <class Call>
class PendingCalls {
 public:
  struct Pending {
    Call call;
    std::vector<ObjectRef> handles;  // not waited for yet; none: nothing tells when it is complete
  };
  struct Completion {
    ObjectRef handle;  // empty: no call awaits it
    std::optional<Call> complete;
  };

  // The number of the call. A handle that belongs to another call already stays that call's.
  uint64_t Add(Call call, std::vector<ObjectRef> handles) {
    const uint64_t id = next_id_++;
    Pending& pending = calls_[id];
    pending.call = std::move(call);
    for (ObjectRef& handle : handles) {
      if (by_handle_.emplace(handle.get(), id).second) {
        pending.handles.push_back(std::move(handle));
      }
    }
    return id;
  }

  [[nodiscard]] bool Awaits(const void* handle) const { return by_handle_.contains(handle); }

  // The program has waited for `handle`.
  Completion Complete(const void* handle) {
    Completion completion;
    const auto at = by_handle_.find(handle);
    if (at == by_handle_.end()) return completion;
    const uint64_t id = at->second;
    by_handle_.erase(at);
    std::vector<ObjectRef>& handles = calls_.at(id).handles;
    const auto own = std::ranges::find(handles, handle, &ObjectRef::get);
    completion.handle = std::move(*own);
    handles.erase(own);
    if (handles.empty()) completion.complete = std::move(Take(id)->call);
    return completion;
  }

  // The calls for whose handles `is_wanted` is true, in the order in which they began.
  template <class IsWanted>
  [[nodiscard]] std::vector<uint64_t> Find(const IsWanted& is_wanted) const {
    std::vector<uint64_t> ids;
    for (const auto& [id, pending] : calls_) {
      if (is_wanted(pending.handles)) ids.push_back(id);
    }
    std::ranges::sort(ids);
    return ids;
  }
  // Null: it is complete meanwhile, another thread waited for it.
  [[nodiscard]] const Pending* At(uint64_t id) const {
    const auto at = calls_.find(id);
    return at == calls_.end() ? nullptr : &at->second;
  }
  std::optional<Pending> Take(uint64_t id) {
    const auto at = calls_.find(id);
    if (at == calls_.end()) return std::nullopt;
    Pending pending = std::move(at->second);
    calls_.erase(at);
    for (const ObjectRef& handle : pending.handles) by_handle_.erase(handle.get());
    return pending;
  }

  // Whether so many calls are under way that it is time to look for handles that were dropped.
  [[nodiscard]] bool is_sweep_due() const { return calls_.size() >= sweep_at_; }
  void EndSweep() { sweep_at_ = calls_.size() + kSweepEvery; }

 private:
  static constexpr size_t kSweepEvery = 64;  // more calls in flight than the last sweep left

  std::unordered_map<uint64_t, Pending> calls_;
  std::unordered_map<const void*, uint64_t> by_handle_;
  uint64_t next_id_ = 0;
  size_t sweep_at_ = kSweepEvery;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_PENDING_CALLS_H_

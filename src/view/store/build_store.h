// The store of one or two recordings: what plumb compare finds, put on the trees of the calls.

#ifndef PLUMBLINE_VIEW_STORE_BUILD_STORE_H_
#define PLUMBLINE_VIEW_STORE_BUILD_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "load/rank_directories.h"
#include "plumbline/compare_options.h"
#include "plumbline/result.h"
#include "view/store/hand_pairs.h"

namespace plumbline::view {

struct StoreOptions {
  CompareOptions compare;  // output_dir, suffix and formats are not used
  load::RankFilter filter;
  bool grades_overflow = true;
  // What a person paired of a rank: names of the target and golden ones; may be empty.
  HandPairs by_hand{};
  // How many ranks are done, of how many; from one thread at a time; may be empty.
  std::function<void(uint64_t done, uint64_t all)> progress;
  // Set by another thread to stop the work; null: it cannot be stopped.
  const std::atomic<bool>* is_cancelled = nullptr;
};

// `target`: a recording, a rank of one, or a directory of ranks or of steps; `golden`: another one
// of that kind, or empty. Writes the store to `store_path` atomically; nothing is left when it
// fails. Errors: those of FindRankPairs() and of CompareRuns() where there is one pair; of several,
// a rank that cannot be compared is said in the answer, and shown without levels. kNotFound: a
// cancelled work, "cancelled".
Status BuildStore(const std::string& target, const std::string& golden,
                  const std::string& store_path, const StoreOptions& options);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_BUILD_STORE_H_

// A store filled from a file for viewers of graphs: .vis and .vis.db of any release.

#ifndef PLUMBLINE_VIEW_STORE_IMPORT_VIS_H_
#define PLUMBLINE_VIEW_STORE_IMPORT_VIS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "plumbline/result.h"
#include "view/store/build_store.h"

namespace plumbline::view {

struct ImportOptions {
  // How many ranks are done, of how many; may be empty.
  std::function<void(uint64_t done, uint64_t all)> progress{};
  // Set by another thread to stop the work; null: it cannot be stopped.
  const std::atomic<bool>* is_cancelled = nullptr;
  // What a person paired of a rank. The file says no level of such a pair, and none is made up.
  HandPairs by_hand{};
};

// Writes the store to `store_path` atomically; nothing is left when it fails, and the file is only
// read. Numbers that are texts in the file become numbers. A file of our own says what plumb
// compare found; of others the levels are msprobe's, the answer says so, and `source` is "msprobe".
// Errors: those of OpenVisFile(); kNotFound: a cancelled work, "cancelled".
Status ImportVis(const std::string& path, const std::string& store_path,
                 const ImportOptions& options);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_IMPORT_VIS_H_

// Stores of results that were looked at before: made once, found again while what they were made of
// stays as it is.

#ifndef PLUMBLINE_VIEW_SERVE_STORE_CACHE_H_
#define PLUMBLINE_VIEW_SERVE_STORE_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "view/store/result_store.h"

namespace plumbline::view {

// $XDG_CACHE_HOME/plumbline/view, else ~/.cache/plumbline/view; empty: there is no home.
std::string DefaultCacheDirectory();

// Names what the paths hold without reading it: a digest of the names, sizes and times of change of
// the files at and below them, and of `options`. Of directories with tensors the time of their last
// change stands for their files. kNotFound: a path does not exist.
Result<std::string> InputsKey(const std::vector<std::string>& paths, std::string_view options);

struct StoreCacheOptions {
  // Made when it is missing; empty, or no writing there: stores are temporary.
  std::string directory = DefaultCacheDirectory();
  // Stores that were not used for longest are removed beyond that.
  uint64_t most_bytes = uint64_t{4} << 30;
};

// A store and the file it was read from, which may be gone by now.
struct FoundStore {
  std::shared_ptr<const ResultStore> store;
  std::string path;
  uint64_t bytes = 0;
  bool was_there = false;
};

// Thread-safe; so are several processes with one directory: stores appear complete or not at all.
class StoreCache {
 public:
  using Build = std::function<Status(const std::string& path)>;

  explicit StoreCache(StoreCacheOptions options);

  // The store under `key`, or the one that `build` writes. A store that cannot be read is made
  // anew.
  Result<FoundStore> Obtain(const std::string& key, const Build& build) const;
  // The same in a file that the user named: found again while it was made of this key, which stands
  // in `{path}.key`. kInvalidArgument: there is another file in its place.
  static Result<FoundStore> ObtainAt(const std::string& path, const std::string& key,
                                     const Build& build);
  [[nodiscard]] const std::string& directory() const { return options_.directory; }

 private:
  void RemoveOld(const std::string& kept) const;

  StoreCacheOptions options_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_STORE_CACHE_H_

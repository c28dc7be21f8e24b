// Taking possession of a rank directory: one process at a time, nothing of earlier runs lost.

#ifndef PLUMBLINE_STORE_CLAIM_H_
#define PLUMBLINE_STORE_CLAIM_H_

#include <string>
#include <vector>

#include "base/directory.h"
#include "base/file.h"
#include "plumbline/result.h"
#include "store/worker.h"

namespace plumbline {

// Where a rank directory is: {dump_path}/{below[0]}/{below[1]}...
struct RankPlace {
  std::string dump_path;           // only its last component must not be a symbolic link
  std::vector<std::string> below;  // directories plumbline makes: never symbolic links
};

// Makes what is missing and opens the last directory. kIo when something else stands in the way.
Result<Directory> OpenRankPlace(const RankPlace& place);

struct Claim {
  RankPlace place;
  Directory directory;
  File journal;  // empty and locked
};
// Opens the directory and locks a new journal in it. A journal with calls of an earlier run is
// moved aside with a warning. When another process holds the directory, one of that name and
// "_{pid}" is taken instead, with a warning. `sync`: jobs of this process that may still hold it.
Result<Claim> ClaimRankPlace(RankPlace place, Worker& sync);

}  // namespace plumbline

#endif  // PLUMBLINE_STORE_CLAIM_H_

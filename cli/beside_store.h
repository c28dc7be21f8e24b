// Commands whose words name objects of a store.

#ifndef PLUMBLINE_CLI_BESIDE_STORE_H_
#define PLUMBLINE_CLI_BESIDE_STORE_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::cli {

// Those of `words` that name paths of a store.
std::vector<std::string> StoredPaths(const std::vector<std::string>& words);

// The program runs again with `words`, beside one that fetches and stores what is below `paths`
// (base/file/object_store.h). Returns only where that is not possible.
Error RunBesideStore(const std::vector<std::string>& words, const std::vector<std::string>& paths);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_BESIDE_STORE_H_

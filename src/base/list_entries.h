// A directory's entries with what they are.

#ifndef PLUMBLINE_BASE_LIST_ENTRIES_H_
#define PLUMBLINE_BASE_LIST_ENTRIES_H_

#include <string>
#include <vector>

#include "base/file.h"
#include "plumbline/result.h"

namespace plumbline {

struct DirectoryEntry {
  std::string name;
  PathKind kind = PathKind::kMissing;  // links are followed
};

// All entries but "." and "..", sorted bytewise by name. On most file systems without a system call
// per entry. Errors of ListDirectory().
Result<std::vector<DirectoryEntry>> ListEntries(const std::string& path);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_LIST_ENTRIES_H_

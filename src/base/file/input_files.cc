#include "base/file/input_files.h"

#include "base/file/directory.h"

namespace plumbline {

Status InputFiles::CheckSpares(const std::string& output) {
  const Result<FileIdentity> identity = IdentityOf(output);
  if (!identity || KindOf(output) == PathKind::kDirectory) return {};
  if (!known_) {
    known_.emplace();
    for (const std::string& path : paths_) {
      if (!path.empty()) Add(path);
    }
  }
  if (!known_->contains(*identity)) return {};
  return Error(ErrorCode::kInvalidArgument,
               output + ": is one of the inputs, or another name of one. Choose another output");
}

void InputFiles::Add(const std::string& path) {
  const Result<FileIdentity> identity = IdentityOf(path);
  // A directory that was seen is one that a link leads back to.
  if (!identity || !known_->insert(*identity).second) return;
  if (KindOf(path) != PathKind::kDirectory) return;
  const auto entries = ListEntries(path);
  if (!entries) return;  // who reads it says so
  for (const DirectoryEntry& entry : *entries) Add(JoinPath(path, entry.name));
}

}  // namespace plumbline

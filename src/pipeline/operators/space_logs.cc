#include "pipeline/operators/space_logs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "formats/acl_dump.h"

namespace plumbline::pipeline {

Result<std::vector<std::string>> SaveSpaceLogs(const std::string& dump_path,
                                               const std::string& directory) {
  PL_TRY_ASSIGN(const acl::DumpFile file, acl::DumpFile::Open(dump_path));
  PL_TRY(MakeDirectories(directory));
  std::vector<std::string> paths;
  for (const acl::DumpedBytes& space : file.message().spaces) {
    const size_t index = paths.size();
    if (space.is_cut()) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: space {} is cut (expected {} bytes, got {})", dump_path, index,
                               space.size, space.data.size()));
    }
    std::string text(reinterpret_cast<const char*>(space.data.data()), space.data.size());
    std::erase(text, '\0');
    paths.push_back(JoinPath(directory, fmt::format("{}.{}.log", BaseName(dump_path), index)));
    PL_TRY(WriteFileAtomically(paths.back(), text, false));
  }
  return paths;
}

}  // namespace plumbline::pipeline

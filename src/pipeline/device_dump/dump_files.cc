#include "pipeline/device_dump/dump_files.h"

#include <utility>

#include "base/file.h"
#include "formats/acl_file_name.h"
#include "load/name_mapping.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

constexpr int kMaxDepth = 30;

Status Search(const std::string& directory, const std::string& below, int depth_left,
              DumpFiles& found) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  PL_TRY_ASSIGN(const load::NameMapping mapping, load::NameMapping::Read(directory));
  for (const std::string& name : names) {
    if (run_files::IsAboutDumps(name)) continue;
    const std::string path = JoinPath(directory, name);
    const Result<PathFacts> facts = Inspect(path);
    if (facts && facts->kind == PathKind::kDirectory) {
      if (depth_left > 0) {
        const Status searched =
            Search(path, below.empty() ? name : JoinPath(below, name), depth_left - 1, found);
        if (!searched) found.unreadable.push_back(searched.error());
      }
      continue;
    }
    const std::string& full_name = mapping.NameOf(name);
    if (KindOf(path) == PathKind::kFile && acl::ParseDumpFileName(full_name)) {
      found.files.push_back({path, full_name, below});
    } else {
      found.left_out.push_back(path);
    }
  }
  return {};
}

}  // namespace

Result<DumpFiles> FindDumpFiles(const std::string& directory, bool recursive) {
  DumpFiles found;
  PL_TRY(Search(directory, "", recursive ? kMaxDepth : 0, found));
  return found;
}

}  // namespace plumbline::pipeline

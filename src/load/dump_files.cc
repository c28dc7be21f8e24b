#include "load/dump_files.h"

#include <utility>

#include "base/file/file.h"
#include "formats/acl/acl_file_name.h"
#include "formats/acl/atb_bin.h"
#include "load/name_mapping.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr int kSearchDepth = 30;

bool IsDumpName(const std::string& name, const DumpSearch& search) {
  return acl::ParseDumpFileName(name) || (search.takes_atb && atb::IsBinFileName(name));
}

// One directory and, for `depth_left` levels, those below it.
Status Search(const std::string& directory, const std::string& below, const DumpSearch& search,
              int depth_left, DumpFiles& found) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  PL_TRY_ASSIGN(const load::NameMapping mapping, load::NameMapping::Read(directory));
  found.notes.insert(found.notes.end(), mapping.notes().begin(), mapping.notes().end());
  for (const std::string& name : names) {
    if (run_files::IsAboutDumps(name)) continue;
    const std::string path = JoinPath(directory, name);
    const Result<PathFacts> facts = Inspect(path);
    if (facts && facts->kind == PathKind::kDirectory) {
      if (depth_left > 0) {
        const std::string inside = below.empty() ? name : JoinPath(below, name);
        const Status searched = Search(path, inside, search, depth_left - 1, found);
        if (!searched) found.unreadable.push_back(searched.error());
      }
      continue;
    }
    std::string full_name = mapping.NameOf(name);
    const bool is_dump = IsDumpName(full_name, search);
    const PathKind kind = KindOf(path);  // of what a link leads to
    // A link to nothing, and a file that was removed since, cannot be opened, which is told there.
    if (is_dump && (kind == PathKind::kFile || kind == PathKind::kMissing)) {
      found.files.push_back({path, std::move(full_name), below});
      continue;
    }
    if (is_dump) found.notes.push_back(path + ": no regular file; left out");
    found.left_out.push_back(path);
  }
  return {};
}

}  // namespace

Result<DumpFiles> FindDumpFiles(const std::string& directory, const DumpSearch& search) {
  DumpFiles found;
  PL_TRY(Search(directory, "", search, search.recursive ? kSearchDepth : 0, found));
  return found;
}

}  // namespace plumbline::load

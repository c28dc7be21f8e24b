#include "watch/grad_unpack.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "formats/array/npy.h"
#include "formats/array/sign_pack.h"
#include "store/run_layout.h"

namespace plumbline {
namespace {

Status UnpackStep(const std::string& directory, UnpackReport* report) {
  const std::string path = JoinPath(directory, sign_pack::kFileName);
  if (KindOf(path) != PathKind::kFile) return {};
  PL_TRY_ASSIGN(const sign_pack::SignFile file, sign_pack::SignFile::Open(path));
  run_layout::TensorNames names(npy::kEnding);
  for (const sign_pack::Entry& entry : file.entries()) {
    const std::string target = JoinPath(directory, names.Reserve(entry.name));
    PL_TRY(sign_pack::WriteNpy(target, entry.sizes, entry.bits));
    ++report->files;
  }
  ++report->steps;
  return {};
}

// The directories in `path` whose names begin so.
Result<std::vector<std::string>> Beginning(const std::string& path, std::string_view prefix) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectories(path));
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name.starts_with(prefix)) found.push_back(JoinPath(path, name));
  }
  return found;
}

}  // namespace

Result<UnpackReport> UnpackSigns(const std::string& directory) {
  UnpackReport report;
  PL_TRY_ASSIGN(std::vector<std::string> ranks, Beginning(directory, "rank"));
  ranks.push_back(directory);
  for (const std::string& rank : ranks) {
    PL_TRY_ASSIGN(const std::vector<std::string> steps, Beginning(rank, "step"));
    for (const std::string& step : steps) PL_TRY(UnpackStep(step, &report));
  }
  if (report.steps == 0) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no step{{N}}/{} in it or in its rank{{R}} (expected a recording "
                             "with \"packed\": true)",
                             directory, sign_pack::kFileName));
  }
  return report;
}

}  // namespace plumbline

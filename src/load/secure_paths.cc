#include "load/secure_paths.h"

#include <fmt/format.h>

#include <string_view>

#include "base/file/file.h"
#include "load/detect.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kLettersAndDigits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr size_t kLongestPath = 4096, kLongestName = 255;
constexpr int kDeepestPath = 8;  // steps, ranks, tensors; the rest is room for other layouts

Error Refused(std::string_view path, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: {}. Without --secure it would be used", path, why));
}

Status CheckText(std::string_view path, std::string_view marks) {
  if (path.size() > kLongestPath || BaseName(path).size() > kLongestName) {
    return Refused(path.substr(0, 80), "the path is too long");
  }
  for (const char c : path) {
    if (kLettersAndDigits.find(c) != std::string_view::npos) continue;
    if (marks.find(c) != std::string_view::npos) continue;
    return Refused(path, fmt::format("an odd character (expected letters, digits and {})", marks));
  }
  return {};
}

Status CheckTree(const std::string& path, int depth) {
  if (KindOf(path) == PathKind::kMissing) return {};
  PL_TRY(CheckText(path, "_.:/-"));
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  if (facts.is_link) return Refused(path, "a symbolic link (expected a file or directory)");
  if (!facts.is_own) return Refused(path, "belongs to another user");
  if (facts.kind != PathKind::kDirectory) return {};
  if (depth == kDeepestPath) return Refused(path, "directories are nested too deeply");
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) PL_TRY(CheckTree(JoinPath(path, name), depth + 1));
  return {};
}

}  // namespace

Status CheckSecureInput(const std::string& path) {
  PL_TRY(CheckTree(path, 0));
  if (KindOf(path) != PathKind::kFile) return {};
  const std::string_view file = BaseName(path);
  if (!file.ends_with(run_files::kDumpJson) && !file.ends_with(run_files::kDebugJson)) return {};
  const std::string directory(DirectoryOf(path));
  for (const std::string_view name :
       {run_files::kStackJson, run_files::kConstructJson, run_files::kTensorDirectory}) {
    PL_TRY(CheckTree(JoinPath(directory, name), 0));
  }
  return {};
}

Status CheckSecureOutput(const std::string& path) {
  PL_TRY(CheckText(path, "_./-"));
  if (KindOf(path) == PathKind::kMissing) return {};
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  if (facts.is_link) return Refused(path, "a symbolic link (expected a directory)");
  return {};
}

}  // namespace plumbline::load

#include "config/path_rules.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/file.h"

namespace plumbline {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 30;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxNameBytes = 255;

bool IsPathByte(char c, std::string_view extra) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         extra.find(c) != std::string_view::npos;
}

Status CheckPathText(std::string_view path, std::string_view extra_bytes) {
  if (path.size() > kMaxPathBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}...: path of {} bytes is too long (expected at most {})",
                             path.substr(0, 60), path.size(), kMaxPathBytes));
  }
  if (BaseName(path).size() > kMaxNameBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}...: name of {} bytes is too long (expected at most {})",
                             path.substr(0, 60), BaseName(path).size(), kMaxNameBytes));
  }
  for (const char c : path) {
    if (IsPathByte(c, extra_bytes)) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: contains special characters (expected letters, digits and {})",
                             path, extra_bytes));
  }
  return {};
}

}  // namespace

Status CheckConfigFile(const std::string& path, std::vector<std::string>& warnings) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  const auto refuse = [&](std::string_view what) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path, what));
  };
  if (facts.is_link) return refuse("is a symbolic link (expected a regular file)");
  if (facts.kind != PathKind::kFile) return refuse("is not a regular file");
  PL_TRY_ASSIGN(const std::string real, RealPath(path));
  PL_TRY(CheckPathText(real, "_.:/-"));
  if (facts.size_bytes > kMaxConfigBytes) return refuse("is larger than 1 GiB");
  if (!path.ends_with(".json")) return refuse("name does not end in .json");
  if (!facts.is_own) {
    warnings.push_back(fmt::format("{}: belongs to another user", path));
  } else if (facts.is_shared_writable) {
    warnings.push_back(fmt::format("{}: can be written by other users", path));
  }
  return {};
}

Status CheckDumpPath(const std::string& dump_path) {
  if (dump_path.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "dump_path: is missing (expected a directory to write to). Set it in config.json "
                 "or pass dump_path");
  }
  PL_TRY_ASSIGN(const std::string absolute, AbsolutePath(dump_path));
  if (Status text = CheckPathText(absolute, "_./-"); !text) return text.error().In("dump_path");
  const auto facts = Inspect(absolute);
  if (!facts) return {};  // not there yet
  if (facts->is_link) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("dump_path: {} is a symbolic link (expected a directory)", absolute));
  }
  if (facts->kind != PathKind::kDirectory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("dump_path: {} is not a directory", absolute));
  }
  return {};
}

}  // namespace plumbline

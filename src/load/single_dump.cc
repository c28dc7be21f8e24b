#include "load/single_dump.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/file.h"
#include "formats/acl_dump.h"
#include "formats/acl_file_name.h"
#include "load/name_mapping.h"
#include "load/operator_dumps.h"

namespace plumbline::load {
namespace {

// Endings of files that have readers of their own.
constexpr std::array<std::string_view, 16> kOtherEndings = {
    ".npy", ".npz",  ".pt",  ".pth",  ".bin", ".safetensors", ".json", ".csv",
    ".h5",  ".hdf5", ".txt", ".xlsx", ".db",  ".yaml",        ".log",  ".ckpt"};

bool HasOtherEnding(std::string_view name) {
  return std::ranges::any_of(kOtherEndings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

bool IsDumpByContents(const std::string& path) {
  const Result<acl::DumpFile> file = acl::DumpFile::Open(path, "a.a.0.0.0");
  return file && file->message().has_parts();
}

}  // namespace

std::optional<std::string> DumpNameOf(const std::string& path) {
  if (KindOf(path) != PathKind::kFile) return std::nullopt;
  std::string name(BaseName(path));
  const Result<NameMapping> mapping = NameMapping::Read(std::string(DirectoryOf(path)));
  if (mapping) name = mapping->NameOf(name);
  if (HasOtherEnding(name)) return std::nullopt;
  const bool is_named = acl::ParseDumpFileName(name) || ParseOperatorDumpName(name);
  if (!is_named && !IsDumpByContents(path)) return std::nullopt;
  return name;
}

}  // namespace plumbline::load

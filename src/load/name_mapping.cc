#include "load/name_mapping.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text_parts.h"
#include "base/utf8.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

constexpr std::string_view kNpy = ".npy";

std::string AsArray(const std::string& name) {
  return name.ends_with(kNpy) ? name : name + std::string(kNpy);
}

}  // namespace

Result<NameMapping> NameMapping::Read(const std::string& directory) {
  NameMapping mapping;
  const std::string path = JoinPath(directory, run_files::kMappingCsv);
  if (KindOf(path) != PathKind::kFile) return mapping;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  size_t number = 0;
  for (std::string_view line : SplitAt(text, '\n')) {
    if (++number == 1 && line.starts_with(kByteOrderMark))
      line.remove_prefix(kByteOrderMark.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t comma = line.find(',');
    if (comma == 0 || comma == std::string_view::npos || comma + 1 == line.size()) {
      mapping.notes_.push_back(
          fmt::format("{}: line {} is no row (expected FILE,NAME); left out", path, number));
      continue;
    }
    mapping.Add(std::string(line.substr(0, comma)), std::string(line.substr(comma + 1)));
  }
  return mapping;
}

void NameMapping::Add(std::string file, std::string name) {
  if (file.ends_with(kNpy)) {
    name = AsArray(name);
  } else {
    arrays_.insert_or_assign(AsArray(file), AsArray(name));
  }
  rows_.insert_or_assign(std::move(file), std::move(name));
}

const std::string& NameMapping::NameOf(const std::string& file) const {
  if (const auto row = rows_.find(file); row != rows_.end()) return row->second;
  const auto array = arrays_.find(file);
  return array == arrays_.end() ? file : array->second;
}

}  // namespace plumbline::load

#include "load/name_mapping.h"

#include <string_view>

#include "base/file.h"
#include "base/text_parts.h"
#include "record/run_files.h"

namespace plumbline::load {

Result<std::map<std::string, std::string>> ReadNameMapping(const std::string& directory) {
  std::map<std::string, std::string> mapping;
  const std::string path = JoinPath(directory, run_files::kMappingCsv);
  if (KindOf(path) != PathKind::kFile) return mapping;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  for (std::string_view line : SplitAt(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) continue;
    mapping.emplace(line.substr(0, comma), line.substr(comma + 1));
  }
  return mapping;
}

}  // namespace plumbline::load

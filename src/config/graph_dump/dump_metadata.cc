#include "config/graph_dump/dump_metadata.h"

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace plumbline::graph_dump {
namespace {

Status WriteMissing(const std::string& path, const std::string& text) {
  if (KindOf(path) != PathKind::kMissing) return {};
  return WriteFileAtomically(path, text, /*durable=*/false);
}

}  // namespace

Status WriteDumpMetadata(const std::string& tree, const DumpMetadata& metadata) {
  const std::string directory = JoinPath(tree, ".dump_metadata");
  PL_TRY(MakeDirectories(directory));
  using Json = nlohmann::ordered_json;
  const Json config = {{"device_target", metadata.device}, {"ms_version", metadata.version}};
  const std::string text = config.dump(-1, ' ', true, Json::error_handler_t::replace);
  PL_TRY(WriteMissing(JoinPath(directory, "data_dump.json"), metadata.settings));
  PL_TRY(WriteMissing(JoinPath(directory, "config.json"), text));
  if (metadata.rank_table.empty()) return {};
  PL_TRY_ASSIGN(const std::string table, ReadFile(metadata.rank_table));
  return WriteMissing(JoinPath(directory, "hccl.json"), table);
}

}  // namespace plumbline::graph_dump

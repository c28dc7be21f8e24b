#include "config/graph_dump/dump_metadata.h"

#include "base/file/file.h"
#include "base/text/json.h"

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
  json::Value config = json::Value::Object();
  config.Put("device_target", json::Value(metadata.device));
  config.Put("ms_version", json::Value(metadata.version));
  PL_TRY(WriteMissing(JoinPath(directory, "data_dump.json"), metadata.settings));
  PL_TRY(WriteMissing(JoinPath(directory, "config.json"), config.Text()));
  if (metadata.rank_table.empty()) return {};
  PL_TRY_ASSIGN(const std::string table, ReadFile(metadata.rank_table));
  return WriteMissing(JoinPath(directory, "hccl.json"), table);
}

}  // namespace plumbline::graph_dump

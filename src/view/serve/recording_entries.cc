#include "view/serve/recording_entries.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/text/json.h"
#include "formats/pytorch/debug_mode_log.h"
#include "load/rank_directories.h"
#include "record/run_files.h"
#include "view/tables/table_file.h"

namespace plumbline::view {
namespace {

// Of a directory with more entries the first ones are listed.
constexpr size_t kMostEntries = 5000;
// Task and level stand in front of the calls.
constexpr size_t kHeadBytes = size_t{16} << 10;

struct RecordingFacts {
  uint64_t size = 0;  // of the files that hold the calls
  uint64_t ranks = 0, steps = 0;
  std::string task, level;
};

bool IsFile(const std::string& path) { return KindOf(path) == PathKind::kFile; }

// Empty: there is none.
std::string CallsFileIn(const std::string& directory) {
  for (const std::string_view name : {run_files::kDumpJson, run_files::kDebugJson}) {
    std::string path = JoinPath(directory, name);
    if (IsFile(path)) return path;
  }
  return {};
}

// The files with the calls of every rank of one step.
std::vector<std::string> CallsFilesOfStep(const std::string& directory) {
  std::vector<std::string> files;
  const auto ranks = load::ListRankDirectories(directory);
  if (ranks) {
    for (const load::RankDirectory& rank : *ranks) {
      std::string file = CallsFileIn(rank.path);
      if (!file.empty()) files.push_back(std::move(file));
    }
  }
  if (!files.empty()) return files;
  std::string file = CallsFileIn(directory);
  if (!file.empty()) files.push_back(std::move(file));
  return files;
}

void ReadTaskAndLevel(const std::string& path, RecordingFacts& facts) {
  const Result<std::string> head = ReadStart(path, kHeadBytes);
  if (!head) return;
  json::Reader in(*head);
  std::string_view key, text;
  if (!in.EnterObject()) return;
  while (in.NextMember(key)) {
    const bool is_task = key == "task", is_level = key == "level";
    if (key == "data") return;
    if ((is_task || is_level) && in.Peek() == json::Kind::kString) {
      if (!in.ReadString(text)) return;
      (is_task ? facts.task : facts.level) = text;
    } else if (!in.SkipValue()) {
      return;
    }
  }
}

RecordingFacts FactsOf(const std::string& directory) {
  RecordingFacts facts;
  std::vector<std::string> files = CallsFilesOfStep(directory);
  facts.ranks = files.size();
  if (files.empty()) {
    const auto steps = load::ListStepDirectories(directory);
    for (const load::StepDirectory& step : steps ? *steps : std::vector<load::StepDirectory>()) {
      std::vector<std::string> of_step = CallsFilesOfStep(step.path);
      facts.ranks = std::max<uint64_t>(facts.ranks, of_step.size());
      facts.steps += of_step.empty() ? 0 : 1;
      files.insert(files.end(), of_step.begin(), of_step.end());
    }
  } else {
    facts.steps = 1;
  }
  if (files.empty()) return facts;
  ReadTaskAndLevel(files.front(), facts);
  for (const std::string& file : files) facts.size += FileSize(file).value_or(0);
  return facts;
}

EntryKind KindOfFile(std::string_view name) {
  static constexpr std::pair<std::string_view, EntryKind> kEndings[] = {
      {".trend.db", EntryKind::kTrendDb},
      {".vis.db", EntryKind::kVisDb},
      {".vis", EntryKind::kVis}};
  if (name == run_files::kDumpJson || name == run_files::kDebugJson) return EntryKind::kRecording;
  for (const auto& [ending, kind] : kEndings) {
    if (name.ends_with(ending)) return kind;
  }
  return IsTableName(name) ? EntryKind::kTable : EntryKind::kOther;
}

// False: a page cannot open it.
bool AppendEntry(const std::string& path, std::string& text) {
  const EntryKind kind = KindOfEntry(path);
  if (kind == EntryKind::kOther) return false;
  RecordingFacts facts;
  if (kind == EntryKind::kRecording && KindOf(path) == PathKind::kDirectory) {
    facts = FactsOf(path);
  } else if (kind != EntryKind::kDirectory) {
    facts.size = FileSize(path).value_or(0);
  }
  json::Value entry = json::Value::Object();
  entry.Put("path", json::Value(path));
  entry.Put("name", json::Value(BaseName(path)));
  entry.Put("kind", json::Value(EntryKindName(kind)));
  for (const auto& [key, number] :
       {std::pair{"size", facts.size}, {"ranks", facts.ranks}, {"steps", facts.steps}}) {
    entry.Put(key, json::Value(static_cast<int64_t>(number)));
  }
  entry.Put("task", json::Value(facts.task));
  entry.Put("level", json::Value(facts.level));
  text += text.ends_with('[') ? "" : ",";
  text += entry.Text();
  return true;
}

}  // namespace

std::string_view EntryKindName(EntryKind kind) {
  switch (kind) {
    case EntryKind::kRecording:
      return "recording";
    case EntryKind::kVis:
      return "vis";
    case EntryKind::kVisDb:
      return "vis.db";
    case EntryKind::kTrendDb:
      return "trend.db";
    case EntryKind::kTable:
      return "table";
    case EntryKind::kDirectory:
      return "directory";
    case EntryKind::kOther:
      return "other";
  }
  return "other";
}

EntryKind KindOfEntry(const std::string& path) {
  switch (KindOf(path)) {
    case PathKind::kFile: {
      const EntryKind kind = KindOfFile(BaseName(path));
      const bool may_be_log = kind == EntryKind::kOther || kind == EntryKind::kTable;
      return may_be_log && debug_mode::FormOfLog(path) ? EntryKind::kRecording : kind;
    }
    case PathKind::kDirectory:
      return FactsOf(path).ranks > 0 ? EntryKind::kRecording : EntryKind::kDirectory;
    case PathKind::kMissing:
    case PathKind::kOther:
      break;
  }
  return EntryKind::kOther;
}

Result<std::string> RecordingsAnswer(const ServedPaths& paths, std::string_view path) {
  std::string text = R"({"entries":[)";
  if (path.empty()) {
    for (const std::string& root : paths.roots()) (void)AppendEntry(root, text);
    return text + "]}";
  }
  PL_TRY_ASSIGN(const std::string directory, paths.Resolve(path));
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  size_t listed = 0;
  for (const std::string& name : names) {
    if (name.starts_with('.') || listed >= kMostEntries) continue;
    // A link may lead out of the roots.
    const Result<std::string> real = paths.Resolve(JoinPath(directory, name));
    if (real && AppendEntry(*real, text)) ++listed;
  }
  return text + "]}";
}

}  // namespace plumbline::view

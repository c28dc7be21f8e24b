#include "load/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "formats/json/error_log.h"
#include "load/checkpoint.h"
#include "record/call_name.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

// Digits after `prefix` and nothing else; `prefix` alone counts when `bare` is set.
bool IsNumbered(std::string_view name, std::string_view prefix, bool bare) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  if (name.empty()) return bare;
  return IsDigits(name);
}

bool IsRankOrStepName(std::string_view name) {
  return IsNumbered(name, "step", false) || IsNumbered(name, "rank", true) ||
         IsNumbered(name, "proc", false);
}

// Deepest layout: dump directory / step / rank.
constexpr int kStepsDepth = 2;

Status Collect(const std::string& directory, std::string_view file, int depth,
               std::vector<std::string>& found) {
  const std::string here = JoinPath(directory, file);
  if (KindOf(here) == PathKind::kFile) {
    found.push_back(here);
    return {};
  }
  if (depth == kStepsDepth) return {};
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (!IsRankOrStepName(name)) continue;
    const std::string child = JoinPath(directory, name);
    if (KindOf(child) != PathKind::kDirectory) continue;
    PL_TRY(Collect(child, file, depth + 1, found));
  }
  return {};
}

std::string JoinLines(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    if (!text.empty()) text += ", ";
    text += path;
  }
  return text;
}

Error NothingFound(const std::string& path) {
  if (KindOf(JoinPath(path, run_files::kJournal)) == PathKind::kFile) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: holds an unfinished recording and no dump.json. Run "
                             "`plumb recover {}` first.",
                             path, path));
  }
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: no dump.json or debug.json here nor in a step or rank directory "
                           "below. Name one or the directory that holds it.",
                           path));
}

// What the recorder itself counted. A log that cannot be read was made because something was lost.
void AddCountedLosses(const std::string& directory, RecordingState& state) {
  const std::string path = JoinPath(directory, run_files::kErrorLog);
  const Result<std::vector<Loss>> losses = error_log::Read(path);
  if (losses) {
    state.losses = error_log::CountMissing(*losses);
    const Loss* const compiled = FindLoss(*losses, error_log::kCompiledRegions);
    state.compiled_regions = compiled == nullptr ? 0 : compiled->count;
    state.ended_early = FindLoss(*losses, error_log::kEndedEarly) != nullptr;
  } else if (losses.error().code() != ErrorCode::kNotFound) {
    state.losses = 1;
    state.log_problem = losses.error().message();
  }
}

// A journal that was written to after the main file holds what that lacks.
bool IsUnfinished(const std::string& directory, std::string_view main_file) {
  const std::string journal = JoinPath(directory, run_files::kJournal);
  if (KindOf(journal) != PathKind::kFile) return false;
  const Result<int64_t> journal_time = ModifiedAt(journal);
  const Result<int64_t> dump_time = ModifiedAt(JoinPath(directory, main_file));
  // A recording may be killed within the tick of a clock in which its empty dump.json was made.
  return journal_time && dump_time && *journal_time >= *dump_time;
}

}  // namespace

RecordingState StateOf(const std::string& rank_directory, std::string_view main_file) {
  RecordingState state;
  state.unfinished = IsUnfinished(rank_directory, main_file);
  AddCountedLosses(rank_directory, state);
  return state;
}

std::string UnfinishedText(const std::string& directory) {
  return fmt::format("the recording goes on in a journal beside it. Run `plumb recover {}`",
                     directory);
}

namespace {

constexpr std::array<std::string_view, 2> kMixedFolders = {"graph", "pynative"};

Result<std::vector<std::string>> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  for (const std::string_view folder : kMixedFolders) {
    const std::string directory = JoinPath(path, folder);
    if (KindOf(directory) != PathKind::kDirectory) continue;
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
    for (const std::string& name : names) {
      if (KindOf(JoinPath(directory, name)) != PathKind::kDirectory) continue;
      parts.push_back(fmt::format("{}/{}", folder, name));
    }
  }
  std::ranges::sort(parts);
  return parts;
}

}  // namespace

bool IsMixedDump(const std::string& path) {
  return std::ranges::any_of(kMixedFolders, [&](std::string_view folder) {
    return KindOf(JoinPath(path, folder)) == PathKind::kDirectory;
  });
}

Result<MixedParts> FindMixedParts(const std::string& target, const std::string& golden) {
  PL_TRY_ASSIGN(const std::vector<std::string> left, PartsOf(target));
  PL_TRY_ASSIGN(const std::vector<std::string> right, PartsOf(golden));
  MixedParts parts;
  std::ranges::set_intersection(left, right, std::back_inserter(parts.common));
  std::ranges::set_difference(left, right, std::back_inserter(parts.target));
  std::ranges::set_difference(right, left, std::back_inserter(parts.golden));
  return parts;
}

Result<std::vector<std::string>> ListDumpJson(const std::string& directory) {
  std::vector<std::string> found;
  PL_TRY(Collect(directory, run_files::kDumpJson, 0, found));
  return found;
}

namespace {

Error NotARecording(const std::string& path) {
  if (LooksLikeCheckpoint(path)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: an array or a checkpoint by its name (expected a dump.json or "
                             "debug.json). `plumb compare` and plumbline.compare() take two of "
                             "these.",
                             path));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: not a dump (expected a file named dump.json or debug.json). Name "
                           "such a file or its directory.",
                           path));
}

Result<std::string> FindDumpJson(const std::string& path) {
  switch (KindOf(path)) {
    case PathKind::kFile:
      if (BaseName(path).ends_with(run_files::kDumpJson) ||
          BaseName(path).ends_with(run_files::kDebugJson)) {
        return path;
      }
      return NotARecording(path);
    case PathKind::kDirectory:
      break;
    case PathKind::kMissing:
      return Error(ErrorCode::kNotFound, fmt::format("{}: no such file or directory", path));
    case PathKind::kOther:
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: neither a file nor a directory", path));
  }
  PL_TRY_ASSIGN(std::vector<std::string> found, ListDumpJson(path));
  if (found.empty()) PL_TRY(Collect(path, run_files::kDebugJson, 0, found));
  if (found.empty()) return NothingFound(path);
  if (found.size() > 1) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds {} dumps (expected one). Name one of: {}", path,
                             found.size(), JoinLines(found)));
  }
  return std::move(found.front());
}

}  // namespace

Result<std::string> ResolveDumpJson(const std::string& path) {
  PL_TRY_ASSIGN(std::string found, FindDumpJson(path));
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(found));
  if (facts.is_link) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: a symbolic link (expected a file). Name the file it points to.", found));
  }
  return found;
}

}  // namespace plumbline::load

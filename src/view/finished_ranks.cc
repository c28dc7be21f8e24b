#include "view/finished_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <span>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/text_parts.h"
#include "formats/json/vis_json_reader.h"
#include "formats/sqlite/vis_db_reader.h"
#include "plumbline/c_api.h"

namespace plumbline::view {
namespace {

// The files that a digest is of.
class FilesDigest {
 public:
  void Text(std::string_view text) {
    digest_.Update(std::as_bytes(std::span(text.data(), text.size())));
    digest_.Update(std::as_bytes(std::span("\n", 1)));
  }
  Status File(const std::string& path, std::string_view name) {
    PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
    PL_TRY_ASSIGN(const int64_t changed, ModifiedAt(path));
    Text(fmt::format("{} {} {}", name, size, changed));
    return {};
  }
  // All files below a directory, so many levels deep.
  Status Tree(const std::string& directory, int levels) {
    PL_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, ListEntries(directory));
    for (const DirectoryEntry& entry : entries) {
      const std::string path = JoinPath(directory, entry.name);
      if (entry.kind == PathKind::kFile) {
        PL_TRY(File(path, entry.name));
      } else if (entry.kind == PathKind::kDirectory && levels > 0) {
        Text(entry.name);
        PL_TRY(Tree(path, levels - 1));
      }
    }
    return {};
  }
  [[nodiscard]] std::string Finish() const {
    const Digest128 digest = digest_.Finish();
    return fmt::format("{:016x}{:016x}", digest.high, digest.low);
  }

 private:
  Xxh3 digest_;
};

constexpr int kRankLevels = 1;   // dump_tensor_data
constexpr int kNoiseLevels = 3;  // steps, ranks, dump_tensor_data

Status AddMappings(const MappingFiles& mappings, FilesDigest& digest) {
  const auto add = [&](std::string_view kind, const std::optional<std::string>& path) -> Status {
    digest.Text(fmt::format("{} {}", kind, path.value_or("-")));
    if (!path || KindOf(*path) != PathKind::kFile) return {};
    return digest.File(*path, *path);
  };
  PL_TRY(add("data", mappings.data));
  PL_TRY(add("api", mappings.api));
  PL_TRY(add("cell", mappings.cell));
  return add("layer", mappings.layer);
}

// The empty file that holds a name (report::FreeName), whose second has passed.
bool IsHold(const std::string& path) {
  const std::string_view name = BaseName(path);
  const bool is_ours = name.starts_with(".build_") || name.starts_with(".compare_");
  return is_ours && name.ends_with(".tmp") && FileSize(path).value_or(1) == 0;
}

}  // namespace

std::optional<std::string_view> NameOfAbandoned(std::string_view temporary_name) {
  constexpr std::string_view kEnd = ".tmp";
  std::string_view name = temporary_name;
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return std::nullopt;
  name = name.substr(1, name.size() - 1 - kEnd.size());
  const size_t dot = std::min(name.rfind('.'), name.size());
  const std::string_view writer = name.substr(std::min(dot + 1, name.size()));
  const auto process = ParseNatural(writer.substr(0, writer.find('-')));
  const bool is_gone = process && *process > 0 && *process <= INT32_MAX &&
                       ::kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH;
  return is_gone ? std::optional(name.substr(0, dot)) : std::nullopt;
}

void RemoveAbandoned(const std::string& directory, std::string_view ending, int64_t before) {
  const auto names = ListDirectory(directory);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const std::string path = JoinPath(directory, name);
    const std::optional<std::string_view> meant = NameOfAbandoned(name);
    const bool is_file = meant && (meant->ends_with(ending) || IsPart(*meant));
    if (!is_file && !IsHold(path)) continue;
    if (ModifiedAt(path).value_or(before) < before) (void)RemoveFile(path);
  }
}

bool IsPart(std::string_view path) { return path.ends_with(kPartEnding); }

Result<std::string> FingerprintOf(const load::RankPair& pair, const CompareOptions& compare,
                                  std::string_view form) {
  FilesDigest digest;
  digest.Text("plumbline " PLUMBLINE_VERSION);
  digest.Text(form);
  digest.Text(compare.fuzzy_match ? "fuzzy" : "exact");
  PL_TRY(AddMappings(compare.mappings, digest));
  digest.Text(compare.noise_path);
  if (KindOf(compare.noise_path) == PathKind::kDirectory) {
    PL_TRY(digest.Tree(compare.noise_path, kNoiseLevels));
  }
  digest.Text(pair.label());
  for (const auto* const side : {&pair.target, &pair.golden}) {
    if (!*side) continue;
    PL_TRY_ASSIGN(const std::string path, AbsolutePath((*side)->path));
    digest.Text(path);
    PL_TRY(digest.Tree(path, kRankLevels));
  }
  return digest.Finish();
}

FinishedRanks FinishedRanks::In(const std::string& directory, std::string_view ending,
                                const vis::Facts& facts) {
  FinishedRanks found;
  const auto names = ListDirectory(directory);
  if (!names) return found;
  const std::string part_ending = std::string(ending) + std::string(kPartEnding);
  for (const std::string& name : *names) {
    const bool is_part = name.starts_with('.') && name.ends_with(part_ending);
    const bool is_result = !name.starts_with('.') && name.ends_with(ending);
    if (!is_part && !is_result) continue;
    const std::string path = JoinPath(directory, name);
    found.Take(path, ending.ends_with("db"), facts);
  }
  return found;
}

void FinishedRanks::Take(const std::string& path, bool is_db, const vis::Facts& facts) {
  const auto source = is_db ? vis_db::Open(path) : vis_json::Open(path);
  if (!source || (*source)->head().Fact("status") != "complete") return;
  const bool is_same = std::ranges::all_of(
      facts, [&](const auto& fact) { return (*source)->head().Fact(fact.first) == fact.second; });
  if (is_same && IsPart(path)) parts_.push_back(path);
  for (const auto& [key, text] : (*source)->head().facts) {
    if (!key.starts_with("step")) continue;
    auto rank = ParseRankFacts(text);
    if (!rank || rank->fingerprint.empty()) continue;
    std::string fingerprint = rank->fingerprint;
    by_fingerprint_.try_emplace(std::move(fingerprint), FinishedRank{path, std::move(*rank)});
  }
}

const FinishedRank* FinishedRanks::Find(std::string_view fingerprint) const {
  const auto found = by_fingerprint_.find(fingerprint);
  return found == by_fingerprint_.end() ? nullptr : &found->second;
}

}  // namespace plumbline::view

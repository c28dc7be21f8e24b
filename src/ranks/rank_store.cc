#include "ranks/rank_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/memory/digest.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "compare/postprocess.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "plumbline/c_api.h"
#include "record/run_files.h"

namespace plumbline::ranks {

namespace {

constexpr std::string_view kStoreName = ".compare_ranks";

std::string DigestText(const std::string& text) {
  const Digest128 digest = Xxh3Of(std::as_bytes(std::span(text)));
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

void AppendFile(const std::string& path, std::string& facts) {
  const Result<uint64_t> size = FileSize(path);
  const Result<int64_t> time = ModifiedAt(path);
  if (!size || !time) return;
  facts += fmt::format("{}\t{}\t{}\n", BaseName(path), *size, *time);
}

void AppendDirectory(const std::string& directory, std::string& facts) {
  const auto names = ListDirectory(directory);
  if (!names) return;
  for (const std::string& name : *names) AppendFile(JoinPath(directory, name), facts);
}

void AppendRecording(const load::RankDirectory& rank, std::string& facts) {
  for (const std::string_view name :
       {run_files::kDumpJson, run_files::kDebugJson, run_files::kStackJson,
        run_files::kConstructJson, run_files::kErrorLog, run_files::kJournal,
        run_files::kRunMark}) {
    AppendFile(JoinPath(rank.path, name), facts);
  }
}

// Everything a comparison reads from a rank directory.
void AppendRank(const load::RankDirectory& rank, std::string& facts) {
  const Result<std::string> real = RealPath(rank.path);
  facts += fmt::format("{}\n", real ? *real : rank.path);
  AppendRecording(rank, facts);
  AppendDirectory(JoinPath(rank.path, run_files::kTensorDirectory), facts);
  if (!load::IsGraphDump(rank.path)) return;
  const auto graphs = load::ResolveGraphPath(rank.path);
  if (!graphs) return;
  for (const std::string& directory : *graphs) AppendDirectory(directory, facts);
}

// A mapping file counts by what it is now.
void AppendMapping(std::string_view kind, const std::optional<std::string>& path,
                   std::string& facts) {
  if (!path) return;
  facts += fmt::format("{} {}\n", kind, *path);
  if (!path->empty()) AppendFile(*path, facts);
}

// The file and the matrices that it names.
void AppendPostprocess(const std::string& path, std::string& facts) {
  AppendMapping("postprocess", path, facts);
  const auto rules = compare::ReadPostprocess(path);
  if (!rules) return;
  std::set<std::string> matrices;
  for (const auto* side : {&rules->target, &rules->golden}) {
    for (const auto& [name, steps] : side->products) {
      for (const load::ProcessingStep& step : steps) matrices.insert(step.matrix);
    }
  }
  for (const std::string& matrix : matrices) AppendFile(matrix, facts);
}

// What decides the content of the result files; a new option belongs here.
void AppendOptions(const CompareOptions& options, std::string& facts) {
  facts +=
      fmt::format("{} {} {} {} {} {}", PLUMBLINE_VERSION, options.write_advice, options.fuzzy_match,
                  options.show_stack, options.salvage, options.newest_columns);
  for (const ReportFormat format : options.formats) {
    facts += fmt::format(" {}", ReportFormatName(format));
  }
  facts += '\n';
  const MappingFiles& mappings = options.mappings;
  if (!mappings.data.empty()) AppendMapping("data", mappings.data, facts);
  AppendMapping("api", mappings.api, facts);
  AppendMapping("cell", mappings.cell, facts);
  AppendMapping("layer", mappings.layer, facts);
  if (!options.postprocess_path.empty()) AppendPostprocess(options.postprocess_path, facts);
  const std::string& noise = options.noise_path;
  if (noise.empty()) return;
  const bool is_file = KindOf(noise) == PathKind::kFile;
  AppendRank({is_file ? std::string(DirectoryOf(noise)) : noise, noise, std::nullopt}, facts);
}

void AppendTraining(const match::TrainingRules& rules, std::string& facts) {
  facts += fmt::format("training {}\n", static_cast<int>(rules.backend));
  for (const auto& [name, mapped] : rules.modules) facts += fmt::format("{}\t{}\n", name, mapped);
}

std::string ResultsDigest(const std::vector<std::string>& files, const std::string& page_path) {
  std::string facts;
  if (!page_path.empty()) AppendFile(page_path, facts);
  for (const std::string& file : files) {
    facts += fmt::format("{}\n", BaseName(file));
    AppendFile(file, facts);
  }
  return DigestText(facts);
}

}  // namespace

RankStore::RankStore(std::string directory, const load::RankPair& pair,
                     const CompareOptions& options, const RankWorkFacts& work)
    : directory_(std::move(directory)), stamp_(options.stamp) {
  const std::string stem = JoinPath(JoinPath(directory_, kStoreName),
                                    fmt::format("{}-{}", pair.target->name, pair.golden->name));
  path_ = stem + ".json";
  const bool has_page =
      std::ranges::find(options.formats, ReportFormat::kHtml) != options.formats.end();
  if (has_page) page_path_ = stem + ".page";
  std::string facts = work.with_verdicts ? "verdicts\n" : "";
  if (has_page) facts += fmt::format("{} {} bytes, form 2\n", pair.label(), work.page_bytes);
  if (work.training != nullptr) AppendTraining(*work.training, facts);
  AppendOptions(options, facts);
  AppendRank(*pair.target, facts);
  AppendRank(*pair.golden, facts);
  for (const compare::StepPair& step : work.before) {
    facts += fmt::format("behind {}\n{}\n{}", step.target, step.golden, step.facts);
  }
  facts += work.gap;
  if (!work.before.empty() && !work.is_shown) facts += "alone\n";
  inputs_ = DigestText(facts);
}

std::optional<RankStore::Stored> RankStore::Load() const {
  if (KindOf(path_) != PathKind::kFile) return std::nullopt;
  const Result<std::string> text = ReadFile(path_);
  if (!text) return std::nullopt;
  const Result<json::Value> root = json::Value::Parse(*text);
  if (!root) return std::nullopt;
  const auto text_of = [&](std::string_view key) {
    const json::Value* const member = root->Find(key);
    return member == nullptr ? nullptr : member->AsText();
  };
  const std::string* const inputs = text_of("inputs");
  const std::string* const results = text_of("results");
  const std::string* const stored = text_of("outcome");
  if (inputs == nullptr || results == nullptr || stored == nullptr || *inputs != inputs_) {
    return std::nullopt;
  }
  Result<RankOutcome> outcome = ReadOutcome(*stored);
  if (!outcome) return std::nullopt;
  for (std::string& file : outcome->files) file = JoinPath(directory_, BaseName(file));
  for (const std::string& file : outcome->files) {
    if (KindOf(file) != PathKind::kFile) return std::nullopt;
  }
  if (ResultsDigest(outcome->files, page_path_) != *results) return std::nullopt;
  const std::string* const run = text_of("run");
  return Stored{std::move(*outcome), !stamp_.empty() && run != nullptr && *run == stamp_};
}

Status RankStore::Save(const RankOutcome& outcome) const {
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path_))));
  std::string text = fmt::format(
      "{{\"inputs\": \"{}\", \"results\": \"{}\", \"run\": \"{}\", \"outcome\": ", inputs_,
      ResultsDigest(outcome.files, page_path_), stamp_);
  json::AppendString(FormatOutcome(outcome), text);
  return WriteFileAtomically(path_, text + "}\n", false);
}

void RankStore::Drop() const { (void)RemoveFile(path_); }

std::string OptionsDigest(const CompareOptions& options, const match::TrainingRules* training) {
  std::string facts;
  if (training != nullptr) AppendTraining(*training, facts);
  AppendOptions(options, facts);
  return DigestText(facts);
}

std::string RecordingsDigest(const load::RankPair& pair) {
  if (!pair.target || KindOf(pair.target->path) == PathKind::kMissing) return {};
  std::string facts;
  for (const auto* side : {&pair.target, &pair.golden}) {
    if (*side) AppendRecording(**side, facts);
  }
  return DigestText(facts);
}

namespace {

constexpr std::string_view kRanksPrefix = "compare_ranks_", kExtension = ".json";

// Orders summaries in time: the stamp, then the number of a repetition within its second.
std::optional<std::pair<int64_t, int64_t>> TimeOf(std::string_view name) {
  if (!name.starts_with(kRanksPrefix) || !name.ends_with(kExtension)) return std::nullopt;
  name.remove_prefix(kRanksPrefix.size());
  name.remove_suffix(kExtension.size());
  const size_t mark = name.find('_');
  const auto stamp = ParseNatural(name.substr(0, mark));
  if (!stamp) return std::nullopt;
  if (mark == std::string_view::npos) return std::pair<int64_t, int64_t>(*stamp, 0);
  const auto repeat = ParseNatural(name.substr(mark + 1));
  if (!repeat) return std::nullopt;
  return std::pair<int64_t, int64_t>(*stamp, *repeat);
}

std::optional<std::string> NewestSummary(const std::string& directory) {
  const auto names = ListDirectory(directory);
  if (!names) return std::nullopt;
  std::optional<std::pair<int64_t, int64_t>> newest;
  std::string path;
  for (const std::string& name : *names) {
    const auto time = TimeOf(name);
    if (!time || (newest && *time < *newest)) continue;
    newest = time;
    path = JoinPath(directory, name);
  }
  if (!newest) return std::nullopt;
  return path;
}

// State of each rank of one step (of all without a number, where `step` is none).
struct RankLine {
  int64_t rank = 0;
  std::string state;
};

std::optional<std::vector<RankLine>> ReadLines(const json::Value& root,
                                               std::optional<int64_t> step) {
  const json::Value* const ranks = root.Find("ranks");
  if (ranks == nullptr || ranks->AsList() == nullptr) return std::nullopt;
  std::vector<RankLine> lines;
  for (const json::Value& entry : *ranks->AsList()) {
    const json::Value* const state = entry.Find("state");
    if (state == nullptr || state->AsText() == nullptr) return std::nullopt;
    const auto number_of = [&](std::string_view key) {
      const json::Value* const member = entry.Find(key);
      return member == nullptr ? std::nullopt : member->AsInteger();
    };
    if (step && number_of("step") != *step) continue;
    const std::optional<int64_t> rank = number_of("rank");
    if (rank) lines.push_back({*rank, *state->AsText()});  // none: a run of one process
  }
  return lines;
}

}  // namespace

LostRanks FindLostRanks(const std::string& directory, const std::vector<RankTable>& tables) {
  std::optional<int64_t> step;
  std::optional<std::string> path = NewestSummary(directory);
  if (!path) {
    const Result<std::string> real = RealPath(directory);
    if (real) step = NaturalAfter("step", BaseName(*real));
    if (!step) return {};
    path = NewestSummary(std::string(DirectoryOf(*real)));
    if (!path) return {};
  }
  const Result<std::string> text = ReadFile(*path);
  std::optional<std::vector<RankLine>> lines;
  if (text) {
    const Result<json::Value> root = json::Value::Parse(*text);
    if (root) lines = ReadLines(*root, step);
  }
  if (!lines) {
    return {{fmt::format("{}: cannot be read, so whether a table is of an earlier comparison is "
                         "not known",
                         *path)},
            {}};
  }
  LostRanks lost;
  for (const RankLine& line : *lines) {
    if (line.state != "failed" && line.state != "missing") continue;
    const auto table = std::ranges::find(tables, line.rank, &RankTable::rank);
    if (table == tables.end()) {
      lost.without_one.push_back(fmt::format("rank {}: {} in the newest comparison ({}); left out",
                                             line.rank, line.state, *path));
      continue;
    }
    lost.outdated.push_back(
        fmt::format("{}: of an earlier comparison; in the newest one rank {} is {} "
                    "({})",
                    table->files.front(), line.rank, line.state, *path));
  }
  return lost;
}

}  // namespace plumbline::ranks

#include "pipeline/ranks/rank_store.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "load/detect.h"
#include "load/graph_dump.h"
#include "plumbline/c_api.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
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

// Everything a comparison reads from a rank directory.
void AppendRank(const load::RankDirectory& rank, std::string& facts) {
  const Result<std::string> real = RealPath(rank.path);
  facts += fmt::format("{}\n", real ? *real : rank.path);
  for (const std::string_view name :
       {run_files::kDumpJson, run_files::kDebugJson, run_files::kStackJson,
        run_files::kConstructJson, run_files::kErrorLog, run_files::kJournal,
        run_files::kRunMark}) {
    AppendFile(JoinPath(rank.path, name), facts);
  }
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

// What decides the content of the result files; a new option belongs here.
void AppendOptions(const CompareOptions& options, std::string& facts) {
  facts +=
      fmt::format("{} {} {} {} {} {}", PLUMBLINE_VERSION, options.write_advice, options.fuzzy_match,
                  options.show_stack, options.salvage, options.newest_csv);
  for (const ReportFormat format : options.formats) {
    facts += fmt::format(" {}", ReportFormatName(format));
  }
  facts += '\n';
  const MappingFiles& mappings = options.mappings;
  if (!mappings.data.empty()) AppendMapping("data", mappings.data, facts);
  AppendMapping("api", mappings.api, facts);
  AppendMapping("cell", mappings.cell, facts);
  AppendMapping("layer", mappings.layer, facts);
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

RankStore::RankStore(std::string directory, const RankPair& pair, const CompareOptions& options,
                     const RankWorkFacts& work)
    : directory_(std::move(directory)) {
  const std::string stem = JoinPath(JoinPath(directory_, kStoreName),
                                    fmt::format("{}-{}", pair.target->name, pair.golden->name));
  path_ = stem + ".json";
  const bool has_page =
      std::ranges::find(options.formats, ReportFormat::kHtml) != options.formats.end();
  if (has_page) page_path_ = stem + ".page";
  std::string facts = work.with_verdicts ? "verdicts\n" : "";
  if (has_page) facts += fmt::format("{} {} rows\n", pair.label(), work.page_rows);
  if (work.training != nullptr) AppendTraining(*work.training, facts);
  AppendOptions(options, facts);
  AppendRank(*pair.target, facts);
  AppendRank(*pair.golden, facts);
  for (const StepPair& step : work.before) {
    facts += fmt::format("behind {}\n{}\n{}", step.target, step.golden, step.facts);
  }
  facts += work.gap;
  if (!work.before.empty() && !work.is_shown) facts += "alone\n";
  inputs_ = DigestText(facts);
}

std::optional<RankOutcome> RankStore::Load() const {
  if (KindOf(path_) != PathKind::kFile) return std::nullopt;
  const Result<std::string> text = ReadFile(path_);
  if (!text) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view inputs, results, stored;
  if (parser.parse(*text).get(root) != simdjson::SUCCESS ||
      root["inputs"].get(inputs) != simdjson::SUCCESS ||
      root["results"].get(results) != simdjson::SUCCESS ||
      root["outcome"].get(stored) != simdjson::SUCCESS || inputs != inputs_) {
    return std::nullopt;
  }
  Result<RankOutcome> outcome = ReadOutcome(stored);
  if (!outcome) return std::nullopt;
  for (std::string& file : outcome->files) file = JoinPath(directory_, BaseName(file));
  for (const std::string& file : outcome->files) {
    if (KindOf(file) != PathKind::kFile) return std::nullopt;
  }
  if (ResultsDigest(outcome->files, page_path_) != results) return std::nullopt;
  return std::move(*outcome);
}

Status RankStore::Save(const RankOutcome& outcome) const {
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path_))));
  PL_TRY_ASSIGN(const std::string stored, FormatOutcome(outcome));
  std::string text =
      fmt::format("{{\"inputs\": \"{}\", \"results\": \"{}\", \"outcome\": ", inputs_,
                  ResultsDigest(outcome.files, page_path_));
  json::AppendString(stored, text);
  return WriteFileAtomically(path_, text + "}\n", false);
}

void RankStore::Drop() const { (void)RemoveFile(path_); }

}  // namespace plumbline::pipeline

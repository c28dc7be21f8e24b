#include "view/serve/result_opener.h"

#include <fmt/format.h>

#include <utility>

#include "base/file/file.h"
#include "base/file/lost_mapping.h"
#include "base/text/json.h"
#include "view/query/answers.h"
#include "view/serve/dataset_list.h"
#include "view/serve/recording_entries.h"
#include "view/store/build_store.h"
#include "view/store/import_vis.h"
#include "view/values/value_answers.h"

namespace plumbline::view {
namespace {

// What of the options changes a store.
std::string OptionsText(const CompareOptions& options) {
  const MappingFiles& maps = options.mappings;
  std::string text = fmt::format("fuzzy {} salvage {}", options.fuzzy_match, options.salvage);
  const std::pair<const char*, std::optional<std::string>> files[] = {
      {"data", maps.data.empty() ? std::nullopt : std::optional(maps.data)},
      {"api", maps.api},
      {"cell", maps.cell},
      {"layer", maps.layer},
      {"noise", options.noise_path.empty() ? std::nullopt : std::optional(options.noise_path)}};
  for (const auto& [name, path] : files) {
    if (!path) continue;
    text += fmt::format(" {} '{}'", name, *path);
    if (!path->empty()) text += InputsKey({*path}, "").value_or("");
  }
  return text;
}

bool IsRecording(const std::string& path) {
  const EntryKind kind = KindOfEntry(path);
  return kind == EntryKind::kRecording || (kind == EntryKind::kDirectory && !FindTables(path));
}

// Requires: the matches outlive what asks for them; empty: there are none.
HandPairs PairsIn(const HandMatches& matches) {
  if (matches.StateText().empty()) return {};
  return [&matches](int64_t step, int64_t rank) { return matches.PairsOf(step, rank); };
}

Error OpeningCancelled() {
  return Error(ErrorCode::kInvalidArgument, "cancelled. Open it again to have it made");
}

}  // namespace

Result<std::string> GraphDataset::Answer(std::string_view question, const Parameters& parameters,
                                         const Dataset* base) const {
  const ResultStore* base_store = base == nullptr ? nullptr : base->store();
  if (base != nullptr && base_store == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "base: is no graph");
  }
  if (question == "values") return AnswerValues(parameters);
  return view::Answer(*found_.store, question, parameters, base_store);
}

Result<std::string> GraphDataset::AnswerValues(const Parameters& parameters) const {
  const ResultStore& store = *found_.store;
  const int64_t last = static_cast<int64_t>(store.size()) - 1;
  PL_TRY_ASSIGN(const int64_t node, parameters.Number("node", -1, 0, last));
  if (node < 0) return Error(ErrorCode::kInvalidArgument, "node: is missing (expected an id)");
  PL_TRY_ASSIGN(const StoredFiles files,
                FindValueFiles(store, static_cast<uint32_t>(node), parameters.Text("value")));
  const auto path_of = [](const std::optional<StoredFile>& file) {
    return file ? JoinPath(file->directory, file->data_name) : std::string();
  };
  return ValueAnswer({path_of(files.target), path_of(files.golden)}, parameters.Text("what"),
                     parameters, {.cache = &values_, .cancel = cancel_.get()});
}

Result<std::string> TrendDataset::Answer(std::string_view question, const Parameters& parameters,
                                         const Dataset* base) const {
  constexpr std::string_view kStart = "trend/";
  const auto* against = dynamic_cast<const TrendDataset*>(base);
  if (base != nullptr && against == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "against: is no trend database");
  }
  if (!question.starts_with(kStart)) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: there is no such question about a trend database", question));
  }
  return TrendAnswer(database_, question.substr(kStart.size()), parameters,
                     {.against = against == nullptr ? nullptr : &against->database_});
}

Result<std::string> TableDataset::Answer(std::string_view question, const Parameters& parameters,
                                         const Dataset* /*base*/) const {
  return tables_->Answer(question, parameters);
}

std::vector<std::string> GraphDataset::AnswerLines() const {
  std::vector<std::string> lines;
  const json::Value* answer = found_.store->facts().Find("answer");
  if (answer == nullptr || answer->AsList() == nullptr) return lines;
  for (const json::Value& line : *answer->AsList()) {
    if (line.AsText() != nullptr) lines.push_back(*line.AsText());
  }
  return lines;
}

ResultOpener::ResultOpener(OpenerOptions options)
    : options_(std::move(options)), cache_(options_.cache) {}

Result<std::shared_ptr<const Dataset>> ResultOpener::OpenRecordings(const std::string& target,
                                                                    const std::string& golden,
                                                                    JobControl& job) const {
  const HandMatches by_hand =
      golden.empty() ? HandMatches() : MatchesOf(DatasetId(target, golden), target);
  const StoreCache::Build build = [&](const std::string& path) -> Status {
    StoreOptions options;
    options.compare = options_.compare;
    options.by_hand = PairsIn(by_hand);
    options.is_cancelled = &job.cancelled();
    options.progress = [&job](uint64_t done, uint64_t all) {
      job.SetProgress(all == 0 ? 0 : static_cast<double>(done) / static_cast<double>(all));
    };
    const LossWatch watch;
    const Status built = BuildStore(target, golden, path, options);
    const Status is_whole = watch.Check();
    if (!is_whole && built) (void)RemoveFile(path);
    PL_TRY(is_whole);
    if (!built && job.cancelled()) return OpeningCancelled();
    return built;
  };
  return OpenStore({target, golden}, OptionsText(options_.compare), by_hand, build);
}

HandMatches ResultOpener::MatchesOf(const std::string& id, const std::string& target) const {
  // A file that cannot be read is told to whoever asks for the pairs.
  return HandMatches::Read(MatchesPath(id, target)).value_or(HandMatches());
}

Result<std::shared_ptr<const Dataset>> ResultOpener::OpenStore(
    const std::vector<std::string>& paths, const std::string& options, const HandMatches& by_hand,
    const StoreCache::Build& build) const {
  const std::string pairs = by_hand.StateText();
  PL_TRY_ASSIGN(const std::string key,
                InputsKey(paths, pairs.empty() ? options : options + " by hand" + pairs));
  // The store that the user named holds the result itself.
  const bool is_cached = options_.store_path.empty() || !pairs.empty();
  PL_TRY_ASSIGN(FoundStore found, is_cached
                                      ? cache_.Obtain(key, build)
                                      : StoreCache::ObtainAt(options_.store_path, key, build));
  return std::shared_ptr<const Dataset>(std::make_shared<GraphDataset>(std::move(found), cancel_));
}

Result<std::shared_ptr<const Dataset>> ResultOpener::OpenVis(const std::string& path,
                                                             const std::string& golden,
                                                             JobControl& job) const {
  if (!golden.empty()) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: holds a result already (expected no second path, got {})", path, golden));
  }
  const HandMatches by_hand = MatchesOf(DatasetId(path, ""), path);
  const StoreCache::Build build = [&](const std::string& store_path) -> Status {
    ImportOptions options;
    options.by_hand = PairsIn(by_hand);
    options.is_cancelled = &job.cancelled();
    options.progress = [&job](uint64_t done, uint64_t all) {
      job.SetProgress(all == 0 ? 0 : static_cast<double>(done) / static_cast<double>(all));
    };
    const Status imported = ImportVis(path, store_path, options);
    if (!imported && job.cancelled()) return OpeningCancelled();
    return imported;
  };
  return OpenStore({path}, "imported", by_hand, build);
}

Result<std::shared_ptr<const Dataset>> ResultOpener::OpenTables(const std::string& path) {
  PL_TRY_ASSIGN(std::string etag, InputsKey({path}, "tables"));
  PL_TRY_ASSIGN(std::shared_ptr<const TableSet> tables, TableSet::Open(path));
  return std::shared_ptr<const Dataset>(
      std::make_shared<TableDataset>(std::move(tables), std::move(etag)));
}

Result<std::shared_ptr<const Dataset>> ResultOpener::Open(const std::string& target,
                                                          const std::string& golden,
                                                          JobControl& job) const {
  const EntryKind kind = KindOfEntry(target);
  switch (kind) {
    case EntryKind::kDirectory:  // whose reader says what is missing
      if (!IsRecording(target) && golden.empty()) return OpenTables(target);
      return OpenRecordings(target, golden, job);
    case EntryKind::kRecording:
      return OpenRecordings(target, golden, job);
    case EntryKind::kTrendDb: {
      PL_TRY_ASSIGN(const std::string etag, InputsKey({target}, ""));
      PL_TRY_ASSIGN(TrendDb database, TrendDb::Open(target));
      return std::shared_ptr<const Dataset>(
          std::make_shared<TrendDataset>(std::move(database), etag));
    }
    case EntryKind::kVis:
    case EntryKind::kVisDb:
      return OpenVis(target, golden, job);
    case EntryKind::kTable:
      if (golden.empty()) return OpenTables(target);
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: is a table (expected no second path, got {})", target, golden));
    case EntryKind::kOther:
      break;
  }
  if (KindOf(target) == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: does not exist", target));
  }
  return Error(
      ErrorCode::kUnsupported,
      fmt::format("{}: cannot be looked at (expected the directory of a recording, or a result)",
                  target));
}

std::string ResultOpener::MatchesPath(const std::string& id, const std::string& target) const {
  constexpr std::string_view kEnding = ".mpmatch.json";
  if (!options_.store_path.empty()) return options_.store_path + std::string(kEnding);
  // Beside a result; of recordings, which nothing is written into, beside their stores. By the name
  // alone: what was moved away meanwhile keeps its pairs.
  if (target.ends_with(".vis") || target.ends_with(".vis.db")) return target + std::string(kEnding);
  const std::string& directory =
      options_.cache.directory.empty() ? options_.scratch_directory : options_.cache.directory;
  return directory.empty() ? std::string() : JoinPath(directory, id + std::string(kEnding));
}

Result<std::vector<PathPair>> PairPaths(const std::vector<std::string>& paths) {
  std::vector<std::string> recordings;
  std::vector<PathPair> pairs;
  for (const std::string& path : paths) {
    // What is missing stands for a recording, whose reader says so.
    const bool is_recording = IsRecording(path) || KindOf(path) == PathKind::kMissing;
    if (is_recording) {
      recordings.push_back(path);
    } else {
      pairs.push_back({path, ""});
    }
  }
  if (recordings.size() > 2) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: a third recording (expected one, or two that are compared)",
                             recordings[2]));
  }
  if (!recordings.empty()) {
    pairs.insert(pairs.begin(),
                 {recordings[0], recordings.size() > 1 ? recordings[1] : std::string()});
  }
  return pairs;
}

}  // namespace plumbline::view

#include "ranks/compare_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "compare/carried_values.h"
#include "compare/compare_runs.h"
#include "compare/compare_training.h"
#include "explain/sample_evidence.h"
#include "load/rank_directories.h"
#include "ranks/diff_analyze.h"
#include "ranks/rank_store.h"
#include "ranks/ranks_database.h"
#include "record/run_files.h"
#include "report/html_report.h"
#include "report/result_names.h"

namespace plumbline::ranks {
namespace {

// Memory of a comparison in bytes of dump.json, both sides together: entries, items and rows.
constexpr uint64_t kMemoryFactor = 10;

uint64_t EstimateOf(const load::RankPair& pair) {
  uint64_t bytes = 0;
  for (const auto* side : {&pair.target, &pair.golden}) {
    for (const std::string_view name :
         {run_files::kDumpJson, run_files::kStackJson, run_files::kConstructJson}) {
      bytes += FileSize(JoinPath((*side)->path, name)).value_or(0);
    }
  }
  return bytes * kMemoryFactor;
}

// Lets work start while what is under way fits into the budget; a piece that alone exceeds it runs
// alone. Thread-safe.
class Budget {
 public:
  explicit Budget(uint64_t bytes) : free_(bytes), total_(bytes) {}

  uint64_t Acquire(uint64_t bytes) {
    const uint64_t taken = std::min(bytes, total_);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ >= taken; });
    free_ -= taken;
    return taken;
  }
  void Release(uint64_t taken) {
    {
      const std::lock_guard lock(mutex_);
      free_ += taken;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t free_;
  const uint64_t total_;
};

// "<output directory>/<stem>_<time>.json".
report::FreeName PathOfTime(const CompareOptions& options, std::string_view stem) {
  if (options.stamp.empty()) return report::FreePath(options.output_dir, stem, ".json");
  return {JoinPath(options.output_dir, fmt::format("{}_{}.json", stem, options.stamp)), {}};
}

class RankWork {
 public:
  RankWork(const CompareRanksOptions& options, bool has_steps, RanksReport& report)
      : options_(options),
        has_steps_(has_steps),
        report_(report),
        received_(report.ranks.size()),
        budget_(std::max<uint64_t>(options.memory_bytes, 1)) {
    for (size_t i = 0; i < report.ranks.size(); ++i) {
      if (report.ranks[i].pair.paired()) todo_.push_back(i);
    }
    page_bytes_ = report::HtmlShare(todo_.size());
  }

  // A value that another rank sent and that is within noise there is within noise where it arrives:
  // ranks that took one for wrong are judged again, until none learns more, and with them their
  // later steps that something was wrong in.
  void Run() {
    RunAll();
    RunAgain();
  }

  // The same of ranks that were looked at once.
  void RunAgain() {
    for (size_t round = 1; round < report_.ranks.size(); ++round) {
      todo_ = RanksThatLearn();
      if (todo_.empty()) return;
      AddWrongStepsBehind();
      RunAll();
    }
  }

  // The first look of Run() at the ranks of one part. All steps of a rank are in one; a rank of one
  // side alone is, too. Returns them, ascending.
  std::vector<size_t> RunPart(const ShardPlace& place) {
    std::vector<size_t> part;
    const std::vector<std::vector<size_t>> chains = ChainsOf(todo_);
    for (size_t i = place.index; i < chains.size(); i += place.count) {
      part.insert(part.end(), chains[i].begin(), chains[i].end());
    }
    std::ranges::sort(part);
    todo_ = part;
    RunAll();
    for (size_t i = place.index; i < report_.ranks.size(); i += place.count) {
      if (!report_.ranks[i].pair.paired()) part.push_back(i);
    }
    std::ranges::sort(part);
    return part;
  }

 private:
  // Threads of their own: a shared pool would start another rank while one waits for its tensors,
  // and memory would grow past the budget.
  void RunAll() {
    const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int threads = options_.compare.threads > 0 ? options_.compare.threads : cores;
    chains_ = ChainsOf(todo_);
    next_ = 0;
    const int workers = std::min(threads, static_cast<int>(chains_.size()));
    if (workers == 0) return;
    threads_per_rank_ = std::max(1, threads / workers);
    std::vector<std::jthread> pool;
    for (int i = 1; i < workers; ++i) pool.emplace_back([this] { Work(); });
    Work();
  }

  // Steps of one rank are compared one after the other: each is judged behind those before it.
  [[nodiscard]] std::vector<std::vector<size_t>> ChainsOf(const std::vector<size_t>& todo) const {
    std::vector<std::vector<size_t>> chains;
    std::unordered_map<std::string_view, size_t> by_rank;
    for (const size_t index : todo) {
      const auto [at, is_new] =
          by_rank.try_emplace(report_.ranks[index].pair.target->name, chains.size());
      if (is_new || !HasHistory()) {
        at->second = chains.size();
        chains.emplace_back();
      }
      chains[at->second].push_back(index);
    }
    return chains;
  }

  [[nodiscard]] bool HasHistory() const {
    return has_steps_ && !options_.of_graphs && !options_.training &&
           options_.compare.noise_path.empty();
  }

  [[nodiscard]] bool AreAllStepsShown() const { return options_.filter.steps.empty(); }

  // todo_ stays in order of the steps.
  void AddWrongStepsBehind() {
    if (!HasHistory()) return;
    std::unordered_set<std::string_view> learned;
    std::vector<size_t> all;
    for (size_t i = 0; i < report_.ranks.size(); ++i) {
      const ComparedRank& rank = report_.ranks[i];
      if (!rank.pair.paired()) continue;
      const std::string_view name = rank.pair.target->name;
      const bool learns = std::ranges::binary_search(todo_, i);
      if (learns) learned.insert(name);
      const bool is_wrong = rank.outcome && rank.outcome->first_wrong_call;
      if (learns || (is_wrong && learned.contains(name))) all.push_back(i);
    }
    todo_ = std::move(all);
  }

  // Adds to received_ what ranks of one step found wrong and others of it sent; the ranks that got
  // something new.
  std::vector<size_t> RanksThatLearn() {
    using Sender = std::pair<size_t, double>;  // rank, explained error
    std::unordered_map<compare::ContentId, std::vector<Sender>, compare::ContentIdHash> senders;
    std::vector<size_t> learned;
    for (size_t begin = 0, end = 0; begin < report_.ranks.size(); begin = end) {
      senders.clear();
      const auto step = report_.ranks[begin].pair.step;
      for (; end < report_.ranks.size() && report_.ranks[end].pair.step == step; ++end) {
        if (!report_.ranks[end].outcome) continue;
        for (const compare::ContentId& wrong : report_.ranks[end].outcome->wrong_arrivals) {
          senders.try_emplace(wrong);
        }
      }
      for (size_t rank = begin; rank < end && !senders.empty(); ++rank) {
        if (!report_.ranks[rank].outcome) continue;
        for (const compare::SentValue& sent : report_.ranks[rank].outcome->sent) {
          const auto wanted = senders.find(sent.contents);
          if (wanted != senders.end()) wanted->second.emplace_back(rank, sent.explained);
        }
      }
      for (size_t rank = begin; rank < end; ++rank) {
        if (Learns(rank, senders)) learned.push_back(rank);
      }
    }
    return learned;
  }

  template <typename Senders>
  bool Learns(size_t rank, const Senders& senders) {
    bool any = false;
    if (!report_.ranks[rank].outcome) return any;
    for (const compare::ContentId& wrong : report_.ranks[rank].outcome->wrong_arrivals) {
      const auto found = senders.find(wrong);
      if (found == senders.end()) continue;
      for (const auto& [sender, explained] : found->second) {
        if (sender != rank) any |= received_[rank].try_emplace(wrong, explained).second;
      }
    }
    return any;
  }

  void Work() {
    for (;;) {
      size_t next = 0;
      {
        const std::lock_guard lock(mutex_);
        if (next_ == chains_.size() || IsCancelled()) return;
        next = next_++;
      }
      WorkOn(chains_[next]);
    }
  }

  // The steps of one rank.
  void WorkOn(const std::vector<size_t>& indices) {
    CompareOptions options = options_.compare;
    options.on_progress = {};
    options.threads = threads_per_rank_;
    const std::string& name = report_.ranks[indices.front()].pair.target->name;
    compare::StepChain chain(
        options, [&](int64_t step) -> const compare::SentValues& { return ReceivedIn(step, name); },
        options_.filter.steps.empty());
    // A step that was judged waits for the next one.
    const uint64_t held = indices.size() > 1 ? 2 : 1;
    for (const size_t index : indices) {
      if (IsCancelled()) return;
      ComparedRank& rank = report_.ranks[index];
      const uint64_t taken = budget_.Acquire(held * EstimateOf(rank.pair));
      CompareOne(rank, received_[index], HasHistory() ? &chain : nullptr);
      budget_.Release(taken);
    }
  }

  // Whether what other ranks sent is behind an earlier step of the rank.
  [[nodiscard]] bool HasReceivedBefore(const load::RankPair& own) const {
    if (!HasHistory()) return false;
    for (size_t i = 0; i < report_.ranks.size(); ++i) {
      const load::RankPair& pair = report_.ranks[i].pair;
      if (pair.paired() && pair.step < own.step && pair.target->name == own.target->name &&
          !received_[i].empty()) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] const compare::SentValues& ReceivedIn(int64_t step, std::string_view rank) const {
    static const compare::SentValues kNothing;
    for (size_t i = 0; i < report_.ranks.size(); ++i) {
      const load::RankPair& pair = report_.ranks[i].pair;
      if (pair.paired() && pair.step == step && pair.target->name == rank) return received_[i];
    }
    return kNothing;
  }

  [[nodiscard]] bool IsCancelled() const {
    const std::atomic<bool>* const flag = options_.watch.is_cancelled;
    return flag != nullptr && flag->load();
  }

  [[nodiscard]] bool Writes() const { return !options_.compare.output_dir.empty(); }

  [[nodiscard]] std::string DirectoryOfPair(const load::RankPair& pair) const {
    if (!has_steps_ || options_.of_graphs) return options_.compare.output_dir;
    return JoinPath(options_.compare.output_dir, fmt::format("step{}", *pair.step));
  }

  // As the release names them whose columns the csv has.
  [[nodiscard]] std::string SuffixOf(const load::RankPair& pair) const {
    if (options_.compare.newest_columns || options_.of_graphs) return "_" + pair.target->name;
    return fmt::format("_{}-{}", pair.target->name, pair.golden->name);
  }

  // The run that calibrates this rank: the same rank and step of a dump, or the run named.
  [[nodiscard]] std::string NoisePathOf(const load::RankPair& pair) const {
    std::string path = options_.compare.noise_path;
    if (path.empty() || KindOf(path) != PathKind::kDirectory) return path;
    if (options_.of_graphs) return load::GraphPathBelow(path, *pair.rank(), *pair.step);
    if (has_steps_) path = JoinPath(path, fmt::format("step{}", *pair.step));
    const std::string of_rank = JoinPath(path, pair.golden->name);
    return KindOf(of_rank) == PathKind::kDirectory ? of_rank : options_.compare.noise_path;
  }

  void CompareOne(ComparedRank& rank, const compare::SentValues& received,
                  compare::StepChain* chain) {
    CompareOptions options = options_.compare;
    options.output_dir = DirectoryOfPair(rank.pair);
    options.suffix = SuffixOf(rank.pair);
    options.noise_path = NoisePathOf(rank.pair);
    options.stack_path.clear();
    options.on_progress = {};
    options.threads = threads_per_rank_;
    compare::StepsFound before;
    if (chain != nullptr) {
      before = chain->Find(verdict::PlaceOfRank(rank.pair.target->path),
                           verdict::PlaceOfRank(rank.pair.golden->path));
    }
    const RankStore store(options.output_dir, rank.pair, options, StoredWork(before));
    if (Writes()) rank.page_path = store.page_path();
    const bool is_alone = received.empty() && !HasReceivedBefore(rank.pair);
    if (Writes() && is_alone) {
      std::optional<RankStore::Stored> stored = store.Load();
      if (stored && (options_.resume || stored->is_of_this_run)) {
        rank.state = stored->is_of_this_run ? RankState::kCompared : RankState::kTakenOver;
        rank.outcome = std::move(stored->outcome);
        return;
      }
    }
    if (Writes()) store.Drop();
    if (rank.state == RankState::kCompared) DropFiles(rank);
    Result<RankOutcome> outcome = Compare(rank, options, received, chain);
    // What rests on another rank is made again when either may have changed.
    if (outcome && is_alone && Writes()) {
      const Status saved = store.Save(*outcome);
      if (!saved) outcome = saved.error();
    }
    if (!outcome) {
      rank.state = RankState::kFailed;
      rank.error = outcome.error();
      rank.outcome.reset();  // of an earlier round, whose files are gone
      return;
    }
    rank.state = RankState::kCompared;
    rank.outcome = std::move(*outcome);
  }

  [[nodiscard]] RankWorkFacts StoredWork(const compare::StepsFound& before) const {
    return {options_.diff_analyze, page_bytes_, options_.training ? &*options_.training : nullptr,
            before.steps,          before.gap,  AreAllStepsShown()};
  }

  // The result files of this run's first look at the rank.
  static void DropFiles(const ComparedRank& rank) {
    for (const std::string& file : rank.outcome->files) (void)RemoveFile(file);
  }

  Result<RankOutcome> Compare(const ComparedRank& rank, const CompareOptions& options,
                              const compare::SentValues& received,
                              compare::StepChain* chain) const {
    const load::RankPair& pair = rank.pair;
    compare::Pairing pairing =
        options_.training ? compare::TrainingPairing(*options_.training) : compare::Pairing();
    const auto index = static_cast<size_t>(&rank - report_.ranks.data());
    if (options_.watch.see) {
      pairing.see = [&, index](const Call& call, bool of_target) {
        options_.watch.see(index, call, of_target);
      };
    }
    if (options_.watch.by_hand) pairing.by_hand = options_.watch.by_hand(index);
    PL_TRY_ASSIGN(
        compare::RunPair runs,
        compare::RunPair::Load(pair.target->path, pair.golden->path, options, true, pairing));
    runs.FillTable();
    PL_TRY(runs.Judge(received, chain));
    PL_TRY(runs.Explain());
    RankOutcome outcome = OutcomeOf(runs.target(), runs.comparison());
    if (options_.watch.judged) PL_TRY(options_.watch.judged(index, runs));
    Comparison comparison = std::move(runs).Take();
    if (Writes()) PL_TRY(WriteComparison(comparison, options));
    if (!rank.page_path.empty()) PL_TRY(WritePagePart(rank, comparison));
    if (options_.diff_analyze) {
      const std::string stem = fmt::format("compare_result_{}", pair.target->name);
      const report::FreeName name = PathOfTime(options, stem);
      PL_TRY(WriteCallVerdicts(comparison, name.text));
      comparison.files.push_back(name.text);
    }
    outcome.files = comparison.files;
    if (chain != nullptr) chain->Add(*pair.step, std::move(comparison));
    return outcome;
  }

  Status WritePagePart(const ComparedRank& rank, const Comparison& comparison) const {
    const std::optional<explain::Evidence> evidence = explain::SampleEvidence(comparison);
    const report::HtmlPart part{rank.pair.label(), &comparison, evidence ? &*evidence : nullptr,
                                rank.pair.step, rank.pair.rank()};
    PL_TRY(MakeDirectories(std::string(DirectoryOf(rank.page_path))));
    return WriteFileAtomically(rank.page_path, report::HtmlPartData(part, page_bytes_), false);
  }

  const CompareRanksOptions& options_;
  const bool has_steps_;
  RanksReport& report_;
  std::vector<size_t> todo_;                 // of this round
  std::vector<std::vector<size_t>> chains_;  // the same, what one thread does in turn
  size_t page_bytes_ = 0;                    // of each rank, in every round
  int threads_per_rank_ = 1;
  std::mutex mutex_;
  size_t next_ = 0;  // chain; guarded by mutex_
  std::vector<compare::SentValues>
      received_;  // by rank, from other ranks; all empty in the first round
  Budget budget_;
};

// A file over all ranks could not be written.
void Lose(const std::string& path, const Error& error, RanksReport& report) {
  std::erase(report.files, path);
  std::optional<Error>& all = report.unwritten;
  all = all ? Error(all->code(), fmt::format("{}; {}", all->message(), error.message())) : error;
}

// diff_analyze_<ns>.json, where there is a difference.
Status WriteFirstDifference(const std::string& directory, RanksReport& report) {
  if (report.origins.empty()) return {};
  PL_TRY_ASSIGN(const std::string text, FormatFirstDifference(report));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto clock = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const std::string path = JoinPath(directory, fmt::format("diff_analyze_{}.json", clock));
  PL_TRY(WriteFileAtomically(path, text, false));
  report.files.push_back(path);
  return {};
}

// The page over all ranks, which tells of the files of the report.
Status WritePage(const RanksReport& report, const std::string& path) {
  report::HtmlOverview page;
  for (const ComparedRank& rank : report.ranks) {
    if (!rank.outcome || rank.page_path.empty()) continue;
    page.parts.push_back(rank.page_path);
    if (KindOf(rank.page_path) == PathKind::kFile) continue;
    return Error(ErrorCode::kIo,
                 fmt::format("{}: is gone. {}", rank.page_path, HowToCompareAgain(rank)));
  }
  PL_TRY_ASSIGN(page.json, RanksSummaryJson(report));
  page.text = RanksSummaryText(report);
  return report::WriteHtmlOverview(page, path);
}

// compare_ranks_<time>.json, and the page and the database over all ranks where they are asked for.
Status WriteSummary(const CompareOptions& options, RanksReport& report) {
  const report::FreeName name = PathOfTime(options, "compare_ranks");
  const std::string& path = name.text;
  bool has_page = std::ranges::any_of(report.ranks, [](const ComparedRank& rank) {
    return rank.outcome && !rank.page_path.empty();
  });
  constexpr std::string_view kExtension = ".json";
  const std::string stem = path.substr(0, path.size() - kExtension.size());
  const std::string page_path = stem + ".html", database_path = stem + ".db";
  const bool has_database =
      std::ranges::find(options.formats, ReportFormat::kSqlite) != options.formats.end();
  if (has_page) report.files.push_back(page_path);
  if (has_database) report.files.push_back(database_path);
  report.files.push_back(path);
  const auto write_page = [&] {
    const Status written = WritePage(report, page_path);
    has_page = written.has_value();
    if (!written) Lose(page_path, written.error(), report);
  };
  if (has_page) write_page();
  PL_TRY_ASSIGN(std::string json, RanksSummaryJson(report));
  if (has_database) {
    const Status written = WriteRanksDatabase(report, json, database_path);
    if (!written) {
      Lose(database_path, written.error(), report);
      if (has_page) write_page();  // which names the database
      PL_TRY_ASSIGN(json, RanksSummaryJson(report));
    }
  }
  const Status written = WriteFileAtomically(path, json, false);
  if (!written) Lose(path, written.error(), report);
  return {};
}

// The ranks of one side, step by step.
CollectiveReport CheckSide(const RanksReport& report, bool of_target) {
  CollectiveReport side;
  side.side = of_target ? "the target" : "golden";
  for (size_t begin = 0, end = 0; begin < report.ranks.size(); begin = end) {
    std::vector<load::RankDirectory> ranks;
    const auto step = report.ranks[begin].pair.step;
    for (; end < report.ranks.size() && report.ranks[end].pair.step == step; ++end) {
      const load::RankPair& pair = report.ranks[end].pair;
      const auto& own = of_target ? pair.target : pair.golden;
      if (own) ranks.push_back(*own);
    }
    CheckCollectives(ranks, step, side);
  }
  return side;
}

void CheckBothSides(RanksReport& report) {
  const Result<std::string> target = RealPath(report.target_path);
  const Result<std::string> golden = RealPath(report.golden_path);
  report.collectives.push_back(CheckSide(report, true));
  if (target && golden && *target == *golden) {
    report.collectives.front().side = "both sides";
  } else {
    report.collectives.push_back(CheckSide(report, false));
  }
}

// What there is to compare.
Result<RanksReport> FindRanks(const std::string& target, const std::string& golden,
                              const CompareRanksOptions& options) {
  if (options.training) PL_TRY(compare::CheckTrainingOptions(options.compare));
  if (options.check_collectives && options.of_graphs) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: check_collectives is for recordings with a dump.json of each "
                             "rank (this is a static-graph dump). Leave it out",
                             target));
  }
  PL_TRY_ASSIGN(load::RankPairs found, options.of_graphs
                                           ? load::FindGraphPairs(target, golden, options.filter)
                                           : load::FindRankPairs(target, golden, options.filter));
  if (!options.compare.output_dir.empty()) PL_TRY(MakeDirectories(options.compare.output_dir));
  RanksReport report;
  report.target_path = target;
  report.golden_path = golden;
  report.has_steps = found.has_steps;
  report.notes = std::move(found.notes);
  for (load::RankPair& pair : found.pairs) report.ranks.emplace_back().pair = std::move(pair);
  return report;
}

// What stands over all ranks, once each was judged.
Status Conclude(const CompareRanksOptions& options, RanksReport& report) {
  SearchRanks(report);
  if (options.check_collectives) CheckBothSides(report);
  if (options.diff_analyze) {
    const Status written = WriteFirstDifference(options.compare.output_dir, report);
    if (!written) Lose({}, written.error(), report);
  }
  if (options.compare.output_dir.empty()) return {};
  return WriteSummary(options.compare, report);
}

const match::TrainingRules* RulesOf(const CompareRanksOptions& options) {
  return options.training ? &*options.training : nullptr;
}

}  // namespace

Result<RanksReport> CompareRanks(const std::string& target, const std::string& golden,
                                 const CompareRanksOptions& options) {
  PL_TRY_ASSIGN(RanksReport report, FindRanks(target, golden, options));
  if (options.watch.begin) options.watch.begin(report);
  RankWork(options, report.has_steps, report).Run();
  PL_TRY(Conclude(options, report));
  return report;
}

Result<RanksReport> CompareShard(const std::string& target, const std::string& golden,
                                 const CompareRanksOptions& options, const ShardPlace& place,
                                 const RankShardRequest& request) {
  PL_TRY_ASSIGN(RanksReport report, FindRanks(target, golden, options));
  const std::string& directory = options.compare.output_dir;
  ShardHeader header{place, request, OptionsDigest(options.compare, RulesOf(options)), {}};
  CompareRanksOptions own = options;
  PL_TRY_ASSIGN(own.compare.stamp, SharedStamp(directory, header));
  header.stamp = own.compare.stamp;
  const std::vector<size_t> part = RankWork(own, report.has_steps, report).RunPart(place);
  PL_TRY(WriteRankShard(RankShardPath(directory, place), header, report, part));
  return report;
}

Result<RanksReport> MergeShards(ShardSet shards, const CompareRanksOptions& options) {
  RanksReport report = std::move(shards.report);
  const std::string& directory = options.compare.output_dir;
  if (OptionsDigest(options.compare, RulesOf(options)) != shards.header.options) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: a file that its command names, or plumbline, has changed since it "
                    "was written. Compare its shards again",
                    shards.path));
  }
  CompareRanksOptions own = options;
  own.compare.stamp = shards.header.stamp;
  PL_TRY(MakeDirectories(directory));
  RankWork(own, report.has_steps, report).RunAgain();
  PL_TRY(Conclude(own, report));
  if (!report.unwritten) ForgetSharedStamp(directory, shards.header);
  return report;
}

}  // namespace plumbline::ranks

#include "pipeline/ranks/compare_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "pipeline/compare_runs.h"
#include "pipeline/compare_training.h"
#include "pipeline/culprit/sample_evidence.h"
#include "pipeline/graphs/graph_pairs.h"
#include "pipeline/ranks/diff_analyze.h"
#include "pipeline/ranks/rank_store.h"
#include "pipeline/ranks/sent_values.h"
#include "pipeline/result_names.h"
#include "record/run_files.h"
#include "report/html_report.h"

namespace plumbline::pipeline {
namespace {

// Memory of a comparison in bytes of dump.json, both sides together: entries, items and rows.
constexpr uint64_t kMemoryFactor = 10;

uint64_t EstimateOf(const RankPair& pair) {
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
    if (!todo_.empty()) page_rows_ = report::kHtmlRows / todo_.size();
  }

  // A value that another rank sent and that is within noise there is within noise where it arrives:
  // ranks that took one for wrong are judged again, until none learns more.
  void Run() {
    RunAll();
    for (size_t round = 1; round < report_.ranks.size(); ++round) {
      todo_ = RanksThatLearn();
      if (todo_.empty()) return;
      next_ = 0;
      RunAll();
    }
  }

 private:
  // Threads of their own: a shared pool would start another rank while one waits for its tensors,
  // and memory would grow past the budget.
  void RunAll() {
    const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int threads = options_.compare.threads > 0 ? options_.compare.threads : cores;
    const int workers = std::min(threads, static_cast<int>(todo_.size()));
    if (workers == 0) return;
    threads_per_rank_ = std::max(1, threads / workers);
    std::vector<std::jthread> pool;
    for (int i = 1; i < workers; ++i) pool.emplace_back([this] { Work(); });
    Work();
  }

  // Adds to received_ what ranks of one step found wrong and others of it sent; the ranks that got
  // something new.
  std::vector<size_t> RanksThatLearn() {
    using Sender = std::pair<size_t, double>;  // rank, explained error
    std::unordered_map<ContentPair, std::vector<Sender>, ContentPairHash> senders;
    std::vector<size_t> learned;
    for (size_t begin = 0, end = 0; begin < report_.ranks.size(); begin = end) {
      senders.clear();
      const auto step = report_.ranks[begin].pair.step;
      for (; end < report_.ranks.size() && report_.ranks[end].pair.step == step; ++end) {
        if (!report_.ranks[end].outcome) continue;
        for (const SentValue& sent : report_.ranks[end].outcome->sent) {
          senders[sent.contents].emplace_back(end, sent.explained);
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
    for (const ContentPair& wrong : report_.ranks[rank].outcome->wrong_arrivals) {
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
        if (next_ == todo_.size()) return;
        next = todo_[next_++];
      }
      ComparedRank& rank = report_.ranks[next];
      const uint64_t taken = budget_.Acquire(EstimateOf(rank.pair));
      CompareOne(rank, received_[next]);
      budget_.Release(taken);
    }
  }

  [[nodiscard]] std::string DirectoryOfPair(const RankPair& pair) const {
    if (!has_steps_ || options_.of_graphs) return options_.compare.output_dir;
    return JoinPath(options_.compare.output_dir, fmt::format("step{}", *pair.step));
  }

  // As the release names them whose columns the csv has.
  [[nodiscard]] std::string SuffixOf(const RankPair& pair) const {
    if (options_.compare.newest_csv || options_.of_graphs) return "_" + pair.target->name;
    return fmt::format("_{}-{}", pair.target->name, pair.golden->name);
  }

  // The run that calibrates this rank: the same rank and step of a dump, or the run named.
  [[nodiscard]] std::string NoisePathOf(const RankPair& pair) const {
    std::string path = options_.compare.noise_path;
    if (path.empty() || KindOf(path) != PathKind::kDirectory) return path;
    if (options_.of_graphs) return GraphPathBelow(path, *pair.rank(), *pair.step);
    if (has_steps_) path = JoinPath(path, fmt::format("step{}", *pair.step));
    const std::string of_rank = JoinPath(path, pair.golden->name);
    return KindOf(of_rank) == PathKind::kDirectory ? of_rank : options_.compare.noise_path;
  }

  void CompareOne(ComparedRank& rank, const SentValues& received) {
    CompareOptions options = options_.compare;
    options.output_dir = DirectoryOfPair(rank.pair);
    options.suffix = SuffixOf(rank.pair);
    options.noise_path = NoisePathOf(rank.pair);
    options.stack_path.clear();
    options.on_progress = {};
    options.threads = threads_per_rank_;
    const RankStore store(options.output_dir, rank.pair, options, StoredWork());
    rank.page_path = store.page_path();
    if (options_.resume && received.empty()) {
      rank.outcome = store.Load();
      if (rank.outcome) {
        rank.state = RankState::kTakenOver;
        return;
      }
    }
    store.Drop();
    if (rank.state == RankState::kCompared) DropFiles(rank);
    Result<RankOutcome> outcome = Compare(rank, options, received);
    // What rests on another rank is made again when either may have changed.
    if (outcome && received.empty()) {
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

  [[nodiscard]] RankWorkFacts StoredWork() const {
    return {options_.diff_analyze, page_rows_, options_.training ? &*options_.training : nullptr};
  }

  // The result files of this run's first look at the rank.
  static void DropFiles(const ComparedRank& rank) {
    for (const std::string& file : rank.outcome->files) (void)RemoveFile(file);
  }

  Result<RankOutcome> Compare(const ComparedRank& rank, const CompareOptions& options,
                              const SentValues& received) const {
    const RankPair& pair = rank.pair;
    const Pairing pairing = options_.training ? TrainingPairing(*options_.training) : Pairing();
    PL_TRY_ASSIGN(RunPair runs,
                  RunPair::Load(pair.target->path, pair.golden->path, options, true, pairing));
    runs.FillTable();
    PL_TRY(runs.Judge(received));
    PL_TRY(runs.Explain());
    RankOutcome outcome = OutcomeOf(runs.target(), runs.comparison());
    Comparison comparison = std::move(runs).Take();
    PL_TRY(WriteComparison(comparison, options));
    if (!rank.page_path.empty()) PL_TRY(WritePagePart(rank, comparison));
    if (options_.diff_analyze) {
      const std::string stem = fmt::format("compare_result_{}", pair.target->name);
      const FreeName name = FreePath(options.output_dir, stem, ".json");
      PL_TRY(WriteCallVerdicts(comparison, name.text));
      comparison.files.push_back(name.text);
    }
    outcome.files = comparison.files;
    return outcome;
  }

  Status WritePagePart(const ComparedRank& rank, const Comparison& comparison) const {
    const std::optional<report::Evidence> evidence = SampleEvidence(comparison);
    const report::HtmlPart part{rank.pair.label(), &comparison, evidence ? &*evidence : nullptr};
    PL_TRY(MakeDirectories(std::string(DirectoryOf(rank.page_path))));
    return WriteFileAtomically(rank.page_path, report::HtmlPartData(part, page_rows_), false);
  }

  const CompareRanksOptions& options_;
  const bool has_steps_;
  RanksReport& report_;
  std::vector<size_t> todo_;  // of this round
  size_t page_rows_ = 0;      // of each rank, in every round
  int threads_per_rank_ = 1;
  std::mutex mutex_;
  size_t next_ = 0;                   // guarded by mutex_
  std::vector<SentValues> received_;  // by rank, from other ranks; all empty in the first round
  Budget budget_;
};

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

// compare_ranks_<time>.json, and the page over all ranks where one is asked for.
Status WriteSummary(const CompareOptions& options, RanksReport& report) {
  const FreeName name = FreePath(options.output_dir, "compare_ranks", ".json");
  const std::string& path = name.text;
  report::HtmlOverview page;
  for (const ComparedRank& rank : report.ranks) {
    if (rank.outcome && !rank.page_path.empty()) page.parts.push_back(rank.page_path);
  }
  constexpr std::string_view kExtension = ".json";
  const std::string page_path = path.substr(0, path.size() - kExtension.size()) + ".html";
  if (!page.parts.empty()) report.files.push_back(page_path);
  report.files.push_back(path);
  PL_TRY_ASSIGN(page.json, RanksSummaryJson(report));
  if (!page.parts.empty()) {
    page.text = RanksSummaryText(report);
    PL_TRY(report::WriteHtmlOverview(page, page_path));
  }
  return WriteFileAtomically(path, page.json, false);
}

}  // namespace

Result<RanksReport> CompareRanks(const std::string& target, const std::string& golden,
                                 const CompareRanksOptions& options) {
  if (options.training) PL_TRY(CheckTrainingOptions(options.compare));
  PL_TRY_ASSIGN(RankPairs found, options.of_graphs ? FindGraphPairs(target, golden, options.filter)
                                                   : FindRankPairs(target, golden, options.filter));
  PL_TRY(MakeDirectories(options.compare.output_dir));
  RanksReport report;
  report.target_path = target;
  report.golden_path = golden;
  report.has_steps = found.has_steps;
  report.notes = std::move(found.notes);
  for (RankPair& pair : found.pairs) report.ranks.emplace_back().pair = std::move(pair);
  RankWork(options, found.has_steps, report).Run();
  SearchRanks(report);
  if (options.diff_analyze) PL_TRY(WriteFirstDifference(options.compare.output_dir, report));
  PL_TRY(WriteSummary(options.compare, report));
  return report;
}

}  // namespace plumbline::pipeline

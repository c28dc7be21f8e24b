// CompareRuns(): load, match, measure, judge.

#include "pipeline/compare_runs.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/digest.h"
#include "base/file.h"
#include "base/parallel.h"
#include "formats/dump_json.h"
#include "formats/tensor_file.h"
#include "match/expand.h"
#include "match/name_match.h"
#include "measure/stats_metrics.h"
#include "measure/tensor_metrics.h"
#include "pipeline/cause_of_call.h"
#include "pipeline/divergence.h"
#include "pipeline/graph_items.h"
#include "pipeline/measured_noise.h"
#include "pipeline/next_config.h"
#include "pipeline/pair_calls.h"
#include "plumbline/compare.h"
#include "report/findings.h"
#include "report/graph_table.h"

namespace plumbline {
namespace {

using match::CallItems;
using match::CallPair;

// One side, read and expanded.
struct Side {
  Run run;
  std::vector<CallItems> calls;
};

Result<Side> LoadSide(const std::string& path, const CompareOptions& options) {
  PL_TRY_ASSIGN(Run run, Run::Open(path, {.salvage = options.salvage}));
  const bool of_graphs = run.header().of_graphs;
  PL_TRY_ASSIGN(std::vector<CallItems> calls, run.header().holds_saves()
                                                  ? match::ExpandSaves(run.calls())
                                                  : match::ExpandCalls(run.calls(), !of_graphs));
  if (of_graphs) pipeline::FillGraphStatistics(run, calls);
  return Side{std::move(run), std::move(calls)};
}

Error TaskError(const Run& run, std::string_view problem) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", run.dump_json_path(), problem));
}

// Tasks that look for something while recording, and keep no values of the other calls.
bool IsSearch(std::string_view task) {
  return task == "overflow_check" || task == "nan_check" || task == "diff_check";
}

std::string SearchAdvice(std::string_view task, const Side& side) {
  const std::string_view directory = DirectoryOf(side.run.dump_json_path());
  const std::string answer =
      task == "diff_check"
          ? fmt::format("`plumb inspect {}` lists the tensors of the calls that differed",
                        directory)
          : fmt::format("`plumb overflow {}` names the first NaN or Inf", directory);
  return fmt::format(
      "was recorded with task {}, which has no values to compare of most calls (expected tensor or "
      "statistics). {}; to compare, record both sides with task statistics.",
      task, answer);
}

Result<CompareMode> ModeOf(const Side& target, const Side& golden) {
  for (const Side* side : {&target, &golden}) {
    const std::string& task = side->run.header().task;
    if (task.empty()) return TaskError(side->run, "has no task (expected tensor or statistics)");
    if (IsSearch(task)) return TaskError(side->run, SearchAdvice(task, *side));
    if (task != "tensor" && task != "statistics") {
      return TaskError(side->run, fmt::format("task {} cannot be compared (expected tensor or "
                                              "statistics)",
                                              task));
    }
  }
  if (target.run.header().of_graphs != golden.run.header().of_graphs) {
    const Run& run = target.run.header().of_graphs ? golden.run : target.run;
    return TaskError(run, "no static-graph dump, as the other side is (expected two of one kind)");
  }
  if (target.run.header().holds_saves() != golden.run.header().holds_saves()) {
    return TaskError(target.run,
                     fmt::format("level is {}, but {} has level {}; saved values cannot "
                                 "be compared with calls. Name two debug.json or two "
                                 "dump.json.",
                                 target.run.header().level, golden.run.dump_json_path(),
                                 golden.run.header().level));
  }
  const std::string& task = target.run.header().task;
  if (task != golden.run.header().task) {
    return TaskError(target.run,
                     fmt::format("task is {}, but {} has task {}. Record both sides "
                                 "with the same task.",
                                 task, golden.run.dump_json_path(), golden.run.header().task));
  }
  if (task == "tensor") return CompareMode::kTensor;
  const bool target_digests = match::HasDigests(target.calls);
  const bool golden_digests = match::HasDigests(golden.calls);
  if (target_digests != golden_digests && !target.calls.empty() && !golden.calls.empty()) {
    const Side& with = target_digests ? target : golden;
    const Side& without = target_digests ? golden : target;
    return TaskError(with.run, fmt::format("holds md5 digests, but {} does not. Record both sides "
                                           "with the same summary_mode.",
                                           without.run.dump_json_path()));
  }
  return target_digests && golden_digests ? CompareMode::kDigest : CompareMode::kStatistics;
}

// --- rows ------------------------------------------------------------------------------------

class RowBuilder {
 public:
  RowBuilder(Side& target, Side& golden, Comparison& comparison)
      : target_(target), golden_(golden), comparison_(comparison) {}

  // Rows are large: growing step by step would hold most of them twice.
  void Reserve(const std::vector<CallPair>& pairs) {
    size_t rows = 0;
    for (const CallPair& pair : pairs) rows += RowsOf(pair);
    comparison_.rows.reserve(rows);
    comparison_.calls.reserve(pairs.size());
  }

  // The items move into the rows; the sides keep their calls' names.
  void Add(const CallPair& pair) {
    ComparedCall& call = comparison_.calls.emplace_back();
    call.first_row = static_cast<uint32_t>(comparison_.rows.size());
    call.unmatched_reason = pair.reason;
    call.unmatched_detail = pair.detail;
    CallItems* target = pair.target == CallPair::kNone ? nullptr : &target_.calls[pair.target];
    CallItems* golden = pair.golden == CallPair::kNone ? nullptr : &golden_.calls[pair.golden];
    if (target != nullptr) call.target_name = target->name;
    if (golden != nullptr) call.golden_name = golden->name;
    const size_t count = RowsOf(pair);
    for (size_t i = 0; i < count; ++i) {
      ComparedRow& row = comparison_.rows.emplace_back();
      row.call = static_cast<uint32_t>(comparison_.calls.size() - 1);
      const auto [a, b] = pair.links.empty() ? std::pair(i, i) : pair.links[i];
      if (target != nullptr) row.target = std::move(target->items[a]);
      if (golden == nullptr) continue;
      // A mapping may name one golden value for several of the target's.
      row.golden = pair.rule == "mapped" ? golden->items[b] : std::move(golden->items[b]);
    }
    call.row_count = static_cast<uint32_t>(count);
    if (call.paired()) {
      ++comparison_.counts.calls;
      call.pairing = pair.rule;
    } else if (call.unmatched_reason == "recomputed") {
      ++comparison_.counts.recomputed;
    } else if (target != nullptr) {
      ++comparison_.counts.unmatched_target;
    } else {
      ++comparison_.counts.unmatched_golden;
    }
  }

 private:
  [[nodiscard]] size_t RowsOf(const CallPair& pair) const {
    if (!pair.links.empty()) return pair.links.size();
    return pair.target != CallPair::kNone ? target_.calls[pair.target].items.size()
                                          : golden_.calls[pair.golden].items.size();
  }

  Side& target_;
  Side& golden_;
  Comparison& comparison_;
};

// --- tensors ---------------------------------------------------------------------------------

// Reads and measures the tensor files of the rows; a file that cannot be read marks its row.
class TensorPass {
 public:
  TensorPass(const Run& target, const Run& golden, const CompareOptions& options,
             Comparison& comparison)
      : target_(target), golden_(golden), options_(options), comparison_(comparison) {}

  void Run() {
    const std::vector<Group> groups = GroupRows();
    RunWithThreads(options_.threads, [&] {
      ParallelFor(groups.size(), [&](size_t k) {
        const Group& group = groups[k];
        ComparedRow& first = comparison_.rows[group.front()];
        Measure(first);
        for (size_t i = 1; i < group.size(); ++i) {
          comparison_.rows[group[i]].tensor = first.tensor;
          comparison_.rows[group[i]].notes = first.notes;
        }
        Report(groups.size());
      });
    });
    comparison_.counts.unreadable_files = unreadable_.load();
  }

 private:
  using Group = std::vector<size_t>;  // rows whose files are the same on both sides

  // Recorders store equal contents once and link the names; such pairs are measured once.
  std::vector<Group> GroupRows() const {
    std::vector<Group> groups;
    std::map<std::pair<FileIdentity, FileIdentity>, size_t> known;
    for (size_t i = 0; i < comparison_.rows.size(); ++i) {
      const ComparedRow& row = comparison_.rows[i];
      if (!row.target || !row.golden) continue;
      if (row.target->data_name.empty() || row.golden->data_name.empty()) continue;
      const Result<FileIdentity> target = IdentityOf(target_.TensorPath(row.target->data_name));
      const Result<FileIdentity> golden = IdentityOf(golden_.TensorPath(row.golden->data_name));
      if (!target || !golden) {  // Measure() says why
        groups.push_back({i});
        continue;
      }
      const auto [at, is_new] = known.try_emplace({*target, *golden}, groups.size());
      if (is_new) groups.emplace_back();
      groups[at->second].push_back(i);
    }
    return groups;
  }

  void Measure(ComparedRow& row) {
    const std::optional<TensorFile> target = Open(target_, row.target->data_name, row);
    const std::optional<TensorFile> golden = Open(golden_, row.golden->data_name, row);
    if (!target || !golden) {
      row.tensor = measure::AbsentMetrics(Absent::kUnreadable);
      return;
    }
    Result<TensorMetrics> metrics = measure::MeasureTensors(target->view(), golden->view());
    if (metrics) {
      row.tensor = *metrics;
      return;
    }
    row.tensor = measure::AbsentMetrics(Absent::kUnreadable);
    row.notes.push_back({"unreadable", metrics.error().message()});
    ++unreadable_;
  }

  std::optional<TensorFile> Open(const plumbline::Run& run, const std::string& name,
                                 ComparedRow& row) {
    // A name that leaves the directory is not followed.
    if (name.find('/') != std::string::npos) {
      row.notes.push_back({"unreadable", fmt::format("{}: not a file name", name)});
      ++unreadable_;
      return std::nullopt;
    }
    Result<TensorFile> file = TensorFile::Open(run.TensorPath(name));
    if (file) return std::move(*file);
    row.notes.push_back({"unreadable", file.error().message()});
    ++unreadable_;
    return std::nullopt;
  }

  void Report(size_t total) {
    const size_t done = done_.fetch_add(1) + 1;
    if (!options_.on_progress) return;
    const std::lock_guard lock(progress_mutex_);
    options_.on_progress(static_cast<double>(done) / static_cast<double>(total));
  }

  const plumbline::Run& target_;
  const plumbline::Run& golden_;
  const CompareOptions& options_;
  Comparison& comparison_;
  std::atomic<uint64_t> unreadable_{0};
  std::atomic<size_t> done_{0};
  std::mutex progress_mutex_;
};

// --- checksums of other releases --------------------------------------------------------------

// Brings checksums of bfloat16 on the side that took them from float32 to those of the own bytes,
// where the tensor file is there. False: others stay as they are.
bool RebaseDigests(const Side& target, const Side& golden, Comparison& comparison) {
  const bool of_target = !target.run.header().digests_own_bytes;
  const Run& run = of_target ? target.run : golden.run;
  bool all = true;
  for (ComparedRow& row : comparison.rows) {
    if (!row.target || !row.golden || row.target->digest == row.golden->digest) continue;
    Item& item = of_target ? *row.target : *row.golden;
    if (item.dtype != InfoOf(DType::kBFloat16).torch_name) continue;
    const bool is_named = !item.data_name.empty() && item.data_name.find('/') == std::string::npos;
    const auto file = TensorFile::Open(is_named ? run.TensorPath(item.data_name) : "");
    if (!file || file->view().dtype != DType::kBFloat16) {
      all = false;
      continue;
    }
    std::vector<std::byte> bytes(file->view().size_bytes());
    CopyContiguous(file->view(), bytes);
    item.digest = Crc32Hex(Crc32(bytes));
  }
  return all;
}

// --- stacks, counts, warnings ----------------------------------------------------------------

// The stack column shows the target's stacks, for every call that has one.
Status FillStacks(const Run& target, const CompareOptions& options, Comparison& comparison) {
  if (!options.show_stack) return {};
  std::vector<std::vector<std::string>> stacks(comparison.calls.size());
  bool any = false;
  if (options.stack_path.empty()) {
    for (size_t i = 0; i < stacks.size(); ++i) {
      stacks[i] = target.StackOf(comparison.calls[i].target_name);
      any = any || !stacks[i].empty();
    }
  } else {
    PL_TRY_ASSIGN(const dump_json::StackTable table, dump_json::ReadStack(options.stack_path));
    std::unordered_map<std::string_view, const std::vector<std::string>*> by_name;
    for (const auto& entry : table) by_name.insert_or_assign(entry.first, &entry.second);
    for (size_t i = 0; i < stacks.size(); ++i) {
      const auto found = by_name.find(comparison.calls[i].target_name);
      if (found != by_name.end()) stacks[i] = *found->second;
    }
    any = true;
  }
  if (any) comparison.stacks = std::move(stacks);
  return {};
}

// Results and colours as upstream has them.
void FillTable(Comparison& comparison) {
  report::FillResults(comparison);
  if (comparison.of_graphs()) return report::FillGraphResults(comparison);
  report::FillColors(comparison);
}

void CountRows(Comparison& comparison) {
  for (const ComparedRow& row : comparison.rows) {
    ++comparison.counts.rows[static_cast<size_t>(row.verdict)];
    if (!comparison.calls[row.call].paired()) continue;
    for (const std::string_view reason : {"no-data", "shape-differs", "structure-differs"}) {
      if (row.reason == reason) ++comparison.counts.missing_values;
    }
  }
}

void AddLossWarnings(const Run& run, std::string_view side, Comparison& comparison) {
  const RunLoss& loss = run.loss();
  if (loss.truncated) {
    comparison.warnings.push_back(
        fmt::format("{}: {} is truncated at byte {}; only its complete records are compared",
                    run.dump_json_path(), side, loss.byte_offset));
  }
  if (loss.duplicate_names > 0) {
    comparison.warnings.push_back(
        fmt::format("{}: {} entries occur more than once; the last one "
                    "is compared",
                    run.dump_json_path(), loss.duplicate_names));
  }
  if (loss.recorder_drops > 0) {
    comparison.warnings.push_back(fmt::format(
        "{}: the recorder counted {} {}; dump_error_info.log beside it says which",
        run.dump_json_path(), loss.recorder_drops, loss.recorder_drops == 1 ? "loss" : "losses"));
  }
  if (loss.unfinished) {
    comparison.warnings.push_back(
        fmt::format("{}: the recording goes on in a journal beside it. Run `plumb recover {}`",
                    run.dump_json_path(), DirectoryOf(run.dump_json_path())));
  }
  for (const std::string& error : loss.side_files) {
    comparison.warnings.push_back(fmt::format("{}. Compared without it", error));
  }
}

}  // namespace

Result<Comparison> CompareRuns(const std::string& target_path, const std::string& golden_path,
                               const CompareOptions& options) {
  return pipeline::CompareRunsVisited(target_path, golden_path, options, {});
}

Result<Comparison> pipeline::CompareRunsVisited(const std::string& target_path,
                                                const std::string& golden_path,
                                                const CompareOptions& options,
                                                const ComparisonVisitor& visit) {
  std::optional<Result<Side>> loaded_target;
  std::optional<Result<Side>> loaded_golden;
  RunWithThreads(options.threads, [&] {
    RunBoth([&] { loaded_target = LoadSide(target_path, options); },
            [&] { loaded_golden = LoadSide(golden_path, options); });
  });
  PL_TRY_ASSIGN(Side target, std::move(*loaded_target));
  PL_TRY_ASSIGN(Side golden, std::move(*loaded_golden));
  Comparison comparison;
  PL_TRY_ASSIGN(comparison.mode, ModeOf(target, golden));
  comparison.of_saves = target.run.header().holds_saves();
  if (comparison.of_saves) match::AlignSaveNames(target.calls, golden.calls);
  comparison.target_graphs = target.run.graph_directories();
  comparison.golden_graphs = golden.run.graph_directories();
  if (comparison.of_graphs()) pipeline::LendShapes(target.calls, golden.calls);
  comparison.target_path = target.run.dump_json_path();
  comparison.golden_path = golden.run.dump_json_path();
  comparison.target_loss = target.run.loss();
  comparison.golden_loss = golden.run.loss();
  RowBuilder builder(target, golden, comparison);
  PL_TRY_ASSIGN(const std::vector<CallPair> pairs,
                pipeline::PairCalls({target.run, target.calls}, {golden.run, golden.calls}, options,
                                    comparison));
  builder.Reserve(pairs);
  for (const CallPair& pair : pairs) builder.Add(pair);
  for (ComparedRow& row : comparison.rows) {
    if (!row.target || !row.golden) continue;
    row.statistics = measure::CompareStatistics(row.target->statistics, row.golden->statistics);
  }
  if (comparison.mode == CompareMode::kTensor) {
    TensorPass(target.run, golden.run, options, comparison).Run();
  }
  const bool bases_differ =
      comparison.mode == CompareMode::kDigest &&
      target.run.header().digests_own_bytes != golden.run.header().digests_own_bytes &&
      !RebaseDigests(target, golden, comparison);
  FillTable(comparison);
  // Recorders of other makes take some statistics from a float32 copy.
  const bool both_ours = target.run.header().by_plumbline && golden.run.header().by_plumbline;
  std::vector<double> noise;
  if (!options.noise_path.empty()) {
    PL_TRY_ASSIGN(noise, pipeline::MeasureNoise(golden_path, options, comparison));
  }
  if (comparison.of_graphs()) pipeline::AddPrintedPrecision(comparison, noise);
  pipeline::JudgeRows(target.run, {comparison.mode, !both_ours, bases_differ}, comparison, noise);
  pipeline::ExplainCause(target.run, golden.run, comparison);
  comparison.next_config = pipeline::NextConfigText(target.run, comparison);
  PL_TRY(FillStacks(target.run, options, comparison));
  CountRows(comparison);
  AddLossWarnings(target.run, "target", comparison);
  AddLossWarnings(golden.run, "golden", comparison);
  if (visit) visit(target.run, comparison);
  return comparison;
}

}  // namespace plumbline

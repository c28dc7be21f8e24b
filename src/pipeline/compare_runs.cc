// CompareRuns(): load, match, measure, judge.

#include "pipeline/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/digest.h"
#include "base/file.h"
#include "base/lost_mapping.h"
#include "base/parallel.h"
#include "formats/dump_json.h"
#include "formats/keep_last.h"
#include "load/recorded_tensor.h"
#include "match/expand.h"
#include "match/name_match.h"
#include "measure/statistic_choice.h"
#include "pipeline/compare_mode.h"
#include "pipeline/compared_rows.h"
#include "pipeline/count_rows.h"
#include "pipeline/culprit/cause_of_call.h"
#include "pipeline/culprit/detection_limit.h"
#include "pipeline/culprit/incomplete_record.h"
#include "pipeline/culprit/judge_rows.h"
#include "pipeline/culprit/measured_noise.h"
#include "pipeline/culprit/meeting_points.h"
#include "pipeline/culprit/next_config.h"
#include "pipeline/culprit/type_choice.h"
#include "pipeline/default_arguments.h"
#include "pipeline/graphs/graph_items.h"
#include "pipeline/graphs/keep_mapped.h"
#include "pipeline/left_out.h"
#include "pipeline/pair_calls.h"
#include "pipeline/ranks/comm_call.h"
#include "pipeline/step_chain.h"
#include "pipeline/tensor_pass.h"
#include "pipeline/unlike_runs.h"
#include "plumbline/compare.h"
#include "report/findings.h"
#include "report/graph_table.h"

namespace plumbline {
namespace {

using match::CallItems;
using match::CallPair;

// One side, read and expanded. The calls are in the order of the file, also those without items.
struct Side {
  Run run;
  std::vector<CallItems> calls;
  uint64_t duplicate_names = 0;
};

// Which entries the run keeps besides their items.
enum class Keep : uint8_t {
  kNone,
  kNames,  // of all, and the arguments of those that communicate
};

// Entries are expanded while they are read: a list of all of them, with their argument trees, would
// need several times the memory of the items.
Result<Side> LoadSide(const std::string& path, Keep keep, const CompareOptions& options) {
  std::vector<CallItems> calls;
  match::Expander expander;
  Status expanded;
  const auto expand = [&](Call& call, const RunHeader& header) {
    Result<CallItems> items = header.holds_saves() ? expander.ExpandSave(call)
                                                   : expander.ExpandCall(call, !header.of_graphs);
    if (items) {
      calls.push_back(std::move(*items));
    } else if (expanded) {
      expanded = items.error();
    }
    if (keep == Keep::kNames && !CommunicationApi(call.name)) call.members.clear();
    return keep == Keep::kNames;
  };
  PL_TRY_ASSIGN(
      Run run, Run::Open(path, {.salvage = options.salvage, .defer_stacks = true, .keep = expand}));
  PL_TRY(std::move(expanded));
  const uint64_t dropped =
      KeepLastOfEach(calls, [](const CallItems& call) -> const std::string& { return call.name; });
  return Side{std::move(run), std::move(calls), dropped};
}

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
    const auto file = load::OpenTensor(run, item.data_name);
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
  std::vector<Shared<std::vector<std::string>>> stacks(comparison.calls.size());
  bool any = false;
  if (options.stack_path.empty()) {
    constexpr size_t kShare = 2048;
    ParallelBlocks(stacks.size(), kShare, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        stacks[i] = target.StackOf(comparison.calls[i].target_name);
      }
    });
    any = std::ranges::any_of(stacks, [](const auto& stack) { return !stack.empty(); });
  } else {
    PL_TRY_ASSIGN(const dump_json::StackTable table, dump_json::ReadStack(options.stack_path));
    std::unordered_map<std::string_view, const Shared<std::vector<std::string>>*> by_name;
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

// What the rows refer to, without the calls around it.
std::shared_ptr<const void> KeepItems(std::vector<CallItems>& target,
                                      std::vector<CallItems>& golden) {
  auto kept = std::make_shared<std::vector<std::vector<Item>>>();
  kept->reserve(target.size() + golden.size());
  for (std::vector<CallItems>* side : {&target, &golden}) {
    for (CallItems& call : *side) kept->push_back(std::move(call.items));
  }
  return kept;
}

void AddLossWarnings(const Run& run, const RunLoss& loss, std::string_view side,
                     Comparison& comparison) {
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
    comparison.warnings.push_back(report::DamageWarning(error));
  }
  if (comparison.mode != CompareMode::kTensor) return;
  std::string note = load::NoteOnTensorDirectory(run);
  if (!note.empty()) comparison.warnings.push_back(std::move(note));
}

// Millions of small texts are given back, those of both sides at once.
void Unload(Side target, Side golden, const CompareOptions& options) {
  const auto drop = [](Side& side) { const Side dropped = std::move(side); };
  RunWithThreads(options.threads, [&] { RunBoth([&] { drop(target); }, [&] { drop(golden); }); });
}

}  // namespace

Result<Comparison> CompareRuns(const std::string& target_path, const std::string& golden_path,
                               const CompareOptions& options) {
  return pipeline::ComparePaired(target_path, golden_path, options, {});
}

struct pipeline::RunPair::Impl {
  const std::string golden_path;
  const CompareOptions& options;
  std::unique_ptr<LossWatch> watch;
  Side target, golden;
  Pairing pairing;
  Comparison comparison{};
  bool digest_bases_differ = false;
  LeftOut left_out{};
  std::vector<DefaultArguments> defaults{};

  // Whether a side is a dump of static graphs.
  [[nodiscard]] bool has_graphs() const {
    return target.run.header().of_graphs || golden.run.header().of_graphs;
  }

  // What is known of the two runs as wholes.
  void Describe() {
    comparison.of_saves = target.run.header().holds_saves();
    // A graph against calls is shown as calls are.
    if (target.run.header().of_graphs == golden.run.header().of_graphs) {
      comparison.target_graphs = target.run.graph_directories();
      comparison.golden_graphs = golden.run.graph_directories();
    }
    comparison.target_path = target.run.dump_json_path();
    comparison.golden_path = golden.run.dump_json_path();
    if (!has_graphs()) {
      comparison.target_tensors = DirectoryOf(target.run.TensorPath("x"));
      comparison.golden_tensors = DirectoryOf(golden.run.TensorPath("x"));
    }
    comparison.target_loss = target.run.loss_so_far();
    comparison.golden_loss = golden.run.loss_so_far();
    comparison.target_loss.duplicate_names = target.duplicate_names;
    comparison.golden_loss.duplicate_names = golden.duplicate_names;
  }

  void DescribeGraphs() {
    const bool as_table = comparison.mode == CompareMode::kStatistics;
    for (Side* side : {&target, &golden}) FillGraphStatistics(side->run, side->calls, as_table);
    LendShapes(target.calls, golden.calls);
  }

  Status Pair() {
    const std::string& mapping = options.mappings.data;
    PL_TRY_ASSIGN(comparison.mode, pipeline::ModeOf({target.run, target.calls},
                                                    {golden.run, golden.calls}, !mapping.empty()));
    Describe();
    if (has_graphs() && !comparison.of_graphs()) {
      PL_TRY_ASSIGN(comparison.counts.unknown_mappings,
                    KeepMapped(mapping, target.calls, golden.calls, comparison.warnings));
    }
    if (comparison.of_saves) match::AlignSaveNames(target.calls, golden.calls);
    if (comparison.of_graphs()) DescribeGraphs();
    if (!comparison.of_saves && !has_graphs() && mapping.empty()) {
      const bool across = target.run.header().framework != golden.run.header().framework;
      left_out = TakeLeftOut(target.calls, golden.calls, across);
    }
    const PairingSide left{target.run, target.calls}, right{golden.run, golden.calls};
    PL_TRY_ASSIGN(std::vector<CallPair> pairs, pairing.pair
                                                   ? pairing.pair(left, right, comparison)
                                                   : PairCalls(left, right, options, comparison));
    defaults = TakeDefaultArguments(pairs, target.calls, golden.calls);
    BuildRows(pairs, target.calls, golden.calls, comparison);
    return {};
  }

  void Measure() {
    if (comparison.mode == CompareMode::kTensor) {
      pipeline::MeasureFiles(target.run, golden.run, options, comparison);
    }
    digest_bases_differ =
        comparison.mode == CompareMode::kDigest &&
        target.run.header().digests_own_bytes != golden.run.header().digests_own_bytes &&
        !RebaseDigests(target, golden, comparison);
  }
};

pipeline::RunPair::RunPair(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
pipeline::RunPair::RunPair(RunPair&&) noexcept = default;
pipeline::RunPair::~RunPair() = default;

Result<pipeline::RunPair> pipeline::RunPair::Load(const std::string& target_path,
                                                  const std::string& golden_path,
                                                  const CompareOptions& options, bool keep_names,
                                                  const Pairing& pairing) {
  auto watch = std::make_unique<LossWatch>();
  std::optional<Result<Side>> loaded_target;
  std::optional<Result<Side>> loaded_golden;
  const Keep keep = keep_names ? Keep::kNames : Keep::kNone;
  RunWithThreads(options.threads, [&] {
    RunBoth([&] { loaded_target = LoadSide(target_path, keep, options); },
            [&] { loaded_golden = LoadSide(golden_path, Keep::kNone, options); });
  });
  PL_TRY_ASSIGN(Side target, std::move(*loaded_target));
  PL_TRY_ASSIGN(Side golden, std::move(*loaded_golden));
  auto impl = std::make_unique<Impl>(
      Impl{golden_path, options, std::move(watch), std::move(target), std::move(golden), pairing});
  Status paired;
  RunWithThreads(options.threads, [&] { paired = impl->Pair(); });
  PL_TRY(std::move(paired));
  impl->Measure();
  return RunPair(std::move(impl));
}

void pipeline::RunPair::FillTable() {
  Comparison& comparison = impl_->comparison;
  RunWithThreads(impl_->options.threads, [&] {
    report::FillTable(comparison);
    if (comparison.of_graphs()) report::FillGraphResults(comparison);
  });
}

Status pipeline::RunPair::Judge(const SentValues& received, StepChain* chain) {
  const CompareOptions& options = impl_->options;
  Comparison& comparison = impl_->comparison;
  const Run& target = impl_->target.run;
  // Recorders of other makes take some statistics from a float32 copy.
  const bool both_ours = target.header().by_plumbline && impl_->golden.run.header().by_plumbline;
  std::vector<double> noise;
  if (!options.noise_path.empty()) {
    PL_TRY_ASSIGN(noise, MeasureNoise(impl_->golden_path, options, comparison));
  }
  if (impl_->has_graphs()) AddPrintedPrecision(comparison, noise);
  if (!received.empty()) AddExplainedBySenders(comparison, received, noise);
  const measure::StatisticChoice choice = measure::ChoiceOf(comparison.rows);
  const measure::PairContext context{comparison.mode, !both_ours, impl_->digest_bases_differ,
                                     choice.left_out()};
  if (!choice.is_complete() && comparison.mode == CompareMode::kStatistics) {
    comparison.warnings.push_back(measure::ChoiceText(choice));
  }
  const Run& golden = impl_->golden.run;
  const bool may_follow = chain != nullptr && !comparison.of_saves && !impl_->has_graphs();
  Unjudged before;
  if (may_follow && !chain->Find(PlaceOf(target), PlaceOf(golden)).steps.empty()) {
    before = {comparison.calls, comparison.counts};
  }
  RunWithThreads(options.threads, [&] {
    RunBoth([&] { JudgeRows(target, context, comparison, noise); }, [&] { (void)golden.loss(); });
  });
  if (!may_follow || !comparison.first_wrong_call) return {};
  if (EarlierSteps* earlier = chain->Before(target, golden); earlier != nullptr) {
    RunWithThreads(options.threads, [&] {
      earlier->JudgeBehind(target, context, std::move(before), comparison, noise);
    });
  }
  if (!comparison.first_wrong_call) return {};
  for (std::string& sentence : chain->WhatIsMissing(target, golden)) {
    comparison.warnings.push_back(std::move(sentence));
  }
  return {};
}

Status pipeline::RunPair::Explain() {
  const Run& target = impl_->target.run;
  const Run& golden = impl_->golden.run;
  Comparison& comparison = impl_->comparison;
  Status stacks;
  ExplainCause(target, golden, comparison);
  MarkOtherWays(target, golden, comparison);
  NoteNarrowed(comparison);
  RunWithThreads(impl_->options.threads, [&] {
    comparison.next_config = NextConfigText(target, comparison);
    WarnOfOtherForms(comparison);
    AddDefaultArguments(std::move(impl_->defaults), comparison);
    AddLeftOut(std::move(impl_->left_out), comparison);
    stacks = FillStacks(target, impl_->options, comparison);
  });
  PL_TRY(std::move(stacks));
  pipeline::CountRows(comparison);
  comparison.limit = LimitOf(comparison);
  comparison.target_loss.side_files = target.loss().side_files;
  comparison.golden_loss.side_files = golden.loss().side_files;
  AddLossWarnings(target, comparison.target_loss, "target", comparison);
  AddLossWarnings(golden, comparison.golden_loss, "golden", comparison);
  WarnOfUnlikeRuns(target, golden, comparison);
  if (impl_->pairing.show_names) impl_->pairing.show_names(comparison);
  return impl_->watch->Check();
}

const Run& pipeline::RunPair::target() const { return impl_->target.run; }

const Comparison& pipeline::RunPair::comparison() const { return impl_->comparison; }

Comparison pipeline::RunPair::Take() && {
  Comparison comparison = std::move(impl_->comparison);
  comparison.items = KeepItems(impl_->target.calls, impl_->golden.calls);
  Unload(std::move(impl_->target), std::move(impl_->golden), impl_->options);
  return comparison;
}

Result<Comparison> pipeline::ComparePaired(const std::string& target_path,
                                           const std::string& golden_path,
                                           const CompareOptions& options, const Pairing& pairing) {
  PL_TRY_ASSIGN(RunPair pair, RunPair::Load(target_path, golden_path, options,
                                            /*keep_names=*/false, pairing));
  pair.FillTable();
  CompareOptions of_steps = options;
  of_steps.on_progress = nullptr;
  StepChain chain(of_steps);
  const bool is_plain = options.noise_path.empty() && !pairing.pair;
  PL_TRY(pair.Judge({}, is_plain ? &chain : nullptr));
  PL_TRY(pair.Explain());
  return std::move(pair).Take();
}

}  // namespace plumbline

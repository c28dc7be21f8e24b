#include "compare/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/lost_mapping.h"
#include "base/memory/digest.h"
#include "base/process/parallel.h"
#include "compare/carried_values.h"
#include "compare/compared_rows.h"
#include "compare/graph_values.h"
#include "compare/pair_calls.h"
#include "compare/postprocess.h"
#include "compare/tensor_pass.h"
#include "explain/answer_text.h"
#include "explain/cause_of_call.h"
#include "explain/next_config.h"
#include "explain/sample_evidence.h"
#include "formats/json/dump_json.h"
#include "formats/json/json_feed.h"
#include "load/detect.h"
#include "load/rank_scan.h"
#include "load/run_reader.h"
#include "match/expand.h"
#include "match/layer_mapping.h"
#include "match/name_match.h"
#include "measure/stats_metrics.h"
#include "plumbline/compare.h"
#include "report/ci_report.h"
#include "report/findings.h"
#include "report/graph_table.h"
#include "report/html_report.h"
#include "report/newest_table.h"
#include "report/result_json.h"
#include "report/result_names.h"
#include "report/table.h"
#include "verdict/judge_rows.h"
#include "verdict/meeting_points.h"
#include "verdict/precision_choice.h"
#include "verdict/unpaired_calls.h"

namespace plumbline {

// CompareRuns(): load, match, measure, judge.

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

// Names that both recordings have, as one text: two texts for nearly every name would be a good
// part of the memory. The sides are read at once, so a name is soon met again; one that was
// forgotten meanwhile is shared by BuildRows(). Thread-safe.
class SharedNames {
 public:
  void Share(Text& name) {
    if (name.empty()) return;
    const size_t hash = std::hash<std::string_view>()(name);
    const std::lock_guard lock(locks_[hash % kLocks]);
    Text& known = names_[hash % kNames];
    if (known == name) {
      name = known;
    } else {
      known = name;
    }
  }

 private:
  static constexpr size_t kLocks = 64, kNames = size_t{1} << 18;  // a lock is one place's alone
  std::array<std::mutex, kLocks> locks_;
  std::vector<Text> names_ = std::vector<Text>(kNames);
};

// Entries are expanded while they are read: a list of all of them, with their argument trees, would
// need several times the memory of the items.
Result<Side> LoadSide(const std::string& path, Keep keep, const CompareOptions& options,
                      const std::function<void(const Call&)>& see, SharedNames& names) {
  std::vector<CallItems> calls;
  match::Expander expander;
  Status expanded;
  const auto expand = [&](Call& call, const RunHeader& header) {
    if (see) see(call);
    Result<CallItems> items = header.holds_saves() ? expander.ExpandSave(call)
                                                   : expander.ExpandCall(call, !header.of_graphs);
    if (items) {
      names.Share(items->name);
      for (Item& item : items->items) names.Share(item.name);
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
      KeepLastOfEach(calls, [](const CallItems& call) { return call.name.view(); });
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

// A recording that is compared with itself.
bool IsSameFile(const Run& target, const Run& golden) {
  const Result<std::string> a = RealPath(target.dump_json_path());
  const Result<std::string> b = RealPath(golden.dump_json_path());
  return a && b && *a == *b;
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
        fmt::format("{}: {}", run.dump_json_path(),
                    load::UnfinishedText(std::string(DirectoryOf(run.dump_json_path())))));
  }
  for (const std::string& error : loss.side_files) {
    comparison.warnings.push_back(report::DamageWarning(error));
  }
  for (const std::string& sentence : loss.unseen) {
    comparison.warnings.push_back(fmt::format("{}: {}", run.dump_json_path(), sentence));
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
  return compare::ComparePaired(target_path, golden_path, options, {});
}

struct compare::RunPair::Impl {
  const std::string golden_path;
  const CompareOptions& options;
  std::unique_ptr<LossWatch> watch;
  Side target, golden;
  Pairing pairing;
  Comparison comparison{};
  bool digest_bases_differ = false;
  LeftOut left_out{};
  std::vector<DefaultArguments> defaults{};

  // Keeps the items alone, which the rows refer to: the names around them take as much as a third.
  void DropCalls() {
    comparison.items = KeepItems(target.calls, golden.calls);
    target.calls = {};
    golden.calls = {};
  }

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

  // Before anything is paired: a product may have another shape.
  Status ChangeTensors() {
    if (options.postprocess_path.empty()) return {};
    PL_TRY_ASSIGN(compare::PostprocessRules rules,
                  compare::ReadPostprocess(options.postprocess_path));
    std::vector<std::string>& warnings = comparison.warnings;
    std::ranges::move(rules.warnings, std::back_inserter(warnings));
    compare::Postprocess(rules, target.run, true, target.calls, warnings);
    compare::Postprocess(rules, golden.run, false, golden.calls, warnings);
    return {};
  }

  Status Pair() {
    PL_TRY(ChangeTensors());
    const std::string& mapping = options.mappings.data;
    PL_TRY_ASSIGN(comparison.mode, compare::ModeOf({target.run, target.calls},
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
    PL_TRY_ASSIGN(std::vector<CallPair> pairs,
                  pairing.pair ? pairing.pair(left, right, comparison)
                               : PairCalls(left, right, options, pairing.by_hand, comparison));
    defaults = TakeDefaultArguments(pairs, target.calls, golden.calls);
    BuildRows(pairs, target.calls, golden.calls, comparison);
    return {};
  }

  void Measure() {
    if (comparison.mode == CompareMode::kTensor) {
      compare::MeasureFiles(target.run, golden.run, options, comparison);
    }
    if (!options.postprocess_path.empty()) compare::NotePostprocessed(comparison);
    digest_bases_differ =
        comparison.mode == CompareMode::kDigest &&
        target.run.header().digests_own_bytes != golden.run.header().digests_own_bytes &&
        !RebaseDigests(target, golden, comparison);
  }
};

compare::RunPair::RunPair(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
compare::RunPair::RunPair(RunPair&&) noexcept = default;
compare::RunPair::~RunPair() = default;

Result<compare::RunPair> compare::RunPair::Load(const std::string& target_path,
                                                const std::string& golden_path,
                                                const CompareOptions& options, bool keep_names,
                                                const Pairing& pairing) {
  auto watch = std::make_unique<LossWatch>();
  std::optional<Result<Side>> loaded_target;
  std::optional<Result<Side>> loaded_golden;
  const Keep keep = keep_names ? Keep::kNames : Keep::kNone;
  std::function<void(const Call&)> see_target, see_golden;
  if (pairing.see) {
    see_target = [&](const Call& call) { pairing.see(call, true); };
    see_golden = [&](const Call& call) { pairing.see(call, false); };
  }
  RunWithThreads(options.threads, [&] {
    SharedNames names;
    RunBoth(
        [&] { loaded_target = LoadSide(target_path, keep, options, see_target, names); },
        [&] { loaded_golden = LoadSide(golden_path, Keep::kNone, options, see_golden, names); });
  });
  PL_TRY_ASSIGN(Side target, std::move(*loaded_target));
  PL_TRY_ASSIGN(Side golden, std::move(*loaded_golden));
  auto impl = std::make_unique<Impl>(
      Impl{golden_path, options, std::move(watch), std::move(target), std::move(golden), pairing});
  Status paired;
  RunWithThreads(options.threads, [&] { paired = impl->Pair(); });
  PL_TRY(std::move(paired));
  impl->Measure();
  impl->DropCalls();
  return RunPair(std::move(impl));
}

void compare::RunPair::FillTable() {
  Comparison& comparison = impl_->comparison;
  RunWithThreads(impl_->options.threads, [&] {
    report::FillTable(comparison);
    if (comparison.of_graphs()) report::FillGraphResults(comparison);
  });
}

Status compare::RunPair::Judge(const SentValues& received, StepChain* chain) {
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
  verdict::Unjudged before;
  if (may_follow &&
      !chain->Find(verdict::PlaceOf(target), verdict::PlaceOf(golden)).steps.empty()) {
    before = {comparison.calls, comparison.counts};
  }
  RunWithThreads(options.threads, [&] {
    RunBoth(
        [&] {
          const auto culprit = verdict::JudgeRows(target, context, comparison, noise);
          explain::NameCulprit(target, culprit, comparison);
        },
        [&] { (void)golden.loss(); });
  });
  if (!may_follow || !comparison.first_wrong_call) return {};
  if (verdict::EarlierSteps* earlier = chain->Before(target, golden); earlier != nullptr) {
    RunWithThreads(options.threads, [&] {
      const verdict::JudgedBehind judged =
          earlier->JudgeBehind(target, context, std::move(before), comparison, noise);
      if (judged.is_judged) explain::NameCulprit(target, judged.culprit, comparison);
    });
  }
  if (!comparison.first_wrong_call) return {};
  for (std::string& sentence : chain->WhatIsMissing(target, golden)) {
    comparison.warnings.push_back(std::move(sentence));
  }
  return {};
}

Status compare::RunPair::Explain() {
  const Run& target = impl_->target.run;
  const Run& golden = impl_->golden.run;
  Comparison& comparison = impl_->comparison;
  Status stacks;
  explain::ExplainCause(target, golden, comparison);
  if (ComparedCall* first = verdict::MarkEquivalentCalls(target, golden, comparison)) {
    first->unmatched_detail = explain::EquivalentCallsText(target, golden, comparison);
  }
  verdict::NoteNarrowed(comparison);
  RunWithThreads(impl_->options.threads, [&] {
    comparison.next_config = explain::NextConfigText(target, comparison);
    verdict::WarnOfOtherForms(comparison);
    AddDefaultArguments(std::move(impl_->defaults), comparison);
    AddLeftOut(std::move(impl_->left_out), comparison);
    stacks = FillStacks(target, impl_->options, comparison);
  });
  PL_TRY(std::move(stacks));
  compare::CountRows(comparison);
  comparison.limit = explain::LimitOf(comparison);
  comparison.target_loss.side_files = target.loss().side_files;
  comparison.golden_loss.side_files = golden.loss().side_files;
  AddLossWarnings(target, comparison.target_loss, "target", comparison);
  if (!IsSameFile(target, golden)) {
    AddLossWarnings(golden, comparison.golden_loss, "golden", comparison);
  }
  WarnOfUnlikeRuns(target, golden, comparison);
  if (impl_->pairing.show_names) impl_->pairing.show_names(comparison);
  return impl_->watch->Check();
}

const Run& compare::RunPair::target() const { return impl_->target.run; }
const Run& compare::RunPair::golden() const { return impl_->golden.run; }

const Comparison& compare::RunPair::comparison() const { return impl_->comparison; }

Comparison compare::RunPair::Take() && {
  Comparison comparison = std::move(impl_->comparison);
  Unload(std::move(impl_->target), std::move(impl_->golden), impl_->options);
  return comparison;
}

Result<compare::RunPair> compare::JudgePaired(const std::string& target_path,
                                              const std::string& golden_path,
                                              const CompareOptions& options,
                                              const Pairing& pairing) {
  PL_TRY_ASSIGN(RunPair pair, RunPair::Load(target_path, golden_path, options,
                                            /*keep_names=*/false, pairing));
  pair.FillTable();
  CompareOptions of_steps = options;
  of_steps.on_progress = nullptr;
  StepChain chain(of_steps);
  const bool is_plain = options.noise_path.empty() && !pairing.pair;
  PL_TRY(pair.Judge({}, is_plain ? &chain : nullptr));
  PL_TRY(pair.Explain());
  return pair;
}

Result<Comparison> compare::ComparePaired(const std::string& target_path,
                                          const std::string& golden_path,
                                          const CompareOptions& options, const Pairing& pairing) {
  PL_TRY_ASSIGN(RunPair pair, JudgePaired(target_path, golden_path, options, pairing));
  return std::move(pair).Take();
}

// WriteComparison(): the result files of a comparison.

namespace {

struct FormatInfo {
  std::string_view name;
  std::string_view extension;
};
// In the order of ReportFormat.
constexpr std::array<FormatInfo, kReportFormatCount> kFormats = {{
    {"xlsx", ".xlsx"},
    {"csv", ".csv"},
    {"json", ".json"},
    {"jsonl", ".jsonl"},
    {"html", ".html"},
    {"sqlite", ".db"},
    {"junit", ".junit.xml"},
    {"sarif", ".sarif"},
}};

const FormatInfo& InfoOf(ReportFormat format) { return kFormats[static_cast<size_t>(format)]; }

// The extensions of all formats: files of one comparison share a stem that no earlier result uses.
constexpr auto kExtensions = [] {
  std::array<std::string_view, kReportFormatCount + 1> extensions;
  for (size_t i = 0; i < kReportFormatCount; ++i) extensions[i] = kFormats[i].extension;
  extensions.back() = "_part_1.csv";
  return extensions;
}();

Status WriteFormat(const Comparison& comparison, ReportFormat format, bool newest_columns,
                   const std::string& path) {
  switch (format) {
    case ReportFormat::kXlsx:
      return newest_columns ? report::WriteNewestXlsx(comparison, path)
                            : report::WriteXlsx(comparison, path);
    case ReportFormat::kCsv:
      return newest_columns ? report::WriteNewestCsv(comparison, path)
                            : report::WriteCsv(comparison, path);
    case ReportFormat::kJson:
      return report::WriteResultJson(comparison, path);
    case ReportFormat::kHtml: {
      const std::optional<explain::Evidence> evidence = explain::SampleEvidence(comparison);
      const report::HtmlPart part{
          .label = {}, .comparison = &comparison, .evidence = evidence ? &*evidence : nullptr};
      return report::WriteHtml({&part, 1}, path);
    }
    case ReportFormat::kJsonl:
      return report::WriteJsonLines(comparison, path);
    case ReportFormat::kSqlite:
      return report::WriteDatabase(comparison, path);
    case ReportFormat::kJunit:
      return report::WriteJunit(report::CiReportOf(comparison), path);
    case ReportFormat::kSarif:
      return report::WriteSarif(report::CiReportOf(comparison), path);
  }
  return {};
}

}  // namespace

std::string_view ReportFormatName(ReportFormat format) { return InfoOf(format).name; }

Result<std::vector<ReportFormat>> ReportFormatsOf(const std::vector<std::string>& names) {
  std::array<bool, kReportFormatCount> chosen{};
  for (const std::string& name : names) {
    const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                     [&](const FormatInfo& info) { return info.name == name; });
    if (found == kFormats.end()) {
      std::string known;
      for (const FormatInfo& info : kFormats) {
        if (!known.empty()) known += &info == &kFormats.back() ? " or " : ", ";
        known += info.name;
      }
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("formats: unknown \"{}\" (expected {})", name, known));
    }
    chosen[static_cast<size_t>(found - kFormats.begin())] = true;
  }
  std::vector<ReportFormat> formats;
  for (size_t i = 0; i < kReportFormatCount; ++i) {
    if (chosen[i]) formats.push_back(static_cast<ReportFormat>(i));
  }
  return formats;
}

Status WriteComparison(Comparison& comparison, const CompareOptions& options) {
  const std::string& directory = options.output_dir;
  PL_TRY(MakeDirectories(directory));
  const std::string prefix =
      (comparison.of_saves ? "debug_compare_result" : "compare_result") + options.suffix;
  const report::FreeName name = options.stamp.empty()
                                    ? report::FreeStamp(directory, prefix, kExtensions)
                                    : report::FreeName{options.stamp, {}};
  const std::string& stem = name.text;
  std::vector<std::string> paths;
  for (const ReportFormat format : options.formats) {
    paths.push_back(
        JoinPath(directory, fmt::format("{}_{}{}", prefix, stem, InfoOf(format).extension)));
  }
  const size_t reports = paths.size();
  if (options.write_advice) {
    paths.push_back(JoinPath(directory, fmt::format("advisor{}_{}.txt", options.suffix, stem)));
  }
  std::vector<Status> statuses(paths.size());
  RunWithThreads(options.threads, [&] {
    ParallelFor(paths.size(), [&](size_t k) {
      statuses[k] = k < reports
                        ? WriteFormat(comparison, options.formats[k], options.newest_columns, paths[k])
                        : WriteFileAtomically(paths[k], report::AdviceText(comparison),
                                              /*durable=*/false);
    });
  });
  for (Status& status : statuses) PL_TRY(std::move(status));
  if (!comparison.data_mapping.empty()) {
    paths.push_back(JoinPath(directory, fmt::format("data_mapping_{}.yaml", stem)));
    PL_TRY(WriteFileAtomically(paths.back(), match::DataMappingYaml(comparison.data_mapping),
                               /*durable=*/false));
  }
  for (size_t k = 0; k < paths.size(); ++k) {
    const bool in_parts =
        k < reports && options.formats[k] == ReportFormat::kCsv && options.newest_columns;
    if (!in_parts) {
      comparison.files.push_back(std::move(paths[k]));
      continue;
    }
    for (std::string& part : report::NewestCsvPaths(comparison, paths[k])) {
      comparison.files.push_back(std::move(part));
    }
  }
  return {};
}

}  // namespace plumbline

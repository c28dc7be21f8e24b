#include "arrays/compare_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "arrays/compare_arrays.h"
#include "base/file/file.h"
#include "base/process/log.h"
#include "base/process/parallel.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/json/json_feed.h"
#include "kernels/scaled_squares.h"
#include "load/checkpoint.h"
#include "match/expand.h"
#include "measure/array_verdict.h"
#include "measure/compared_row.h"
#include "measure/tensor_metrics.h"
#include "measure/verdict.h"
#include "report/certainty.h"
#include "report/result_names.h"

namespace plumbline {

namespace {

using Names = std::vector<std::string>;
using NameSet = std::unordered_set<std::string_view>;

// Put around modules by DDP, torch.compile, FSDP and activation checkpointing.
constexpr std::array<std::string_view, 4> kWrappers = {
    "module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};

NameSet SetOf(const Names& names) { return {names.begin(), names.end()}; }

size_t CommonCount(const Names& names, const NameSet& others) {
  size_t common = 0;
  for (const std::string& name : names) common += others.contains(name) ? 1 : 0;
  return common;
}

std::string WithoutSegment(const std::string& name, std::string_view segment) {
  std::string out;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part != segment) {
      if (!out.empty()) out += '.';
      out += part;
    }
    begin = end + 1;
  }
  return out;
}

// Leaves `segment` out of one side's names if more of them are found on the other side then.
bool DropWrapper(std::string_view segment, Names& names, const Names& other) {
  Names shorter;
  for (const std::string& name : names) shorter.push_back(WithoutSegment(name, segment));
  if (shorter == names || SetOf(shorter).size() != shorter.size()) return false;
  const NameSet others = SetOf(other);
  if (CommonCount(shorter, others) <= CommonCount(names, others)) return false;
  names = std::move(shorter);
  return true;
}

// The beginning, up to a dot, without which most names are found on the other side; and how many.
std::pair<std::string, size_t> BestPrefix(const Names& names, const NameSet& others) {
  std::map<std::string, size_t> found;
  for (const std::string& name : names) {
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (others.contains(std::string_view(name).substr(dot + 1))) ++found[name.substr(0, dot + 1)];
    }
  }
  std::pair<std::string, size_t> best;
  for (const auto& [prefix, count] : found) {
    if (count > best.second) best = {prefix, count};
  }
  return best;
}

std::string DropPrefix(Names& names, const Names& other) {
  const NameSet others = SetOf(other);
  const auto [prefix, count] = BestPrefix(names, others);
  if (count <= CommonCount(names, others)) return "";
  Names shorter = names;
  for (std::string& name : shorter) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  if (SetOf(shorter).size() != shorter.size()) return "";
  names = std::move(shorter);
  return prefix;
}

}  // namespace

AlignedNames AlignNames(std::vector<std::string> target, std::vector<std::string> golden) {
  AlignedNames aligned{std::move(target), std::move(golden), {}};
  const auto note = [&](std::string_view text, std::string_view side) {
    aligned.notes.push_back(fmt::format("\"{}\" in names of the {} is left out", text, side));
  };
  for (const std::string_view wrapper : kWrappers) {
    if (DropWrapper(wrapper, aligned.target, aligned.golden)) note(wrapper, "target");
    if (DropWrapper(wrapper, aligned.golden, aligned.target)) note(wrapper, "golden");
  }
  const std::string of_target = DropPrefix(aligned.target, aligned.golden);
  if (!of_target.empty()) note(of_target, "target");
  const std::string of_golden = DropPrefix(aligned.golden, aligned.target);
  if (!of_golden.empty()) note(of_golden, "golden");
  return aligned;
}

namespace {

using torch_pt::PlainValue;

// As the rule for arrays has it: a few roundings are no difference.
constexpr double kNoise = 8 * std::numeric_limits<double>::epsilon() / 2;

bool IsInteger(const PlainValue& value) {
  return std::holds_alternative<bool>(value) || std::holds_alternative<int64_t>(value);
}

int64_t IntegerOf(const PlainValue& value) {
  const bool* truth = std::get_if<bool>(&value);
  return truth != nullptr ? static_cast<int64_t>(*truth) : std::get<int64_t>(value);
}

std::optional<double> NumberOf(const PlainValue& value) {
  if (IsInteger(value)) return static_cast<double>(IntegerOf(value));
  const auto* number = std::get_if<double>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

bool Agree(const PlainValue& target, const PlainValue& golden) {
  if (IsInteger(target) && IsInteger(golden)) return IntegerOf(target) == IntegerOf(golden);
  const std::optional<double> t = NumberOf(target), g = NumberOf(golden);
  if (!t || !g) return target == golden;
  if (*t == *g || (std::isnan(*t) && std::isnan(*g))) return true;
  return std::isfinite(*t) && std::isfinite(*g) &&
         std::abs(*t - *g) <= kNoise * std::max(std::abs(*t), std::abs(*g));
}

std::string OtherText(const ComparedValues& values) {
  if (values.target_other == 0 && values.golden_other == 0) return "";
  if (values.target_other == values.golden_other) {
    return fmt::format("{} not compared", CountText(values.target_other, "other value"));
  }
  return fmt::format("{} and {} of the golden not compared",
                     CountText(values.target_other, "other value"), values.golden_other);
}

}  // namespace

ComparedValues CompareValues(const load::Checkpoint& target, const load::Checkpoint& golden) {
  ComparedValues compared;
  compared.target_other = target.left_out();
  compared.golden_other = golden.left_out();
  auto t = target.values().begin();
  auto g = golden.values().begin();
  while (t != target.values().end() && g != golden.values().end()) {
    const int order = t->name.compare(g->name);
    if (order == 0) {
      ++compared.common;
      if (!Agree(t->value, g->value)) compared.differing.push_back({t->name, t->value, g->value});
    }
    if (order <= 0) ++t;
    if (order >= 0) ++g;
  }
  compared.target_only = target.values().size() - compared.common;
  compared.golden_only = golden.values().size() - compared.common;
  return compared;
}

std::string PlainText(const PlainValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "None";
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return PythonFloat(*number);
  return fmt::format("'{}'", std::get<std::string>(value));
}

std::string ValuesText(const ComparedValues& values) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const std::string common = CountText(values.common, "plain value");
  if (!values.differing.empty()) {
    add(fmt::format("{} of {} {}", values.differing.size(), common,
                    values.differing.size() == 1 ? "differs" : "differ"));
  } else if (values.common > 0) {
    add(fmt::format("{} equal", common));
  }
  for (const auto& [count, side] :
       {std::pair(values.target_only, "target"), std::pair(values.golden_only, "golden")}) {
    if (count == 0) continue;
    add(fmt::format("{} only in the {} not compared", CountText(count, "plain value"), side));
  }
  if (const std::string other = OtherText(values); !other.empty()) add(other);
  return text;
}

namespace {

using load::Checkpoint;
using load::CheckpointTensor;
using load::WholeTensor;

struct Pair {
  const CheckpointTensor* target = nullptr;
  const CheckpointTensor* golden = nullptr;
};

// Both sides are in order of name.
std::vector<Pair> PairByName(const std::vector<CheckpointTensor>& target,
                             const std::vector<CheckpointTensor>& golden) {
  std::vector<Pair> pairs;
  size_t t = 0, g = 0;
  while (t < target.size() || g < golden.size()) {
    const int order = t == target.size()   ? 1
                      : g == golden.size() ? -1
                                           : target[t].name.compare(golden[g].name);
    Pair& pair = pairs.emplace_back();
    if (order <= 0) pair.target = &target[t++];
    if (order >= 0) pair.golden = &golden[g++];
  }
  return pairs;
}

// One pair of tensors -> one row.
class PairMeasure {
 public:
  explicit PairMeasure(ComparedParameter& row) : row_(row) {}

  void Run(const Pair& pair) {
    Describe(pair);
    if (row_.presence != Presence::kBoth) return;
    if (!Readable(*pair.target, "target") || !Readable(*pair.golden, "golden")) return;
    if (pair.target->sizes != pair.golden->sizes) {
      row_.reason = "shape-differs";
      row_.metrics = measure::AbsentMetrics(Absent::kShapeMismatch);
      row_.l2 = Absent::kShapeMismatch;
      return;
    }
    const Result<WholeTensor> target = WholeTensor::Of(*pair.target);
    if (!target) return Unreadable("target", target.error().message());
    const Result<WholeTensor> golden = WholeTensor::Of(*pair.golden);
    if (!golden) return Unreadable("golden", golden.error().message());
    Measure(target->view(), golden->view());
  }

 private:
  void Describe(const Pair& pair) {
    row_.name = pair.target != nullptr ? pair.target->name : pair.golden->name;
    if (pair.target != nullptr) {
      row_.target_dtype = pair.target->dtype;
      row_.target_sizes = pair.target->sizes;
    }
    if (pair.golden != nullptr) {
      row_.golden_dtype = pair.golden->dtype;
      row_.golden_sizes = pair.golden->sizes;
    }
    row_.error = std::nan("");
    if (pair.target != nullptr && pair.golden != nullptr) return;
    const bool in_target = pair.target != nullptr;
    row_.presence = in_target ? Presence::kTargetOnly : Presence::kGoldenOnly;
    row_.reason = in_target ? "only-target" : "only-golden";
    row_.metrics = measure::AbsentMetrics(Absent::kNoCounterpart);
    row_.l2 = Absent::kNoCounterpart;
  }

  void Unreadable(std::string_view side, const std::string& why) {
    row_.reason = "unreadable";
    row_.detail = fmt::format("{}: {}", side, why);
    row_.metrics = measure::AbsentMetrics(Absent::kUnreadable);
    row_.l2 = Absent::kUnreadable;
  }

  bool Readable(const CheckpointTensor& tensor, std::string_view side) {
    if (!tensor.problem.empty()) Unreadable(side, tensor.problem);
    return tensor.problem.empty();
  }

  void Judge(const measure::ArrayVerdict& verdict) {
    row_.verdict = verdict.verdict;
    row_.reason = verdict.reason;
    row_.error = verdict.error;
    row_.expected = verdict.expected;
  }

  void Measure(const TensorView& target, const TensorView& golden) {
    if (target.element_count() == 0) {
      row_.metrics = measure::AbsentMetrics(Absent::kEmpty);
      row_.l2 = 0.0;
      row_.reason = "empty";
      return;
    }
    if (measure::HaveEqualBytes(target, golden)) {
      row_.metrics = measure::MetricsOfEqual(target);
      row_.l2 = 0.0;
      Judge(measure::JudgeEqualArrays(target));
      row_.has_nonfinite = row_.reason == "nonfinite-both";
      return;
    }
    const Result<kernels::Pairwise> sums = measure::SumPairs(target, golden);
    if (!sums) return Unreadable("both", sums.error().message());
    row_.metrics = measure::MetricsFromSums(*sums, target.sizes.size());
    row_.first_mismatch = sums->first_mismatch;
    row_.l2 = kernels::DifferenceNorm(*sums);
    row_.has_nonfinite = sums->nonfinite_count > 0;
    if (sums->nonfinite_mismatch > 0) row_.l2 = Absent::kNonFinite;
    Judge(measure::JudgeElements(*sums, target, golden));
  }

  ComparedParameter& row_;
};

void CountRows(CheckpointComparison& comparison) {
  for (const ComparedParameter& row : comparison.parameters) {
    ++comparison.counts[static_cast<size_t>(row.verdict)];
    comparison.target_only += row.presence == Presence::kTargetOnly ? 1 : 0;
    comparison.golden_only += row.presence == Presence::kGoldenOnly ? 1 : 0;
    comparison.trivial += row.agrees_trivially() ? 1 : 0;
  }
}

std::string StemOf(const std::string& path) {
  const std::string_view name = BaseName(path);
  return std::string(name.substr(0, name.rfind('.')));
}

std::vector<std::string> NamesOf(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

void CopyWarnings(const Checkpoint& checkpoint, const std::string& path,
                  std::vector<std::string>& out) {
  for (const std::string& warning : checkpoint.warnings()) {
    out.push_back(fmt::format("{}: {}", path, warning));
  }
}

uint64_t GoodOf(const CheckpointComparison& comparison) {
  return comparison.counts[static_cast<size_t>(Verdict::kSame)] +
         comparison.counts[static_cast<size_t>(Verdict::kWithinNoise)];
}

}  // namespace

bool CheckpointComparison::is_good() const {
  return GoodOf(*this) > 0 && GoodOf(*this) + trivial == parameters.size() &&
         values.differing.empty();
}

Result<CheckpointComparison> CompareCheckpoints(const std::string& target_path,
                                                const std::string& golden_path,
                                                const CheckpointOptions& options) {
  std::optional<Result<Checkpoint>> opened_target, opened_golden;
  RunWithThreads(options.threads, [&] {
    RunBoth([&] { opened_target = Checkpoint::Open(target_path); },
            [&] { opened_golden = Checkpoint::Open(golden_path); });
  });
  PL_TRY_ASSIGN(Checkpoint target, std::move(*opened_target));
  PL_TRY_ASSIGN(Checkpoint golden, std::move(*opened_golden));
  CheckpointComparison comparison;
  comparison.target_path = target_path;
  comparison.golden_path = golden_path;
  comparison.of_arrays = target.is_array() && golden.is_array();
  CopyWarnings(target, target_path, comparison.warnings);
  CopyWarnings(golden, golden_path, comparison.warnings);
  comparison.values = CompareValues(target, golden);
  // An array has the name of its file; two are a pair whatever these are.
  const std::string name = comparison.of_arrays ? StemOf(target_path) : "";
  if (target.is_array()) target.Rename({name.empty() ? StemOf(target_path) : name});
  if (golden.is_array()) golden.Rename({name.empty() ? StemOf(golden_path) : name});
  AlignedNames names = AlignNames(NamesOf(target), NamesOf(golden));
  target.Rename(names.target);
  golden.Rename(names.golden);
  std::ranges::move(names.notes, std::back_inserter(comparison.warnings));
  const std::vector<Pair> pairs = PairByName(target.tensors(), golden.tensors());
  comparison.parameters.resize(pairs.size());
  std::atomic<size_t> done{0};
  std::mutex progress;
  RunWithThreads(options.threads, [&] {
    ParallelFor(pairs.size(), [&](size_t i) {
      PairMeasure(comparison.parameters[i]).Run(pairs[i]);
      const size_t ready = done.fetch_add(1) + 1;
      if (!options.on_progress) return;
      const std::lock_guard lock(progress);
      options.on_progress(static_cast<double>(ready) / static_cast<double>(pairs.size()));
    });
  });
  CountRows(comparison);
  return comparison;
}

Result<bool> FailsOn(const CheckpointComparison& comparison,
                     const std::vector<std::string>& conditions) {
  const auto count = [&](Verdict verdict) {
    return comparison.counts[static_cast<size_t>(verdict)];
  };
  report::MetConditions met;
  met.broken = count(Verdict::kBroken) > 0;
  met.suspicious = met.broken || count(Verdict::kSuspicious) > 0;
  met.wrong = met.suspicious;
  met.unmatched = count(Verdict::kNotComparable) > comparison.trivial || GoodOf(comparison) == 0;
  met.unjudged = met.unmatched;
  met.differs = !comparison.is_good();
  return report::MeetsAny(met, conditions);
}

namespace {

constexpr const char* kStem = "ckpt_similarity";
constexpr const char* kFileName = "ckpt_similarity.json";

// Where the result goes; nothing is written over. In a directory a second result gets a name of its
// own, as those of runs do; a file that the user names must be new.
Result<report::FreeName> OutputPath(const std::string& output) {
  const bool is_file = output.ends_with(".json");
  std::string path = is_file ? output : JoinPath(output, kFileName);
  if (KindOf(path) == PathKind::kMissing) return report::FreeName{std::move(path), std::nullopt};
  if (!is_file) return report::FreePath(output, kStem, ".json");
  return Error(ErrorCode::kIo, fmt::format("{}: exists already (expected a new file, or a "
                                           "directory). Choose another place with -o",
                                           path));
}

}  // namespace

Result<CheckpointReport> CompareCheckpointFiles(const std::string& target,
                                                const std::string& golden,
                                                const CompareOptions& options) {
  const std::string& output = options.output_dir;
  const auto wants = [&](ReportFormat format) {
    return !output.empty() && std::ranges::find(options.formats, format) != options.formats.end();
  };
  const bool one_file = KindOf(target) == PathKind::kFile && target.ends_with(".npy");
  std::optional<report::FreeName> name;  // held until the file is there
  if (!one_file && wants(ReportFormat::kJson)) {
    PL_TRY_ASSIGN(report::FreeName free, OutputPath(output));
    name.emplace(std::move(free));
  }
  CheckpointReport report;
  PL_TRY_ASSIGN(report.comparison, CompareCheckpoints(target, golden,
                                                      {.threads = options.threads,
                                                       .on_progress = options.on_progress}));
  const bool has_workbooks = !output.ends_with(".json") && wants(ReportFormat::kXlsx) &&
                             IsArrayTree(target) && IsArrayTree(golden);
  if (has_workbooks) {
    Result<ArrayTreeReport> written = CompareArrayTrees(target, golden, output, options.threads);
    // Nothing in common is no workbook; the rows say so.
    if (!written && written.error().code() != ErrorCode::kNotFound) return written.error();
    if (written) report.files = std::move(written->files);
  }
  // The metrics of one pair are in the answer.
  if (!name || report.comparison.of_arrays) return report;
  PL_TRY(MakeDirectories(std::string(DirectoryOf(name->text))));
  PL_TRY(WriteFileAtomically(name->text, SimilarityJson(report.comparison), /*durable=*/false));
  report.files.push_back(name->text);
  return report;
}

// What a comparison of checkpoints says: to people, to scripts, and as upstream's JSON file.

namespace {

constexpr size_t kShownRows = 10;

uint64_t CountOf(const CheckpointComparison& comparison, Verdict verdict) {
  return comparison.counts[static_cast<size_t>(verdict)];
}

using match::ShapeText;

std::string MetricText(const Metric& metric) {
  if (const auto* number = std::get_if<double>(&metric)) return fmt::format("{:.6g}", *number);
  return std::string(AbsentName(std::get<Absent>(metric)));
}

std::string NumberJson(const Metric& metric) {
  const auto* number = std::get_if<double>(&metric);
  return number != nullptr && std::isfinite(*number) ? PythonFloat(*number) : "null";
}

bool IsWrong(const ComparedParameter& row) {
  return measure::IsBad(row.verdict) ||
         (row.verdict == Verdict::kNotComparable && !row.agrees_trivially());
}

int RankOf(Verdict verdict) {
  return verdict == Verdict::kBroken ? 0 : verdict == Verdict::kSuspicious ? 1 : 2;
}

// Wrong rows, the worst first: by verdict, then by error; the order of names decides ties.
std::vector<const ComparedParameter*> WorstFirst(const CheckpointComparison& comparison) {
  std::vector<const ComparedParameter*> rows;
  for (const ComparedParameter& row : comparison.parameters) {
    if (IsWrong(row)) rows.push_back(&row);
  }
  const auto size = [](const ComparedParameter& row) {
    return std::isnan(row.error) ? INFINITY : row.error;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    const int left = RankOf(a->verdict), right = RankOf(b->verdict);
    return left != right ? left < right : size(*a) > size(*b);
  });
  return rows;
}

std::string Evidence(const ComparedParameter& row) {
  if (row.presence == Presence::kTargetOnly) return "only in the target";
  if (row.presence == Presence::kGoldenOnly) return "only in the golden";
  if (row.reason == "shape-differs") {
    return fmt::format("shape {}, expected {}", ShapeText(row.target_sizes),
                       ShapeText(row.golden_sizes));
  }
  if (!row.detail.empty()) return row.detail;
  if (std::isnan(row.error)) return row.reason;
  std::string text = fmt::format("relative error {:.3g}", row.error);
  if (row.expected > 0) text += fmt::format(", rounding explains {:.3g}", row.expected);
  text += fmt::format("; {} of {} elements differ, max absolute {}", row.metrics.mismatch_count,
                      row.metrics.element_count, MetricText(row.metrics.max_abs_error));
  if (!row.reason.empty() && row.reason != "exceeds-rounding") text += "; " + row.reason;
  return text;
}

std::string Rest(const CheckpointComparison& comparison) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const uint64_t within = CountOf(comparison, Verdict::kWithinNoise);
  if (CountOf(comparison, Verdict::kSame) > 0) {
    add(fmt::format("{} equal", CountOf(comparison, Verdict::kSame)));
  }
  if (within > 0) add(fmt::format("{} within rounding", within));
  if (comparison.trivial > 0) {
    add(fmt::format("{} all zeros or empty on both sides", comparison.trivial));
  }
  if (comparison.target_only > 0) {
    add(fmt::format("{} only in the target", comparison.target_only));
  }
  if (comparison.golden_only > 0) {
    add(fmt::format("{} only in the golden", comparison.golden_only));
  }
  return text;
}

std::string ArrayAnswer(const CheckpointComparison& comparison) {
  const ComparedParameter& row = comparison.parameters.front();
  std::string text = fmt::format("{}: ", VerdictName(row.verdict));
  if (row.verdict == Verdict::kSame) return text + "the arrays are equal\n";
  return text + Evidence(row) + "\n";
}

// Of a name's two values, cut where they are long.
std::string SidesText(const DifferingValue& value) {
  constexpr size_t kMostBytes = 100;
  const auto side = [](const torch_pt::PlainValue& plain) {
    const std::string text = OneLine(PlainText(plain));
    const std::string_view shown = Utf8Beginning(text, kMostBytes);
    return std::string(shown) + (shown.size() < text.size() ? "..." : "");
  };
  return fmt::format("{} (golden {})", side(value.target), side(value.golden));
}

std::string ParametersAnswer(const CheckpointComparison& comparison,
                             const std::vector<const ComparedParameter*>& wrong) {
  const uint64_t all = comparison.parameters.size();
  const std::string rest = Rest(comparison);
  const uint64_t differing =
      CountOf(comparison, Verdict::kBroken) + CountOf(comparison, Verdict::kSuspicious);
  if (differing > 0) {
    return fmt::format("differs: {} of {}, most {} ({}){}", differing, CountText(all, "parameter"),
                       OneLine(wrong.front()->name), Evidence(*wrong.front()),
                       rest.empty() ? "" : "; " + rest);
  }
  if (!wrong.empty()) {
    return fmt::format("not judged completely: {} of {}, first {} ({}){}", wrong.size(),
                       CountText(all, "parameter"), OneLine(wrong.front()->name),
                       Evidence(*wrong.front()), rest.empty() ? "" : "; " + rest);
  }
  const std::string parameters = CountText(all, "parameter");
  if (comparison.trivial == all) return fmt::format("not judged: {}, {}", parameters, rest);
  const std::vector<DifferingValue>& values = comparison.values.differing;
  if (values.empty()) return fmt::format("no difference: {} ({})", parameters, rest);
  return fmt::format("differs: {} is {}; {} ({})", OneLine(values.front().name),
                     SidesText(values.front()), parameters, rest);
}

std::string Answer(const CheckpointComparison& comparison,
                   const std::vector<const ComparedParameter*>& wrong) {
  if (comparison.of_arrays) return ArrayAnswer(comparison);
  const std::string values = ValuesText(comparison.values);
  return ParametersAnswer(comparison, wrong) + (values.empty() ? "" : "; " + values) + "\n";
}

void AddMetrics(const ComparedParameter& row, std::string& text) {
  const TensorMetrics& m = row.metrics;
  text += fmt::format("  dtype: {}, {}; shape: {}\n", InfoOf(row.target_dtype).name,
                      InfoOf(row.golden_dtype).name, ShapeText(row.target_sizes));
  text +=
      fmt::format("  cosine {}, max absolute {}, max relative {}, relative L2 {}, L2 {}\n",
                  MetricText(m.cosine), MetricText(m.max_abs_error),
                  MetricText(m.max_relative_error), MetricText(m.relative_l2), MetricText(row.l2));
  text += fmt::format("  within 0.001: {}, within 0.005: {}, max ULP {}\n",
                      MetricText(m.below_thousandth_ratio),
                      MetricText(m.below_five_thousandths_ratio), MetricText(m.max_ulp));
  if (m.mismatch_count > 0) {
    text += fmt::format("  {} of {} elements differ, the first one at flat index {}\n",
                        m.mismatch_count, m.element_count, row.first_mismatch);
  }
  if (row.presence == Presence::kBoth && row.reason != "shape-differs") {
    const std::string accuracy = row.has_nonfinite ? "No" : measure::AccuracyText(m);
    text += fmt::format("  accuracy reached or not: {}\n", accuracy);
  }
}

void AddSide(const ComparedParameter& row, std::string_view key, std::string& out) {
  const std::string target = key == "numel"
                                 ? fmt::format("{}", ElementCount(row.target_sizes).value_or(0))
                                 : ShapeText(row.target_sizes);
  const std::string golden = key == "numel"
                                 ? fmt::format("{}", ElementCount(row.golden_sizes).value_or(0))
                                 : ShapeText(row.golden_sizes);
  const bool both = row.presence == Presence::kBoth && row.target_sizes != row.golden_sizes;
  const std::string& one = row.presence == Presence::kGoldenOnly ? golden : target;
  out += fmt::format(",\n        \"{}\": {}", key,
                     both ? fmt::format("[{}, {}]", target, golden) : one);
}

// Upstream's value for two zero vectors is 1.
Metric CosineOf(const ComparedParameter& row) {
  if (row.reason == "zero-both") return 1.0;
  if (row.verdict == Verdict::kSame) return 1.0;
  return row.metrics.cosine;
}

void AddSimilarity(const ComparedParameter& row, std::string& out) {
  out += "    ";
  json::AppendString(row.name, out);
  out += ": {\n";
  if (row.presence == Presence::kBoth) {
    out += fmt::format("        \"l2\": {},\n        \"cos\": {}", NumberJson(row.l2),
                       NumberJson(CosineOf(row)));
  } else {
    out += fmt::format("        \"only_in\": {}", row.presence == Presence::kTargetOnly ? 1 : 2);
  }
  AddSide(row, "numel", out);
  AddSide(row, "shape", out);
  out += fmt::format(",\n        \"verdict\": \"{}\",\n        \"reason\": \"{}\"",
                     VerdictName(row.verdict), row.reason);
  if (row.presence == Presence::kBoth) {
    out += fmt::format(",\n        \"max_abs\": {}", NumberJson(row.metrics.max_abs_error));
  }
  out += "\n    }";
}

void AddValues(const std::vector<DifferingValue>& values, std::string& text) {
  for (size_t i = 0; i < std::min(values.size(), kShownRows); ++i) {
    text += fmt::format("  value differs: {}: {}\n", OneLine(values[i].name), SidesText(values[i]));
  }
  if (values.size() > kShownRows) {
    text += fmt::format("  and {} values more\n", values.size() - kShownRows);
  }
}

void AddPlain(const torch_pt::PlainValue& value, std::string& out) {
  if (std::holds_alternative<std::monostate>(value)) {
    out += "null";
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    out += *truth ? "true" : "false";
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    json::AppendString(*text, out);
  } else {
    const auto* number = std::get_if<double>(&value);
    const bool is_finite = number == nullptr || std::isfinite(*number);
    out += is_finite ? PlainText(value) : fmt::format("\"{}\"", PlainText(value));
  }
}

std::string ValuesJson(const std::vector<DifferingValue>& values) {
  std::string out = "{";
  for (const DifferingValue& value : values) {
    if (out.size() > 1) out += ", ";
    json::AppendString(value.name, out);
    out += ": [";
    AddPlain(value.target, out);
    out += ", ";
    AddPlain(value.golden, out);
    out += ']';
  }
  return out + "}";
}

}  // namespace

std::string CheckpointSummary(const CheckpointComparison& comparison) {
  const std::vector<const ComparedParameter*> wrong = WorstFirst(comparison);
  std::string text = Answer(comparison, wrong);
  if (comparison.of_arrays) {
    AddMetrics(comparison.parameters.front(), text);
  } else {
    for (size_t i = 0; i < std::min(wrong.size(), kShownRows); ++i) {
      text += fmt::format("  {}: {}: {}\n", VerdictName(wrong[i]->verdict), OneLine(wrong[i]->name),
                          OneLine(Evidence(*wrong[i])));
    }
    if (wrong.size() > kShownRows)
      text += fmt::format("  and {} more\n", wrong.size() - kShownRows);
    AddValues(comparison.values.differing, text);
  }
  for (const std::string& warning : comparison.warnings) {
    text += fmt::format("  warning: {}\n", OneLine(warning));
  }
  return text;
}

Result<std::string> CheckpointJson(const CheckpointComparison& comparison) {
  json::Document out;
  out.Open('{');
  std::string answer = CheckpointSummary(comparison);
  out.Member("answer", answer.substr(0, answer.find('\n')));
  out.Member("target", comparison.target_path);
  out.Member("golden", comparison.golden_path);
  out.Truth("good", comparison.is_good());
  out.Key("counts");
  out.Open('{');
  out.Number("parameters", comparison.parameters.size());
  for (size_t i = 0; i < kVerdictCount; ++i) {
    out.Number(VerdictName(static_cast<Verdict>(i)), comparison.counts[i]);
  }
  out.Number("only in target", comparison.target_only);
  out.Number("only in golden", comparison.golden_only);
  out.Number("zeros or empty on both sides", comparison.trivial);
  const ComparedValues& values = comparison.values;
  out.Number("plain values", values.common);
  out.Number("differing values", values.differing.size());
  out.Number("values only in target", values.target_only);
  out.Number("values only in golden", values.golden_only);
  out.Number("other values in target", values.target_other);
  out.Number("other values in golden", values.golden_other);
  out.Close('}');
  out.Texts("warnings", comparison.warnings);
  out.Key("differing values");
  out.Raw(ValuesJson(values.differing));
  out.Key("parameters");
  out.Raw(SimilarityJson(comparison));
  out.Close('}');
  return out.Finish();
}

std::string SimilarityJson(const CheckpointComparison& comparison) {
  std::string out = "{";
  bool first = true;
  for (const ComparedParameter& row : comparison.parameters) {
    out += first ? "\n" : ",\n";
    first = false;
    AddSimilarity(row, out);
  }
  return out + (first ? "}\n" : "\n}\n");
}

}  // namespace plumbline

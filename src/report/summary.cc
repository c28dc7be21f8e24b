// The answer in a few lines of text, and the names of the public enumerations.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/log.h"
#include "measure/compared_row.h"
#include "plumbline/compare.h"
#include "report/certainty.h"
#include "report/findings.h"
#include "verdict/meeting_points.h"

namespace plumbline {
namespace {

constexpr std::string_view kNoiseHint =
    "  a third run that is right tells what the narrower type explains: --noise RUN\n";

// Rows that nobody can judge, by reason: "empty 3 (no elements), zero-both 12 (equal: ...)".
std::string NotComparableText(const Comparison& comparison) {
  std::map<std::string_view, uint64_t> by_reason;
  for (const ComparedRow& row : comparison.rows) {
    if (row.verdict == Verdict::kNotComparable) ++by_reason[row.reason];
  }
  std::string text;
  for (const auto& entry : by_reason) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", entry.first, entry.second);
    const std::string_view words = report::ReasonText(entry.first);
    if (!words.empty()) text += fmt::format(" ({})", words);
  }
  return text;
}

// "3 losses of ..." or "1 loss of ...".
void AppendPart(std::string& text, uint64_t count, std::string_view one, std::string_view many,
                std::string_view rest = "") {
  if (count == 0) return;
  if (!text.empty()) text += ", ";
  text += fmt::format("{} {}{}", count, count == 1 ? one : many, rest);
}

uint64_t RowsOf(const Comparison& comparison, Verdict verdict) {
  return comparison.counts.rows[static_cast<size_t>(verdict)];
}

// Rows that are wrong although no call is named for them: then nothing is said to be right.
uint64_t UnexplainedRows(const Comparison& comparison) {
  if (comparison.first_wrong_call) return 0;
  return RowsOf(comparison, Verdict::kSuspicious) + RowsOf(comparison, Verdict::kBroken);
}

// Values of paired calls that are NaN on both sides; they count among the missing values.
uint64_t RowsOfNan(const Comparison& comparison) {
  return static_cast<uint64_t>(std::ranges::count_if(comparison.rows, [&](const ComparedRow& row) {
    return comparison.calls[row.call].paired() && measure::IsNanOnBoth(row);
  }));
}

// Values of paired calls that follow from a flip; they count among the missing values.
uint64_t RowsBehindFlips(const Comparison& comparison) {
  return static_cast<uint64_t>(std::ranges::count_if(comparison.rows, [&](const ComparedRow& row) {
    return comparison.calls[row.call].paired() && row.reason == "follows-flip";
  }));
}

// "routing flip: 1 of 4096 rows in Torch.topk.0.forward": the first result that noise alone flips,
// which a call made of it; empty where there is none.
std::string FlipText(const Comparison& comparison) {
  const auto is_flip = [&](const ComparedRow& row) {
    return row.reason == "flip" && !measure::IsInput(row);
  };
  const auto first = std::ranges::find_if(comparison.rows, is_flip);
  if (first == comparison.rows.end()) return {};
  const auto note = std::ranges::find(first->notes, "flip", &Note::code);
  const auto others = std::ranges::count_if(comparison.rows, is_flip) - 1;
  const Text& name = comparison.calls[first->call].name();
  std::string text =
      fmt::format("{} in {}", note == first->notes.end() ? "flip" : note->text, name);
  if (others > 0) text += fmt::format(" and {} more", others);
  return text;
}

// What is said first where the sides cut the batch into other parts.
std::string PartsText(const Comparison& comparison) {
  const auto entry = std::ranges::find_if(comparison.calls, [](const ComparedCall& call) {
    return call.unmatched_reason == "other-batch" && !call.unmatched_detail.empty();
  });
  if (entry == comparison.calls.end()) return {};
  return fmt::format("the batch is cut otherwise from {} on ({})", OneLine(entry->name()),
                     OneLine(entry->unmatched_detail));
}

// Losses of a side that leave something unjudged. What runs inside a compiled region is the calls
// that the other side has alone; where what leaves them agrees (`ways` of them), nothing is
// missing.
uint64_t DropsThatCount(const RunLoss& loss, uint64_t ways) {
  return ways > 0 ? loss.recorder_drops - std::min(loss.recorder_drops, loss.compiled_regions)
                  : loss.recorder_drops;
}

// Of these, beside the early end of the recording.
uint64_t OtherDrops(const RunLoss& loss, uint64_t ways) {
  const uint64_t drops = DropsThatCount(loss, ways);
  return drops - (loss.ended_early && drops > 0 ? 1 : 0);
}

// The last call that one side recorded.
std::string LastCallOf(const Comparison& comparison, bool of_target) {
  for (auto call = comparison.calls.rbegin(); call != comparison.calls.rend(); ++call) {
    const Text& name = measure::NameOn(*call, of_target);
    if (!name.empty()) return OneLine(name);
  }
  return "no call";
}

// What is said where a process was killed while it was recorded: what should follow is on no side,
// or on one.
std::string EarlyEndText(const Comparison& comparison) {
  const bool of_target = comparison.target_loss.ended_early;
  const bool of_golden = comparison.golden_loss.ended_early;
  if (!of_target && !of_golden) return {};
  const std::string target = LastCallOf(comparison, true), golden = LastCallOf(comparison, false);
  if (of_target && of_golden && target == golden) {
    return fmt::format("both recordings end early, behind {}", target);
  }
  std::string text;
  if (of_target) text = fmt::format("the target's recording ends early, behind {}", target);
  if (of_target && of_golden) text += ", ";
  if (of_golden) text += fmt::format("the golden's recording ends early, behind {}", golden);
  return text;
}

std::string MissingText(const Comparison& comparison) {
  std::string text = PartsText(comparison);
  const std::string early = EarlyEndText(comparison);
  if (!text.empty() && !early.empty()) text += ", ";
  text += early;
  const RunLoss& target = comparison.target_loss;
  const RunLoss& golden = comparison.golden_loss;
  const verdict::EquivalentCalls ways = verdict::EquivalentCallsOf(comparison);
  AppendPart(text, comparison.counts.unmatched_target - ways.target, "target call", "target calls",
             " without counterpart");
  AppendPart(text, comparison.counts.unmatched_golden - ways.golden, "golden call", "golden calls",
             " without counterpart");
  AppendPart(text, comparison.counts.unreadable_files, "unreadable tensor file",
             "unreadable tensor files");
  AppendPart(text, target.truncated ? 1 : 0, "truncated target dump", "");
  AppendPart(text, golden.truncated ? 1 : 0, "truncated golden dump", "");
  const uint64_t missing = comparison.counts.missing_values;
  const uint64_t nan = std::min(missing, RowsOfNan(comparison));
  const uint64_t behind_flips = std::min(missing - nan, RowsBehindFlips(comparison));
  AppendPart(text, missing - nan - behind_flips, "value", "values",
             " without data or of another shape");
  if (behind_flips > 0) {
    if (!text.empty()) text += ", ";
    text += FlipText(comparison);
    AppendPart(text, behind_flips, "value follows from it", "values follow from it");
  }
  AppendPart(text, nan, "value is NaN on both sides", "values are NaN on both sides");
  AppendPart(text, comparison.counts.unknown_mappings, "line", "lines",
             " of the data mapping with values that neither side has");
  AppendPart(text, OtherDrops(target, ways.golden), "loss", "losses",
             " counted by the target's recorder");
  AppendPart(text, OtherDrops(golden, ways.target), "loss", "losses",
             " counted by the golden's recorder");
  AppendPart(text, UnexplainedRows(comparison), "row differs", "rows differ",
             " for which no call can be named");
  AppendPart(text, target.duplicate_names, "target entry", "target entries",
             " recorded more than once");
  AppendPart(text, golden.duplicate_names, "golden entry", "golden entries",
             " recorded more than once");
  AppendPart(text, target.unfinished ? 1 : 0, "unfinished target recording", "");
  AppendPart(text, golden.unfinished ? 1 : 0, "unfinished golden recording", "");
  return text;
}

// The first row that differs although no call is named for it, and how to settle it; empty where
// there is none.
std::string UnexplainedText(const Comparison& comparison) {
  if (UnexplainedRows(comparison) == 0) return {};
  const auto row = std::ranges::find_if(comparison.rows, [](const ComparedRow& each) {
    return measure::IsBad(each.verdict) && each.reason != "inherited" &&
           (each.target || each.golden);
  });
  if (row == comparison.rows.end()) return {};
  const bool has_elements = comparison.mode == CompareMode::kTensor;
  return fmt::format(
      "  the first of them: {} ({}){}\n", OneLine(row->item().name.view()), row->reason.view(),
      has_elements ? "" : "; record tensors of such calls to settle it (--next-config)");
}

// Whether any row says that two values agree; without one there is no good answer.
bool IsAnythingGood(const Comparison& comparison) {
  return RowsOf(comparison, Verdict::kSame) + RowsOf(comparison, Verdict::kWithinNoise) > 0;
}

// "narrowed: bfloat16 from ... on (218 calls); " and the rest, or the rest alone.
std::string OnPurpose(const Comparison& comparison, std::string rest) {
  const std::string narrowed = verdict::NarrowedText(comparison);
  if (narrowed.empty()) return rest + '\n';
  return fmt::format("narrowed: {}; {}\n{}", narrowed, rest, kNoiseHint);
}

// The answer where no call is named.
std::string UnnamedText(const Comparison& comparison, const std::string& missing) {
  const std::string ways = verdict::EquivalentCallsOf(comparison).text;
  if (comparison.is_complete()) {
    const std::string found = "no wrong call";
    const std::string flip = FlipText(comparison);
    return OnPurpose(comparison, ways.empty() ? found
                                              : fmt::format("same results by another way: {}; {}",
                                                            ways, found)) +
           (flip.empty() ? "" : fmt::format("  within noise: {}\n", flip));
  }
  // Where rows differ, `missing` says it, and nothing is called right.
  if (UnexplainedRows(comparison) > 0) {
    return OnPurpose(comparison, "not judged completely: " + missing) + UnexplainedText(comparison);
  }
  std::string text = OnPurpose(
      comparison, fmt::format("not judged completely: {}; the {} paired calls show no wrong one",
                              missing, comparison.counts.calls));
  if (!ways.empty()) text += fmt::format("  same results by another way: {}\n", ways);
  return text;
}

// The warnings of damaged files, which are said with the answer.
std::vector<std::string> DamageWarnings(const Comparison& comparison) {
  std::vector<std::string> warnings;
  for (const RunLoss* loss : {&comparison.target_loss, &comparison.golden_loss}) {
    for (const std::string& error : loss->side_files) {
      warnings.push_back(report::DamageWarning(error));
    }
  }
  return warnings;
}

std::string AnswerText(const Comparison& comparison) {
  const std::string missing = MissingText(comparison);
  if (!comparison.first_wrong_call) {
    if (comparison.rows.empty()) return "not judged: the dumps hold nothing to compare\n";
    if (comparison.counts.calls == 0)
      return fmt::format("not judged: no call pairs; {}\n", missing);
    if (!IsAnythingGood(comparison)) {
      return fmt::format("not judged: no row could be compared{}{}\n", missing.empty() ? "" : "; ",
                         missing);
    }
    return UnnamedText(comparison, missing);
  }
  const FirstWrongCall& answer = *comparison.first_wrong_call;
  std::string text = fmt::format("first wrong call: {}\n", OneLine(answer.name));
  text += report::FactLines(answer);
  if (!answer.stack_line.empty())
    text += fmt::format("  called at: {}\n", OneLine(answer.stack_line));
  if (!answer.module_path.empty()) {
    text += "  inside: ";
    for (size_t i = 0; i < answer.module_path.size(); ++i) {
      if (i > 0) text += " < ";
      text += OneLine(answer.module_path[i]);
    }
    text += '\n';
  }
  const std::string command = report::ExtractCommand(comparison);
  if (!command.empty()) text += fmt::format("  as a test: {}\n", OneLine(command));
  const std::string narrowed = verdict::NarrowedText(comparison);
  if (!narrowed.empty()) text += fmt::format("  narrowed: {}\n{}", narrowed, kNoiseHint);
  if (!missing.empty()) text += fmt::format("  not judged: {}\n", missing);
  return text;
}

}  // namespace

std::string report::DamageWarning(const std::string& error) {
  return error + ". Compared without it";
}

std::string_view CompareModeName(CompareMode mode) {
  switch (mode) {
    case CompareMode::kStatistics:
      return "statistics";
    case CompareMode::kDigest:
      return "md5";
    case CompareMode::kTensor:
      return "tensor";
  }
  return "";
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSame:
      return "same";
    case Verdict::kWithinNoise:
      return "within noise";
    case Verdict::kSuspicious:
      return "suspicious";
    case Verdict::kBroken:
      return "broken";
    case Verdict::kNotComparable:
      return "not comparable";
  }
  return "";
}

std::optional<Verdict> VerdictNamed(std::string_view name) {
  for (size_t i = 0; i < kVerdictCount; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    if (name == VerdictName(verdict)) return verdict;
  }
  return std::nullopt;
}

std::string_view AbsentName(Absent reason) {
  switch (reason) {
    case Absent::kEmpty:
      return "empty";
    case Absent::kScalar:
      return "scalar";
    case Absent::kDTypeUnsupported:
      return "dtype unsupported";
    case Absent::kShapeMismatch:
      return "shape mismatch";
    case Absent::kNoCounterpart:
      return "no counterpart";
    case Absent::kUnreadable:
      return "unreadable";
    case Absent::kZeroNorm:
      return "zero norm";
    case Absent::kNotRecorded:
      return "not recorded";
    case Absent::kNonFinite:
      return "non-finite";
  }
  return "";
}

bool Comparison::is_complete() const {
  const auto is_whole = [](const RunLoss& loss, uint64_t ways) {
    return !loss.truncated && DropsThatCount(loss, ways) == 0 && loss.duplicate_names == 0 &&
           !loss.unfinished;
  };
  const verdict::EquivalentCalls ways = verdict::EquivalentCallsOf(*this);
  return !rows.empty() && counts.unmatched_target <= ways.target &&
         counts.unmatched_golden <= ways.golden && counts.unreadable_files == 0 &&
         counts.missing_values == 0 && counts.unknown_mappings == 0 &&
         is_whole(target_loss, ways.golden) && is_whole(golden_loss, ways.target) &&
         UnexplainedRows(*this) == 0;
}

Result<bool> FailsOn(const Comparison& comparison, const std::vector<std::string>& conditions) {
  const CompareCounts& counts = comparison.counts;
  report::MetConditions met;
  met.wrong = comparison.first_wrong_call.has_value();
  met.unjudged = !comparison.is_complete() || !IsAnythingGood(comparison);
  met.unmatched = met.unjudged || counts.unmatched_target > 0 || counts.unmatched_golden > 0;
  const bool has_suspicious = RowsOf(comparison, Verdict::kSuspicious) > 0;
  // A call may be named of which no number could be measured: it has another form, or is missing.
  met.broken = RowsOf(comparison, Verdict::kBroken) > 0 || (met.wrong && !has_suspicious);
  met.suspicious = met.broken || has_suspicious;
  return report::MeetsAny(met, conditions);
}

std::string SummaryText(const Comparison& comparison) {
  std::string text = AnswerText(comparison);
  const std::vector<std::string> damage = DamageWarnings(comparison);
  for (const std::string& warning : damage) {
    text += fmt::format("  damaged: {}\n", OneLine(warning));
  }
  if (IsAnythingGood(comparison) || comparison.first_wrong_call) {
    text += report::CertaintyLine(report::CertaintyOf(comparison));
  }
  if (IsAnythingGood(comparison) && !comparison.first_wrong_call) {
    text += report::LimitLine(comparison.limit);
  }
  const CompareCounts& counts = comparison.counts;
  const auto rows = [&](Verdict verdict) { return RowsOf(comparison, verdict); };
  const auto inherited =
      std::count_if(comparison.rows.begin(), comparison.rows.end(),
                    [](const ComparedRow& row) { return row.reason == "inherited"; });
  text += fmt::format(
      "rows: {} same, {} within noise, {} suspicious, {} broken, {} not comparable{}\n",
      rows(Verdict::kSame), rows(Verdict::kWithinNoise), rows(Verdict::kSuspicious),
      rows(Verdict::kBroken), rows(Verdict::kNotComparable),
      inherited == 0 ? "" : fmt::format(" ({} inherited from earlier calls)", inherited));
  if (rows(Verdict::kNotComparable) > 0) {
    text += fmt::format("not comparable: {}\n", NotComparableText(comparison));
  }
  text += fmt::format("calls: {} paired, {} unmatched target, {} unmatched golden{} ({} mode)\n",
                      counts.calls, counts.unmatched_target, counts.unmatched_golden,
                      counts.recomputed == 0
                          ? ""
                          : fmt::format(", {} recomputed on one side only", counts.recomputed),
                      CompareModeName(comparison.mode));
  for (const std::string& warning : comparison.warnings) {
    if (std::ranges::find(damage, warning) != damage.end()) continue;
    text += fmt::format("warning: {}\n", OneLine(warning));
  }
  for (const std::string& file : comparison.files) text += fmt::format("file: {}\n", OneLine(file));
  return text;
}

}  // namespace plumbline

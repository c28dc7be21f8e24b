#include "pipeline/culprit/lone_call_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "measure/compared_row.h"
#include "pipeline/culprit/cause_candidates.h"
#include "pipeline/culprit/content_key.h"
#include "pipeline/culprit/value_source.h"
#include "record/call_name.h"

namespace plumbline::pipeline {
namespace {

using measure::Cause;
using measure::CauseConfidence;

// Lone calls that lead to each other: fewer are an operation that is missing, more a part of the
// model.
constexpr size_t kFewestOfABlock = 3;

// Whether the target had these contents before the call.
bool IsKnown(const Comparison& comparison, const Item& item, uint32_t call) {
  return std::ranges::any_of(comparison.rows, [&](const ComparedRow& row) {
    return row.call < call && row.target && HasSameContents(*row.target, item);
  });
}

// The last call that made one of the tensors which the lone call `name` reads.
std::string MakerOfInputs(const Comparison& comparison, const std::string& name, bool of_target) {
  const auto call = std::ranges::find_if(comparison.calls, [&](const ComparedCall& each) {
    return !each.paired() && measure::NameOn(each, of_target) == name;
  });
  if (call == comparison.calls.end()) return {};
  for (const ComparedRow& read : measure::RowsOf(comparison, *call)) {
    const Slot<Item>& item = measure::SideOf(read, of_target);
    if (!item || !measure::IsInput(*item) || !item->is_tensor || !IsTelling(*item)) continue;
    std::string maker;
    for (const ComparedRow& row : comparison.rows) {
      const Slot<Item>& made = measure::SideOf(row, of_target);
      const bool is_made = made && made->role == ItemRole::kOutput && row.call != read.call &&
                           HasSameContents(*made, *item);
      if (is_made) maker = measure::NameOn(comparison.calls[row.call], of_target);
      if (is_made && !of_target) break;  // golden's own calls stand behind all others
    }
    if (!maker.empty()) return maker;
  }
  return {};
}

std::string HeadlineOf(const Comparison& comparison, const LoneCalls& block, bool of_target) {
  const std::string_view word = of_target ? "additional" : "missing";
  const bool are_few = block.count < kFewestOfABlock;
  std::string text =
      are_few ? fmt::format("{} call: {}", word, block.last)
              : fmt::format("{} calls: {}, {} to {}", word, block.count, block.first, block.last);
  const std::string before =
      MakerOfInputs(comparison, are_few ? block.last : block.first, of_target);
  if (!before.empty()) text += " after " + before;
  return text;
}

void Append(std::string_view fact, std::string& text) {
  if (!text.empty()) text += "; ";
  text += fact;
}

// The lone call whose result, or what it wrote, one side of the row is; empty: none.
std::string SourceOf(const Comparison& comparison, const ComparedRow& row, bool of_target) {
  if (!measure::SideOf(row, of_target)->is_tensor) return {};
  std::string source = UnmatchedProducer(comparison, row, of_target);
  return source.empty() ? WriterInto(comparison, row, of_target) : source;
}

// A lone call, and those that lead to it.
struct LoneSource {
  std::string name;
  LoneCalls block;
  bool of_target = false;
};

// Where the side without the calls computes the same in its own way elsewhere, or an optimizer that
// makes no recorded calls did, they are no cause.
bool IsOwnWay(const Comparison& comparison, const ComparedRow& row, const LoneSource& source,
              Cause& cause) {
  if (!source.of_target && WritesInPlace(source.name) &&
      !IsKnown(comparison, *row.target, row.call)) {
    Append(fmt::format("golden's value is what {} wrote; no recorded call wrote the target's",
                       source.name),
           cause.text);
    return true;
  }
  if (source.block.count < kFewestOfABlock) return false;
  const std::string twin =
      HarmlessTwinOf(comparison, source.name, source.block.count, source.of_target);
  if (twin.empty()) return false;
  if (cause.code == "stale") cause = {"unexplained", {}, CauseConfidence::kLow};
  Append(fmt::format("{} computes this in its own way, as in place of {}, where the results agree",
                     source.of_target ? "golden" : "the target", twin),
         cause.text);
  return true;
}

// `is_only`: the other side has no lone call there.
void Explain(const LoneSource& source, bool is_only, Cause& cause) {
  const bool of_target = source.of_target;
  const std::string code = of_target ? "extra-call" : "missing-call";
  std::string text =
      of_target
          ? fmt::format("the target's value comes from {}, which golden has not", source.name)
          : fmt::format("golden's value comes from {}, which the target has not", source.name);
  if (const LoneCalls& block = source.block; block.count >= kFewestOfABlock) {
    cause = {code,
             fmt::format("the target {} {} calls that golden {}, {} to {}; {}",
                         of_target ? "makes" : "leaves out", block.count,
                         of_target ? "does not" : "makes", block.first, block.last, text),
             CauseConfidence::kHigh};
    return;
  }
  // That a value is the one before the missing call, or that times a number, is no cause of its own
  // but what the call does.
  const bool is_effect = is_only && cause.code == "scale";
  if (cause.is_explained() && cause.code != "stale" && !is_effect) {
    Append(text, cause.text);
    return;
  }
  if (is_effect) Append(cause.text, text);
  const bool adds = !of_target && AddsTwo(source.name);
  cause = {adds ? "missing-addend" : code, text, CauseConfidence::kHigh};
}

}  // namespace

bool AddsTwo(const std::string& call_name) {
  static constexpr std::array<std::string_view, 5> kNames = {"add", "add_", "__add__", "__radd__",
                                                             "__iadd__"};
  const std::optional<CallName> name = ParseCallName(call_name);
  return name && name->form == CallName::Form::kApi &&
         std::ranges::find(kNames, name->path) != kNames.end();
}

std::string AddLoneCall(const Comparison& comparison, const ComparedRow& row, Cause& cause) {
  if (!measure::IsInput(row)) return {};
  for (const bool of_target : {false, true}) {
    LoneSource source{SourceOf(comparison, row, of_target), {}, of_target};
    if (source.name.empty()) continue;
    source.block = LoneCallsBefore(comparison, source.name, of_target);
    if (IsOwnWay(comparison, row, source, cause)) return {};
    // Two lone calls are another way, none is missing.
    const bool is_only = UnmatchedProducer(comparison, row, !of_target).empty();
    Explain(source, is_only, cause);
    return is_only ? HeadlineOf(comparison, source.block, of_target) : "";
  }
  return {};
}

std::string AddSkippedCalls(const Comparison& comparison, const ComparedRow& row, Cause& cause) {
  const std::optional<SkippedCalls> skipped = FindSkippedCalls(comparison, row);
  if (!skipped) return {};
  const std::string_view shorter = skipped->by_target ? "the target" : "golden";
  const std::string_view longer = skipped->by_target ? "golden" : "the target";
  cause = {skipped->by_target ? "missing-call" : "extra-call",
           fmt::format("{} leaves out {} calls: what it takes here is what {} takes in {}, not in "
                       "{}; numbers of calls do not match from here on",
                       shorter, skipped->count, longer, skipped->next, skipped->first),
           CauseConfidence::kHigh};
  return fmt::format("{} calls: {}, from {} on", skipped->by_target ? "missing" : "additional",
                     skipped->count, skipped->first);
}

}  // namespace plumbline::pipeline

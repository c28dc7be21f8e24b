#include "explain/answer_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/call_name.h"
#include "record/call_stack.h"
#include "record/value.h"
#include "verdict/cause_candidates.h"
#include "verdict/contents.h"
#include "verdict/meeting_points.h"
#include "verdict/value_source.h"

namespace plumbline::explain {
namespace {

// The shortest texts of two different numbers that tell them apart, of four digits at least.
std::pair<std::string, std::string> ShortNumbers(double a, double b) {
  constexpr int kFewestDigits = 4, kMostDigits = 17;
  for (int digits = kFewestDigits;; ++digits) {
    std::string one = fmt::format("{:.{}g}", a, digits), other = fmt::format("{:.{}g}", b, digits);
    if (one != other || digits == kMostDigits) return {std::move(one), std::move(other)};
  }
}

// "2.5 (golden 2.4)".
std::string BothText(const Recorded& target, const Recorded& golden) {
  const auto* a = std::get_if<double>(&target);
  const auto* b = std::get_if<double>(&golden);
  if (a == nullptr || b == nullptr) {
    return fmt::format("{} (golden {})", verdict::ShownValue(target), verdict::ShownValue(golden));
  }
  const auto [one, other] = ShortNumbers(*a, *b);
  return fmt::format("{} (golden {})", one, other);
}

// "max 2.5 (golden 2.4), min ..., mean ..., norm ..." without the statistics that agree.
std::string StatisticsText(const ComparedRow& row) {
  static constexpr std::string_view kNames[] = {"max", "min", "mean", "norm"};
  std::string text;
  for (size_t i = 0; i < 4; ++i) {
    const Recorded& a = row.target->statistics[i];
    const Recorded& b = row.golden->statistics[i];
    if (a == b || std::holds_alternative<std::monostate>(a) ||
        std::holds_alternative<std::monostate>(b)) {
      continue;
    }
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", kNames[i], BothText(a, b));
  }
  return text;
}

std::string MetricsText(const ComparedRow& row) {
  std::string text;
  const auto add = [&](std::string_view name, const Metric& metric, double other) {
    const double* value = std::get_if<double>(&metric);
    if (value == nullptr) return;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", name, ShortNumbers(*value, other).first);
  };
  add("cosine", row.tensor->cosine, 1);
  add("max abs error", row.tensor->max_abs_error, 0);
  add("max relative error", row.tensor->max_relative_error, 0);
  if (row.tensor->mismatch_count > 0) {
    text += fmt::format("{}{} of {} elements differ", text.empty() ? "" : ", ",
                        row.tensor->mismatch_count, row.tensor->element_count);
  }
  return text;
}

std::string SizeText(const verdict::CulpritEvent& event) {
  if (!std::isfinite(event.error)) return {};
  return fmt::format("relative error {:.3g}, explained {:.3g}", event.error, event.expected);
}

std::string_view ReasonSentence(std::string_view reason) {
  if (reason == "nonfinite-target") return "NaN or infinity in the target only";
  if (reason == "nonfinite-golden") return "NaN or infinity in the golden tensor only";
  if (reason == "nonfinite-position") return "NaN or infinity at other positions";
  if (reason == "zero-target") return "the target is all zero";
  if (reason == "zero-golden") return "the golden tensor is all zero";
  if (reason == "digest-differs") return "the digests differ";
  return {};
}

void AppendPart(std::string& text, std::string_view part) {
  if (part.empty()) return;
  if (!text.empty()) text += "; ";
  text += part;
}

std::string NumbersText(const Comparison& comparison, const ComparedRow& row,
                        const verdict::CulpritEvent& event) {
  std::string text;
  AppendPart(text, ReasonSentence(row.reason));
  AppendPart(text, SizeText(event));
  if (comparison.mode == CompareMode::kTensor) AppendPart(text, MetricsText(row));
  AppendPart(text, StatisticsText(row));
  if (comparison.mode == CompareMode::kDigest && row.target && row.golden) {
    AppendPart(text, fmt::format("digest {} (golden {})", row.target->digest, row.golden->digest));
  }
  return text;
}

// The parameter of `call` that holds the contents of `item`, or null.
const Item* ParameterWith(const Comparison& comparison, const ComparedCall& call,
                          const Item& item) {
  for (uint32_t i = 0; i < call.row_count; ++i) {
    const ComparedRow& row = comparison.rows[call.first_row + i];
    if (!row.target || row.target->role != ItemRole::kParameter) continue;
    if (row.target->shape == item.shape && row.target->statistics == item.statistics &&
        row.target->digest == item.digest) {
      return &*row.target;
    }
  }
  return nullptr;
}

// The parameter of an enclosing module, or of the call itself, that holds the same contents.
std::string ParameterName(const Run& target, const Comparison& comparison,
                          const verdict::CulpritEvent& event) {
  const Item& input = *comparison.rows[event.row].target;
  if (input.role == ItemRole::kParameter) return fmt::format("parameter {}", input.name);
  constexpr int kMaxNesting = 1000;  // a cycle in construct.json must not hang
  std::string_view module = target.ParentOf(comparison.calls[event.call].target_name);
  for (int level = 0; level < kMaxNesting && !module.empty(); ++level) {
    const auto call =
        std::find_if(comparison.calls.begin(), comparison.calls.end(),
                     [&](const ComparedCall& each) { return each.target_name == module; });
    const Item* found =
        call == comparison.calls.end() ? nullptr : ParameterWith(comparison, *call, input);
    if (found != nullptr) return fmt::format("parameter {}", found->name);
    module = target.ParentOf(module);
  }
  return {};
}

// Which calls made the two sides of an input.
std::string SourceText(const Comparison& comparison, const ComparedRow& row) {
  const std::string ours = verdict::ProducerOf(comparison, row, /*of_target=*/true);
  const std::string theirs = verdict::ProducerOf(comparison, row, /*of_target=*/false);
  if (ours.empty() && theirs.empty()) return "no recorded call produced it";
  const std::string from = ours.empty() ? "of no recorded call" : fmt::format("of {}", ours);
  const std::string golden = theirs.empty() ? "of no recorded call" : fmt::format("of {}", theirs);
  return fmt::format("the result {}, golden's {}", from, golden);
}

std::string InputText(const Run& target, const Comparison& comparison,
                      const verdict::CulpritEvent& event) {
  const ComparedRow& row = comparison.rows[event.row];
  std::string name = ParameterName(target, comparison, event);
  if (name.empty()) {
    name = fmt::format("{} ({})",
                       measure::ShortName(*row.target, comparison.calls[event.call].target_name),
                       SourceText(comparison, row));
  }
  return fmt::format("inputs already differ: {}: {}", name, NumbersText(comparison, row, event));
}

// Why a call of the target stands alone.
std::string UnpairedText(const ComparedCall& call) {
  return call.unmatched_detail.empty() ? "no counterpart in golden" : call.unmatched_detail;
}

// Whose result the row takes: the first of several lone calls is named, the last gives the result.
std::string ResultText(const Comparison& comparison, const ComparedCall& call,
                       const ComparedRow& row) {
  const std::string source = verdict::UnmatchedProducer(comparison, row, /*of_target=*/true);
  if (source.empty() || source == call.target_name) return "its result";
  return fmt::format("it leads to {}, whose result", source);
}

std::string WhatText(const Run& target, const Comparison& comparison,
                     const verdict::CulpritEvent& event) {
  const ComparedRow& row = comparison.rows[event.row];
  const ComparedCall& call = comparison.calls[event.call];
  switch (event.kind) {
    case verdict::CulpritEvent::Kind::kArgument:
      return fmt::format("argument differs: {} is {} (golden {})",
                         measure::ShortName(*row.target, call.target_name),
                         verdict::ShownValue(row.target->statistics[0]),
                         verdict::ShownValue(row.golden->statistics[0]));
    case verdict::CulpritEvent::Kind::kInput:
      return InputText(target, comparison, event);
    case verdict::CulpritEvent::Kind::kStructure:
      return call.unmatched_detail;
    case verdict::CulpritEvent::Kind::kUnpaired:
      return fmt::format("{}; {} is wrong where {} takes it: {}", UnpairedText(call),
                         ResultText(comparison, call, row), row.target->name,
                         NumbersText(comparison, row, event));
    case verdict::CulpritEvent::Kind::kFact:
      return event.fact.what;
    case verdict::CulpritEvent::Kind::kOutput:
      break;
  }
  std::string text = fmt::format("{}: {}", measure::ShortName(*row.target, call.target_name),
                                 NumbersText(comparison, row, event));
  if (call.paired()) AppendPart(text, call.unmatched_detail);  // what is left to its default
  return text;
}

FirstWrongCall DescribeCulprit(const Run& target, const Comparison& comparison,
                               const verdict::CulpritEvent& event) {
  const ComparedCall& call = comparison.calls[event.call];
  FirstWrongCall answer;
  answer.name = call.name();
  answer.item = comparison.rows[event.row].item().name;
  answer.what = WhatText(target, comparison, event);
  answer.enters_with_inputs = event.kind == verdict::CulpritEvent::Kind::kInput;
  answer.cause = event.fact.cause;
  answer.cause_text = event.fact.cause_text;
  answer.confidence = event.fact.confidence;
  answer.stack = target.StackOf(call.target_name);
  if (answer.stack.empty()) {
    // Backward calls have no stack of their own; the forward call shows the line of the model.
    answer.stack = target.StackOf(verdict::ForwardNameOf(call.target_name));
  }
  answer.stack_line = UserFrame(answer.stack);
  constexpr size_t kMaxNesting = 1000;  // a cycle in construct.json must not hang
  for (std::string_view parent = target.ParentOf(call.target_name);
       !parent.empty() && answer.module_path.size() < kMaxNesting;
       parent = target.ParentOf(parent)) {
    answer.module_path.emplace_back(parent);
  }
  return answer;
}

}  // namespace

void NameCulprit(const Run& target, const std::optional<verdict::CulpritEvent>& culprit,
                 Comparison& comparison) {
  comparison.first_wrong_call.reset();
  if (culprit) comparison.first_wrong_call = DescribeCulprit(target, comparison, *culprit);
}

namespace {

// An error of all of a value: of what rounding alone is, nothing is told.
constexpr double kAll = 1;

bool IsGradient(const Comparison& comparison, const ComparedRow& row) {
  return row.item().role == ItemRole::kParameterGrad ||
         KindOfCall(comparison.calls[row.call].target_name) == CallKind::kBackward;
}

// What the verdict of one result allowed.
void Add(const Comparison& comparison, const ComparedRow& row, DetectionLimit& limit) {
  const double allowed = measure::kNoiseFactor * row.expected;
  if (!(allowed < kAll)) {  // also NaN
    ++limit.roundings;
    return;
  }
  double& of_kind = IsGradient(comparison, row) ? limit.gradient : limit.result;
  of_kind = std::max(of_kind, allowed);
}

// Whether an optimizer's call may write into it: a parameter, or what the next one makes of it.
bool IsTrained(const Item& item) {
  if (!measure::IsInput(item) || !item.is_tensor) return false;
  return item.requires_grad ? *item.requires_grad : item.role == ItemRole::kParameter;
}

// Whether gradients were recorded, and behind the last of them no step of an optimizer and no call
// that changes in place what got one: an optimizer that makes no recorded calls, or a level without calls.
bool LacksLastUpdate(const Comparison& comparison) {
  size_t end = 0;  // behind the last gradient
  for (size_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (call.paired() && KindOfCall(call.target_name) == CallKind::kBackward) end = i + 1;
  }
  if (end == 0) return false;
  std::unordered_set<verdict::ContentKey, verdict::ContentKeyHash> trained;
  for (size_t i = 0; i < comparison.calls.size(); ++i) {
    const ComparedCall& call = comparison.calls[i];
    if (i >= end && call.paired() && call.name().starts_with(verdict::kOptimizerStep)) return false;
    const bool is_update = i >= end && verdict::WritesInPlace(call.target_name);
    if (!call.paired() || (i >= end && !is_update)) continue;
    for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
      const std::optional<verdict::ContentKey> key =
          row.target ? verdict::KeyOf(*row.target) : std::nullopt;
      if (!key || !measure::IsInput(row)) continue;
      if (is_update && trained.contains(*key)) return false;
      if (!is_update && IsTrained(*row.target)) trained.insert(*key);
    }
  }
  return true;
}

}  // namespace

DetectionLimit LimitOf(const Comparison& comparison) {
  DetectionLimit limit;
  limit.lacks_last_update = LacksLastUpdate(comparison);
  if (comparison.mode == CompareMode::kDigest) return limit;  // equal bits, or told
  for (const ComparedRow& row : comparison.rows) {
    if (!measure::HasTensors(row) || measure::IsInput(row) || !measure::IsGood(row.verdict)) {
      continue;
    }
    Add(comparison, row, limit);
  }
  return limit;
}

namespace {

constexpr size_t kMostNames = 3;

// Whether a frame is in a file or directory of optimizers: torch/optim/adam.py.
bool IsOfOptimizer(std::string_view frame) {
  const std::string_view path = frame.substr(0, frame.find(','));
  for (const std::string_view part : {"/optim/", "/optimizer", "/optimization", "/optimisation"}) {
    if (path.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// "Functional.linear" of "Functional.linear.0.forward"; of a module its class.
std::string ApiOf(const std::string& call_name) {
  const std::optional<CallName> name = ParseCallName(call_name);
  if (!name) return call_name;
  if (name->form != CallName::Form::kApi) return std::string(name->class_name);
  return call_name.substr(0, call_name.find(name->path) + name->path.size());
}

// The calls of one side.
struct Group {
  size_t count = 0;
  std::vector<std::string> names;  // of APIs, in order of appearance

  void Add(const std::string& call) {
    ++count;
    std::string api = ApiOf(call);
    if (std::ranges::find(names, api) == names.end()) names.push_back(std::move(api));
  }
  [[nodiscard]] std::string Names() const {
    const size_t shown = std::min(names.size(), kMostNames);
    return fmt::format("{}{}", fmt::join(std::span(names).first(shown), ", "),
                       shown < names.size() ? ", ..." : "");
  }
};

std::string Calls(size_t count) { return fmt::format("{} call{}", count, count == 1 ? "" : "s"); }

std::string PlainText(const Group& target, const Group& golden) {
  if (target.count == 0 && golden.count == 0) return {};
  if (golden.count == 0) {
    return fmt::format("{} of the target alone ({})", Calls(target.count), target.Names());
  }
  if (target.count == 0) {
    return fmt::format("{} of golden alone ({})", Calls(golden.count), golden.Names());
  }
  return fmt::format("{} of the target ({}) for {} of golden ({})", Calls(target.count),
                     target.Names(), golden.count, golden.Names());
}

std::string OptimizerText(size_t target, size_t golden) {
  if (target == 0 || golden == 0) {
    return target + golden == 0 ? "" : Calls(target + golden) + " of the optimizer";
  }
  return fmt::format("{} of the target's optimizer for {} of golden's", Calls(target), golden);
}

}  // namespace

std::string EquivalentCallsText(const Run& target, const Run& golden,
                                const Comparison& comparison) {
  Group groups[2];
  size_t of_optimizer[2] = {};
  for (const ComparedCall& call : comparison.calls) {
    if (call.unmatched_reason != verdict::kEquivalent) continue;
    for (const bool of_target : {true, false}) {
      const Text& name = measure::NameOn(call, of_target);
      if (name.empty()) continue;
      const std::vector<std::string>& stack = (of_target ? target : golden).StackOf(name);
      if (std::any_of(stack.begin(), stack.end(), IsOfOptimizer)) {
        ++of_optimizer[of_target ? 0 : 1];
      } else {
        groups[of_target ? 0 : 1].Add(name);
      }
    }
  }
  std::string text = PlainText(groups[0], groups[1]);
  const std::string optimizer = OptimizerText(of_optimizer[0], of_optimizer[1]);
  if (!text.empty() && !optimizer.empty()) text += ", ";
  return text + optimizer;
}

}  // namespace plumbline::explain

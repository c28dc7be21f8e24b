#include "pipeline/culprit/culprit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/number_text.h"
#include "measure/compared_row.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "pipeline/culprit/cause_candidates.h"
#include "pipeline/culprit/value_source.h"
#include "record/call_name.h"
#include "record/call_stack.h"

namespace plumbline::pipeline {
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
    return fmt::format("{} (golden {})", ShownValue(target), ShownValue(golden));
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

std::string SizeText(const CulpritEvent& event) {
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
                        const CulpritEvent& event) {
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
                          const CulpritEvent& event) {
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
  const std::string ours = ProducerOf(comparison, row, /*of_target=*/true);
  const std::string theirs = ProducerOf(comparison, row, /*of_target=*/false);
  if (ours.empty() && theirs.empty()) return "no recorded call produced it";
  const std::string from = ours.empty() ? "of no recorded call" : fmt::format("of {}", ours);
  const std::string golden = theirs.empty() ? "of no recorded call" : fmt::format("of {}", theirs);
  return fmt::format("the result {}, golden's {}", from, golden);
}

std::string InputText(const Run& target, const Comparison& comparison, const CulpritEvent& event) {
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
  const std::string source = UnmatchedProducer(comparison, row, /*of_target=*/true);
  if (source.empty() || source == call.target_name) return "its result";
  return fmt::format("it leads to {}, whose result", source);
}

std::string WhatText(const Run& target, const Comparison& comparison, const CulpritEvent& event) {
  const ComparedRow& row = comparison.rows[event.row];
  const ComparedCall& call = comparison.calls[event.call];
  switch (event.kind) {
    case CulpritEvent::Kind::kArgument:
      return fmt::format("argument differs: {} is {} (golden {})",
                         measure::ShortName(*row.target, call.target_name),
                         ShownValue(row.target->statistics[0]),
                         ShownValue(row.golden->statistics[0]));
    case CulpritEvent::Kind::kInput:
      return InputText(target, comparison, event);
    case CulpritEvent::Kind::kStructure:
      return call.unmatched_detail;
    case CulpritEvent::Kind::kUnpaired:
      return fmt::format("{}; {} is wrong where {} takes it: {}", UnpairedText(call),
                         ResultText(comparison, call, row), row.target->name,
                         NumbersText(comparison, row, event));
    case CulpritEvent::Kind::kFact:
      return event.fact.what;
    case CulpritEvent::Kind::kOutput:
      break;
  }
  std::string text = fmt::format("{}: {}", measure::ShortName(*row.target, call.target_name),
                                 NumbersText(comparison, row, event));
  if (call.paired()) AppendPart(text, call.unmatched_detail);  // what is left to its default
  return text;
}

}  // namespace

std::string ShownValue(const Recorded& recorded) {
  if (const auto* v = std::get_if<bool>(&recorded)) return *v ? "True" : "False";
  if (const auto* v = std::get_if<int64_t>(&recorded)) return std::to_string(*v);
  if (const auto* v = std::get_if<double>(&recorded)) return PythonFloat(*v);
  if (const auto* v = std::get_if<Text>(&recorded)) return *v;
  return "None";
}

std::string SeriesOf(const std::string& name) {
  const std::optional<CallName> parts = ParseCallName(name);
  if (!parts || parts->form != CallName::Form::kApi) return {};
  return fmt::format("{}{}", parts->path, name.substr(name.rfind('.')));
}

std::string ForwardNameOf(std::string_view backward_name) {
  constexpr std::string_view kBackward = ".backward";
  const size_t at = backward_name.rfind(kBackward);
  if (at == std::string_view::npos) return {};
  return fmt::format("{}.forward{}", backward_name.substr(0, at),
                     backward_name.substr(at + kBackward.size()));
}

const ComparedCall* ForwardCallOf(const Comparison& comparison, std::string_view backward_name) {
  const std::string name = ForwardNameOf(backward_name);
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find(comparison.calls, name, &ComparedCall::target_name);
  return found == comparison.calls.end() ? nullptr : &*found;
}

std::string BackwardNameOf(std::string_view forward_name) {
  constexpr std::string_view kForward = ".forward";
  const size_t at = forward_name.rfind(kForward);
  if (at == std::string_view::npos) return {};
  return fmt::format("{}.backward{}", forward_name.substr(0, at),
                     forward_name.substr(at + kForward.size()));
}

FirstWrongCall DescribeCulprit(const Run& target, const Comparison& comparison,
                               const CulpritEvent& event) {
  const ComparedCall& call = comparison.calls[event.call];
  FirstWrongCall answer;
  answer.name = call.name();
  answer.item = comparison.rows[event.row].item().name;
  answer.what = WhatText(target, comparison, event);
  answer.enters_with_inputs = event.kind == CulpritEvent::Kind::kInput;
  answer.cause = event.fact.cause;
  answer.cause_text = event.fact.cause_text;
  answer.confidence = event.fact.confidence;
  answer.stack = target.StackOf(call.target_name);
  if (answer.stack.empty()) {
    // Backward calls have no stack of their own; the forward call shows the line of the model.
    answer.stack = target.StackOf(ForwardNameOf(call.target_name));
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

}  // namespace plumbline::pipeline

#include "explain/cause_of_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <string_view>

#include "formats/pytorch/tensor_file.h"
#include "load/run_reader.h"
#include "measure/cause_arithmetic.h"
#include "measure/cause_class.h"
#include "measure/cause_layout.h"
#include "measure/compared_row.h"
#include "measure/verdict.h"
#include "record/call_name.h"
#include "record/call_stack.h"
#include "record/recorded_number.h"
#include "verdict/cause_candidates.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/unpaired_calls.h"
#include "verdict/value_source.h"

namespace plumbline::explain {

namespace {

using measure::Cause;
using measure::CauseConfidence;

// Lone calls that lead to each other: fewer are an operation that is missing, more a part of the
// model.
constexpr size_t kFewestOfABlock = 3;

// Whether the target had these contents before the call.
bool IsKnown(const Comparison& comparison, const Item& item, uint32_t call) {
  return std::ranges::any_of(comparison.rows, [&](const ComparedRow& row) {
    return row.call < call && row.target && verdict::HasSameContents(*row.target, item);
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
    if (!item || !measure::IsInput(*item) || !item->is_tensor || !verdict::IsTelling(*item))
      continue;
    std::string maker;
    for (const ComparedRow& row : comparison.rows) {
      const Slot<Item>& made = measure::SideOf(row, of_target);
      const bool is_made = made && made->role == ItemRole::kOutput && row.call != read.call &&
                           verdict::HasSameContents(*made, *item);
      if (is_made) maker = measure::NameOn(comparison.calls[row.call], of_target);
      if (is_made && !of_target) break;  // golden's own calls stand behind all others
    }
    if (!maker.empty()) return maker;
  }
  return {};
}

std::string HeadlineOf(const Comparison& comparison, const verdict::LoneCalls& block,
                       bool of_target) {
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
  std::string source = verdict::UnmatchedProducer(comparison, row, of_target);
  return source.empty() ? verdict::WriterInto(comparison, row, of_target) : source;
}

// A lone call, and those that lead to it.
struct LoneSource {
  std::string name;
  verdict::LoneCalls block;
  bool of_target = false;
};

// Where the side without the calls computes the same in its own way elsewhere, or an optimizer that
// makes no recorded calls did, they are no cause.
bool IsOwnWay(const Comparison& comparison, const ComparedRow& row, const LoneSource& source,
              Cause& cause) {
  if (!source.of_target && verdict::WritesInPlace(source.name) &&
      !IsKnown(comparison, *row.target, row.call)) {
    Append(fmt::format("golden's value is what {} wrote; no recorded call wrote the target's",
                       source.name),
           cause.text);
    return true;
  }
  if (source.block.count < kFewestOfABlock) return false;
  const std::string twin =
      verdict::HarmlessTwinOf(comparison, source.name, source.block.count, source.of_target);
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
  if (const verdict::LoneCalls& block = source.block; block.count >= kFewestOfABlock) {
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
    source.block = verdict::LoneCallsBefore(comparison, source.name, of_target);
    if (IsOwnWay(comparison, row, source, cause)) return {};
    // Two lone calls are another way, none is missing.
    const bool is_only = verdict::UnmatchedProducer(comparison, row, !of_target).empty();
    Explain(source, is_only, cause);
    return is_only ? HeadlineOf(comparison, source.block, of_target) : "";
  }
  return {};
}

std::string AddSkippedCalls(const Comparison& comparison, const ComparedRow& row, Cause& cause) {
  const std::optional<verdict::SkippedCalls> skipped = verdict::FindSkippedCalls(comparison, row);
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

namespace {

std::string BareApiOf(std::string_view call_name) {
  const std::optional<CallName> name = ParseCallName(call_name);
  if (!name) return {};
  return std::string(name->form == CallName::Form::kApi ? name->path : name->class_name);
}

class CauseFinder {
 public:
  CauseFinder(const Run& target, const Run& golden, const Comparison& comparison)
      : target_(target), golden_(golden), comparison_(comparison) {}

  Cause Find(uint32_t row_index) {
    const ComparedRow& row = comparison_.rows[row_index];
    const ComparedCall& call = comparison_.calls[row.call];
    // A call of another form is named because of what a later call takes from it.
    const ComparedCall* named = NamedCall();
    if (named != nullptr && named != &call &&
        verdict::GoldenOfSameName(comparison_, *named) != nullptr) {
      return StructureCause(*named);
    }
    if (row.reason == "argument-differs") return ArgumentCause(row, call);
    if (!call.paired()) return StructureCause(call);
    if (const auto exchange = verdict::ExchangeCause(comparison_, row)) return *exchange;
    Cause cause = PairCause(row_index);
    if (!cause.is_explained()) cause = OtherOutputs(row_index, std::move(cause));
    // A fact before a guess about a few elements.
    if (cause.confidence == CauseConfidence::kLow) cause = NarrowedType(row).value_or(cause);
    if (!measure::IsInput(row) && !call.unmatched_detail.empty()) {
      return DefaultCause(call, std::move(cause));
    }
    headline_ = AddSkippedCalls(comparison_, row, cause);
    if (headline_.empty()) {
      const std::string of_lone_call = AddLoneCall(comparison_, row, cause);
      if (!of_lone_call.empty()) headline_ = of_lone_call;
      AddEarlierStep(row, cause);
    }
    AddDirection(call, cause);
    return cause;
  }

  // "missing call: Tensor.div_.0.forward after Functional.topk.0.forward"; empty where no missing
  // or additional call explains what Find() was asked for.
  [[nodiscard]] const std::string& headline() const { return headline_; }

  // Of a call that both sides made in another form; nothing for other calls.
  std::optional<Cause> FindForm(const std::string& target_name) {
    const auto call =
        std::find_if(comparison_.calls.begin(), comparison_.calls.end(),
                     [&](const ComparedCall& each) { return each.target_name == target_name; });
    const bool has_other_form = call != comparison_.calls.end() && !call->paired() &&
                                verdict::GoldenOfSameName(comparison_, *call) != nullptr;
    if (!has_other_form) return std::nullopt;
    return StructureCause(*call);
  }

 private:
  // The unpaired call that the answer names, or null.
  const ComparedCall* NamedCall() const {
    const auto found = std::find_if(comparison_.calls.begin(), comparison_.calls.end(),
                                    [&](const ComparedCall& each) {
                                      return each.target_name == comparison_.first_wrong_call->name;
                                    });
    return found == comparison_.calls.end() || found->paired() ? nullptr : &*found;
  }

  // A pair of which one side leaves an argument to its default, although the results differ.
  static Cause DefaultCause(const ComparedCall& call, Cause effect) {
    std::string text = call.unmatched_detail;
    if (effect.is_explained()) text += "; " + effect.text;
    return {"argument", std::move(text), CauseConfidence::kHigh};
  }

  // A pair whose target has a narrower type, and an error of its size.
  static std::optional<Cause> NarrowedType(const ComparedRow& row) {
    const double ours = measure::RoundoffOf(*row.target, *row.target);
    const double theirs = measure::RoundoffOf(*row.golden, *row.golden);
    constexpr double kMostRoundoffs = 8;
    if (!(theirs > 0) || !(ours > theirs) || !(row.error <= kMostRoundoffs * ours)) {
      return std::nullopt;
    }
    return Cause{"narrowed",
                 fmt::format("{} is {} (golden {}), relative error {:.2g}", row.target->name,
                             row.target->dtype.value_or("null"), row.golden->dtype.value_or("null"),
                             row.error),
                 CauseConfidence::kHigh};
  }

  // An argument that shows as one factor or as dropout is called by what it does.
  Cause ArgumentCause(const ComparedRow& row, const ComparedCall& call) {
    Cause cause = ArgumentAlone(row, call);
    const std::string api = BareApiOf(call.name());
    const bool is_factor = api.find("mul") != api.npos || api.find("div") != api.npos ||
                           row.item().name.ends_with("scale");
    const bool is_dropout = api.find("dropout") != api.npos;
    if (!is_factor && !is_dropout) return cause;
    for (uint32_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
      const ComparedRow& output = comparison_.rows[i];
      if (!output.target || !output.golden || output.target->role != ItemRole::kOutput) continue;
      const Cause effect = PairCause(i);
      const bool fits = effect.code == (is_dropout ? "random" : "scale") || effect.code == "sign";
      if (!fits) continue;
      cause.code = effect.code;
      cause.text += "; " + effect.text;
      return cause;
    }
    if (is_dropout) cause.code = "random";  // its rate, or whether it drops at all
    return cause;
  }

  Cause ArgumentAlone(const ComparedRow& row, const ComparedCall& call) const {
    Cause cause{
        "argument",
        fmt::format("argument {} has another value", measure::ShortName(row.item(), call.name())),
        CauseConfidence::kHigh};
    if (!row.target || !row.golden) return cause;
    const std::optional<double> t = NumberOf(row.target->statistics[0]);
    const std::optional<double> g = NumberOf(row.golden->statistics[0]);
    if (t && g) {
      cause.text += fmt::format(": {:.9g} (golden {:.9g}", *t, *g);
      if (*g != 0 && std::isfinite(*t / *g)) cause.text += fmt::format(", factor {:.6g}", *t / *g);
      cause.text += ")";
    }
    return cause;
  }

  // The row's two tensors, or its statistics when there are none.
  Cause PairCause(uint32_t row_index) {
    const ComparedRow& row = comparison_.rows[row_index];
    if (comparison_.mode == CompareMode::kTensor) {
      if (std::optional<Cause> cause = TensorCause(row_index)) return *cause;
    }
    Cause cause = measure::ClassifyStatistics(*row.target, *row.golden, row.expected);
    if (!cause.is_explained()) cause = RepeatedCause(row_index).value_or(cause);
    return cause;
  }

  // Equal statistics or digests stand for equal tensors.
  std::optional<Cause> RepeatedCause(uint32_t row_index) {
    const ComparedRow& row = comparison_.rows[row_index];
    for (uint32_t i = row_index; i-- > 0;) {
      const ComparedRow& earlier = comparison_.rows[i];
      if (!earlier.target || !verdict::HasSameContents(*earlier.target, *row.target)) continue;
      if (!comparison_.calls[earlier.call].paired()) continue;  // named by AddLoneCall()
      const bool is_own = earlier.call == row.call;
      if (measure::IsInput(row)) {
        if (is_own) continue;  // read twice; where it comes from tells more
        if (auto cause = OtherSource(row, earlier)) return cause;
      }
      const bool is_share =
          is_own && measure::IsReduction(BareApiOf(comparison_.calls[row.call].name()));
      return Cause{is_share ? "not-reduced"
                   : is_own ? "not-applied"
                            : "stale",
                   fmt::format("the target's {} are those of the earlier {}",
                               row.target->has_recorded_digest ? "digests" : "statistics",
                               earlier.target->name),
                   CauseConfidence::kMedium};
    }
    return std::nullopt;
  }

  // An input that golden takes from another call than the target does: a call was left out.
  std::optional<Cause> OtherSource(const ComparedRow& row, const ComparedRow& target_source) {
    for (const ComparedRow& made : comparison_.rows) {
      if (!made.golden || made.golden->role != ItemRole::kOutput) continue;
      if (!verdict::HasSameContents(*made.golden, *row.golden)) continue;
      if (!verdict::MayMake(comparison_, made.call, row, /*of_target=*/false)) continue;
      const Text& golden_call = comparison_.calls[made.call].golden_name;
      const Text& target_call = comparison_.calls[target_source.call].target_name;
      if (IsShareOf(made.call, *row.target)) {
        return Cause{"not-reduced",
                     fmt::format("golden's value is the result of {}, the target's is this rank's "
                                 "share {}",
                                 golden_call, target_source.target->name),
                     CauseConfidence::kMedium};
      }
      // The target has golden's value and reads another.
      const bool is_there = measure::IsGood(made.verdict);
      if (golden_call == target_call || is_there) return std::nullopt;
      headline_ = fmt::format("missing call: {} after {}", golden_call, target_call);
      return Cause{AddsTwo(golden_call) ? "missing-addend" : "missing-call",
                   fmt::format("golden's value is the result of {}, the target's that of {}",
                               golden_call, target_call),
                   CauseConfidence::kMedium};
    }
    return std::nullopt;
  }

  // Whether the call sums over ranks and `item` is what went into it.
  bool IsShareOf(uint32_t call_index, const Item& item) const {
    const ComparedCall& call = comparison_.calls[call_index];
    if (!measure::IsReduction(BareApiOf(call.golden_name))) return false;
    // Of a call that the target left out, golden's input stands for what would have gone in.
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Slot<Item>& given = row.target ? row.target : row.golden;
      if (measure::IsInput(row) && verdict::HasSameContents(*given, item)) return true;
    }
    return false;
  }

  std::optional<Cause> TensorCause(uint32_t row_index) {
    const ComparedRow& row = comparison_.rows[row_index];
    const auto target = load::OpenTensor(target_, row.target->data_name);
    const auto golden = load::OpenTensor(golden_, row.golden->data_name);
    if (!target || !golden) return std::nullopt;
    const ComparedCall& call = comparison_.calls[row.call];
    measure::CauseRequest request;
    request.target = target->view();
    request.golden = golden->view();
    request.api = BareApiOf(call.name());
    request.explained = row.expected;
    request.is_source = measure::IsInput(row);
    const verdict::CandidateFiles candidates =
        verdict::CollectCandidates({target_, golden_, comparison_}, row_index);
    request.candidates = candidates.views();
    Result<Cause> cause = measure::ClassifyTensors(request);
    if (!cause) return std::nullopt;
    return *cause;
  }

  // Another wrong output of the call may show what the first does not.
  Cause OtherOutputs(uint32_t row_index, Cause first) {
    constexpr int kMostTries = 4;
    const ComparedCall& call = comparison_.calls[comparison_.rows[row_index].call];
    int tries = 0;
    for (uint32_t i = call.first_row; i < call.first_row + call.row_count; ++i) {
      const ComparedRow& row = comparison_.rows[i];
      const bool is_candidate = i != row_index && row.target && row.golden &&
                                measure::IsBad(row.verdict) && row.reason != "inherited" &&
                                row.target->role == comparison_.rows[row_index].target->role;
      if (!is_candidate || ++tries > kMostTries) continue;
      Cause cause = PairCause(i);
      if (!cause.is_explained()) continue;
      cause.text =
          fmt::format("{}: {}", measure::ShortName(*row.target, call.target_name), cause.text);
      return cause;
    }
    return first;
  }

  // A parameter is as the step before left it, or as it was loaded.
  void AddEarlierStep(const ComparedRow& row, Cause& cause) const {
    if (!measure::IsInput(row)) return;
    const verdict::ParameterCounts parameters = verdict::CountParameters(comparison_);
    if (parameters.differing == 0) return;
    const std::string text =
        fmt::format("before the step computes, parameters differ already ({} of {}): look at {}",
                    parameters.differing, parameters.all, verdict::BeforeTheStep(target_, golden_));
    const bool is_parameter = row.target->role == ItemRole::kParameter;
    const bool are_many = parameters.differing > 1 && 2 * parameters.differing >= parameters.all;
    const bool is_guess = cause.confidence != CauseConfidence::kHigh;
    const bool is_look = cause.code == "random" || cause.code == "stale" || cause.code == "block";
    const bool says_little = !cause.is_explained() || (is_guess && is_look);
    if (says_little ? is_parameter || are_many : is_guess && are_many) {
      cause = {"earlier-step", text, CauseConfidence::kMedium};
    } else {
      cause.text += "; " + text;
    }
  }

  // A backward call whose forward call is good.
  void AddDirection(const ComparedCall& call, Cause& cause) const {
    const std::string forward = verdict::ForwardNameOf(call.target_name);
    if (forward.empty()) return;
    const auto found =
        std::find_if(comparison_.calls.begin(), comparison_.calls.end(),
                     [&](const ComparedCall& each) { return each.target_name == forward; });
    if (found == comparison_.calls.end() || measure::IsBad(found->verdict)) return;
    if (cause.code == "unexplained" && found->paired()) {
      cause.code = "backward";
      cause.confidence = CauseConfidence::kMedium;
    }
    cause.text += fmt::format("; only the gradient is wrong, {} agrees", forward);
  }

  // A call whose form differs: which value is missing or of another type, and what that does.
  Cause StructureCause(const ComparedCall& call) {
    const ComparedCall* other = verdict::GoldenOfSameName(comparison_, call);
    Cause cause{"structure", comparison_.first_wrong_call->what, CauseConfidence::kHigh};
    if (other == nullptr) return cause;
    if (const std::optional<Cause> narrowed = DTypeCause(call, *other)) return *narrowed;
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Item* golden = SameItem(*other, row);
      if (golden == nullptr || !row.target) continue;
      const bool is_output = row.target->role == ItemRole::kOutput;
      if (!is_output && row.target->shape == golden->shape) continue;
      const std::optional<Cause> found = FormCause(*row.target, *golden, call, *other);
      if (!found || !found->is_explained() || found->code == "structure") continue;
      cause = *found;
      cause.text = fmt::format("{}: {}; {}", measure::ShortName(*row.target, call.target_name),
                               cause.text, comparison_.first_wrong_call->what);
      return cause;
    }
    AddMissingBias(call, *other, cause);
    return cause;
  }

  // Without tensors: a product whose last operand only golden has.
  void AddMissingBias(const ComparedCall& call, const ComparedCall& other, Cause& cause) const {
    const std::string api = BareApiOf(call.name());
    if (!api.starts_with("linear") && !api.starts_with("conv")) return;
    for (const ComparedRow& row : measure::RowsOf(comparison_, other)) {
      if (!row.golden || !row.golden->is_tensor || row.golden->role == ItemRole::kOutput) continue;
      const std::string_view name = measure::ShortName(*row.golden, other.golden_name);
      if (name != "input.2" && !name.ends_with("bias")) continue;
      for (const ComparedRow& own : measure::RowsOf(comparison_, call)) {
        if (own.target && own.target->name == row.golden->name && own.target->is_tensor) return;
      }
      cause.code = "missing-addend";
      cause.text = fmt::format("the target has no {}: {}", name, cause.text);
      cause.confidence = CauseConfidence::kMedium;
      return;
    }
  }

  const Item* SameItem(const ComparedCall& other, const ComparedRow& row) const {
    if (!row.target || !row.target->is_tensor) return nullptr;
    for (const ComparedRow& each : measure::RowsOf(comparison_, other)) {
      if (each.golden && each.golden->is_tensor && each.golden->name == row.target->name) {
        return &*each.golden;
      }
    }
    return nullptr;
  }

  std::optional<Cause> DTypeCause(const ComparedCall& call, const ComparedCall& other) const {
    for (const ComparedRow& row : measure::RowsOf(comparison_, call)) {
      const Item* golden = SameItem(other, row);
      if (golden == nullptr || row.target->dtype == golden->dtype) continue;
      const double ours = measure::RoundoffOf(*row.target, *row.target);
      const double theirs = measure::RoundoffOf(*golden, *golden);
      const bool both_float = ours > 0 && theirs > 0;
      const std::string_view code = !both_float ? "dtype" : ours > theirs ? "narrowed" : "widened";
      return Cause{
          std::string(code),
          fmt::format("{} is {} (golden {})", measure::ShortName(*row.target, call.target_name),
                      row.target->dtype.value_or("null"), golden->dtype.value_or("null")),
          CauseConfidence::kHigh};
    }
    return std::nullopt;
  }

  std::optional<Cause> FormCause(const Item& target, const Item& golden, const ComparedCall& call,
                                 const ComparedCall& other) const {
    const auto target_file = load::OpenTensor(target_, target.data_name);
    const auto golden_file = load::OpenTensor(golden_, golden.data_name);
    if (!target_file || !golden_file) {
      if (target.shape != golden.shape) return std::nullopt;
      return measure::ClassifyStatistics(target, golden, 0);
    }
    measure::CauseRequest request;
    request.target = target_file->view();
    request.golden = golden_file->view();
    request.api = BareApiOf(call.name());
    std::deque<TensorFile> files;
    for (const ComparedRow& row : measure::RowsOf(comparison_, other)) {
      if (!row.golden || row.golden->role == ItemRole::kOutput) continue;
      auto file = load::OpenTensor(golden_, row.golden->data_name);
      if (!file) continue;
      files.push_back(std::move(*file));
      request.candidates.push_back({std::string(measure::ShortName(*row.golden, other.golden_name)),
                                    measure::CauseCandidate::Role::kOperand, files.back().view()});
    }
    const Result<Cause> cause = measure::ClassifyTensors(request);
    if (!cause) return std::nullopt;
    return *cause;
  }

  const Run& target_;
  const Run& golden_;
  const Comparison& comparison_;
  std::string headline_;
};

}  // namespace

void ExplainCause(const Run& target, const Run& golden, Comparison& comparison) {
  if (!comparison.first_wrong_call) return;
  FirstWrongCall& answer = *comparison.first_wrong_call;
  if (!answer.cause.empty()) return;  // the event is the cause
  const auto row = std::find_if(
      comparison.rows.begin(), comparison.rows.end(),
      [&](const ComparedRow& each) { return each.target && each.target->name == answer.item; });
  if (row == comparison.rows.end()) return;
  const auto index = static_cast<uint32_t>(row - comparison.rows.begin());
  CauseFinder finder(target, golden, comparison);
  Cause cause = finder.Find(index);
  // The row is where the wrong result arrives: a call of another form is there on both sides.
  const bool says_little =
      cause.code == "missing-call" || cause.code == "extra-call" || !cause.is_explained();
  if (says_little) cause = finder.FindForm(answer.name).value_or(cause);
  // Where statistics agree behind such a call, it may have moved elements all the same.
  if (!cause.is_explained() && comparison.mode == CompareMode::kStatistics) {
    const std::string lone = verdict::LoneCallLeadingTo(comparison, row->call);
    const std::string line = UserFrame(target.StackOf(lone));
    if (!lone.empty() && lone != answer.name) {
      answer.what += fmt::format("; target only: {}{}, which leads here", lone,
                                 line.empty() ? "" : fmt::format(" ({})", line));
    }
  }
  const bool is_of_call = cause.code.ends_with("-call") || cause.code == "missing-addend";
  if (is_of_call && !finder.headline().empty()) {
    answer.what = fmt::format("{}; {}", finder.headline(), answer.what);
  }
  answer.cause = cause.code;
  answer.cause_text = cause.text;
  answer.confidence = CauseConfidenceName(cause.confidence);
}

}  // namespace plumbline::explain

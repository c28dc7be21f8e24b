#include "report/tensor_answer.h"

#include <fmt/format.h>

#include <set>

#include "base/process/log.h"
#include "report/certainty.h"

namespace plumbline::report {
namespace {

const JudgedTensor* FirstWrong(std::span<const JudgedTensor> tensors) {
  std::set<std::string_view> fed_badly;
  const auto is_broken = [](const JudgedTensor& tensor) {
    return tensor.paired && tensor.verdict.verdict == Verdict::kBroken;
  };
  for (const JudgedTensor& tensor : tensors) {
    if (is_broken(tensor) && !tensor.is_output) fed_badly.insert(tensor.operation);
  }
  const JudgedTensor* first = nullptr;
  for (const JudgedTensor& tensor : tensors) {
    if (!is_broken(tensor)) continue;
    if (first == nullptr) first = &tensor;
    if (tensor.is_output && !fed_badly.contains(tensor.operation)) return &tensor;
  }
  return first;
}

bool IsUndecided(const JudgedTensor& tensor) {
  const std::string_view reason = tensor.verdict.reason;
  return tensor.paired && tensor.verdict.verdict == Verdict::kNotComparable &&
         reason != "unreadable" && reason != "zero-both" && reason != "empty" &&
         reason != "no-original";
}

uint64_t GoodOf(const TensorAnswer& answer) {
  return answer.CountOf(Verdict::kSame) + answer.CountOf(Verdict::kWithinNoise);
}

bool IsIncomplete(const TensorAnswer& answer) {
  return answer.unpaired > 0 || answer.unreadable > 0 || answer.undecided > 0 ||
         answer.left_out > 0;
}

}  // namespace

TensorAnswer AnswerOf(std::span<const JudgedTensor> tensors, uint64_t left_out) {
  TensorAnswer answer;
  answer.left_out = left_out;
  for (const JudgedTensor& tensor : tensors) {
    ++answer.counts[static_cast<size_t>(tensor.verdict.verdict)];
    if (!tensor.paired) ++answer.unpaired;
    if (tensor.verdict.reason == "unreadable") ++answer.unreadable;
    if (IsUndecided(tensor)) ++answer.undecided;
  }
  if (const JudgedTensor* first = FirstWrong(tensors)) {
    answer.shown = *first;
    answer.first_wrong = first->operation;
  }
  return answer;
}

std::string AnswerText(const TensorAnswer& answer, std::string_view left_out_name) {
  std::string text;
  if (!answer.first_wrong.empty()) {
    const JudgedTensor& tensor = answer.shown;
    text = fmt::format("first wrong call: {}\n  {}: {}, relative error {:.3g}, rounding {:.3g}\n",
                       OneLine(answer.first_wrong), OneLine(tensor.name), tensor.verdict.reason,
                       tensor.verdict.error, tensor.verdict.expected);
  } else if (const uint64_t doubtful = answer.CountOf(Verdict::kSuspicious); doubtful > 0) {
    // Good tensors beside them clear nothing.
    text =
        fmt::format("not judged completely: {} suspicious and {} not cleared; nothing is broken\n",
                    doubtful == 1 ? "1 tensor is" : fmt::format("{} tensors are", doubtful),
                    doubtful == 1 ? "was" : "were");
  } else if (GoodOf(answer) == 0) {
    text = "not judged: no row could be compared\n";
  } else if (IsIncomplete(answer)) {
    text = "not judged completely: the paired tensors show no wrong call\n";
  } else {
    text = "no wrong call\n";
  }
  text +=
      fmt::format("rows: {} same, {} within noise, {} suspicious, {} broken, {} not comparable\n",
                  answer.CountOf(Verdict::kSame), answer.CountOf(Verdict::kWithinNoise),
                  answer.CountOf(Verdict::kSuspicious), answer.CountOf(Verdict::kBroken),
                  answer.CountOf(Verdict::kNotComparable));
  if (answer.unpaired > 0) text += fmt::format("without counterpart: {}\n", answer.unpaired);
  if (answer.unreadable > 0) text += fmt::format("unreadable files: {}\n", answer.unreadable);
  if (answer.undecided > 0) text += fmt::format("without a verdict: {}\n", answer.undecided);
  if (answer.left_out > 0) {
    text += fmt::format("{} left out: {}\n", left_out_name, answer.left_out);
  }
  return text;
}

Result<bool> AnswerFailsOn(const TensorAnswer& answer, const std::vector<std::string>& conditions) {
  report::MetConditions met;
  met.wrong = !answer.first_wrong.empty();
  met.broken = answer.CountOf(Verdict::kBroken) > 0;
  const bool is_doubtful = answer.CountOf(Verdict::kSuspicious) > 0;
  met.suspicious = met.broken || is_doubtful;
  met.unmatched = IsIncomplete(answer) || GoodOf(answer) == 0;
  met.unjudged = met.unmatched || (is_doubtful && !met.wrong);
  return report::MeetsAny(met, conditions);
}

}  // namespace plumbline::report

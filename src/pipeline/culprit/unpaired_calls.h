// Calls without counterpart: other kernels for the same mathematics, or the fault itself. What
// comes out of them decides.

#ifndef PLUMBLINE_PIPELINE_CULPRIT_UNPAIRED_CALLS_H_
#define PLUMBLINE_PIPELINE_CULPRIT_UNPAIRED_CALLS_H_

#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The unpaired calls of both sides and where their results go. Contents are followed by their key.
class UnpairedCalls {
 public:
  explicit UnpairedCalls(const Comparison& comparison);

  [[nodiscard]] bool empty() const { return target_.empty() && golden_.empty(); }

  // The unpaired target call before `consumer` (indices into Comparison::calls) whose result the
  // target's `item` is; none if a paired call or nothing recorded made it.
  [[nodiscard]] std::optional<uint32_t> TargetProducer(const Item& item, uint32_t consumer) const;
  // The unpaired golden call whose result the golden `item` is.
  [[nodiscard]] std::optional<uint32_t> GoldenProducer(const Item& item) const;

  // What the unpaired target calls that lead to a value do to it.
  struct Region {
    double condition = 1;  // by which relative errors grow, as far as told (measure/propagation.h)
    double roundoff = 0;   // the largest of any tensor they read or return
  };
  [[nodiscard]] Region RegionOf(uint32_t producer) const;
  // Whether the target has a call of this name without counterpart.
  [[nodiscard]] bool IsUnpaired(std::string_view target_name) const;

  // How closely a result agrees where it arrives.
  enum class Agreement : uint8_t {
    kUsual,  // no more than what may happen on the way explains
    kClose,  // in half of the digits of its type
  };
  // A result of `call` arrived and agrees: the call and the unpaired calls before it that lead to
  // it did nothing wrong. Whole numbers and truth values that agree say nothing about the numbers
  // they were made from (argmax, comparisons).
  void MarkGood(uint32_t call, Agreement agreement = Agreement::kUsual);
  [[nodiscard]] bool IsGood(uint32_t call) const { return is_good_[call]; }
  // Per call: whether it was marked for a close agreement.
  [[nodiscard]] const std::vector<bool>& right() const { return is_right_; }

  // Whether the results of a target call whose counterpart has another form hold as many elements
  // as the counterpart's and agree with them up to a relative error, as views of one tensor do.
  // Only results that both return count, but the target may not have null where golden has one.
  [[nodiscard]] bool ResultsAgree(uint32_t call, double largest_error) const;

  // A result of `call` arrived and is wrong: which of the unpaired calls leading to it to name. One
  // whose counterpart has another form is most telling; else the first that computes.
  [[nodiscard]] uint32_t ToBlame(uint32_t call) const;

 private:
  using Producers = std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash>;

  // The calls that returned `item` or its negative; null if there are none.
  static const std::vector<uint32_t>* Find(const Producers& producers, const Item& item);
  // What is followed back from the results of a call.
  enum class Through : uint8_t {
    kAll,      // everything that it read
    kNumbers,  // not from whole numbers to others
  };

  // `call` and the unpaired target calls that lead to it, in recorded order.
  [[nodiscard]] std::vector<uint32_t> LeadingTo(uint32_t call,
                                                Through through = Through::kAll) const;

  // Results of a call, null values among them.
  [[nodiscard]] size_t CountResults(uint32_t call) const;

  const Comparison& comparison_;
  Producers target_, golden_;
  std::unordered_map<std::string_view, uint32_t> golden_by_name_;  // unpaired
  std::unordered_set<std::string_view> target_names_;              // unpaired
  std::vector<bool> is_good_, is_right_;                           // per call
};

// Golden's call without counterpart that is called as the target's `call`; null where there is
// none.
const ComparedCall* GoldenNamesakeOf(const Comparison& comparison, const ComparedCall& call);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_CULPRIT_UNPAIRED_CALLS_H_

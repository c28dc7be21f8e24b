// Calls without a counterpart, other calls of the same name, and recordings of which a part is
// missing.

#ifndef PLUMBLINE_VERDICT_UNPAIRED_CALLS_H_
#define PLUMBLINE_VERDICT_UNPAIRED_CALLS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plumbline/compare.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

// Calls without counterpart: other kernels for the same mathematics, or the fault itself. What
// comes out of them decides.

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
const ComparedCall* GoldenOfSameName(const Comparison& comparison, const ComparedCall& call);

// Calls of one name of which one recording lacks a value: a damaged recording, and no other call.

// Whether the target's call `call` (an index), whose counterpart of that name has another form,
// did the same as that: all values that both sides have agree up to the relative error `noise`, one
// side alone lacks some, and these must have been there. An input must, where all results agree,
// which they would not without it; a result of an API with these inputs, which returns what it
// returns, or all results of a module; gradients that are not even null, where the forward calls
// agree; anything where the recorder counted losses.
bool LacksValuesOnly(const Comparison& comparison, uint32_t call, double noise);

// A warning for each call whose counterpart of that name has another form and that is not named, up
// to a few: which value it is.
void WarnOfOtherForms(Comparison& comparison);

// Pairs of calls that share a name and nothing else: the sides number their calls otherwise, and
// each does right (docs/design/verdict.md, "Namesakes").

// ComparedCall::unmatched_reason of such a pair.
inline constexpr std::string_view kSameName = "namesake";

// Two values of unlike meaning seldom come this close, relative (iterates of one loop come within a
// few hundredths). What does is one value, computed less exactly.
inline constexpr double kAnother = 0.01;

// Pairs that may be namesakes, as indices into Comparison::calls.
struct SameNamedCalls {
  std::vector<uint32_t> forward;
  std::vector<uint32_t> backward;  // what goes backward through them
  bool are_all = false;            // no other forward pair reads a wrong tensor

  [[nodiscard]] bool empty() const { return forward.empty(); }
};

// The forward pairs that read another tensor, and whose result some later call reads; none where
// there are very many. Requires: verdicts of all rows.
SameNamedCalls FindSameNamed(const Comparison& comparison);

// Those of `same_named` that did right: a result of it arrived where both sides agree closely
// (`arrived`, per call, as of a walk in which they had no counterpart), or is zero throughout and
// read by a call whose result did; and no later call that reads its results is wrong.
SameNamedCalls ThatDidRight(const Comparison& comparison, const SameNamedCalls& same_named,
                            const std::vector<bool>& arrived);

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_UNPAIRED_CALLS_H_

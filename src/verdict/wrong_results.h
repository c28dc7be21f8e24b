// Results of calls without a counterpart: whether the other side has them too, or they are wrong.

#ifndef PLUMBLINE_VERDICT_WRONG_RESULTS_H_
#define PLUMBLINE_VERDICT_WRONG_RESULTS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plumbline/compare.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"
#include "verdict/unpaired_calls.h"

namespace plumbline::verdict {

// Whether calls without counterpart are another way to the same results (docs/design/verdict.md,
// "Another way to the same values").

// The pass in which the event's wrong value shows.
CallKind DirectionOf(const Comparison& comparison, const CulpritEvent& event);

// The directions (forward, backward) in which the two sides, after `events` made them part, meet
// again: every event there is a value that one side takes from a call which the other has not,
// every wrong result is read by a paired call or by one whose own result arrives where both sides
// agree, and after the last of them calls agree up to the end of the pass. Or, where some event is
// a value that both sides had, in another place of a formula: every wrong result comes to values
// that agree (WrongResults). `noise`: largest relative error that counts as noise. Requires:
// verdicts of all rows and calls, and what is good of `unpaired`.
std::set<CallKind> DirectionsThatMeet(const Comparison& comparison,
                                      const std::vector<CulpritEvent>& events,
                                      const UnpairedCalls& unpaired, double noise);

// Whether calls whose counterparts have other forms (`forms`) are another way to the same values:
// nothing that pairs is wrong, some pair behind the last of them computes what agrees, every result
// of the target's own calls is read, and every tensor gets the same gradient. Requires: verdicts of
// all rows and calls.
bool FormsMeet(const Comparison& comparison, const std::vector<CulpritEvent>& forms, double noise);

// Where wrong results go: whether all that is wrong in one pass over the calls comes to values that
// both sides have.

// The target's wrong results of one direction and what reads them. Requires: verdicts of all rows.
// Borrows the comparison.
class WrongResults {
 public:
  // `noise`: largest relative error that counts as noise.
  WrongResults(const Comparison& comparison, CallKind direction, double noise);

  // Whether every wrong result, and every result of a call without counterpart that reads one, is
  // read by a call whose input agrees with golden's; or by one in whose results, as many numbers
  // that agree, the difference is below the rounding; or leads through calls of which the same
  // holds; or, where nothing reads it, stands among golden's results, unread there too. A gradient
  // is followed to the call that made the value it is the gradient of: what that call's backward
  // reads is the sum of all such gradients.
  [[nodiscard]] bool AllMeet() const;

  // Whether what a call reads in this row shows in its results: those that are wrong are followed
  // by AllMeet(), or it is lost in their rounding. A call that returns nothing acts unseen.
  [[nodiscard]] bool IsFollowed(const ComparedRow& row) const { return LeadsOn(row); }

  // Whether each side had the contents that it reads in this row before the row's call, or had a
  // tensor `s - x` of them for a number s, which no recorder sees; or golden adds zeros there, with
  // which a sum may begin.
  [[nodiscard]] bool AreKnownBefore(const ComparedRow& row) const;

 private:
  using RowsByContents = std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash>;

  [[nodiscard]] CallKind KindOf(const ComparedRow& row) const;
  [[nodiscard]] std::span<const ComparedRow> RowsOf(uint32_t call) const;
  // Whether a wrong value that a call reads in this row is followed further, or lost in rounding.
  [[nodiscard]] bool LeadsOn(const ComparedRow& read) const;
  [[nodiscard]] bool IsRead(const ComparedRow& wrong) const;
  [[nodiscard]] bool IsCast(const ComparedRow& wrong) const;
  [[nodiscard]] bool IsUnreadOnBothSides(const ComparedRow& wrong) const;
  // Whether the call of a result also reads it: a copy, whose gradient is a part of that of what it
  // is copied from.
  [[nodiscard]] bool IsCopy(const ComparedRow& result) const;
  // The last forward call before `reader` that made `value` in this shape, else in another one, of
  // which no recorded call made a view (`x.mT`); or what `value` is a number less.
  [[nodiscard]] std::optional<uint32_t> MakerOf(const Item& value, uint32_t reader) const;
  // The call whose backward reads the sum of the gradients of `value`, which `reader` reads.
  [[nodiscard]] std::optional<uint32_t> GradientReaderOf(const Item& value, uint32_t reader) const;
  // The calls without counterpart that read the sum are added to `readers`.
  bool GoesToItsMaker(const ComparedRow& wrong, std::unordered_set<uint32_t>& readers) const;
  bool Meets(const ComparedRow& wrong, std::unordered_set<uint32_t>& readers) const;
  [[nodiscard]] bool IsKnownOn(bool of_target, const ComparedRow& row) const;

  const Comparison& comparison_;
  const CallKind direction_;
  const double noise_;
  RowsByContents read_, made_;  // target rows of the direction; made_: of forward calls
  std::unordered_set<ContentKey, ContentKeyHash> golden_read_;
  std::unordered_map<std::string_view, uint32_t> target_calls_;
};

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_WRONG_RESULTS_H_

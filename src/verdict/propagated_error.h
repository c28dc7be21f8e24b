// Errors that earlier calls explain: rounding handed on, sums of gradients, gradients of biases.

#ifndef PLUMBLINE_VERDICT_PROPAGATED_ERROR_H_
#define PLUMBLINE_VERDICT_PROPAGATED_ERROR_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/text/text_hash.h"
#include "measure/compared_row.h"
#include "plumbline/compare.h"
#include "verdict/choose_culprit.h"
#include "verdict/contents.h"

namespace plumbline::verdict {

// How far values may differ that come from calls which compute otherwise on the two sides.

// Follows one comparison, which must outlive this.
class ErrorsBefore {
 public:
  explicit ErrorsBefore(const Comparison& comparison) : comparison_(comparison) {}

  // The relative error that what the target reads in `row` inherits from values in which the sides
  // agree: back through the target's calls that have no counterpart or return something else, the
  // largest error of what these read, times their condition. Requires: verdicts of all calls
  // before.
  [[nodiscard]] double LeadingTo(const ComparedRow& row);
  // The same of a result of the target, by way of all that its call reads.
  [[nodiscard]] double Through(const ComparedRow& result);

 private:
  void Prepare();
  // The error of contents in which the sides agree before `call`, or as it reads them, if they do.
  [[nodiscard]] bool FindAgreeing(const std::vector<uint32_t>& rows, uint32_t call,
                                  double& error) const;

  const Comparison& comparison_;
  bool is_prepared_ = false;
  std::unordered_map<ContentKey, std::vector<uint32_t>, ContentKeyHash> rows_;  // of the target
};

// Gradients of a value that several calls read are added up where no recorder sees it.

// Follows one comparison, which must outlive this.
class GradientSums {
 public:
  struct Sum {
    Verdict worst = Verdict::kSame;  // of the terms
    double explained = 0;            // relative error: of the terms and of adding them
  };

  explicit GradientSums(const Comparison& comparison) : comparison_(comparison) {}

  // A gradient that a backward call returned. Requires: its verdict; both sides recorded.
  void Remember(uint32_t row);
  // Of a backward call without counterpart, on the target's side.
  void RememberAlone(const ComparedCall& call);
  // Two or three remembered gradients whose means add up to that of `row` on both sides, while
  // their norms can. Or one or two of calls without counterpart that do so on the target's side,
  // where both sides are no larger than the rounding of these: sums that cancel leave nothing else.
  // Nothing where there are none.
  [[nodiscard]] std::optional<Sum> FindTerms(const ComparedRow& row) const;
  // The same; or one that is so much larger that `row` is its rounding.
  [[nodiscard]] std::optional<Sum> Find(const ComparedRow& row) const;

 private:
  struct Alone {
    const Item* item;
    double rounding;  // absolute, root mean square
  };

  [[nodiscard]] std::optional<Sum> FindAlone(const ComparedRow& row) const;

  const Comparison& comparison_;
  // By element count.
  std::unordered_map<int64_t, std::vector<uint32_t>> recent_;
  std::unordered_map<int64_t, std::vector<Alone>> alone_;
};

// Gradients of biases that backward calls do not return: sums of the gradients that came in.

// Follows one comparison, which must outlive this. The node of a `linear` of more than two
// dimensions returns the gradient of the product alone; that of the bias first shows where an
// optimizer reads it. A module's backward call returns those of its inputs; those of its parameters
// stand apart.
class BiasGradients {
 public:
  explicit BiasGradients(const Comparison& comparison) : comparison_(comparison) {}

  // A paired backward call. Requires: the verdicts of its rows.
  void Remember(const ComparedCall& call);

  // The relative error that a gradient which no recorded call returned may have as the sum that a
  // bias gets: what adding the terms rounds, and what is explained of the terms, without a ceiling
  // (docs/design/verdict.md, "What no recorder sees"). Nothing where on either side no recorded
  // sum comes to it.
  [[nodiscard]] std::optional<double> ExplainedFor(const ComparedRow& row);

 private:
  // All that is added for one bias on one side: over several parts of a batch, over several uses.
  struct Sum {
    std::optional<ContentKey> weight, bias;  // new biases are all zero: weights tell them apart
    double total = 0;                        // of all elements
    double tolerance = 0;                    // of the total
    double rounding = 0;                     // of one element: probable size
  };
  struct Operands {
    const Item* weight = nullptr;
    const Item* bias = nullptr;
  };
  using Sums = std::unordered_map<int64_t, std::vector<Sum>>;  // by elements of the bias

  void Prepare();
  void RememberBias(const ComparedCall& call, bool of_target);
  void RememberParameters(const ComparedCall& call, bool of_target);
  void AddTerms(const ComparedCall& call, bool of_target);
  void AddTerms(const ComparedCall& call, bool of_target, const Operands& operands);

  const Comparison& comparison_;
  // By backward call; golden, target. Which of a module's vectors are biases is told by what adds
  // up to their gradients.
  TextMap<std::vector<Operands>> biases_[2];
  Sums sums_[2];
  bool is_prepared_ = false;
};

// Masks filled with another number that means "never" (docs/design/verdict.md, "Another value for
// "never"").

// Collects the inputs of one comparison that hold -inf on one side and a very low number on the
// other. What reads such a mask shows whether the two come to the same.
class OtherFills {
 public:
  // The code of a row with such a pair.
  static constexpr std::string_view kReason = "fill-differs";

  // If `row`, number `index` of the comparison and an input of `call`, is such a pair: marks it as
  // not comparable and returns true.
  bool Take(uint32_t call, uint32_t index, ComparedRow& row);
  // The first that was taken: to blame if what reads it is wrong.
  [[nodiscard]] const std::optional<CulpritEvent>& first() const { return first_; }

 private:
  std::optional<CulpritEvent> first_;
};

// What an optimizer makes of gradients, element by element.

// Contents of golden tensors: gradients that forward calls read, and what calls that work element
// by element made of them. Some elements may be rounding alone, whatever the error of the whole is.
class GradientPath {
 public:
  // `hidden`: relative error that statistics may hide because single elements may be anything.
  void Add(const Item& golden, double hidden = 0) {
    const std::optional<ContentKey> key = KeyOf(golden);
    if (!key) return;
    double& known = hidden_[*key];
    known = std::max(known, hidden);
  }
  // Nothing: it is none of these.
  [[nodiscard]] std::optional<double> HiddenIn(const Item& golden) const {
    const std::optional<ContentKey> key = hidden_.empty() ? std::nullopt : KeyOf(golden);
    const auto found = key ? hidden_.find(*key) : hidden_.end();
    return found == hidden_.end() ? std::nullopt : std::optional(found->second);
  }
  // Truth values of a call, which have no contents to follow. Requires: a row of the comparison.
  void AddTruth(const ComparedRow& row) { truths_[row.golden->shape] = &row; }
  // The last ones of that shape that differ as the row does; null: none.
  [[nodiscard]] const ComparedRow* TruthOf(const ComparedRow& row) const {
    const auto found = truths_.find(row.golden->shape);
    if (found == truths_.end()) return nullptr;
    const ComparedRow& truth = *found->second;
    const bool is_same = truth.golden->dtype == row.golden->dtype && truth.error == row.error &&
                         measure::HasSameExtremes(*truth.golden, *row.golden) &&
                         measure::HasSameExtremes(*truth.target, *row.target);
    return is_same ? &truth : nullptr;
  }
  [[nodiscard]] bool Has(const Item& golden) const { return HiddenIn(golden).has_value(); }

 private:
  std::unordered_map<ContentKey, double, ContentKeyHash> hidden_;
  std::map<Shape, const ComparedRow*> truths_;
};

}  // namespace plumbline::verdict

#endif  // PLUMBLINE_VERDICT_PROPAGATED_ERROR_H_

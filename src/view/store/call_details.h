// Rows of a comparison, or what one recording holds of a call, as the detail of a node.

#ifndef PLUMBLINE_VIEW_STORE_CALL_DETAILS_H_
#define PLUMBLINE_VIEW_STORE_CALL_DETAILS_H_

#include <string_view>

#include "match/expand.h"
#include "plumbline/compare.h"
#include "view/store/node_detail.h"

namespace plumbline::view {

// Adds one call of a comparison. The texts are those of the comparison, which must stay.
void AddCall(const Comparison& comparison, const ComparedCall& call, NodeDetail& detail);
// Adds what one recording holds of a call; `call` must stay.
void AddCall(const match::CallItems& call, NodeDetail& detail);

// Adds the metrics of a comparison of statistics, "max_diff" and so on, which follow from the
// statistics of both sides and are not stored.
void AddDifferences(StoredValue& value);
// The statistics of a side, or its value, as they were recorded.
Item ItemOfSide(const ValueSide& side);

// Errors of a call by its rows; NaN: none.
struct CallErrors {
  double of_outputs, of_inputs;
  bool are_outputs_bad = false, are_inputs_bad = false;  // suspicious or broken
};
CallErrors ErrorsOf(const Comparison& comparison, const ComparedCall& call);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_CALL_DETAILS_H_

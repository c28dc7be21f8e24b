// The columns of a comparison of static-graph dumps, as upstream has them.

#ifndef PLUMBLINE_REPORT_GRAPH_TABLE_H_
#define PLUMBLINE_REPORT_GRAPH_TABLE_H_

#include "plumbline/compare.h"
#include "report/table.h"

namespace plumbline::report {

// Replaces the results of statistics rows by those of upstream's comparison of graphs: "Yes" when
// the maxima are at most half of the larger one apart, or both NaN; "No" otherwise; empty where
// statistics are missing. Requires: FillTable() before.
void FillGraphResults(Comparison& comparison);

// Upstream's columns of release 1.2.2, or with `newest` of its newest release, then `Verdict` and
// `Reason`. Requires: comparison.of_graphs().
std::vector<Column> GraphColumnsOf(const Comparison& comparison, bool newest);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_GRAPH_TABLE_H_

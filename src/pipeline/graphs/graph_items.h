// What a comparison of static-graph dumps does to the values of kernels before they are judged.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_GRAPH_ITEMS_H_
#define PLUMBLINE_PIPELINE_GRAPHS_GRAPH_ITEMS_H_

#include <vector>

#include "match/expand.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// Maximum, minimum, mean and norm of every .npy file, which the dump does not hold; with `as_table`
// as statistic.csv has them, where truth values are numbers. No effect on dumps of statistics and
// on files that cannot be read. Runs on the threads of the caller's arena.
void FillGraphStatistics(const Run& run, std::vector<match::CallItems>& calls, bool as_table);

// Gives values whose file cannot be read the shape and type of their namesake on the other side, so
// that they pair and their rows say what is wrong.
void LendShapes(std::vector<match::CallItems>& target, std::vector<match::CallItems>& golden);

// statistic.csv holds six digits: raises the noise of every row to what that makes of equal values.
// `noise` as of JudgeRows(); empty, or one number per row.
void AddPrintedPrecision(const Comparison& comparison, std::vector<double>& noise);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_GRAPH_ITEMS_H_

// Static graphs among the recordings: values of kernels, and what a data mapping names.

#ifndef PLUMBLINE_COMPARE_GRAPH_VALUES_H_
#define PLUMBLINE_COMPARE_GRAPH_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "match/expand.h"
#include "plumbline/compare.h"
#include "plumbline/result.h"

namespace plumbline::compare {

// What a comparison of static-graph dumps does to the values of kernels before they are judged.

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

// A static graph against recorded calls: only what a data mapping names can be compared.

// Leaves the calls and values that the file of a data mapping (match/mapping_file.h) names. What is
// left out is said in `warnings`, a sentence per side. Returns how many lines name values that
// neither side has, so that no row shows them. kInvalidArgument when nothing that it names is
// there; errors of the file.
Result<uint64_t> KeepMapped(const std::string& mapping_path, std::vector<match::CallItems>& target,
                            std::vector<match::CallItems>& golden,
                            std::vector<std::string>& warnings);

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_GRAPH_VALUES_H_

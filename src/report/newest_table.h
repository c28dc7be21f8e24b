// The csv file with the columns of the newest upstream release.

#ifndef PLUMBLINE_REPORT_NEWEST_TABLE_H_
#define PLUMBLINE_REPORT_NEWEST_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::report {

// Columns of upstream 26.2.0 for the comparison's mode, then `Verdict` and `Reason`.
std::vector<std::string_view> NewestHeader(const Comparison& comparison);

// Rows of one file; the release cuts more into parts.
inline constexpr size_t kNewestCsvRows = 1'000'000;

// Where the rows go: `path`, or, above `most_rows`, "<stem>_part_1.csv", "<stem>_part_2.csv", ...
std::vector<std::string> NewestCsvPaths(const Comparison& comparison, const std::string& path,
                                        size_t most_rows = kNewestCsvRows);

// Rows in the order of the comparison, in the files of NewestCsvPaths(), each with the header. A
// file appears complete or not at all; when one fails, no other part stays.
Status WriteNewestCsv(const Comparison& comparison, const std::string& path,
                      size_t most_rows = kNewestCsvRows);

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_NEWEST_TABLE_H_

// The result tables of single ranks: which files there are, and the rows of one.

#ifndef PLUMBLINE_PIPELINE_RANKS_MERGE_INPUTS_H_
#define PLUMBLINE_PIPELINE_RANKS_MERGE_INPUTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/xlsx_reader.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

// The table of one rank, in one file or in parts.
struct RankTable {
  int64_t rank = 0;  // the target's
  std::vector<std::string> files;
};

struct RankTables {
  std::vector<RankTable> tables;      // by rank
  std::vector<std::string> warnings;  // older tables of a rank, which are not read
  std::vector<std::string> left_out;  // tables of runs without ranks
};

// kInvalidArgument names a .xlsx that is neither a result of a rank nor a merged one, and two sets
// of one rank that cannot be told apart by time.
Result<RankTables> FindRankTables(const std::string& directory);

// Calls `visit` for every row behind a header, together with that header. Errors of the readers.
using TableVisitor =
    std::function<Status(const std::vector<std::string>& header, std::span<const xlsx::Cell> row)>;
Status ReadTable(const std::string& path, const TableVisitor& visit);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RANKS_MERGE_INPUTS_H_

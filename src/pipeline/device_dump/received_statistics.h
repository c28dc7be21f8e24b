// Statistics that a device computes: its table of one operator as rows of statistic.csv.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_RECEIVED_STATISTICS_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_RECEIVED_STATISTICS_H_

#include <cstdint>
#include <string>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// Whether a received file is such a table, by its first bytes.
bool IsDeviceTable(const std::string& piece);

// Appends the rows of `piece`, which the runtime would have called `target`, to statistic.csv
// beside it, whose header is written first; waits while another thread or process appends. Columns
// of a device count whatever their case and blanks. Returns the number of rows. kCorrupt: a name
// that is none of a dump, a row without its cells; kInvalidArgument: a table with other columns is
// there.
Result<uint64_t> AddDeviceTable(const std::string& piece, const std::string& target);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_RECEIVED_STATISTICS_H_

// `plumb data2db --format monitor`: what a training monitor wrote as a database for the trend
// viewer.

#ifndef PLUMBLINE_WATCH_MONITOR_TO_DB_H_
#define PLUMBLINE_WATCH_MONITOR_TO_DB_H_

#include <string>

#include "plumbline/result.h"
#include "watch/data_to_db.h"

namespace plumbline {

// Imports the csv files of a monitor's directories in `data` (load/monitor_files.h) into
// `output`/monitor_data.trend.db, which appears when it is complete; `output` is made if missing.
// Each file is read twice, a block at a time. Of a training that was resumed the later
// directory of a rank counts from its first step on; of rows with one key the first stays. Micro
// steps are told apart unless the options say otherwise. kNotFound (no directory, no row), kCorrupt
// (a file or the mapping), kInvalidArgument, kIo. After an error there is no new database, and an
// old one stays.
Result<DataToDbReport> MonitorToDb(const std::string& data, const std::string& output,
                                   const DataToDbOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_MONITOR_TO_DB_H_

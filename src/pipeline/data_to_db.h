// `plumb data2db`: the steps of a dump directory as one database for the trend viewer.

#ifndef PLUMBLINE_PIPELINE_DATA_TO_DB_H_
#define PLUMBLINE_PIPELINE_DATA_TO_DB_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

struct DataToDbOptions {
  std::string mapping_path;         // JSON object {old text: new text}; empty: none
  std::optional<bool> micro_steps;  // nothing: where the modules have one root
  // Called before each file.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

struct DataToDbReport {
  std::string path;
  std::array<uint64_t, 4> rows = {};  // by trend_db::Metric
  uint64_t targets = 0;
  uint64_t left_out = 0;  // rows with the key of an earlier one
  uint64_t steps = 0;     // directories
  int64_t max_rank = 0, min_step = 0, max_step = 0;
  bool micro_steps = false;
  std::vector<std::string> notes;     // what the scan decided
  std::vector<std::string> warnings;  // what is missing or was replaced
};

// Imports step{N}/rank{R}/dump.json below `data` into `output`/dump_data.trend.db, which appears
// when it is complete; `output` is made if missing. Memory: one entry of a dump.json at a time, the
// names of one file, and one record per target.
// kNotFound (no directory, no recording, no tensor), kUnsupported (data of the monitor), kCorrupt
// (dump.json, construct.json or the mapping), kInvalidArgument, kIo. After an error there is no new
// database, and an old one stays.
Result<DataToDbReport> DataToDb(const std::string& data, const std::string& output,
                                const DataToDbOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_DATA_TO_DB_H_

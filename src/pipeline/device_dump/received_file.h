// One dump file that a device has sent, as the files that users look at.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_RECEIVED_FILE_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_RECEIVED_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::pipeline {

struct ReceivedFile {
  uint64_t outputs = 0;               // files that are there now, rows of tables
  std::vector<std::string> problems;  // one sentence each
};

// Converts the complete file `piece`, which the runtime would have called `target`, into files
// beside `target`: records of overflows to JSON, a device's table of statistics to rows of
// statistic.csv, everything else to arrays. Tensors of four dimensions become NCHW, others ND,
// where the layout can be converted; otherwise they stay in the layout and shape of the device,
// which their name tells. Types that NumPy does not have are written as their bytes, without
// ".npy". A file that is there stays: where the new one is not the same, that is a problem, and the
// piece becomes `{target}.delivery-{n}`. So does one that has too many bytes or too few and that
// `is_appended`, put together of pieces without places: any of its tensors may be another one.
// Thread-safe for different targets.
ReceivedFile ConvertReceived(const std::string& piece, const std::string& target, bool is_appended);

// Whether a file `name` whose end nobody announced is a dump that has all its parts.
bool IsWhole(const std::string& piece, std::string_view name);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_RECEIVED_FILE_H_

// Device dumps as files of other programs: a file, a list or a tree (docs/reference/convert.md).

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_DUMPS_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_DUMPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/device_dump/convert_options.h"
#include "pipeline/device_dump/dump_files.h"

namespace plumbline::pipeline {

struct ConvertReport {
  size_t files = 0;                  // that were to be converted
  size_t done_before = 0;            // of these, by a run that was killed
  size_t failed = 0;                 // of these, with at least one failure
  std::vector<std::string> outputs;  // paths of files written now, in the order of the dumps
  uint64_t output_bytes = 0;
  size_t left_out = 0;                    // files of the directory that are no dumps by their names
  std::vector<std::string> lines;         // "path: output 1: what happened (error 21)", in order
  std::vector<std::string> failed_files;  // lines of the list: "path,output:1\treason"
  std::vector<std::string> notes;
  std::optional<DumpCode> code;  // of the first failure
  std::string failure_list;      // path of the list of failed files; empty: none was needed
};

// Converts all dumps; one that fails stops no other, and of several whose outputs would have the
// same names the first is converted. Every output appears when it is complete. When
// the process is killed, a hidden journal in the output directory lets the next run with the same
// options do the rest. The failures of this run are in a list there.
// kInvalidParameter (also an empty directory), kInvalidPath, kWriteError: nothing was converted.
DumpResult<ConvertReport> ConvertDumps(const ConvertRequest& request);
// The same of what was found below request.dump_path, a directory.
DumpResult<ConvertReport> ConvertFound(const ConvertRequest& request, DumpFiles found);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_DUMPS_H_

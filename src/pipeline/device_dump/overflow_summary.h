// The overflows that a device recorded (OpDebug records) with the operators they happened in.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_OVERFLOW_SUMMARY_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_OVERFLOW_SUMMARY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/device_dump/msaccucmp_code.h"

namespace plumbline::pipeline {

struct OverflowRequest {
  std::string directory;  // searched with those below
  std::string output_directory;
  size_t count = 1;  // records, the earliest first
};

struct OverflowSummary {
  size_t found = 0;          // files with records
  std::string first;         // "[MatMul] network/fc1/MatMul (AI Core, status 16)"; empty: none
  std::string summary_path;  // empty: no record
  std::vector<std::string> outputs;    // records as JSON and operators' tensors as arrays
  std::vector<std::string> failures;   // sentences with upstream's error numbers
  std::vector<std::string> notes;      // such as an operator that was not dumped
  DumpCode code = DumpCode::kUnknown;  // of the first failure
};

// Writes overflow_summary_{time}.txt, the records as JSON and the tensors of their operators as
// arrays. A bad record or tensor is a failure, and the others follow. kInvalidPath, kWriteError.
DumpResult<OverflowSummary> SummarizeOverflows(const OverflowRequest& request);

// Whether a directory or one below it has records. False for what is no directory.
bool HasOverflowRecords(const std::string& directory);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_OVERFLOW_SUMMARY_H_

// The overflows that a device recorded (OpDebug records) with the operators they happened in.

#ifndef PLUMBLINE_OPERATORS_OVERFLOW_SUMMARY_H_
#define PLUMBLINE_OPERATORS_OVERFLOW_SUMMARY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "load/dump_files.h"
#include "operators/msaccucmp_code.h"

namespace plumbline::operators {

struct OverflowRequest {
  std::string output_directory;
  size_t count = 1;  // files with sound records, the earliest first
};

struct OverflowSummary {
  size_t found = 0;           // files with records
  size_t damaged = 0;         // of them, those of which something is told
  std::string first;          // "[MatMul] network/fc1/MatMul (AI Core, status 16)"; empty: none
  bool is_first_sure = true;  // nothing in front of it, by time, could not be read
  std::string summary_path;   // empty: no record
  std::vector<std::string> outputs;    // records as JSON and operators' tensors as arrays
  std::vector<std::string> failures;   // sentences with upstream's error numbers
  std::vector<std::string> notes;      // such as an operator that was not dumped
  DumpCode code = DumpCode::kUnknown;  // of the first failure
};

// Writes overflow_summary_{time}.txt, the records as JSON and the tensors of their operators as
// arrays; nothing where `found` has no record. A bad record or tensor, or a directory that could
// not be listed, is a failure, and the others follow; records behind the wanted ones are looked at
// too. kInvalidPath, kWriteError.
DumpResult<OverflowSummary> SummarizeOverflows(const OverflowRequest& request,
                                               load::DumpFiles found);

bool HasOverflowRecords(const load::DumpFiles& found);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_OVERFLOW_SUMMARY_H_

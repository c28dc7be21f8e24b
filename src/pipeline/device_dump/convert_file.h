// One device dump as files of other programs.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_FILE_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/device_dump/convert_options.h"
#include "pipeline/device_dump/output_names.h"

namespace plumbline::pipeline {

// What failed: a part ("input:0", "output:2") or, where that is empty, the file.
struct ConvertFailure {
  std::string part;
  DumpFailure failure;
};

struct FileConversion {
  std::vector<PlacedFile> outputs;  // finished files
  std::vector<ConvertFailure> failures;
  std::vector<std::string> notes;  // what is odd and did no harm
};

// Converts the dump at `path` (or what else the options take), whose outputs are named after
// `name`. Whatever can be read is written; each output appears under its name when it is complete.
FileConversion ConvertFile(const std::string& path, const std::string& name,
                           const ConvertOptions& options, OutputDirectory& directory);

// What converting a file of overflow records would fail with, for what lies in the file. Writes
// nothing.
std::vector<ConvertFailure> CheckRecords(const std::string& path, const std::string& name);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_FILE_H_

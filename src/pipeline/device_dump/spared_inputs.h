// Dumps that lie where their outputs will: none is replaced before it was read.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_SPARED_INPUTS_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_SPARED_INPUTS_H_

#include <string>
#include <vector>

#include "pipeline/device_dump/convert_options.h"
#include "pipeline/device_dump/dump_files.h"

namespace plumbline::pipeline {

// kInvalidParameter: an output of one of the files may have the place of another one, to which a
// link may lead. `output_directory` is that of all of them, with DumpPath::directory behind it.
// Reads headers of dumps only where an input has the name of an output.
DumpStatus CheckSparesInputs(const std::vector<DumpPath>& files,
                             const std::string& output_directory, const ConvertOptions& options);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_SPARED_INPUTS_H_

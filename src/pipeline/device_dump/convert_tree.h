// The asynchronous dump of a static graph with its tensors in the layout of the host.

#ifndef PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_TREE_H_
#define PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_TREE_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// Writes every tensor of every device file below `root` beside it:
// {name of the file}.{io}.{slot}.NCHW.npy, or with its own layout in place of NCHW where there is
// no such conversion. Tensors of an earlier time are replaced, nothing is removed. One file that
// fails stops no other; returns a line for each, "path,output:1\treason", which are also in
// convert_failed_files_summary.txt. When the process is killed, the next call does the rest.
// kNotFound: there is neither a device file nor a tensor of the host. kIo: nothing was converted.
Result<std::vector<std::string>> ConvertTreeToHost(const std::string& root);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_DEVICE_DUMP_CONVERT_TREE_H_

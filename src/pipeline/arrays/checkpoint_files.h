// Comparing two checkpoints with the result files of it, for the program and for Python.

#ifndef PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_FILES_H_
#define PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_FILES_H_

#include <string>
#include <vector>

#include "pipeline/arrays/compare_checkpoints.h"
#include "plumbline/compare.h"

namespace plumbline {

struct CheckpointReport {
  CheckpointComparison comparison;
  std::vector<std::string> files;  // written, in order
};

// CompareCheckpoints() with `threads` and `on_progress` of the options, then the files that its
// `formats` ask for, into `output_dir`: ckpt_similarity.json, or the path itself where that ends in
// .json, and the workbooks of trees of arrays. An empty `output_dir`: none. Errors: also kIo, when
// a named file exists or nothing can be written; the first before the work.
Result<CheckpointReport> CompareCheckpointFiles(const std::string& target,
                                                const std::string& golden,
                                                const CompareOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_FILES_H_

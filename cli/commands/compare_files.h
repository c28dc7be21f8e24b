// `plumb compare` on files and checkpoints in place of recordings.

#ifndef PLUMBLINE_CLI_COMMANDS_COMPARE_FILES_H_
#define PLUMBLINE_CLI_COMMANDS_COMPARE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "load/operator_dumps.h"
#include "plumbline/compare.h"
#include "plumbline/result.h"

namespace plumbline::cli {

// Whether both paths are arrays or checkpoints (load::LooksLikeCheckpoint).
bool AreFiles(const std::string& target, const std::string& golden);

// Compares two dumps of ATB, prints the answer, writes the workbook. Returns the exit status.
Result<int> CompareAtbDumps(const std::string& target, const std::string& golden,
                            const CompareOptions& options, const std::vector<std::string>& fail_on);

// The same of dumps of torchair: a report per rank. `ranks` empty: all that both have.
Result<int> CompareTorchairDumps(const std::string& target, const std::string& golden,
                                 const CompareOptions& options,
                                 const std::vector<std::string>& fail_on,
                                 const std::vector<int64_t>& ranks);

// The same of device dumps: a result_*.csv per pair of directories.
Result<int> CompareOperatorDumps(const std::vector<load::OperatorTree>& trees,
                                 const CompareOptions& options,
                                 const std::vector<std::string>& fail_on);

// The same of two dump files of devices. `fail_on` empty: as of CompareFiles().
Result<int> CompareTwoDumpFiles(const std::string& target, const std::string& golden,
                                const CompareOptions& options, std::vector<std::string> fail_on);

// The same of operator dumps in HDF5: writes result_<time>.csv.
Result<int> CompareHdf5Dumps(const std::string& target, const std::string& golden,
                             const CompareOptions& options,
                             const std::vector<std::string>& fail_on);

// Compares them, prints the answer, writes ckpt_similarity.json of checkpoints. `output`: a
// directory, or a path that ends in .json; an existing file is kIo. Returns the exit status.
// `fail_on` empty: suspicious, broken and unmatched.
Result<int> CompareFiles(const std::string& target, const std::string& golden,
                         const CompareOptions& options, std::vector<std::string> fail_on,
                         bool machine);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_COMPARE_FILES_H_

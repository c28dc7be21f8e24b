// Compares two dump files of devices with each other, whatever they are called.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_COMPARE_DUMP_FILES_H_
#define PLUMBLINE_PIPELINE_OPERATORS_COMPARE_DUMP_FILES_H_

#include <string>

#include "pipeline/operators/compare_operators.h"

namespace plumbline::pipeline {

// Whether both are such files (load/single_dump.h), one operator each.
bool AreDumpFiles(const std::string& target, const std::string& golden);

// The tensors of two such files by their positions. A tensor that cannot be read is a row. Errors
// of acl::DumpFile::Open(), with the path.
Result<OperatorComparison> CompareDumpFiles(const std::string& target, const std::string& golden,
                                            int threads);

// The answer, then a line per tensor.
std::string DumpFilesText(const OperatorComparison& comparison);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_COMPARE_DUMP_FILES_H_

// Compares two dump files of devices with each other, whatever they are called.

#ifndef PLUMBLINE_OPERATORS_COMPARE_DUMP_FILES_H_
#define PLUMBLINE_OPERATORS_COMPARE_DUMP_FILES_H_

#include <string>

#include "operators/compare_operators.h"

namespace plumbline::operators {

// The tensors of two such files by their positions. A tensor that cannot be read is a row. Errors
// of acl::DumpFile::Open(), with the path.
Result<OperatorComparison> CompareDumpFiles(const std::string& target, const std::string& golden,
                                            int threads);

// The answer, then a line per tensor.
std::string DumpFilesText(const OperatorComparison& comparison);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_COMPARE_DUMP_FILES_H_

// Texts that custom AI CPU operators left in their dumps.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_SPACE_LOGS_H_
#define PLUMBLINE_PIPELINE_OPERATORS_SPACE_LOGS_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// Writes every workspace of the dump, without its NUL bytes, as {name of the file}.{i}.log in
// `directory`; their paths, none if the dump has no workspace. Errors of acl::DumpFile::Open();
// kCorrupt: a workspace is cut; kIo.
Result<std::vector<std::string>> SaveSpaceLogs(const std::string& dump_path,
                                               const std::string& directory);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_SPACE_LOGS_H_

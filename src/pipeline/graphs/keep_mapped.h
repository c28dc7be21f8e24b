// A static graph against recorded calls: only what a data mapping names can be compared.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_KEEP_MAPPED_H_
#define PLUMBLINE_PIPELINE_GRAPHS_KEEP_MAPPED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "match/expand.h"
#include "plumbline/result.h"

namespace plumbline::pipeline {

// Leaves the calls and values that the file of a data mapping (match/mapping_file.h) names. What is
// left out is said in `warnings`, a sentence per side. Returns how many lines name values that
// neither side has, so that no row shows them. kInvalidArgument when nothing that it names is
// there; errors of the file.
Result<uint64_t> KeepMapped(const std::string& mapping_path, std::vector<match::CallItems>& target,
                            std::vector<match::CallItems>& golden,
                            std::vector<std::string>& warnings);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_KEEP_MAPPED_H_

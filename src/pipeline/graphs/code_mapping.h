// The lines of the training script behind every tensor of a static-graph dump.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_CODE_MAPPING_H_
#define PLUMBLINE_PIPELINE_GRAPHS_CODE_MAPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

struct CodeMappingOptions {
  std::vector<std::string> graphs;  // files: texts of graphs, or protocol buffers (*.pb)
  std::string data;                 // an .npy file, a statistic.csv, or a directory of either
  std::string output = ".";         // where the table of .npy files goes
};

struct CodeMappingReport {
  std::vector<std::string> files;  // written
  // Tensors, or rows of tables: all, those with a kernel, and of these those with several.
  uint64_t tensors = 0, mapped = 0, ambiguous = 0;
  std::vector<std::string> notes;  // sentences for the user
};

// Writes, where there are .npy files at any depth, `output`/code_mapping_{yyyymmddhhmmss}.csv:
// File Path, Code Stack, Scope Name, Match, by path. Otherwise beside each statistic.csv a
// statistic_code_mapping.csv: its rows, and the last three of these columns. No input is changed.
// Match is NameMatchName(); tensors without kernel have a row with empty cells.
//
// Errors: kNotFound when a path does not exist or there are no tensors, kInvalidArgument when no
// graph names a kernel, kCorrupt for damaged graphs and tables, kIo.
Result<CodeMappingReport> MapCode(const CodeMappingOptions& options);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_CODE_MAPPING_H_

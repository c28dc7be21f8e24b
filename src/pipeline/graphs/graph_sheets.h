// The compiled graphs of a dump as a workbook.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_GRAPH_SHEETS_H_
#define PLUMBLINE_PIPELINE_GRAPHS_GRAPH_SHEETS_H_

#include <string>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// Writes `directory`/dump_{yyyymmdd}_{hhmmss}.xlsx, as mindinsight's DumpParser does, and returns
// its path: sheets info, constant, parameter, operator, statistics and source of the graphs in
// rank_{r}/graphs/*.pb below `root`, by rank and number of the graph. What is unknown is "-".
// kNotFound without ranks or `root`; kCorrupt for damaged graphs; kIo.
Result<std::string> WriteGraphSheets(const std::string& root, const std::string& directory);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_GRAPH_SHEETS_H_

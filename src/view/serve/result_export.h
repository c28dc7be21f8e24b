// A result as a file that somebody takes along.

#ifndef PLUMBLINE_VIEW_SERVE_RESULT_EXPORT_H_
#define PLUMBLINE_VIEW_SERVE_RESULT_EXPORT_H_

#include <string>

#include "base/text/json.h"
#include "plumbline/compare_options.h"
#include "plumbline/result.h"
#include "view/serve/dataset_list.h"
#include "view/serve/job_list.h"

namespace plumbline::view {

// The member "format" of `body`. kInvalidArgument, kUnsupported: this dataset has no such form.
Result<std::string> ExportFormatOf(const DatasetFacts& dataset, const json::Value& body);

// `body`: {"format": "csv" | "xlsx" | "html" | "vis" | "vis.db", "q", "place"}. A table has the
// nodes that the query finds, in order of execution; .vis, .vis.db and the page in one file are
// made of the recordings, paired by `compare`. Writes into `directory`. kInvalidArgument: another
// format or a faulty query; kUnsupported: this dataset has no such form.
Result<JobFile> ExportResult(const DatasetFacts& dataset, const json::Value& body,
                             const std::string& directory, const CompareOptions& compare,
                             JobControl& job);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_RESULT_EXPORT_H_

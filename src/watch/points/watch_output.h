// The answer of `plumb watch` as files, by the ending of their names.

#ifndef PLUMBLINE_WATCH_POINTS_WATCH_OUTPUT_H_
#define PLUMBLINE_WATCH_POINTS_WATCH_OUTPUT_H_

#include <string>

#include "plumbline/result.h"
#include "watch/points/watch_run.h"

namespace plumbline::watch {

// .csv, .xlsx, .json, .jsonl, .sarif, .xml (JUnit), .html. kInvalidArgument for other endings.
Status CheckOutputName(const std::string& path);
// Appears complete or not at all. Requires: CheckOutputName(). kIo.
Status WriteWatch(const WatchReport& report, const std::string& path);

// The answer for programs; `with_rows`: every row, else counts and the first hit alone.
std::string WatchJson(const WatchReport& report, bool with_rows);

// One for each form; only WriteWatch() needs them.
Status WriteWatchJunit(const WatchReport& report, const std::string& path);
Status WriteWatchSarif(const WatchReport& report, const std::string& path);
Status WriteWatchHtml(const WatchReport& report, const std::string& path);
// Appends a row as an object.
void AppendRowJson(const WatchReport& report, const WatchRow& row, std::string& out);

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_POINTS_WATCH_OUTPUT_H_

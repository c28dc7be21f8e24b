// What a page may open: the recordings and results of a directory.

#ifndef PLUMBLINE_VIEW_SERVE_RECORDING_ENTRIES_H_
#define PLUMBLINE_VIEW_SERVE_RECORDING_ENTRIES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "plumbline/result.h"
#include "view/serve/served_paths.h"

namespace plumbline::view {

enum class EntryKind : uint8_t { kRecording, kVis, kVisDb, kTrendDb, kTable, kDirectory, kOther };
std::string_view EntryKindName(EntryKind kind);  // "recording", "vis", "vis.db", ...

// Of a file by its name; of a directory by what stands in it. kOther also where nothing is.
EntryKind KindOfEntry(const std::string& path);

// The answer {"entries": [...]} for the directory `path` below a root; empty: the roots themselves.
// Entries that a page cannot open are left out, as are hidden ones. kNotFound, kIo.
Result<std::string> RecordingsAnswer(const ServedPaths& paths, std::string_view path);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_SERVE_RECORDING_ENTRIES_H_

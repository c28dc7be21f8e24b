// What recordings of merged parallel ranks have beside those of one rank
// (docs/formats/dump_json.md).

#ifndef PLUMBLINE_FORMATS_JSON_MERGED_DUMP_JSON_H_
#define PLUMBLINE_FORMATS_JSON_MERGED_DUMP_JSON_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/dump_json.h"
#include "plumbline/result.h"

namespace plumbline::dump_json {

// Of the header: several ranks became one.
inline constexpr std::string_view kIsMerged = "is_merged";
// Of an entry: which and how, a line each. No value of the call.
inline constexpr std::string_view kMergeLines = "parallel_merge_info";

// Whether the header of a dump.json says so. False also for what cannot be read.
bool SaysMerged(const std::string& dump_json_path);
// What DumpWriter::Begin() writes for a merged recording.
std::string MergedHeader(const RunHeader& header);

std::string FormatCallTree(const CallTree& tree);
// The grouped form of 26.x: calls that have the same frames, which are a JSON list.
struct StackGroup {
  std::vector<std::string_view> names;
  std::string_view frames;
};
Status WriteStackGroups(std::span<const StackGroup> groups, const TextSink& sink);

}  // namespace plumbline::dump_json

#endif  // PLUMBLINE_FORMATS_JSON_MERGED_DUMP_JSON_H_

// Reading .vis files (vis_json.h): those of msprobe up to 8.2.0, and our own.

#ifndef PLUMBLINE_FORMATS_JSON_VIS_JSON_READER_H_
#define PLUMBLINE_FORMATS_JSON_VIS_JSON_READER_H_

#include <memory>
#include <string>

#include "formats/json/vis_source.h"
#include "plumbline/result.h"

namespace plumbline::vis_json {

// Reads the whole file; memory is that of the file and of its names. Step and rank are those of its
// name (compare_step2_rank3_*.vis), otherwise 0. Tolerated: keys of old and of later releases,
// names with the mark of a side, values that are no texts, micro steps that are. kNotFound, kIo;
// kCorrupt: no JSON, or cut, naming the byte; kUnsupported: JSON without a graph.
Result<std::unique_ptr<vis::Source>> Open(const std::string& path);

}  // namespace plumbline::vis_json

#endif  // PLUMBLINE_FORMATS_JSON_VIS_JSON_READER_H_

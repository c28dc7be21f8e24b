// Graphs written into the files of one result.

#ifndef PLUMBLINE_VIEW_GRAPH_WRITER_H_
#define PLUMBLINE_VIEW_GRAPH_WRITER_H_

#include <optional>
#include <string>
#include <string_view>

#include "formats/json/vis_json.h"
#include "formats/json/vis_record.h"
#include "formats/sqlite/vis_db.h"
#include "plumbline/result.h"
#include "view/build_graph.h"

namespace plumbline::view {

// Writes all nodes of the graphs of one rank, the target's first; `place` is that of the target.
Status WriteGraphs(const vis::GraphPlace& place, RecordedGraph& target,
                   std::optional<RecordedGraph>& golden, vis_db::Writer& writer);
Status WriteGraphs(const vis::GraphPlace& place, RecordedGraph& target,
                   std::optional<RecordedGraph>& golden, vis_json::Writer& writer);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_GRAPH_WRITER_H_

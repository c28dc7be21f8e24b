// .vis: the graphs of one rank and step as one JSON document (upstream 1.2.2; vis_record.h).

#ifndef PLUMBLINE_FORMATS_JSON_VIS_JSON_H_
#define PLUMBLINE_FORMATS_JSON_VIS_JSON_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/text_file.h"
#include "formats/json/vis_record.h"
#include "plumbline/result.h"

namespace plumbline::vis_json {

// Appears under its name only when complete. One node on a line: upstream's indentation would make
// the file twice as large. Errors are those of TextFile. Single-threaded; move-only.
class Writer {
 public:
  // `is_pair`: two graphs follow, the target first.
  static Result<Writer> Create(const std::string& path, bool is_pair);
  // `dump_data_dir` may be nothing. `stacks`: JSON lists of frames, which must stay until
  // EndGraph().
  Status BeginGraph(const vis::GraphPlace& place, const std::optional<std::string>& dump_data_dir,
                    const std::vector<std::string>& stacks);
  Status Add(const vis::Node& node);
  void EndGraph();
  Status Finish(const vis::Summary& summary);

 private:
  Writer(TextFile file, bool is_pair) : file_(std::move(file)), is_pair_(is_pair) {}

  TextFile file_;
  const bool is_pair_;
  bool is_first_ = true;  // no node of the graph yet
  const std::vector<std::string>* stacks_ = nullptr;
};

}  // namespace plumbline::vis_json

#endif  // PLUMBLINE_FORMATS_JSON_VIS_JSON_H_

// .vis: the graphs of one rank and step as one JSON document (upstream 1.2.2; vis_record.h).

#ifndef PLUMBLINE_FORMATS_JSON_VIS_JSON_H_
#define PLUMBLINE_FORMATS_JSON_VIS_JSON_H_

#include <functional>
#include <map>
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
  // `facts` stand in a member of our own, "mp_meta".
  Status Finish(const vis::Summary& summary, const vis::Facts& facts);

 private:
  Writer(TextFile file, bool is_pair) : file_(std::move(file)), is_pair_(is_pair) {}

  TextFile file_;
  const bool is_pair_;
  bool is_first_ = true;  // no node of the graph yet
  const std::vector<std::string>* stacks_ = nullptr;
};

// matched_distributed of some nodes by name, in order of names: JSON.
using Transfers = std::map<std::string, std::string, std::less<>>;

// Writes to `to` the file `from` of this writer with these links and no others; they may be one
// path. Nothing is written where nothing changes. kCorrupt: written by another program.
Status WriteLinks(const std::string& from, const std::string& to, const Transfers& of_target,
                  const Transfers& of_golden);

}  // namespace plumbline::vis_json

#endif  // PLUMBLINE_FORMATS_JSON_VIS_JSON_H_

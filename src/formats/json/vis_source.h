// Reading files for viewers of graphs, of either form and of any release: .vis
// (formats/json/vis_json_reader.h) and .vis.db (formats/sqlite/vis_db_reader.h).

#ifndef PLUMBLINE_FORMATS_JSON_VIS_SOURCE_H_
#define PLUMBLINE_FORMATS_JSON_VIS_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/json.h"
#include "formats/json/vis_record.h"
#include "plumbline/result.h"

namespace plumbline::vis {

// What the numbers called precision_index mean, by the colours that the file has for them: releases
// count in opposite directions.
class LevelScale {
 public:
  // The JSON object "Colors" (node_colors); anything else: no number means anything.
  static LevelScale Of(const json::Value& colors);

  // By the name of the level that newer files give to a colour; of older ones the lightest colour
  // is pass, the second of more than two is warning, and the others are error, as their releases
  // tell errors.
  [[nodiscard]] std::optional<Level> LevelOf(double index) const;

 private:
  struct Band {
    double low, high;  // closed, open; equal ones are that number alone
    Level level;
  };
  std::vector<Band> bands_;
};

// One node as it stands in a file, without its values.
struct NodeRow {
  std::string name, parent;  // an empty parent: the root
  NodeType type = NodeType::kModule;
  std::vector<std::string> children{};
  std::string partner{};  // name on the other side; empty: none
  std::optional<double> index{};
  std::string overflow_level{};
  int64_t micro_step = 0;
  std::string transfers{};  // JSON: matched_distributed; empty: none
  int64_t place = 0;        // of its texts, for Source::ReadTexts()
};

// JSON: a list of frames, two objects of values, a list of lines about merged ranks.
struct NodeTexts {
  std::string stack, inputs, outputs, merged;
};

struct FileHead {
  bool is_pair = false;
  std::string task;  // see Task
  LevelScale scale;
  int64_t micro_steps = 1;
  bool has_overflow_levels = false;
  Facts facts;                     // mp_meta, of files of our own
  std::vector<std::string> notes;  // what was not as a writer writes it, one sentence each

  [[nodiscard]] std::string_view Fact(std::string_view key) const;  // empty: none
};

// An open file. Errors name the path and what to do. Single-threaded.
class Source {
 public:
  virtual ~Source() = default;
  [[nodiscard]] const FileHead& head() const { return head_; }
  // By step, rank, and the target before the golden side.
  [[nodiscard]] const std::vector<GraphPlace>& graphs() const { return graphs_; }

  // All nodes of one of graphs(), in order of the file.
  virtual Result<std::vector<NodeRow>> ReadNodes(const GraphPlace& graph) = 0;
  virtual Result<NodeTexts> ReadTexts(const NodeRow& node) = 0;
  // Where the tensors of a graph were; empty: not recorded.
  virtual Result<std::string> TensorDirectory(const GraphPlace& graph) = 0;

 protected:
  FileHead head_;
  std::vector<GraphPlace> graphs_;
};

// A name without the mark of its side ("N___", "B___") that old files have in front.
std::string_view WithoutSide(std::string_view name);

// The node type that a file numbers so; unknown ones are modules.
NodeType NodeTypeOf(int64_t number);

}  // namespace plumbline::vis

#endif  // PLUMBLINE_FORMATS_JSON_VIS_SOURCE_H_

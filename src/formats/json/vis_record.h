// What both kinds of files for viewers of graphs hold: .vis (JSON, formats/json/vis_json.h) and
// .vis.db (SQLite, formats/sqlite/vis_db.h). docs/formats/vis_db.md has both.

#ifndef PLUMBLINE_FORMATS_JSON_VIS_RECORD_H_
#define PLUMBLINE_FORMATS_JSON_VIS_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumbline::vis {

// Stored; never renumber.
enum class NodeType : uint8_t { kModule = 0, kApi = 1, kFused = 8, kCollection = 9 };

// How far a node of one run is from its counterpart. Stored as "precision_index".
enum class Level : uint8_t { kPass, kWarning, kError };
inline constexpr size_t kLevels = 3;
std::string_view LevelName(Level level);  // "pass", "warning", "error"
double IndexOf(Level level);              // 0, 0.5, 1

// What a comparison compared: "summary", "md5", "all" (tensors), "structure"; empty: one run alone.
using Task = std::string_view;
inline constexpr Task kSummary = "summary";
inline constexpr Task kDigests = "md5";
inline constexpr Task kTensors = "all";
inline constexpr Task kStructure = "structure";

// Colour -> range of the index, description and level, as JSON; "null" without a task.
std::string ColorsJson(Task task);
// What the metrics mean, as JSON; empty without a task.
std::string ToolTipJson(Task task);

// Which graph a node belongs to.
struct GraphPlace {
  bool is_golden = false;
  int64_t step = 0, rank = 0;

  [[nodiscard]] std::string_view source() const { return is_golden ? "Bench" : "NPU"; }
};

// One node. All texts are borrowed.
struct Node {
  size_t order = 0;               // children before parents
  std::string_view name, parent;  // an empty parent: the root
  NodeType type = NodeType::kModule;
  std::vector<std::string_view> children{};
  std::vector<std::string_view> link{};  // names from the other root down to the counterpart
  std::optional<Level> level{};
  std::string_view overflow_level{};
  int64_t micro_step = 0;
  bool is_top = false;                             // below the root
  size_t stack = 0;                                // of the graph's stacks
  std::string_view inputs = "{}", outputs = "{}";  // JSON: name -> object of texts
  std::string_view transfers{};  // JSON: communication of other ranks; empty: none
  std::string_view merge{};      // JSON: list of lines, how ranks were merged; empty: they were not
};

struct Summary {
  Task task{};  // empty: one run alone
  int64_t micro_steps = 1;
  bool has_overflow_levels = false;
  std::vector<int64_t> ranks{}, steps{};
};

// What upstream's files have no place for: of a file ("tool", "target", ...) and of each rank.
using Facts = std::vector<std::pair<std::string, std::string>>;

// "[\"a\", \"b\"]" as Python's json module writes it.
std::string ListJson(const std::vector<std::string_view>& texts);

}  // namespace plumbline::vis

#endif  // PLUMBLINE_FORMATS_JSON_VIS_RECORD_H_

// One rank of one step of a file for viewers, put together again: .vis and .vis.db of any release.

#ifndef PLUMBLINE_VIEW_IMPORTED_PLACE_H_
#define PLUMBLINE_VIEW_IMPORTED_PLACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/vis_source.h"
#include "plumbline/result.h"
#include "view/compare_graphs.h"
#include "view/rank_facts.h"

namespace plumbline::view {

// By the name of the file. Errors of vis_json::Open() and vis_db::Open(); kUnsupported for a name
// that ends in neither .vis nor .vis.db.
Result<std::unique_ptr<vis::Source>> OpenVisFile(const std::string& path);

inline constexpr size_t kNowhere = SIZE_MAX;

struct ImportedNode {
  vis::NodeRow row;
  size_t parent = kNowhere;   // index in the side; kNowhere: the root
  size_t partner = kNowhere;  // index in the other side; of target nodes
  size_t order = 0;           // in the file: of execution, children before parents
  std::optional<vis::Level> level{};
  bool is_by_hand = false;  // paired by a person
};

struct ImportedPlace {
  int64_t step = 0, rank = 0;
  // In pre-order, the root first. The golden side of one recording is empty.
  std::vector<ImportedNode> target, golden;
  NodeCounts counts;
  std::optional<RankFacts> facts;  // of a file of our own
  // The first wrong call: as plumb compare named it, otherwise by the levels of the file.
  size_t first = kNowhere;  // of `target`
  bool is_first_source = false;
  std::vector<std::string> notes;

  [[nodiscard]] bool is_pair() const { return !golden.empty(); }
};

// Steps and ranks of a file, in order.
std::vector<vis::GraphPlace> PlacesOf(const vis::Source& source);

// Reads one of PlacesOf(). What a writer would not write is mended, and noted: parents that do not
// exist, or in a circle, are replaced by the root; counterparts that do not exist are left out.
// Where no answer of plumb compare is in the file, the first wrong call is the first node in order
// of execution at level error whose inputs are fine as far as the file tells, otherwise the first
// one at that level.
Result<ImportedPlace> ReadPlace(vis::Source& source, const vis::GraphPlace& place);

// One line: what the file says of the place. "" for one recording.
std::string AnswerOf(const ImportedPlace& place);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_IMPORTED_PLACE_H_

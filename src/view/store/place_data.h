// What a PlaceBuilder has collected: the nodes of one rank of one step, by columns.

#ifndef PLUMBLINE_VIEW_STORE_PLACE_DATA_H_
#define PLUMBLINE_VIEW_STORE_PLACE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/json/vis_record.h"
#include "plumbline/result.h"
#include "view/store/detail_block.h"
#include "view/store/node_columns.h"
#include "view/store/store_writer.h"
#include "view/store/text_pool.h"

namespace plumbline::view {

template <class T>
using OwnArray = std::vector<T>;
using OwnColumns = NodeColumnsOf<OwnArray>;

// Indices are those of the place: nodes of a side from 0, names, stacks, forms, operations and
// blocks as the place has them.
struct PlaceData {
  int64_t step = 0, rank = 0;
  OwnColumns target, golden;
  TextPool names, forms, operations;  // the first form and operation are empty
  TextPool frames;
  TextPool stacks;  // numbers of frames, four bytes each; the first is empty
  BlockSink sink;   // numbers blocks of details as the file has them
  Status status;    // of the blocks

  // A failure is kept in `status`.
  uint32_t AddBlock(Result<PackedBlock> block);

  [[nodiscard]] OwnColumns& Side(bool is_golden) { return is_golden ? golden : target; }
  [[nodiscard]] const OwnColumns& Side(bool is_golden) const { return is_golden ? golden : target; }
  // Fills what follows from the nodes: sizes, orders, unmatched ones, what is worst inside.
  void Complete();
};

// "forward" of "Functional.linear.0.forward".
Direction DirectionOf(std::string_view name);
// "linear" of "Functional.linear.0.forward", "Linear" of "Module.fc.Linear.forward.0".
std::string_view OperationOf(std::string_view name);

// What files for viewers and trees call so.
StoredType StoredTypeOf(bool is_root, vis::NodeType type);
NodeLevel NodeLevelOf(std::optional<vis::Level> level);
StoredOverflow StoredOverflowOf(std::string_view name);

// How bad a level is: none, pass, unmatched, warning, error.
int SeverityOf(NodeLevel level);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_PLACE_DATA_H_

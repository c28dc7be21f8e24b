// The nodes of a result by columns (docs/formats/view_store.md).

#ifndef PLUMBLINE_VIEW_STORE_NODE_COLUMNS_H_
#define PLUMBLINE_VIEW_STORE_NODE_COLUMNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plumbline::view {

inline constexpr uint32_t kNoNode = 0xFFFFFFFF;

// Stored; never renumber. kRoot is the node that stands for the model itself.
enum class StoredType : uint8_t { kModule, kApi, kFused, kGroup, kRoot };
inline constexpr size_t kStoredTypes = 5;
std::string_view StoredTypeName(StoredType type);  // "module", "api", "fused", "group", "root"

// Stored; never renumber. kNone: matched and nothing can be said, or one recording alone.
enum class NodeLevel : uint8_t { kNone, kPass, kWarning, kError, kUnmatched };
inline constexpr size_t kNodeLevels = 5;
std::string_view NodeLevelName(NodeLevel level);

// Stored; never renumber.
enum class StoredOverflow : uint8_t { kNone, kMedium, kHigh, kCritical };
inline constexpr size_t kStoredOverflows = 4;
std::string_view StoredOverflowName(StoredOverflow overflow);  // "" for none

// Stored; never renumber.
enum class Direction : uint8_t { kNone, kForwardCall, kBackwardCall };
inline constexpr size_t kDirections = 3;

// Bits of a node, as docs/design/viewer.md has them.
namespace node_flag {
inline constexpr uint16_t kFirst = 1, kSource = 2, kCarrier = 4, kCommunicates = 8,
                          kRecomputed = 16, kRepaired = 32, kMerged = 64, kByHand = 128;
}  // namespace node_flag

// One entry per node, by id: places follow each other, in each the target's nodes in pre-order,
// then the golden ones. `Array` is std::span of a store that is read, std::vector of one that is
// built.
template <template <class> class Array>
struct NodeColumnsOf {
  Array<uint32_t> name;     // in the sorted names
  Array<uint32_t> parent;   // kNoNode: the root of a graph
  Array<uint32_t> partner;  // of the other side; kNoNode: none
  Array<uint32_t> size;     // of the subtree, with the node itself
  Array<uint32_t> children;
  Array<uint32_t> depth;
  Array<uint32_t> order;  // of execution within the graph, children before parents
  // Of the subtree without the node itself.
  Array<uint32_t> errors, warnings, unmatched;
  Array<uint32_t> stack;  // 0: none
  Array<uint32_t> form;   // data types and shapes of its values; 0: none
  Array<uint32_t> operation;
  Array<int32_t> micro_step;
  Array<float> error, input_error;  // NaN: none
  Array<uint64_t> detail;           // where its detail is; kNoDetail: nowhere
  Array<uint16_t> flags;
  Array<uint8_t> type, direction, level, worst, overflow;

  // Calls visit(column) for every column, in the order of the file.
  template <class Visit>
  void ForEach(const Visit& visit) {
    for (auto* column : {&name, &parent, &partner, &size, &children, &depth, &order, &errors,
                         &warnings, &unmatched, &stack, &form, &operation}) {
      visit(*column);
    }
    visit(micro_step);
    visit(error);
    visit(input_error);
    visit(detail);
    visit(flags);
    for (auto* column : {&type, &direction, &level, &worst, &overflow}) visit(*column);
  }
};
inline constexpr size_t kNodeColumnCount = 23;
inline constexpr uint64_t kNoDetail = ~uint64_t{0};

template <class T>
using ConstSpan = std::span<const T>;
using NodeColumns = NodeColumnsOf<ConstSpan>;

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_NODE_COLUMNS_H_

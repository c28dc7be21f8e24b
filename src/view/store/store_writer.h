// Writes a result store (view/store/result_store.h), place by place.

#ifndef PLUMBLINE_VIEW_STORE_STORE_WRITER_H_
#define PLUMBLINE_VIEW_STORE_STORE_WRITER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "plumbline/result.h"
#include "view/store/node_columns.h"
#include "view/store/node_detail.h"
#include "view/store/result_store.h"

namespace plumbline::view {

struct PlaceData;    // view/store/place_data.h
struct PackedBlock;  // view/store/detail_block.h
// Takes a block of details and numbers it.
using BlockSink = std::function<Result<uint32_t>(const PackedBlock& block)>;

// One node as it is given to a store. What can be computed (sizes, orders, what is worst inside)
// is.
struct NodeRecord {
  std::string_view name;
  uint32_t parent = kNoNode;   // index in the graph, before the node; kNoNode: the root
  uint32_t partner = kNoNode;  // index in the other graph of the place; of target nodes
  StoredType type = StoredType::kModule;
  // kUnmatched is set by the writer, where a place has both sides and a node no partner.
  NodeLevel level = NodeLevel::kNone;
  StoredOverflow overflow = StoredOverflow::kNone;
  int32_t micro_step = 0;
  uint16_t flags = 0;  // node_flag
  float error = std::numeric_limits<float>::quiet_NaN();
  float input_error = std::numeric_limits<float>::quiet_NaN();
  uint32_t stack = 0;  // of PlaceBuilder::AddStack()
};

// One rank of one step while it is made, of StoreWriter::Begin(). Move-only; single-threaded, but
// several may be made at once.
class PlaceBuilder {
 public:
  PlaceBuilder(PlaceBuilder&&) noexcept;
  PlaceBuilder& operator=(PlaceBuilder&&) noexcept;
  ~PlaceBuilder();

  // Frames, innermost first; the same ones get the same number. No frames: 0.
  uint32_t AddStack(std::span<const std::string_view> frames);
  // Nodes of each side in pre-order, the root first. Returns the index in that graph.
  uint32_t AddNode(bool is_golden, const NodeRecord& node);
  // So that names of so many characters together are not moved while nodes are added.
  void ReserveNames(size_t chars);
  // Of nodes that were added, each once. Of paired nodes the target's has both sides.
  void AddDetail(bool is_golden, uint32_t node, const NodeDetail& detail);
  // The same of many nodes at once, from several threads: `detail_of` fills the detail of one node,
  // whose texts must stay until this returns, or says that there is none.
  using DetailOf = std::function<bool(bool is_golden, uint32_t node, NodeDetail& detail)>;
  void AddDetails(const DetailOf& detail_of);

 private:
  friend class StoreWriter;
  PlaceBuilder(int64_t step, int64_t rank, BlockSink sink);
  // What was collected. Nothing may be added afterwards.
  PlaceData Take();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A node by where it stands: the index of its place among those added, side and index in the graph.
struct NodeAt {
  size_t place = 0;
  bool is_golden = false;
  uint32_t node = 0;
};

struct EndRecord {
  NodeAt at;
  StoredRole role = StoredRole::kSendReceive;
  std::string mismatch{};
};

struct LinkRecord {
  std::string key;
  bool is_message = false;
  uint64_t layer = 0;
  std::vector<EndRecord> ends{};
};

// The file appears when Finish() succeeds, complete or not at all. Errors are kIo. Move-only;
// single-threaded.
class StoreWriter {
 public:
  static Result<StoreWriter> Create(const std::string& path);
  StoreWriter(StoreWriter&&) noexcept;
  StoreWriter& operator=(StoreWriter&&) = delete;
  ~StoreWriter();

  // A place whose details go into the file as they are given, of the writer that it will be added
  // to and must not outlive. Thread-safe, as are the details of several such places.
  PlaceBuilder Begin(int64_t step, int64_t rank);
  // Places are shown by step and rank, whatever the order of adding. Returns the place's index;
  // its nodes are known from then on.
  Result<size_t> Add(PlaceBuilder&& place);
  // Another state of a place that was added.
  Status Replace(size_t index, PlaceBuilder&& place);
  // Nothing: that side of the place has no such node.
  [[nodiscard]] std::optional<NodeAt> Find(size_t place, bool is_golden,
                                           std::string_view name) const;
  void AddLink(LinkRecord link);
  // `facts`: members of `meta` (docs/design/viewer.md) but for "etag" and "places"; "first" has
  // "place" as of Add() and no "id". `place_facts`: by the index of Add(), objects with "answer",
  // "first", and, where the recordings have tensors, "target_tensors", "golden_tensors".
  Status Finish(const json::Value& facts, const std::vector<json::Value>& place_facts);

 private:
  struct Impl;
  explicit StoreWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_STORE_WRITER_H_

// The mapped index of one result: what a viewer asks, found without parsing.

#ifndef PLUMBLINE_VIEW_STORE_RESULT_STORE_H_
#define PLUMBLINE_VIEW_STORE_RESULT_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "plumbline/result.h"
#include "view/store/kept_answers.h"
#include "view/store/node_columns.h"
#include "view/store/node_detail.h"

namespace plumbline::view {

class NameIndex;

// One rank of one step, and its nodes. A side without nodes begins at kNoNode.
struct StorePlace {
  int64_t step = 0, rank = 0;
  uint32_t target = kNoNode, target_count = 0;  // the first one is the root
  uint32_t golden = kNoNode, golden_count = 0;
};

// What a call gives to the others of its link.
enum class StoredRole : uint8_t { kSend, kReceive, kSendReceive };
inline constexpr size_t kStoredRoles = 3;
std::string_view StoredRoleName(StoredRole role);  // "send", "receive", "send_receive"

// One node that takes part in a call of several ranks.
struct StoredEnd {
  uint32_t node = kNoNode;
  StoredRole role = StoredRole::kSendReceive;
  std::string_view mismatch{};  // what its values do not agree in; empty: they do, or nobody knows
};

// One collective call or one message: whose values belong together.
struct StoredLink {
  std::string_view key;  // "all_reduce of 0, 1, call 3"
  bool is_message = false;
  uint64_t layer = 0;  // in time: links of a higher one come later
  std::vector<StoredEnd> ends{};
};

// Immutable; thread-safe. What was read lives as long as the store.
class ResultStore {
 public:
  // Everything that is an index in the file is checked here, so that a damaged or foreign file is
  // kCorrupt in one line and never read out of bounds. kNotFound, kIo.
  static Result<std::shared_ptr<const ResultStore>> Open(const std::string& path);
  ResultStore(const ResultStore&) = delete;
  ~ResultStore();

  // Of the contents, 32 hexadecimal digits.
  [[nodiscard]] std::string_view etag() const;
  // One JSON object: what a page asks as `meta` but for the places' numbers.
  [[nodiscard]] const json::Value& facts() const;
  [[nodiscard]] const json::Value& PlaceFacts(size_t place) const;  // null: there are none
  // The call that is named of one place or, below zero, of all.
  [[nodiscard]] std::optional<uint32_t> FirstCall(int64_t place) const;
  [[nodiscard]] std::span<const StorePlace> places() const;
  [[nodiscard]] const NodeColumns& nodes() const;
  [[nodiscard]] uint32_t size() const;  // nodes

  // The place of a node, and whether it is a golden one. Requires: node < size().
  [[nodiscard]] size_t PlaceOf(uint32_t node) const;
  [[nodiscard]] bool IsGolden(uint32_t node) const;
  // The node with this name; nothing: there is none.
  [[nodiscard]] std::optional<uint32_t> Find(size_t place, bool of_golden,
                                             std::string_view name) const;
  [[nodiscard]] std::string Name(uint32_t node) const;
  [[nodiscard]] const NameIndex& names() const;
  // Nodes by the index of their names, then by id.
  [[nodiscard]] std::span<const uint32_t> by_name() const;
  // Nodes by place, side and order of execution.
  [[nodiscard]] std::span<const uint32_t> by_order() const;

  // Frames, innermost first; empty: not recorded.
  [[nodiscard]] std::vector<std::string_view> Stack(uint32_t node) const;
  // "linear" of Functional.linear.0.forward, by the column `operation`.
  [[nodiscard]] std::span<const std::string_view> operations() const;
  // "torch.float32 torch.int64|[2, 8] [4]" by the column `form`; the first is empty.
  [[nodiscard]] std::span<const std::string_view> forms() const;
  // kCorrupt: its block is damaged. Of a golden node with a partner that of the partner.
  [[nodiscard]] Result<NodeDetail> Detail(uint32_t node) const;

  [[nodiscard]] size_t link_count() const;
  [[nodiscard]] StoredLink Link(size_t link) const;
  // The links that a node is part of.
  [[nodiscard]] std::vector<uint32_t> LinksOf(uint32_t node) const;

  // What answers keep beside the store.
  [[nodiscard]] KeptAnswers& kept() const;

 private:
  struct Impl;
  explicit ResultStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Where the tensors of one value are: a directory, and the name in it as of load::OpenTensorIn().
struct StoredFile {
  std::string directory, data_name;
};
struct StoredFiles {
  std::optional<StoredFile> target, golden;
};
// `value`: as it is called in the node's detail. kNotFound: the node has no such value, or the
// recordings hold no tensor of it.
Result<StoredFiles> FindValueFiles(const ResultStore& store, uint32_t node, std::string_view value);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_RESULT_STORE_H_

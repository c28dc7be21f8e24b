// Nodes as rows of an answer: the fields of docs/design/viewer.md, "Nodes".

#ifndef PLUMBLINE_VIEW_QUERY_NODE_ROWS_H_
#define PLUMBLINE_VIEW_QUERY_NODE_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "view/query/json_answer.h"
#include "view/query/parameters.h"
#include "view/query/query_hits.h"
#include "view/store/result_store.h"

namespace plumbline::view {

// How a node changed since another result: its level became better or worse, or only this one has
// it.
enum class NodeChange : uint8_t { kSame, kBetter, kWorse, kNew };
inline constexpr size_t kNodeChanges = 4;
std::string_view NodeChangeName(NodeChange change);
// Of levels: pass is better than none, then unmatched, warning, error.
NodeChange ChangeBetween(uint8_t now, uint8_t before);
// The other node is that of the same step, rank, side and name.
NodeChange ChangeOf(const ResultStore& store, uint32_t node, const ResultStore& base);

inline int64_t IdOrNone(uint32_t node) { return node == kNoNode ? -1 : int64_t{node}; }

// What one question is asked with. Everything borrowed must outlive it.
struct Question {
  const ResultStore& store;
  const Parameters& parameters;
  const ResultStore* base = nullptr;

  // A page of rows: `offset` and `limit` (100, at most 10,000).
  struct Page {
    size_t offset = 0, limit = 0;
    template <class T>
    [[nodiscard]] std::span<const T> Of(const std::vector<T>& all) const {
      const size_t begin = std::min(offset, all.size());
      return std::span(all).subspan(begin, std::min(limit, all.size() - begin));
    }
  };
  [[nodiscard]] Result<Page> ReadPage() const;
  // The node of the parameter `node`. kNotFound: the store has no such node.
  [[nodiscard]] Result<uint32_t> ReadNode() const;
  // The index of the parameter `place`, or -1 for all.
  [[nodiscard]] Result<int64_t> ReadPlace() const;
  // The parameter `side`; both sides without one.
  [[nodiscard]] Result<uint32_t> ReadSides() const;
};

// Appends rows and their fields. Single-threaded.
class NodeRows {
 public:
  // `hits`: of the parameter `q`; null: there is none.
  NodeRows(const Question& question, std::shared_ptr<const QueryHits> hits = {})
      : store_(question.store), base_(question.base), hits_(std::move(hits)) {}

  // "fields":[...], of an object that is open. `more`: fields that the caller appends to each row.
  static void AddFields(JsonAnswer& out, const std::vector<std::string_view>& more = {});
  // One row without its closing bracket, or with it. `index`: the position among the children of
  // its parent; -1: not told.
  void Open(uint32_t node, int64_t index, JsonAnswer& out) const;
  void Add(uint32_t node, int64_t index, JsonAnswer& out) const {
    Open(node, index, out);
    out.Close(']');
  }

 private:
  const ResultStore& store_;
  const ResultStore* base_;
  std::shared_ptr<const QueryHits> hits_;
};

// {"fields": [...], "rows": [...]} with what `add` writes of each of `list`: the first one, and
// others as long as the answer has at most so many bytes. How many.
template <class List, class AddRow>
size_t AddTable(const List& list, size_t most_bytes, const AddRow& add, JsonAnswer& out,
                const std::vector<std::string_view>& more_fields = {}) {
  out.Open('{');
  NodeRows::AddFields(out, more_fields);
  out.Key("rows").Open('[');
  size_t shown = 0;
  for (const auto& row : list) {
    if (shown > 0 && out.size() > most_bytes) break;
    add(row);
    ++shown;
  }
  out.Close(']').Close('}');
  return shown;
}

// How much an answer may grow: rows beyond it are left for the next page. Some 200 bytes a row, and
// 20 KB for the usual 100.
size_t MostBytes(size_t limit);

// The children of a node, in order. Calls visit(child, position) until it says false.
template <class Visit>
void ForEachChild(const ResultStore& store, uint32_t node, const Visit& visit) {
  const uint32_t end = node + store.nodes().size[node];
  size_t position = 0;
  for (uint32_t child = node + 1; child < end; ++position) {
    if (!visit(child, position)) return;
    // A file that is cut while it is mapped reads as zeros.
    child += store.nodes().size[child] > 0 ? store.nodes().size[child] : 1;
  }
}

// From the root down to `node`.
std::vector<uint32_t> PathOf(const ResultStore& store, uint32_t node);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_NODE_ROWS_H_

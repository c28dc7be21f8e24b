// Which nodes of a store a query finds.

#ifndef PLUMBLINE_VIEW_QUERY_QUERY_HITS_H_
#define PLUMBLINE_VIEW_QUERY_QUERY_HITS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "view/query/query_language.h"
#include "view/store/result_store.h"

namespace plumbline::view {

// One bit per node, and how many are set before every word. Immutable.
class QueryHits {
 public:
  explicit QueryHits(std::vector<uint64_t> bits);

  [[nodiscard]] bool Has(uint32_t node) const { return (bits_[node / 64] >> (node % 64) & 1) != 0; }
  [[nodiscard]] uint32_t total() const { return before_.back(); }
  // Of the nodes from `begin` on.
  [[nodiscard]] uint32_t CountIn(uint32_t begin, uint32_t count) const {
    return CountBefore(begin + count) - CountBefore(begin);
  }
  [[nodiscard]] std::span<const uint64_t> bits() const { return bits_; }

 private:
  [[nodiscard]] uint32_t CountBefore(uint32_t node) const;

  std::vector<uint64_t> bits_;    // and one word more
  std::vector<uint32_t> before_;  // by word
};

// What a query is asked of: all nodes, or those of one place or side.
struct QueryScope {
  int64_t place = -1;  // -1: all
  uint32_t sides = kSideTarget | kSideGolden;
};

// The nodes in the scope for which all terms hold; `query` is the text they were parsed from, under
// which the hits are kept beside the store.
std::shared_ptr<const QueryHits> HitsOf(const ResultStore& store, const std::string& query,
                                        const std::vector<QueryTerm>& terms,
                                        const QueryScope& scope = {});

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_QUERY_HITS_H_

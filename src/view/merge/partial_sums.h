// Tensors that each tensor parallel rank holds a summand of, and the sums.

#ifndef PLUMBLINE_VIEW_MERGE_PARTIAL_SUMS_H_
#define PLUMBLINE_VIEW_MERGE_PARTIAL_SUMS_H_

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "view/merge/merged_values.h"
#include "view/merge/parallel_layout.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

// What all_reduce and reduce_scatter made of the tensors of a group's ranks. A summand is known by
// its statistics on every rank, wherever it stands: layers return it, copy it and reduce it in
// calls that recorders put beside them. Borrows parts of the trees.
class PartialSums {
 public:
  PartialSums() = default;
  // `groups`: tensor parallel. Requires: trees as they were read, in order of rank, which recorded
  // the calls of one group in one order.
  PartialSums(std::span<RankTree> trees, const RankGroups& groups);

  // Gives the first record the statistics of what became of the ranks' summands. Returns lines that
  // say of which call; none: these are no summands.
  std::vector<std::string> Replace(const TensorsAt& summands) const;

 private:
  struct Sum {
    const Part* reduction;  // of the group's first rank
    bool is_scattered;      // the ranks got parts
    std::vector<TensorRecord*> summands, results;
  };
  using Key = std::array<uint64_t, 4>;

  static Key KeyOf(const TensorRecord& tensor);
  void Add(const std::vector<Part*>& calls);

  std::vector<Sum> sums_;
  std::multimap<Key, size_t> by_summand_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_PARTIAL_SUMS_H_

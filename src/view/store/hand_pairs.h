// Pairs that a person made, while a store is written: those that count, and the others.

#ifndef PLUMBLINE_VIEW_STORE_HAND_PAIRS_H_
#define PLUMBLINE_VIEW_STORE_HAND_PAIRS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/number_text.h"

namespace plumbline::view {

using HandPair = std::pair<std::string, std::string>;  // names of the target and golden nodes
// Of a step and a rank.
using HandPairs = std::function<std::vector<HandPair>(int64_t step, int64_t rank)>;

class HandPairCount {
 public:
  // Of one place; pairs of a file that names no place are asked for in all of them.
  void Add(const std::vector<HandPair>& asked, const std::vector<HandPair>& counted) {
    asked_.insert(asked.begin(), asked.end());
    counted_.insert(counted.begin(), counted.end());
    made_ += counted.size();
  }

  // `what`: what is said of pairs that count.
  void AddNotes(std::string_view what, std::vector<std::string>& notes) const {
    if (made_ > 0) notes.push_back(CountText(made_, "pair") + " made by hand" + std::string(what));
    size_t others = 0;
    std::string named;
    for (const HandPair& pair : asked_) {
      if (counted_.contains(pair) || others++ > 0) continue;
      named = pair.first + " and " + pair.second;
    }
    if (others == 0) return;
    notes.push_back(CountText(others, "pair") +
                    " made by hand not counted, as there are no such nodes to pair: " + named +
                    (others > 1 ? ", ..." : ""));
  }

 private:
  std::set<HandPair> asked_, counted_;
  size_t made_ = 0;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_STORE_HAND_PAIRS_H_

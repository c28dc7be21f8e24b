#include "base/nearest_text.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace plumbline {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string NearestText(std::string_view word, std::span<const std::string> known) {
  constexpr size_t kLongestWord = 100;
  if (word.size() < 2 || word.size() > kLongestWord) return {};
  const size_t most = std::max<size_t>(word.size() / 3, 1);
  size_t least = most + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    // Letters in another order are one slip of the fingers and two changes.
    std::string sorted_word(word), sorted_candidate(candidate);
    std::ranges::sort(sorted_word);
    std::ranges::sort(sorted_candidate);
    size_t distance = EditDistance(word, candidate);
    if (distance == 2 && sorted_word == sorted_candidate) distance = 1;
    if (distance == 0 || distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace plumbline

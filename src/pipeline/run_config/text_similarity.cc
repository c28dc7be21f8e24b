#include "pipeline/run_config/text_similarity.h"

#include <cstddef>
#include <vector>

namespace plumbline::pipeline {
namespace {

constexpr size_t kMost = 1000;

struct Block {
  size_t at_a = 0, at_b = 0, size = 0;
};

// The longest common piece; of several the first in `a`, then in `b`.
Block LongestBlock(std::string_view a, std::string_view b) {
  Block best;
  std::vector<size_t> before(b.size() + 1, 0), now(b.size() + 1, 0);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      now[j + 1] = a[i] == b[j] ? before[j] + 1 : 0;
      if (now[j + 1] > best.size) best = {i + 1 - now[j + 1], j + 1 - now[j + 1], now[j + 1]};
    }
    before.swap(now);
  }
  return best;
}

size_t Matching(std::string_view a, std::string_view b) {
  std::vector<std::pair<std::string_view, std::string_view>> todo = {{a, b}};
  size_t count = 0;
  while (!todo.empty()) {
    const auto [left, right] = todo.back();
    todo.pop_back();
    const Block block = LongestBlock(left, right);
    if (block.size == 0) continue;
    count += block.size;
    todo.emplace_back(left.substr(0, block.at_a), right.substr(0, block.at_b));
    todo.emplace_back(left.substr(block.at_a + block.size), right.substr(block.at_b + block.size));
  }
  return count;
}

}  // namespace

double SimilarityRatio(std::string_view a, std::string_view b) {
  a = a.substr(0, kMost);
  b = b.substr(0, kMost);
  if (a.empty() && b.empty()) return 1;
  return 2.0 * static_cast<double>(Matching(a, b)) / static_cast<double>(a.size() + b.size());
}

}  // namespace plumbline::pipeline

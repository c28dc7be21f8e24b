#include "match/call_align.h"

#include <algorithm>

namespace plumbline::match {
namespace {

constexpr size_t kMaxCells = size_t{1} << 24;
// One pair more outweighs whatever the pairs agree in, for sequences up to kPair / 64 calls.
constexpr uint64_t kPair = uint64_t{1} << 32;
constexpr uint64_t kSite = 8;
constexpr uint64_t kNeighbour = 3;
// A wrong argument is one call's; a call with the arguments of another one is that one, unless what
// stands around it says otherwise.
constexpr uint64_t kArguments = 4;
constexpr uint64_t kName = 1;
// What stands next to it, and whose gradient it is, tells more than what these are called.
constexpr uint64_t kPairedNeighbour = 6;
constexpr uint64_t kPairedForward = 32;

uint64_t Score(const AlignedCall& a, const AlignedCall& b) {
  if (a.structure != b.structure) return 0;
  uint64_t score = kPair;
  if (a.site != 0 && a.site == b.site) score += kSite;
  if (a.before == b.before) score += kNeighbour;
  if (a.after == b.after) score += kNeighbour;
  if (a.arguments != 0 && a.arguments == b.arguments) score += kArguments;
  if (a.name == b.name) score += kName;
  if (a.pair_before != 0 && a.pair_before == b.pair_before) score += kPairedNeighbour;
  if (a.pair_after != 0 && a.pair_after == b.pair_after) score += kPairedNeighbour;
  if (a.pair_forward != 0 && a.pair_forward == b.pair_forward) score += kPairedForward;
  return score;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> AlignCalls(const std::vector<AlignedCall>& a,
                                                  const std::vector<AlignedCall>& b) {
  std::vector<std::pair<size_t, size_t>> pairs;
  const size_t columns = b.size() + 1;
  if ((a.size() + 1) > kMaxCells / columns) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].structure == b[i].structure) pairs.emplace_back(a[i].index, b[i].index);
    }
    return pairs;
  }
  std::vector<uint64_t> best((a.size() + 1) * columns, 0);
  const auto at = [&](size_t i, size_t j) -> uint64_t& { return best[i * columns + j]; };
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const uint64_t score = Score(a[i], b[j]);
      at(i, j) = std::max({at(i + 1, j), at(i, j + 1), score > 0 ? score + at(i + 1, j + 1) : 0});
    }
  }
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const uint64_t score = Score(a[i], b[j]);
    if (score > 0 && at(i, j) == score + at(i + 1, j + 1)) {
      pairs.emplace_back(a[i++].index, b[j++].index);
    } else if (at(i, j) == at(i + 1, j)) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

}  // namespace plumbline::match

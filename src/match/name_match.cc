#include "match/name_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace plumbline::match {
namespace {

struct Mismatch {
  std::string reason;
  std::string detail;
  std::optional<ItemRole> role;
};

std::string_view TextOr(const std::optional<std::string>& text) {
  return text ? std::string_view(*text) : std::string_view("None");
}

std::string_view TypeOr(const Item& item) { return TextOr(item.dtype); }

// What keeps two calls of one name apart, or nothing.
std::optional<Mismatch> FindMismatch(const CallItems& target, const CallItems& golden, bool fuzzy) {
  const size_t count = std::min(target.items.size(), golden.items.size());
  for (size_t i = 0; i < count; ++i) {
    const Item& a = target.items[i];
    const Item& b = golden.items[i];
    if (a.role != b.role || (!fuzzy && a.name != b.name)) {
      return Mismatch{"structure-differs",
                      fmt::format("target has {} where golden has {}", a.name, b.name), a.role};
    }
    if (a.shape_text != b.shape_text) {
      return Mismatch{"shape-differs",
                      fmt::format("{}: target {}, golden {}", a.name, TextOr(a.shape_text),
                                  TextOr(b.shape_text)),
                      a.role};
    }
    if (!DTypesAgree(a.dtype, b.dtype)) {
      return Mismatch{"dtype-differs",
                      fmt::format("{}: target {}, golden {}", a.name, TypeOr(a), TypeOr(b)),
                      a.role};
    }
  }
  if (target.items.size() == golden.items.size()) return std::nullopt;
  const bool target_longer = target.items.size() > golden.items.size();
  const std::vector<Item>& longer = (target_longer ? target : golden).items;
  const bool only_nulls = std::all_of(longer.begin() + static_cast<std::ptrdiff_t>(count),
                                      longer.end(), [](const Item& item) { return !item.dtype; });
  // Releases differ in whether they write a null for a missing gradient.
  if (only_nulls) return Mismatch{"structure-differs", "", std::nullopt};
  const Item& extra = longer[count];
  return Mismatch{"structure-differs",
                  fmt::format("only {} has {}", target_longer ? "target" : "golden", extra.name),
                  extra.role};
}

// Names that differ in the call number of the call alone must not count as a mismatch in a fuzzy
// pair, and pairs across call numbers exist only there.
bool Compatible(const CallItems& target, const CallItems& golden) {
  return !FindMismatch(target, golden, true);
}

using IndexList = std::vector<size_t>;
using Partner = std::vector<size_t>;  // golden index per target call, or kNone

Partner PairByName(const std::vector<CallItems>& target, const std::vector<CallItems>& golden) {
  std::unordered_map<std::string_view, size_t> by_name;
  by_name.reserve(golden.size());
  for (size_t i = 0; i < golden.size(); ++i) {
    if (!golden[i].items.empty()) by_name.insert_or_assign(golden[i].name, i);
  }
  Partner partner(target.size(), CallPair::kNone);
  for (size_t i = 0; i < target.size(); ++i) {
    const auto found = by_name.find(target[i].name);
    if (found != by_name.end() && !target[i].items.empty()) partner[i] = found->second;
  }
  return partner;
}

// Above this many cells the alignment falls back to "k-th with k-th".
constexpr size_t kMaxAlignmentCells = size_t{1} << 24;

// Longest common subsequence of two groups of equally named calls, by structural agreement.
void AlignGroup(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
                const IndexList& a, const IndexList& b, Partner& partner) {
  const size_t columns = b.size() + 1;
  if (a.size() == b.size() || (a.size() + 1) * columns > kMaxAlignmentCells) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) partner[a[i]] = b[i];
    return;
  }
  std::vector<uint32_t> length((a.size() + 1) * columns, 0);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      const uint32_t skip = std::max(length[(i + 1) * columns + j], length[i * columns + j + 1]);
      const bool fits = Compatible(target[a[i]], golden[b[j]]);
      length[i * columns + j] = fits ? std::max(skip, length[(i + 1) * columns + j + 1] + 1) : skip;
    }
  }
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const uint32_t here = length[i * columns + j];
    if (Compatible(target[a[i]], golden[b[j]]) && here == length[(i + 1) * columns + j + 1] + 1) {
      partner[a[i++]] = b[j++];
    } else if (here == length[(i + 1) * columns + j]) {
      ++i;
    } else {
      ++j;
    }
  }
}

Partner PairFuzzily(const std::vector<CallItems>& target, const std::vector<CallItems>& golden) {
  std::unordered_map<std::string, std::pair<IndexList, IndexList>> groups;
  for (size_t i = 0; i < target.size(); ++i) {
    if (!target[i].items.empty()) groups[WithoutCallNumber(target[i].name)].first.push_back(i);
  }
  for (size_t i = 0; i < golden.size(); ++i) {
    if (!golden[i].items.empty()) groups[WithoutCallNumber(golden[i].name)].second.push_back(i);
  }
  Partner partner(target.size(), CallPair::kNone);
  for (const auto& entry : groups) {
    AlignGroup(target, golden, entry.second.first, entry.second.second, partner);
  }
  return partner;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsLooseFloat(std::string_view dtype) {
  const std::optional<DType> parsed = ParseDType(dtype);
  return parsed == DType::kFloat16 || parsed == DType::kBFloat16 || parsed == DType::kFloat32;
}

}  // namespace

bool DTypesAgree(const std::optional<std::string>& target,
                 const std::optional<std::string>& golden) {
  if (target == golden) return true;
  return target && golden && IsLooseFloat(*target) && IsLooseFloat(*golden);
}

std::string WithoutCallNumber(std::string_view call_name) {
  // The number stands right before the direction (APIs) or right after it (modules).
  for (const std::string_view direction :
       {std::string_view(".forward"), std::string_view(".backward")}) {
    const size_t at = call_name.rfind(direction);
    if (at == std::string_view::npos) continue;
    std::string_view head = call_name.substr(0, at);
    std::string_view tail = call_name.substr(at + direction.size());
    if (tail.size() > 1 && tail.front() == '.' && IsNumber(tail.substr(1))) {
      return std::string(head) + std::string(direction);
    }
    const size_t dot = head.rfind('.');
    if (tail.empty() && dot != std::string_view::npos && IsNumber(head.substr(dot + 1))) {
      return std::string(head.substr(0, dot)) + std::string(direction);
    }
  }
  return std::string(call_name);
}

std::vector<CallPair> MatchCalls(const std::vector<CallItems>& target,
                                 const std::vector<CallItems>& golden, bool fuzzy) {
  const Partner partner = fuzzy ? PairFuzzily(target, golden) : PairByName(target, golden);
  std::vector<CallPair> pairs;
  pairs.reserve(target.size());
  std::vector<CallPair> golden_state(golden.size());  // why a golden call is alone
  for (size_t j = 0; j < golden.size(); ++j)
    golden_state[j] = {CallPair::kNone, j, "no-target", {}, {}, {}};
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i].items.empty()) continue;
    CallPair pair;
    pair.target = i;
    const size_t j = partner[i];
    if (j == CallPair::kNone) {
      pair.reason = "no-golden";
    } else if (std::optional<Mismatch> mismatch = FindMismatch(target[i], golden[j], fuzzy)) {
      pair.reason = mismatch->reason;
      pair.detail = mismatch->detail;
      pair.role = mismatch->role;
      pair.counterpart = j;
      golden_state[j] = pair;
      golden_state[j].target = CallPair::kNone;
      golden_state[j].golden = j;
      golden_state[j].counterpart = i;
    } else {
      pair.golden = j;
      golden_state[j].reason.clear();
    }
    pairs.push_back(std::move(pair));
  }
  for (size_t j = 0; j < golden.size(); ++j) {
    if (!golden[j].items.empty() && !golden_state[j].paired()) {
      pairs.push_back(std::move(golden_state[j]));
    }
  }
  return pairs;
}

}  // namespace plumbline::match

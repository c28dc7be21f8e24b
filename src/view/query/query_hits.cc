#include "view/query/query_hits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/process/parallel.h"
#include "base/text/text_parts.h"
#include "view/store/name_index.h"

namespace plumbline::view {
namespace {

constexpr size_t kBitsPerWord = 64;

// Keeps the nodes of one query, term after term.
class Narrowing {
 public:
  explicit Narrowing(const ResultStore& store)
      : store_(store), bits_(store.size() / kBitsPerWord + 1, ~uint64_t{0}) {
    bits_.back() = (uint64_t{1} << (store.size() % kBitsPerWord)) - 1;
  }

  void Keep(const QueryTerm& term) {
    switch (term.field) {
      case QueryField::kName:
        return KeepNames(term);
      case QueryField::kLevel:
        return KeepChoice(nodes().level, term);
      case QueryField::kWorst:
        return KeepWhere(term, [&](size_t i) {
          return nodes().size[i] > 1 && (term.choices >> nodes().worst[i] & 1) != 0;
        });
      case QueryField::kOverflow:
        return KeepChoice(nodes().overflow, term);
      case QueryField::kType:
        return KeepChoice(nodes().type, term);
      case QueryField::kDirection:
        return KeepChoice(nodes().direction, term);
      case QueryField::kFlag:
        return KeepWhere(term, [&](size_t i) { return (nodes().flags[i] & term.choices) != 0; });
      case QueryField::kIs:
        return KeepWhere(term, [&](size_t i) { return IsKind(i, term.choices); });
      case QueryField::kOperation:
        return KeepListed(nodes().operation, store_.operations(), term, [&](std::string_view text) {
          return std::ranges::find(term.texts, FoldCase(text)) != term.texts.end();
        });
      case QueryField::kDType:
        return KeepListed(nodes().form, store_.forms(), term, [&](std::string_view form) {
          return HasAny(form.substr(0, form.find('|')), term, PlainDType);
        });
      case QueryField::kShape:
        return KeepListed(nodes().form, store_.forms(), term, [&](std::string_view form) {
          const size_t bar = form.find('|');
          return bar != std::string_view::npos && HasAny(form.substr(bar + 1), term, PlainShape);
        });
      case QueryField::kMicroStep:
        return KeepWhere(term, [&](size_t i) {
          return std::ranges::find(term.numbers, nodes().micro_step[i]) != term.numbers.end();
        });
      default:
        return KeepMore(term);
    }
  }

  void KeepScope(const QueryScope& scope) {
    KeepRanges(false, [&](const StorePlace& place, bool is_golden) {
      const bool is_place = scope.place < 0 || &place - store_.places().data() == scope.place;
      return is_place && (scope.sides & (is_golden ? kSideGolden : kSideTarget)) != 0;
    });
  }

  std::vector<uint64_t> Take() { return std::move(bits_); }

 private:
  [[nodiscard]] const NodeColumns& nodes() const { return store_.nodes(); }

  void KeepMore(const QueryTerm& term) {
    const auto is_number = [&](int64_t number) {
      return std::ranges::find(term.numbers, number) != term.numbers.end();
    };
    switch (term.field) {
      case QueryField::kRank:
        return KeepRanges(term.is_negated,
                          [&](const StorePlace& place, bool) { return is_number(place.rank); });
      case QueryField::kStep:
        return KeepRanges(term.is_negated,
                          [&](const StorePlace& place, bool) { return is_number(place.step); });
      case QueryField::kSide:
        return KeepRanges(term.is_negated, [&](const StorePlace&, bool is_golden) {
          return (term.choices & (is_golden ? kSideGolden : kSideTarget)) != 0;
        });
      case QueryField::kError:
        return KeepCompared(nodes().error, term);
      case QueryField::kInputError:
        return KeepCompared(nodes().input_error, term);
      case QueryField::kSize:
        return KeepCompared(nodes().size, term);
      case QueryField::kDepth:
        return KeepCompared(nodes().depth, term);
      default:
        return KeepCompared(nodes().errors, term);
    }
  }

  template <class IsKept>
  void KeepWhere(const QueryTerm& term, const IsKept& is_kept) {
    const uint64_t flip = term.is_negated ? ~uint64_t{0} : 0;
    const size_t count = store_.size();
    constexpr size_t kShare = 1024;
    ParallelBlocks(bits_.size(), kShare, [&](size_t from, size_t to) {
      for (size_t word = from; word < to; ++word) {
        if (bits_[word] == 0) continue;
        uint64_t kept = 0;
        const size_t begin = word * kBitsPerWord;
        const size_t end = std::min(count, begin + kBitsPerWord);
        for (size_t i = begin; i < end; ++i) {
          kept |= uint64_t{is_kept(i) ? 1U : 0U} << (i - begin);
        }
        bits_[word] &= kept ^ flip;
      }
    });
  }

  void KeepChoice(std::span<const uint8_t> column, const QueryTerm& term) {
    KeepWhere(term, [&](size_t i) { return (term.choices >> column[i] & 1) != 0; });
  }

  // A number without a value is beyond no limit.
  template <class T>
  void KeepCompared(std::span<const T> column, const QueryTerm& term) {
    const double limit = term.limit;
    const auto at = [&](size_t i) { return static_cast<double>(column[i]); };
    switch (term.sign) {
      case QuerySign::kEqual:
        return KeepWhere(term, [&](size_t i) { return at(i) == limit; });
      case QuerySign::kLess:
        return KeepWhere(term, [&](size_t i) { return at(i) < limit; });
      case QuerySign::kAtMost:
        return KeepWhere(term, [&](size_t i) { return at(i) <= limit; });
      case QuerySign::kMore:
        return KeepWhere(term, [&](size_t i) { return at(i) > limit; });
      case QuerySign::kAtLeast:
        return KeepWhere(term, [&](size_t i) { return at(i) >= limit; });
    }
  }

  // By a text that many nodes share, looked at once.
  template <class IsKept>
  void KeepListed(std::span<const uint32_t> column, std::span<const std::string_view> texts,
                  const QueryTerm& term, const IsKept& is_kept) {
    std::vector<uint8_t> kept(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) kept[i] = is_kept(texts[i]) ? 1 : 0;
    KeepWhere(term, [&](size_t i) { return kept[column[i]] != 0; });
  }

  static bool HasAny(std::string_view lines, const QueryTerm& term,
                     std::string (*plain)(std::string_view)) {
    if (lines.empty()) return false;
    return std::ranges::any_of(SplitAt(lines, '\n'), [&](std::string_view line) {
      return std::ranges::find(term.texts, plain(line)) != term.texts.end();
    });
  }

  void KeepNames(const QueryTerm& term) {
    std::vector<uint64_t> names(store_.names().size() / kBitsPerWord + 1);
    store_.names().MarkContaining(term.texts.front(), names);
    KeepWhere(term, [&](size_t i) {
      const uint32_t name = nodes().name[i];
      return (names[name / kBitsPerWord] >> (name % kBitsPerWord) & 1) != 0;
    });
  }

  [[nodiscard]] bool IsKind(size_t i, uint32_t kinds) const {
    if ((kinds & kIsLeaf) != 0 && nodes().children[i] == 0) return true;
    if ((kinds & kIsMatched) != 0 && nodes().partner[i] != kNoNode) return true;
    return (kinds & kIsUnmatched) != 0 &&
           nodes().level[i] == static_cast<uint8_t>(NodeLevel::kUnmatched);
  }

  template <class IsKept>
  void KeepRanges(bool is_negated, const IsKept& is_kept) {
    std::vector<uint64_t> kept(bits_.size());
    const auto add = [&](uint32_t begin, uint32_t count) {
      for (size_t i = begin; i < size_t{begin} + count;) {
        const bool is_whole = i % kBitsPerWord == 0 && i + kBitsPerWord <= size_t{begin} + count;
        if (is_whole) {
          kept[i / kBitsPerWord] = ~uint64_t{0};
          i += kBitsPerWord;
        } else {
          kept[i / kBitsPerWord] |= uint64_t{1} << (i % kBitsPerWord);
          ++i;
        }
      }
    };
    for (const StorePlace& place : store_.places()) {
      if (place.target_count > 0 && is_kept(place, false)) add(place.target, place.target_count);
      if (place.golden_count > 0 && is_kept(place, true)) add(place.golden, place.golden_count);
    }
    for (size_t i = 0; i < bits_.size(); ++i) bits_[i] &= is_negated ? ~kept[i] : kept[i];
  }

  const ResultStore& store_;
  std::vector<uint64_t> bits_;
};

}  // namespace

QueryHits::QueryHits(std::vector<uint64_t> bits) : bits_(std::move(bits)) {
  bits_.push_back(0);
  before_.reserve(bits_.size());
  uint32_t count = 0;
  for (const uint64_t word : bits_) {
    before_.push_back(count);
    count += static_cast<uint32_t>(std::popcount(word));
  }
}

uint32_t QueryHits::CountBefore(uint32_t node) const {
  const uint64_t below = (uint64_t{1} << (node % kBitsPerWord)) - 1;
  return before_[node / kBitsPerWord] +
         static_cast<uint32_t>(std::popcount(bits_[node / kBitsPerWord] & below));
}

std::shared_ptr<const QueryHits> HitsOf(const ResultStore& store, const std::string& query,
                                        const std::vector<QueryTerm>& terms,
                                        const QueryScope& scope) {
  const std::string key = fmt::format("hits {} {} {}", scope.place, scope.sides, query);
  if (auto kept = store.kept().Find<QueryHits>(key)) return kept;
  Narrowing nodes(store);
  nodes.KeepScope(scope);
  // Names last: they take the longest.
  for (const bool of_names : {false, true}) {
    for (const QueryTerm& term : terms) {
      if ((term.field == QueryField::kName) == of_names) nodes.Keep(term);
    }
  }
  auto hits = std::make_shared<const QueryHits>(nodes.Take());
  store.kept().Keep(key, hits);
  return hits;
}

}  // namespace plumbline::view

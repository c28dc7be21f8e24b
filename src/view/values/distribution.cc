#include "view/values/distribution.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "base/process/parallel.h"
#include "tensor/half.h"

namespace plumbline::view {
namespace {

constexpr size_t kPatterns = size_t{1} << 16;
constexpr uint64_t kExponent = 0x7FF0000000000000;

// Numbers of smaller magnitude but 0 are subnormal; 0 for types without such.
double SmallestNormal(DType dtype) {
  if (const NarrowFormat* format = NarrowFormatOf(dtype)) return std::ldexp(1.0, 1 - format->bias);
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return static_cast<double>(std::numeric_limits<float>::min());
    case DType::kFloat64:
    case DType::kComplex128:
      return std::numeric_limits<double>::min();
    default:
      return 0;
  }
}

// Numbers that are read several times. `is_single`: all of them are float32 numbers.
// `wants_deciles`: of their magnitudes.
struct NumberSource {
  size_t elements;
  double smallest_normal;
  bool is_single;
  bool wants_deciles;
  std::function<void(size_t first, size_t count, double* out)> read;
};

// Positions in a sorted list that the quantiles and deciles of `count` numbers need.
struct QuantilePlace {
  uint64_t below;
  double fraction;  // of the way to the next
};
QuantilePlace PlaceOf(double quantile, uint64_t count) {
  const double place = quantile * static_cast<double>(count - 1);
  const double below = std::floor(place);
  return {std::min(static_cast<uint64_t>(below), count - 1), place - below};
}
uint64_t DecileRank(size_t decile, uint64_t count) {
  if (decile == kDeciles) return count - 1;
  return count / kDeciles * decile + count % kDeciles * decile / kDeciles;
}

double Between(double low, double high, double fraction) {
  if (fraction == 0 || low == high) return low;  // also where the difference would overflow
  return low * (1 - fraction) + high * fraction;
}

// ---- order statistics by digits of 16 bits ----

// Keys order as the numbers do, -0 before +0; the first digit holds sign and exponent.
uint64_t KeyOf(double value, bool is_single) {
  if (is_single) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    const uint32_t flip = (0 - (bits >> 31)) | 0x80000000U;
    return static_cast<uint64_t>(bits ^ flip) << 32;
  }
  const auto bits = std::bit_cast<uint64_t>(value);
  return bits ^ ((0 - (bits >> 63)) | (uint64_t{1} << 63));
}

double NumberOfKey(uint64_t key, bool is_single) {
  const uint64_t flip = (key >> 63) != 0 ? uint64_t{1} << 63 : ~uint64_t{0};
  const uint64_t bits = key ^ flip;
  if (!is_single) return std::bit_cast<double>(bits);
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits >> 32)));
}

// Finds numbers by their places in the sorted order without sorting: each pass over all numbers
// counts, of those that share the known digits of a number sought, the next digit.
class RankSearch {
 public:
  // `ranks`: ascending, below the sum of `counts`, which are those of the first digit.
  RankSearch(std::vector<uint64_t> ranks, const std::vector<uint64_t>& counts)
      : by_first_digit_(kPatterns, 0) {
    for (const uint64_t rank : ranks) {
      sought_.push_back({0, rank});
      Descend(sought_.back(), [&](size_t digit) { return counts[digit]; });
    }
    MakeGroups();
  }

  // Thread-safe.
  void Count(uint64_t key) {
    const size_t first = by_first_digit_[key >> 48];
    if (first == 0) return;
    const uint64_t prefix = key >> (64 - 16 * digits_);
    for (size_t i = first - 1; i < groups_.size() && groups_[i].prefix <= prefix; ++i) {
      if (groups_[i].prefix != prefix) continue;
      const auto digit = static_cast<size_t>(key >> (48 - 16 * digits_)) % kPatterns;
      groups_[i].counts[digit].fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Behind a pass.
  void EndPass() {
    for (Sought& sought : sought_) {
      const auto group = std::ranges::find(groups_, sought.prefix, &Group::prefix);
      Descend(sought,
              [&](size_t digit) { return group->counts[digit].load(std::memory_order_relaxed); });
    }
    ++digits_;
    MakeGroups();
  }

  // Of the i-th rank; digits that are not known are 0.
  [[nodiscard]] uint64_t key(size_t i) const { return sought_[i].prefix << (64 - 16 * digits_); }

 private:
  struct Sought {
    uint64_t prefix;  // the known digits
    uint64_t rank;    // among the numbers that share them
  };
  struct Group {
    uint64_t prefix;
    std::unique_ptr<std::atomic<uint64_t>[]> counts;
  };

  template <class CountOf>
  static void Descend(Sought& sought, const CountOf& count_of) {
    size_t digit = 0;
    while (digit + 1 < kPatterns && sought.rank >= count_of(digit))
      sought.rank -= count_of(digit++);
    sought.prefix = sought.prefix << 16 | digit;
  }

  void MakeGroups() {
    groups_.clear();
    std::ranges::fill(by_first_digit_, uint8_t{0});
    if (digits_ == 4) return;
    for (const Sought& sought : sought_) {
      if (!groups_.empty() && groups_.back().prefix == sought.prefix) continue;
      groups_.push_back({sought.prefix, std::make_unique<std::atomic<uint64_t>[]>(kPatterns)});
      uint8_t& first = by_first_digit_[sought.prefix >> (16 * (digits_ - 1))];
      if (first == 0) first = static_cast<uint8_t>(groups_.size());
    }
  }

  size_t digits_ = 1;  // that are known
  std::vector<Sought> sought_;
  std::vector<Group> groups_;            // ascending
  std::vector<uint8_t> by_first_digit_;  // 1 + the first group with this digit; 0: none
};

// ---- one pass over numbers of any type ----

// Removes NaN and infinities of a run and counts them; how many stay.
size_t KeepFinite(double* values, size_t count, Distribution& counts) {
  uint64_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    seen |= (std::bit_cast<uint64_t>(values[i]) & kExponent) + (uint64_t{1} << 52);
  }
  if (seen >> 63 == 0) return count;
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = values[i];
    if (std::isnan(value)) {
      ++counts.nan;
    } else if (std::isinf(value)) {
      ++(value > 0 ? counts.inf : counts.minus_inf);
    } else {
      values[kept++] = value;
    }
  }
  return kept;
}

constexpr size_t kSumLanes = 8;

// What a part of the numbers adds; sums are kept apart and added in order.
struct PartTotals {
  Distribution counts;
  double sum = 0, squares = 0;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
};

void AddFinite(const double* values, size_t count, double smallest_normal, PartTotals& part) {
  double sum[kSumLanes] = {}, squares[kSumLanes] = {};
  uint64_t zero = 0, tiny = 0;
  double low = part.lowest, high = part.highest;
  for (size_t i = 0; i < count; ++i) {
    const double value = values[i];
    zero += value == 0 ? 1 : 0;
    tiny += std::fabs(value) < smallest_normal ? 1 : 0;
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  const size_t whole = count / kSumLanes * kSumLanes;
  for (size_t i = 0; i < whole; i += kSumLanes) {
    for (size_t lane = 0; lane < kSumLanes; ++lane) {
      const double value = values[i + lane];
      sum[lane] += value;
      squares[lane] += value * value;
    }
  }
  for (size_t i = whole; i < count; ++i) {
    sum[i % kSumLanes] += values[i];
    squares[i % kSumLanes] += values[i] * values[i];
  }
  for (size_t lane = 0; lane < kSumLanes; ++lane) {
    part.sum += sum[lane];
    part.squares += squares[lane];
  }
  part.lowest = low;
  part.highest = high;
  part.counts.zero += zero;
  if (smallest_normal > 0) part.counts.subnormal += tiny - zero;
}

// Several passes over numbers of a wide type.
class WidePasses {
 public:
  WidePasses(const NumberSource& source, CancelFlag cancel) : source_(source), cancel_(cancel) {}

  Result<Distribution> Run() {
    CountFirstDigits();
    if (IsSet(cancel_)) return CancelledError();
    if (result_.finite() == 0) return result_;
    SetNorm();
    FindRanks();
    if (IsSet(cancel_)) return CancelledError();
    return result_;
  }

 private:
  void CountFirstDigits() {
    first_digits_.assign(kPatterns, 0);
    std::vector<PartTotals> totals(WalkParts(source_.elements));
    std::mutex mutex;
    ParallelFor(totals.size(), [&](size_t i) {
      std::array<double, kRunElements> values;
      std::vector<uint32_t> digits(kPatterns, 0);
      ForRuns(PartOf(source_.elements, i), cancel_, [&](size_t first, size_t count) {
        source_.read(first, count, values.data());
        const size_t kept = KeepFinite(values.data(), count, totals[i].counts);
        AddFinite(values.data(), kept, source_.smallest_normal, totals[i]);
        for (size_t k = 0; k < kept; ++k) ++digits[KeyOf(values[k], source_.is_single) >> 48];
      });
      const std::lock_guard lock(mutex);
      for (size_t k = 0; k < kPatterns; ++k) first_digits_[k] += digits[k];
    });
    Combine(totals);
  }

  void Combine(const std::vector<PartTotals>& totals) {
    result_.elements = source_.elements;
    double sum = 0;
    result_.min = std::numeric_limits<double>::infinity();
    result_.max = -result_.min;
    for (const PartTotals& part : totals) {
      result_.nan += part.counts.nan;
      result_.inf += part.counts.inf;
      result_.minus_inf += part.counts.minus_inf;
      result_.zero += part.counts.zero;
      result_.subnormal += part.counts.subnormal;
      sum += part.sum;
      squares_ += part.squares;
      result_.min = std::min(result_.min, part.lowest);
      result_.max = std::max(result_.max, part.highest);
    }
    if (result_.finite() == 0) result_.min = result_.max = 0;
    if (result_.finite() > 0) result_.mean = sum / static_cast<double>(result_.finite());
  }

  // Squares that leave the range of double are added up again, of what is divided by the largest.
  void SetNorm() {
    result_.norm = std::sqrt(squares_);
    const double largest = std::max(std::fabs(result_.min), std::fabs(result_.max));
    constexpr double kSmall = 1e-140, kLarge = 1e150;
    if (largest == 0 || (largest > kSmall && std::isfinite(squares_) && largest < kLarge)) return;
    std::vector<PartTotals> totals(WalkParts(source_.elements));
    ParallelFor(totals.size(), [&](size_t i) {
      std::array<double, kRunElements> values;
      ForRuns(PartOf(source_.elements, i), cancel_, [&](size_t first, size_t count) {
        source_.read(first, count, values.data());
        const size_t kept = KeepFinite(values.data(), count, totals[i].counts);
        for (size_t k = 0; k < kept; ++k) values[k] /= largest;
        AddFinite(values.data(), kept, 0, totals[i]);
      });
    });
    double squares = 0, sum = 0;
    for (const PartTotals& part : totals) {
      squares += part.squares;
      sum += part.sum;
    }
    result_.norm = largest * std::sqrt(squares);
    result_.mean = largest * (sum / static_cast<double>(result_.finite()));
  }

  void FindRanks() {
    const uint64_t count = result_.finite();
    std::vector<uint64_t> ranks, magnitude_ranks;
    for (const double quantile : kQuantiles) {
      const uint64_t below = PlaceOf(quantile, count).below;
      ranks.push_back(below);
      ranks.push_back(std::min(below + 1, count - 1));
    }
    for (size_t k = 0; source_.wants_deciles && k <= kDeciles; ++k) {
      magnitude_ranks.push_back(DecileRank(k, count));
    }
    RankSearch values(ranks, first_digits_);
    RankSearch magnitudes(magnitude_ranks, FoldedDigits());
    const size_t digits = source_.is_single ? 2 : 4;
    for (size_t known = 1; known < digits && !IsSet(cancel_); ++known) Pass(values, magnitudes);
    for (size_t i = 0; i < kQuantiles.size(); ++i) {
      result_.quantiles[i] = Between(NumberOfKey(values.key(2 * i), source_.is_single),
                                     NumberOfKey(values.key(2 * i + 1), source_.is_single),
                                     PlaceOf(kQuantiles[i], count).fraction);
    }
    for (size_t k = 0; k < magnitude_ranks.size(); ++k) {
      result_.deciles[k] = NumberOfKey(magnitudes.key(k), source_.is_single);
    }
  }

  // The first digits of magnitudes: those of negative numbers count down where those of positive
  // ones count up.
  [[nodiscard]] std::vector<uint64_t> FoldedDigits() const {
    std::vector<uint64_t> folded(kPatterns, 0);
    constexpr size_t kHalf = kPatterns / 2;
    for (size_t k = 0; k < kHalf; ++k) {
      folded[kHalf + k] = first_digits_[kHalf + k] + first_digits_[kHalf - 1 - k];
    }
    return folded;
  }

  void Pass(RankSearch& values, RankSearch& magnitudes) const {
    ParallelFor(WalkParts(source_.elements), [&](size_t i) {
      std::array<double, kRunElements> run;
      Distribution ignored;
      ForRuns(PartOf(source_.elements, i), cancel_, [&](size_t first, size_t count) {
        source_.read(first, count, run.data());
        const size_t kept = KeepFinite(run.data(), count, ignored);
        for (size_t k = 0; k < kept; ++k) {
          values.Count(KeyOf(run[k], source_.is_single));
        }
        for (size_t k = 0; source_.wants_deciles && k < kept; ++k) {
          magnitudes.Count(KeyOf(std::fabs(run[k]), source_.is_single));
        }
      });
    });
    values.EndPass();
    magnitudes.EndPass();
  }

  const NumberSource& source_;
  CancelFlag cancel_;
  Distribution result_;
  double squares_ = 0;
  std::vector<uint64_t> first_digits_;
};

// ---- types of at most 16 bits ----

template <class Word>
void CountPatterns(const std::byte* data, size_t count, uint32_t* counts) {
  for (size_t i = 0; i < count; ++i) {
    Word pattern;
    std::memcpy(&pattern, data + i * sizeof(Word), sizeof(Word));
    ++counts[pattern];
  }
}

Result<std::vector<uint64_t>> PatternCounts(const ElementReader& reader, CancelFlag cancel) {
  const bool is_byte = InfoOf(reader.dtype()).size_bytes == 1;
  std::vector<uint64_t> all(is_byte ? 256 : kPatterns, 0);
  std::mutex mutex;
  ParallelFor(WalkParts(reader.elements()), [&](size_t i) {
    std::vector<uint32_t> counts(all.size(), 0);
    std::array<std::byte, kRunElements * 2> scratch;
    ForRuns(PartOf(reader.elements(), i), cancel, [&](size_t first, size_t count) {
      const std::byte* raw = reader.Raw(first, count, scratch.data());
      is_byte ? CountPatterns<uint8_t>(raw, count, counts.data())
              : CountPatterns<uint16_t>(raw, count, counts.data());
    });
    const std::lock_guard lock(mutex);
    for (size_t k = 0; k < all.size(); ++k) all[k] += counts[k];
  });
  if (IsSet(cancel)) return CancelledError();
  return all;
}

// The number that each pattern of the type stands for.
std::vector<double> PatternValues(DType dtype, size_t patterns) {
  std::vector<uint16_t> words(patterns);
  std::vector<uint8_t> bytes(patterns);
  for (size_t k = 0; k < patterns; ++k) {
    words[k] = static_cast<uint16_t>(k);
    bytes[k] = static_cast<uint8_t>(k);
  }
  const bool is_byte = InfoOf(dtype).size_bytes == 1;
  std::vector<double> values(patterns);
  WidenElements(dtype,
                is_byte ? reinterpret_cast<const std::byte*>(bytes.data())
                        : reinterpret_cast<const std::byte*>(words.data()),
                patterns, values.data());
  return values;
}

// The number at a place of the sorted order.
double ValueAt(const std::vector<Distribution::Value>& table, uint64_t rank) {
  for (const Distribution::Value& value : table) {
    if (rank < value.count) return value.value;
    rank -= value.count;
  }
  return table.back().value;
}

void FillFromTable(Distribution& result) {
  const std::vector<Distribution::Value>& table = result.table;
  const uint64_t count = result.finite();
  if (count == 0) return;
  result.min = table.front().value;
  result.max = table.back().value;
  double sum = 0, squares = 0;
  std::vector<Distribution::Value> magnitudes = table;
  for (Distribution::Value& each : magnitudes) {
    const auto times = static_cast<double>(each.count);
    sum += times * each.value;
    squares += times * each.value * each.value;
    each.value = std::fabs(each.value);
  }
  result.mean = sum / static_cast<double>(count);
  result.norm = std::sqrt(squares);
  for (size_t i = 0; i < kQuantiles.size(); ++i) {
    const QuantilePlace place = PlaceOf(kQuantiles[i], count);
    result.quantiles[i] =
        Between(ValueAt(table, place.below), ValueAt(table, std::min(place.below + 1, count - 1)),
                place.fraction);
  }
  std::ranges::sort(magnitudes, {}, &Distribution::Value::value);
  for (size_t k = 0; k <= kDeciles; ++k) {
    result.deciles[k] = ValueAt(magnitudes, DecileRank(k, count));
  }
}

Result<Distribution> NarrowDistribution(const ElementReader& reader, CancelFlag cancel) {
  PL_TRY_ASSIGN(const std::vector<uint64_t> counts, PatternCounts(reader, cancel));
  const std::vector<double> values = PatternValues(reader.dtype(), counts.size());
  const double smallest_normal = SmallestNormal(reader.dtype());
  Distribution result;
  result.elements = reader.elements();
  result.has_table = true;
  for (size_t k = 0; k < counts.size(); ++k) {
    const double value = values[k];
    if (counts[k] == 0) continue;
    if (std::isnan(value)) {
      result.nan += counts[k];
    } else if (std::isinf(value)) {
      (value > 0 ? result.inf : result.minus_inf) += counts[k];
    } else {
      if (value == 0) result.zero += counts[k];
      if (value != 0 && std::fabs(value) < smallest_normal) result.subnormal += counts[k];
      result.table.push_back({value, counts[k]});
    }
  }
  std::ranges::stable_sort(result.table, {}, &Distribution::Value::value);
  FillFromTable(result);
  return result;
}

}  // namespace

Result<Distribution> DistributionOf(const ElementReader& reader, CancelFlag cancel) {
  if (InfoOf(reader.dtype()).size_bytes <= 2) return NarrowDistribution(reader, cancel);
  const NumberSource source{
      reader.elements(), SmallestNormal(reader.dtype()), reader.dtype() == DType::kFloat32, true,
      [&](size_t first, size_t count, double* out) { reader.Read(first, count, out); }};
  return WidePasses(source, cancel).Run();
}

Result<Distribution> DistributionOfDifference(const PairReader& pair, CancelFlag cancel) {
  const NumberSource source{pair.elements(), 0, false, false,
                            [&](size_t first, size_t count, double* out) {
                              std::array<double, kRunElements> target, golden;
                              pair.Read(first, count, target.data(), golden.data(), out);
                            }};
  return WidePasses(source, cancel).Run();
}

namespace {

// Finds the bin of a number: a guess by its first digit, mended by the edges.
class BinFinder {
 public:
  explicit BinFinder(const BinEdges& edges) : edges_(edges), guess_(kPatterns) {
    size_t bin = 0;
    for (size_t digit = 0; digit < kPatterns; ++digit) {
      const double first = NumberOfKey(static_cast<uint64_t>(digit) << 48, false);
      // Digits of NaN stand at both ends.
      if (!std::isnan(first)) bin = Mend(bin, first);
      guess_[digit] = static_cast<uint16_t>(bin);
    }
  }

  [[nodiscard]] size_t Find(double value) const {
    return Mend(guess_[KeyOf(value, false) >> 48], value);
  }

 private:
  [[nodiscard]] size_t Mend(size_t bin, double value) const {
    while (bin + 1 < kHistogramBins && value >= edges_[bin + 1]) ++bin;
    while (bin > 0 && value < edges_[bin]) --bin;
    return bin;
  }

  const BinEdges& edges_;
  std::vector<uint16_t> guess_;
};

}  // namespace

BinEdges EdgesBetween(double low, double high, BinScale scale) {
  if (low == high) {
    const double half = low == 0 ? 0.5 : std::fabs(low) / 2;
    low -= half;
    high += half;
  }
  const double largest = std::max(std::fabs(low), std::fabs(high));
  const double threshold = largest * 1e-6;
  const auto forward = [&](double x) {
    return std::copysign(std::log1p(std::fabs(x) / threshold), x);
  };
  const auto backward = [&](double y) {
    return std::copysign(std::expm1(std::fabs(y)) * threshold, y);
  };
  const bool is_log = scale == BinScale::kSymmetricLog && threshold > 0;
  const double from = is_log ? forward(low) : low, to = is_log ? forward(high) : high;
  BinEdges edges(kHistogramBins + 1);
  for (size_t i = 0; i <= kHistogramBins; ++i) {
    const double share = static_cast<double>(i) / kHistogramBins;
    const double at = Between(from, to, share);
    edges[i] = is_log ? backward(at) : at;
  }
  edges.front() = low;
  edges.back() = high;
  // Rounding of a few neighbouring numbers must not turn their order round.
  for (size_t i = 1; i <= kHistogramBins; ++i) edges[i] = std::clamp(edges[i], edges[i - 1], high);
  return edges;
}

Result<BinCounts> CountBins(const ElementReader& reader, const Distribution& distribution,
                            const BinEdges& edges, CancelFlag cancel) {
  BinCounts all(kHistogramBins, 0);
  const BinFinder finder(edges);
  const double smallest_normal = SmallestNormal(reader.dtype());
  const auto has_bar_of_its_own = [&](double value) {
    return value == 0 || std::fabs(value) < smallest_normal;
  };
  if (distribution.has_table) {
    for (const Distribution::Value& each : distribution.table) {
      if (!has_bar_of_its_own(each.value)) all[finder.Find(each.value)] += each.count;
    }
    return all;
  }
  std::mutex mutex;
  ParallelFor(WalkParts(reader.elements()), [&](size_t i) {
    std::array<double, kRunElements> values;
    BinCounts counts(kHistogramBins, 0);
    Distribution ignored;
    ForRuns(PartOf(reader.elements(), i), cancel, [&](size_t first, size_t count) {
      reader.Read(first, count, values.data());
      const size_t kept = KeepFinite(values.data(), count, ignored);
      for (size_t k = 0; k < kept; ++k) {
        if (!has_bar_of_its_own(values[k])) ++counts[finder.Find(values[k])];
      }
    });
    const std::lock_guard lock(mutex);
    for (size_t k = 0; k < kHistogramBins; ++k) all[k] += counts[k];
  });
  if (IsSet(cancel)) return CancelledError();
  return all;
}

}  // namespace plumbline::view

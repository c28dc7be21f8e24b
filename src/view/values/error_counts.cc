#include "view/values/error_counts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "base/process/parallel.h"
#include "tensor/half.h"

namespace plumbline::view {
namespace {

constexpr int kDroppedBits = 49;  // of a double: what lies below exponent and three bits
constexpr size_t kUlpBins = 65;   // bit widths of 64-bit distances
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

size_t OctaveCounts::BinOf(double value) {
  return static_cast<size_t>(std::bit_cast<uint64_t>(value) >> kDroppedBits);
}

double OctaveCounts::LowerEdge(size_t bin) {
  return std::bit_cast<double>(static_cast<uint64_t>(bin) << kDroppedBits);
}

void OctaveCounts::Add(const OctaveCounts& other) {
  for (size_t k = 0; k < kBins; ++k) counts_[k] += other.counts_[k];
}

OctaveCounts::Bins OctaveCounts::Condensed(size_t most) const {
  const auto is_used = [](uint64_t count) { return count != 0; };
  const auto first = std::ranges::find_if(counts_, is_used);
  if (first == counts_.end()) return {};
  auto begin = static_cast<size_t>(first - counts_.begin());
  size_t end = kBins;
  while (counts_[end - 1] == 0) --end;
  size_t width = 1;  // a power of two, so that edges stay those of octaves
  while ((end + width - 1) / width - begin / width > most) width *= 2;
  begin = begin / width * width;
  Bins bins;
  for (size_t at = begin; at < end; at += width) {
    bins.edges.push_back(LowerEdge(at));
    bins.counts.push_back(0);
    for (size_t k = at; k < std::min(at + width, end); ++k) bins.counts.back() += counts_[k];
  }
  bins.edges.push_back(LowerEdge(begin + bins.counts.size() * width));
  return bins;
}

namespace {

// ---- distances in representable numbers ----

int64_t OrdinalOf(uint64_t bits, int width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

// The number of the representable value of `dtype` nearest to a finite `value`, from 0 on.
int64_t OrdinalIn(DType dtype, double value) {
  if (dtype == DType::kFloat64) return OrdinalOf(std::bit_cast<uint64_t>(value), 64);
  const auto single = static_cast<float>(value);
  if (dtype == DType::kFloat32) return OrdinalOf(std::bit_cast<uint32_t>(single), 32);
  const int width = 8 * InfoOf(dtype).size_bytes;
  return OrdinalOf(FloatToNarrow(*NarrowFormatOf(dtype), single), width);
}

uint64_t DistanceOf(int64_t a, int64_t b) {
  return a >= b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

// ---- what pairs add up to ----

// Finds the tenth of golden's magnitudes that a number is in.
class DecileFinder {
 public:
  explicit DecileFinder(const Distribution& golden) : guess_(OctaveCounts::kBins, 0) {
    if (golden.finite() == 0) return;
    for (const double bound : golden.deciles) {
      if (bounds_.empty() || bound > bounds_.back()) bounds_.push_back(bound);
    }
    if (bounds_.size() == 1) bounds_.push_back(bounds_.front());
    size_t decile = 0;
    for (size_t bin = 0; bin < guess_.size(); ++bin) {
      const double edge = OctaveCounts::LowerEdge(bin);
      while (decile + 2 < bounds_.size() && edge >= bounds_[decile + 1]) ++decile;
      guess_[bin] = static_cast<uint8_t>(decile);
    }
  }

  [[nodiscard]] size_t Find(double magnitude) const {
    size_t decile = guess_[OctaveCounts::BinOf(magnitude)];
    while (decile + 2 < bounds_.size() && magnitude >= bounds_[decile + 1]) ++decile;
    return decile;
  }
  // One more than there are deciles.
  [[nodiscard]] const std::vector<double>& bounds() const { return bounds_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint8_t> guess_;
};

bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

class ErrorSums {
 public:
  explicit ErrorSums(const DecileFinder& finder) : finder_(finder) {
    counts_.ulp.assign(kUlpBins, 0);
  }

  void AddNonFinite(double target, double golden, uint64_t times) {
    counts_.nonfinite += times;
    if (!IsSame(target, golden)) counts_.nonfinite_mismatch += times;
  }
  // Of a finite pair: |target - golden|, and that divided by |golden|.
  void AddFinite(double golden, double error, double relative, uint64_t times) {
    DecileErrors& decile = deciles_[finder_.Find(std::fabs(golden))];
    decile.count += times;
    if (error == 0) {
      counts_.equal += times;
      return;
    }
    counts_.absolute.AddTo(OctaveCounts::BinOf(error), times);
    counts_.relative.AddTo(OctaveCounts::BinOf(relative), times);
    decile.absolute_sum += error * static_cast<double>(times);
    decile.absolute_max = error > decile.absolute_max ? error : decile.absolute_max;
    decile.relative_max = relative > decile.relative_max ? relative : decile.relative_max;
  }
  void AddDistance(uint64_t distance, uint64_t times) {
    counts_.ulp[std::bit_width(distance)] += times;
  }

  [[nodiscard]] const ErrorCounts& counts() const { return counts_; }
  [[nodiscard]] const std::array<DecileErrors, kDeciles>& deciles() const { return deciles_; }

 private:
  const DecileFinder& finder_;
  ErrorCounts counts_;
  std::array<DecileErrors, kDeciles> deciles_{};
};

// ---- any two types ----

struct PairRun {
  std::array<double, kRunElements> target, golden, difference, relative;
};

// Makes magnitudes of the differences, and divides them by those of golden. Whether an element of
// either side is not finite.
bool SetErrors(size_t count, PairRun& run) {
  // Adding one to exponent bits that are all set reaches the sign bit.
  constexpr uint64_t kBits = 0x7FF0000000000000, kOne = uint64_t{1} << 52;
  uint64_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    const double golden = run.golden[i];
    const double error = std::fabs(run.difference[i]);
    seen |= (std::bit_cast<uint64_t>(run.target[i]) & kBits) + kOne;
    seen |= (std::bit_cast<uint64_t>(golden) & kBits) + kOne;
    run.difference[i] = error;
    // No 0 / 0: where nothing differs the quotient is 0.
    run.relative[i] = error / (error == 0 ? 1.0 : std::fabs(golden));
  }
  return seen >> 63 != 0;
}

// Adds the elements of a run whose difference is known; `ulp_dtype`: null for none.
void AddRun(size_t count, const DType* ulp_dtype, PairRun& run, ErrorSums& sums) {
  const bool has_nonfinite = SetErrors(count, run);
  for (size_t i = 0; i < count; ++i) {
    const double target = run.target[i], golden = run.golden[i];
    if (has_nonfinite && !(std::isfinite(target) && std::isfinite(golden))) {
      sums.AddNonFinite(target, golden, 1);
      continue;
    }
    sums.AddFinite(golden, run.difference[i], run.relative[i], 1);
    if (ulp_dtype == nullptr) continue;
    sums.AddDistance(DistanceOf(OrdinalIn(*ulp_dtype, target), OrdinalIn(*ulp_dtype, golden)), 1);
  }
}

// ---- two tensors of one 16-bit floating type ----

// Pairs that are at most 32 representable numbers apart are counted by golden's pattern and that
// distance: all that is asked of them follows from the counts.
constexpr int32_t kNear = 32;
constexpr size_t kNearBits = 6;
constexpr size_t kPatternCount = size_t{1} << 16;

// -x of a pattern with the sign bit, without a branch.
int32_t NarrowOrdinal(uint16_t pattern) {
  const int32_t sign = -(pattern >> 15);
  return ((pattern & 0x7FFF) ^ sign) - sign;
}

uint16_t PatternOfOrdinal(int32_t ordinal) {
  return static_cast<uint16_t>(ordinal < 0 ? 0x8000 | -ordinal : ordinal);
}

using NearCounts = std::vector<uint32_t>;

// Arrays of counts that threads use one after the other.
class CountsPool {
 public:
  std::unique_ptr<NearCounts> Take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<NearCounts>(kPatternCount << kNearBits, 0);
    std::unique_ptr<NearCounts> counts = std::move(free_.back());
    free_.pop_back();
    return counts;
  }
  void Return(std::unique_ptr<NearCounts> counts) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(counts));
  }
  // All of them added up, when all are back. Requires: at least one was taken.
  const NearCounts& Sum() {
    for (size_t i = 1; i < free_.size(); ++i) {
      for (size_t k = 0; k < free_[0]->size(); ++k) (*free_[0])[k] += (*free_[i])[k];
    }
    return *free_[0];
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<NearCounts>> free_;
};

// Pairs that are further apart, collected to be added as a run.
class FarPairs {
 public:
  FarPairs(DType dtype, ErrorSums& sums) : dtype_(dtype), sums_(sums) {}

  void Add(uint16_t target, uint16_t golden) {
    target_[count_] = target;
    golden_[count_] = golden;
    if (++count_ == kRunElements) Flush();
  }
  void Flush() {
    WidenElements(dtype_, reinterpret_cast<const std::byte*>(target_.data()), count_,
                  run_.target.data());
    WidenElements(dtype_, reinterpret_cast<const std::byte*>(golden_.data()), count_,
                  run_.golden.data());
    for (size_t i = 0; i < count_; ++i) run_.difference[i] = run_.target[i] - run_.golden[i];
    AddRun(count_, nullptr, run_, sums_);
    for (size_t i = 0; i < count_; ++i) {
      if (!std::isfinite(run_.target[i]) || !std::isfinite(run_.golden[i])) continue;
      sums_.AddDistance(DistanceOf(NarrowOrdinal(target_[i]), NarrowOrdinal(golden_[i])), 1);
    }
    count_ = 0;
  }

 private:
  DType dtype_;
  ErrorSums& sums_;
  size_t count_ = 0;
  std::array<uint16_t, kRunElements> target_{}, golden_{};
  PairRun run_{};
};

// For each pair kNear + the distance of target from golden, which is below 2 * kNear for near ones:
// 16-bit arithmetic, which vectorises. It wraps where both are NaN and of other sign.
void NearPlaces(const std::byte* target, const std::byte* golden, size_t count, uint16_t* places) {
  constexpr size_t kBytes = sizeof(uint16_t);
  const auto ordinal = [](const std::byte* at) {
    uint16_t pattern;
    std::memcpy(&pattern, at, kBytes);
    const auto sign = static_cast<uint16_t>(-(pattern >> 15));
    return static_cast<uint16_t>(((pattern & 0x7FFF) ^ sign) - sign);
  };
  for (size_t i = 0; i < count; ++i) {
    places[i] =
        static_cast<uint16_t>(ordinal(target + i * kBytes) - ordinal(golden + i * kBytes) + kNear);
  }
}

void CountNear(const std::byte* target, const std::byte* golden, size_t count, uint32_t* counts,
               FarPairs& far) {
  std::array<uint16_t, kRunElements> places;
  NearPlaces(target, golden, count, places.data());
  for (size_t i = 0; i < count; ++i) {
    uint16_t b;
    std::memcpy(&b, golden + i * sizeof(b), sizeof(b));
    if (places[i] < 2 * kNear) {
      ++counts[static_cast<size_t>(b) << kNearBits | places[i]];
    } else {
      uint16_t a;
      std::memcpy(&a, target + i * sizeof(a), sizeof(a));
      far.Add(a, b);
    }
  }
}

// Adds what the counts stand for.
void AddNear(DType dtype, const NearCounts& counts, ErrorSums& sums) {
  std::vector<uint16_t> patterns(kPatternCount);
  for (size_t k = 0; k < kPatternCount; ++k) patterns[k] = static_cast<uint16_t>(k);
  std::vector<double> values(kPatternCount);
  WidenElements(dtype, reinterpret_cast<const std::byte*>(patterns.data()), kPatternCount,
                values.data());
  for (size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) continue;
    const auto golden_pattern = static_cast<uint16_t>(k >> kNearBits);
    const int32_t distance = static_cast<int32_t>(k % (2 * kNear)) - kNear;
    const double golden = values[golden_pattern];
    const int32_t ordinal = NarrowOrdinal(golden_pattern) + distance;
    // Beyond all patterns: both are NaN, see NearPlaces().
    const double target = std::abs(ordinal) > 0x7FFF ? golden : values[PatternOfOrdinal(ordinal)];
    if (!std::isfinite(target) || !std::isfinite(golden)) {
      sums.AddNonFinite(target, golden, counts[k]);
      continue;
    }
    const double error = std::fabs(target - golden);
    sums.AddFinite(golden, error, error == 0 ? 0 : error / std::fabs(golden), counts[k]);
    sums.AddDistance(static_cast<uint64_t>(std::abs(distance)), counts[k]);
  }
}

// ---- all of it ----

class ErrorPass {
 public:
  ErrorPass(const PairReader& pair, const Distribution& golden, CancelFlag cancel)
      : pair_(pair), finder_(golden), cancel_(cancel), dtype_(pair.golden().dtype()) {
    const bool is_float = InfoOf(dtype_).kind == DTypeKind::kFloat;
    has_ulp_ = is_float && !pair.target().is_complex();
    constexpr uint64_t kMost = 0xFFFFFFFF;  // that a count can hold
    counts_near_ = is_float && InfoOf(dtype_).size_bytes == 2 && pair.target().dtype() == dtype_ &&
                   pair.elements() <= kMost;
  }

  Result<ErrorCounts> Run() {
    const size_t parts = WalkParts(pair_.elements());
    all_.elements = pair_.elements();
    all_.ulp.assign(kUlpBins, 0);
    deciles_.resize(parts + 1);
    ParallelFor(parts, [&](size_t i) {
      const auto sums = std::make_unique<ErrorSums>(finder_);
      counts_near_ ? AddNarrowPart(i, *sums) : AddPart(i, *sums);
      Take(i, *sums);
    });
    if (IsSet(cancel_)) return CancelledError();
    if (counts_near_) {
      const auto sums = std::make_unique<ErrorSums>(finder_);
      AddNear(dtype_, pool_.Sum(), *sums);
      Take(parts, *sums);
    }
    AddDeciles();
    if (!has_ulp_) all_.ulp.clear();
    while (!all_.ulp.empty() && all_.ulp.back() == 0) all_.ulp.pop_back();
    return std::move(all_);
  }

 private:
  void AddPart(size_t index, ErrorSums& sums) const {
    const auto run = std::make_unique<PairRun>();
    ForRuns(PartOf(pair_.elements(), index), cancel_, [&](size_t first, size_t count) {
      pair_.Read(first, count, run->target.data(), run->golden.data(), run->difference.data());
      AddRun(count, has_ulp_ ? &dtype_ : nullptr, *run, sums);
    });
  }

  void AddNarrowPart(size_t index, ErrorSums& sums) {
    std::unique_ptr<NearCounts> counts = pool_.Take();
    const auto far = std::make_unique<FarPairs>(dtype_, sums);
    std::array<std::byte, 2 * kRunElements> of_target, of_golden;
    ForRuns(PartOf(pair_.elements(), index), cancel_, [&](size_t first, size_t count) {
      CountNear(pair_.target().Raw(first, count, of_target.data()),
                pair_.golden().Raw(first, count, of_golden.data()), count, counts->data(), *far);
    });
    far->Flush();
    pool_.Return(std::move(counts));
  }

  // Sums are kept by part and added in order.
  void Take(size_t index, const ErrorSums& sums) {
    deciles_[index] = sums.deciles();
    const std::lock_guard lock(mutex_);
    const ErrorCounts& counts = sums.counts();
    all_.nonfinite += counts.nonfinite;
    all_.nonfinite_mismatch += counts.nonfinite_mismatch;
    all_.equal += counts.equal;
    all_.absolute.Add(counts.absolute);
    all_.relative.Add(counts.relative);
    for (size_t k = 0; k < kUlpBins; ++k) all_.ulp[k] += counts.ulp[k];
  }

  void AddDeciles() {
    all_.relative_infinite = all_.relative.TakeFrom(OctaveCounts::BinOf(kInfinity));
    const std::vector<double>& bounds = finder_.bounds();
    for (size_t k = 0; k + 1 < bounds.size(); ++k) {
      DecileErrors& all = all_.deciles.emplace_back();
      all.low = bounds[k];
      all.high = bounds[k + 1];
      for (const auto& part : deciles_) {
        all.count += part[k].count;
        all.absolute_sum += part[k].absolute_sum;
        all.absolute_max = std::max(all.absolute_max, part[k].absolute_max);
        all.relative_max = std::max(all.relative_max, part[k].relative_max);
      }
    }
  }

  const PairReader& pair_;
  const DecileFinder finder_;
  CancelFlag cancel_;
  const DType dtype_;
  bool has_ulp_, counts_near_;
  CountsPool pool_;
  std::vector<std::array<DecileErrors, kDeciles>> deciles_;
  std::mutex mutex_;
  ErrorCounts all_;
};

}  // namespace

Result<ErrorCounts> CountErrors(const PairReader& pair, const Distribution& golden,
                                CancelFlag cancel) {
  return ErrorPass(pair, golden, cancel).Run();
}

}  // namespace plumbline::view

#include "view/values/error_counts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <memory>

#include "base/process/parallel.h"
#include "tensor/half.h"

namespace plumbline::view {
namespace {

constexpr int kDroppedBits = 49;  // of a double: what lies below exponent and three bits
constexpr size_t kBinsPerOctave = 8;
constexpr size_t kUlpBins = 65;  // bit widths of 64-bit distances
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

size_t OctaveCounts::BinOf(double value) {
  return static_cast<size_t>(std::bit_cast<uint64_t>(value) >> kDroppedBits);
}

double OctaveCounts::LowerEdge(size_t bin) {
  return std::bit_cast<double>(static_cast<uint64_t>(bin) << kDroppedBits);
}

void OctaveCounts::Add(std::span<const uint32_t> counts) {
  for (size_t k = 0; k < counts.size(); ++k) counts_[k] += counts[k];
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

template <class Word>
void NarrowDistances(const std::byte* target, const std::byte* golden, size_t count,
                     uint32_t* out) {
  constexpr int kWidth = 8 * sizeof(Word);
  constexpr uint32_t kMagnitude = (uint32_t{1} << (kWidth - 1)) - 1;
  for (size_t i = 0; i < count; ++i) {
    Word a, b;
    std::memcpy(&a, target + i * sizeof(Word), sizeof(Word));
    std::memcpy(&b, golden + i * sizeof(Word), sizeof(Word));
    // Without branches, so that it vectorises: x or, with the sign bit, -x.
    const uint32_t sign_a = 0 - (static_cast<uint32_t>(a) >> (kWidth - 1));
    const uint32_t sign_b = 0 - (static_cast<uint32_t>(b) >> (kWidth - 1));
    const uint32_t ordinal_a = ((a & kMagnitude) ^ sign_a) - sign_a;
    const uint32_t ordinal_b = ((b & kMagnitude) ^ sign_b) - sign_b;
    const auto distance = static_cast<int32_t>(ordinal_a - ordinal_b);
    out[i] = static_cast<uint32_t>(distance < 0 ? -distance : distance);
  }
}

// ---- one part of the pass ----

// Finds the tenth of golden's magnitudes that a number is in.
class DecileFinder {
 public:
  explicit DecileFinder(const Distribution& golden) : guess_(OctaveCounts::kBins, 0) {
    const uint64_t finite = golden.finite();
    if (finite == 0) return;
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

struct PairRun {
  std::array<double, kRunElements> target, golden, difference, relative;
  std::array<uint32_t, kRunElements> narrow_distance;
  std::array<std::byte, kRunElements * 2> raw_target, raw_golden;
};

bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

class PartErrors {
 public:
  PartErrors(const PairReader& pair, const DecileFinder& finder)
      : pair_(pair),
        finder_(finder),
        absolute_(OctaveCounts::kBins, 0),
        relative_(OctaveCounts::kBins, 0) {
    const DType dtype = pair.golden().dtype();
    has_ulp_ = InfoOf(dtype).kind == DTypeKind::kFloat && !pair.target().is_complex();
    is_narrow_ = has_ulp_ && NarrowFormatOf(dtype) != nullptr && dtype == pair.target().dtype();
  }

  void Add(size_t first, size_t count) {
    pair_.Read(first, count, run_.target.data(), run_.golden.data(), run_.difference.data());
    if (is_narrow_) ReadDistances(first, count);
    const size_t kept = SetErrors(count) ? DropNonFinite(count) : count;
    for (size_t i = 0; i < kept; ++i) {
      const double error = run_.difference[i], relative = run_.relative[i];
      ++absolute_[OctaveCounts::BinOf(error)];
      ++relative_[OctaveCounts::BinOf(relative)];
      equal_ += error == 0 ? 1 : 0;
      AddToDecile(finder_.Find(std::fabs(run_.golden[i])), error, relative);
    }
    if (is_narrow_) {
      for (size_t i = 0; i < kept; ++i) ++ulp_[std::bit_width(run_.narrow_distance[i])];
    } else if (has_ulp_) {
      CountDistances(kept);
    }
  }

  void AddTo(ErrorCounts& all) {
    all.nonfinite += nonfinite_;
    all.nonfinite_mismatch += nonfinite_mismatch_;
    all.equal += equal_;
    absolute_[0] -= static_cast<uint32_t>(std::min<uint64_t>(equal_, absolute_[0]));
    relative_[0] -= static_cast<uint32_t>(std::min<uint64_t>(equal_, relative_[0]));
    uint32_t& infinite = relative_[OctaveCounts::BinOf(kInfinity)];
    all.relative_infinite += infinite;
    infinite = 0;
    all.absolute.Add(absolute_);
    all.relative.Add(relative_);
    for (size_t k = 0; has_ulp_ && k < kUlpBins; ++k) all.ulp[k] += ulp_[k];
  }
  [[nodiscard]] const std::array<DecileErrors, kDeciles>& deciles() const { return deciles_; }

 private:
  void AddToDecile(size_t decile, double error, double relative) {
    DecileErrors& errors = deciles_[decile];
    ++errors.count;
    errors.absolute_sum += error;
    errors.absolute_max = error > errors.absolute_max ? error : errors.absolute_max;
    errors.relative_max = relative > errors.relative_max ? relative : errors.relative_max;
  }

  void ReadDistances(size_t first, size_t count) {
    const std::byte* target = pair_.target().Raw(first, count, run_.raw_target.data());
    const std::byte* golden = pair_.golden().Raw(first, count, run_.raw_golden.data());
    if (InfoOf(pair_.golden().dtype()).size_bytes == 1) {
      NarrowDistances<uint8_t>(target, golden, count, run_.narrow_distance.data());
    } else {
      NarrowDistances<uint16_t>(target, golden, count, run_.narrow_distance.data());
    }
  }

  // Makes magnitudes of the differences, and divides them by those of golden. Whether an element of
  // either side is not finite.
  bool SetErrors(size_t count) {
    // Adding one to exponent bits that are all set reaches the sign bit.
    constexpr uint64_t kBits = 0x7FF0000000000000, kOne = uint64_t{1} << 52;
    uint64_t seen = 0;
    for (size_t i = 0; i < count; ++i) {
      const double golden = run_.golden[i];
      const double error = std::fabs(run_.difference[i]);
      seen |= (std::bit_cast<uint64_t>(run_.target[i]) & kBits) + kOne;
      seen |= (std::bit_cast<uint64_t>(golden) & kBits) + kOne;
      run_.difference[i] = error;
      // No 0 / 0: where nothing differs the quotient is 0.
      run_.relative[i] = error / (error == 0 ? 1.0 : std::fabs(golden));
    }
    return seen >> 63 != 0;
  }

  size_t DropNonFinite(size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      if (std::isfinite(run_.target[i]) && std::isfinite(run_.golden[i])) {
        run_.target[kept] = run_.target[i];
        run_.golden[kept] = run_.golden[i];
        run_.difference[kept] = run_.difference[i];
        run_.relative[kept] = run_.relative[i];
        run_.narrow_distance[kept++] = run_.narrow_distance[i];
        continue;
      }
      ++nonfinite_;
      if (!IsSame(run_.target[i], run_.golden[i])) ++nonfinite_mismatch_;
    }
    return kept;
  }

  void CountDistances(size_t count) {
    const DType dtype = pair_.golden().dtype();
    for (size_t i = 0; i < count; ++i) {
      const uint64_t distance =
          DistanceOf(OrdinalIn(dtype, run_.target[i]), OrdinalIn(dtype, run_.golden[i]));
      ++ulp_[std::bit_width(distance)];
    }
  }

  const PairReader& pair_;
  const DecileFinder& finder_;
  bool has_ulp_ = false, is_narrow_ = false;
  std::vector<uint32_t> absolute_, relative_;
  std::array<uint64_t, kUlpBins> ulp_{};
  std::array<DecileErrors, kDeciles> deciles_{};
  uint64_t nonfinite_ = 0, nonfinite_mismatch_ = 0, equal_ = 0;
  PairRun run_{};
};

void AddDeciles(const std::array<DecileErrors, kDeciles>& part, std::vector<DecileErrors>& all) {
  for (size_t k = 0; k < all.size(); ++k) {
    all[k].count += part[k].count;
    all[k].absolute_sum += part[k].absolute_sum;
    all[k].absolute_max = std::max(all[k].absolute_max, part[k].absolute_max);
    all[k].relative_max = std::max(all[k].relative_max, part[k].relative_max);
  }
}

}  // namespace

Result<ErrorCounts> CountErrors(const PairReader& pair, const Distribution& golden,
                                CancelFlag cancel) {
  const DecileFinder finder(golden);
  ErrorCounts all;
  all.elements = pair.elements();
  all.ulp.assign(kUlpBins, 0);
  const size_t parts = WalkParts(pair.elements());
  std::vector<std::array<DecileErrors, kDeciles>> deciles(parts);
  std::mutex mutex;
  ParallelFor(parts, [&](size_t i) {
    const auto part = std::make_unique<PartErrors>(pair, finder);
    ForRuns(PartOf(pair.elements(), i), cancel,
            [&](size_t first, size_t count) { part->Add(first, count); });
    deciles[i] = part->deciles();
    const std::lock_guard lock(mutex);
    part->AddTo(all);
  });
  if (IsSet(cancel)) return CancelledError();
  for (size_t k = 0; k + 1 < finder.bounds().size(); ++k) {
    all.deciles.push_back({finder.bounds()[k], finder.bounds()[k + 1]});
  }
  for (const auto& part : deciles) AddDeciles(part, all.deciles);
  while (!all.ulp.empty() && all.ulp.back() == 0) all.ulp.pop_back();
  return all;
}

}  // namespace plumbline::view

#include "measure/dump_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "kernels/deviation_sums.h"
#include "kernels/kernel_table.h"
#include "measure/tensor_metrics.h"

namespace plumbline::measure {

namespace {

constexpr double kEpsilon = kernels::kSmallestDivisor;
constexpr double kFloor = 1.1920928955078125e-07;  // of probabilities: epsilon of float32
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kNames[kDumpAlgorithmCount] = {
    "CosineSimilarity",          "MaxAbsoluteError",          "AccumulatedRelativeError",
    "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
    "MeanAbsoluteError",         "RootMeanSquareError",       "MaxRelativeError",
    "MeanRelativeError"};

// Sums of the first pass. Extremes leave NaN out; the sums beside them tell that there was one.
struct FirstPass {
  size_t count = 0;
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  double absolute = 0, squares = 0, relative = 0;  // of the differences
  double max_absolute = 0, max_relative = 0;
  double min_x = 0, max_x = 0, min_y = 0, max_y = 0;
};

// And of the second one.
struct SecondPass {
  double squares_x = 0, squares_y = 0;
  double divergence = kNaN;
};

double Largest(const double* lanes) { return *std::max_element(lanes, lanes + kernels::kLanes); }
double Smallest(const double* lanes) { return *std::min_element(lanes, lanes + kernels::kLanes); }

kernels::PairOfRuns RunsOf(const DumpPair& pair) {
  return {pair.target.dtype, pair.target.data, pair.golden.dtype, pair.golden.data,
          static_cast<size_t>(pair.target.element_count())};
}

FirstPass SumsOf(const DumpPair& pair) {
  kernels::DeviationSums lanes;
  kernels::AddDeviations(RunsOf(pair), &lanes);
  FirstPass sums;
  sums.count = static_cast<size_t>(pair.target.element_count());
  sums.x = kernels::SumOfLanes(lanes.x);
  sums.y = kernels::SumOfLanes(lanes.y);
  sums.xx = kernels::SumOfLanes(lanes.xx);
  sums.yy = kernels::SumOfLanes(lanes.yy);
  sums.xy = kernels::SumOfLanes(lanes.xy);
  sums.absolute = kernels::SumOfLanes(lanes.absolute);
  sums.squares = kernels::SumOfLanes(lanes.squares);
  sums.relative = kernels::SumOfLanes(lanes.relative);
  sums.max_absolute = Largest(lanes.max_absolute);
  sums.max_relative = Largest(lanes.max_relative);
  sums.min_x = Smallest(lanes.min_x);
  sums.min_y = Smallest(lanes.min_y);
  sums.max_x = Largest(lanes.max_x);
  sums.max_y = Largest(lanes.max_y);
  return sums;
}

// How to bring values to 0..1; as they are where they are all the same.
void SetScale(double min, double max, double& offset, double& scale) {
  if (!(max > min)) return;
  offset = min;
  scale = 1 / (max - min);
}

// A side as a distribution, where the extremes are no ordinary numbers.
double Probability(double value, double min, double max) {
  return std::max(max > min ? (value - min) / (max - min) : value, kFloor);
}

// Whether the kernel can bring the values of a side to 0..1: it multiplies by a reciprocal.
bool HasOrdinaryScale(double max, double scale) {
  return std::isfinite(max) && std::isnormal(scale);
}

// Sums over both sides as distributions.
struct Distributions {
  double p = 0, q = 0, divergence = 0;  // of p, q and p ln(p / q)
};

// The same for infinities and for extremes whose distance has no reciprocal.
Distributions SlowDistributions(const FirstPass& sums, const DumpPair& pair) {
  const kernels::PairOfRuns runs = RunsOf(pair);
  const auto* target = static_cast<const std::byte*>(runs.target);
  const auto* golden = static_cast<const std::byte*>(runs.golden);
  constexpr size_t kBlock = 1024;  // elements widened at a time
  std::array<double, kBlock> x, y;
  Distributions result;
  for (size_t at = 0; at < runs.count; at += kBlock) {
    const size_t size = std::min(kBlock, runs.count - at);
    Widen(runs.target_dtype, target + at * InfoOf(runs.target_dtype).size_bytes, size, x.data());
    Widen(runs.golden_dtype, golden + at * InfoOf(runs.golden_dtype).size_bytes, size, y.data());
    for (size_t i = 0; i < size; ++i) {
      const double p = Probability(x[i], sums.min_x, sums.max_x);
      const double q = Probability(y[i], sums.min_y, sums.max_y);
      result.p += p;
      result.q += q;
      result.divergence += p * std::log(p / q);
    }
  }
  return result;
}

// With P and Q the sums of p and q:
// sum p/P ln((p/P) / (q/Q)) = (sum p ln(p/q)) / P + ln(Q/P).
SecondPass SpreadsOf(const FirstPass& sums, const DumpPair& pair) {
  const auto count = static_cast<double>(sums.count);
  kernels::SpreadCenter center;
  center.mean_x = sums.x / count;
  center.mean_y = sums.y / count;
  SetScale(sums.min_x, sums.max_x, center.offset_x, center.scale_x);
  SetScale(sums.min_y, sums.max_y, center.offset_y, center.scale_y);
  center.floor = kFloor;
  kernels::SpreadSums lanes;
  kernels::AddSpreads(center, RunsOf(pair), &lanes);
  SecondPass spreads;
  spreads.squares_x = kernels::SumOfLanes(lanes.squares_x);
  spreads.squares_y = kernels::SumOfLanes(lanes.squares_y);
  if (std::isnan(sums.x + sums.y)) return spreads;
  const bool is_ordinary =
      HasOrdinaryScale(sums.max_x, center.scale_x) && HasOrdinaryScale(sums.max_y, center.scale_y);
  const Distributions found =
      is_ordinary ? Distributions{kernels::SumOfLanes(lanes.p), kernels::SumOfLanes(lanes.q),
                                  kernels::SumOfLanes(lanes.divergence)}
                  : SlowDistributions(sums, pair);
  const double result = found.divergence / found.p + std::log(found.q / found.p);
  spreads.divergence = std::fabs(result) < kEpsilon ? 0 : result;
  return spreads;
}

std::string Fixed(double value) {
  if (std::isnan(value)) return "nan";
  std::string text;
  AppendFixed(value, 6, text);
  return text;
}

AlgorithmText Number(double value) { return {Fixed(value), ""}; }

// The largest of values whose sum is NaN exactly if one of them is.
AlgorithmText LargestError(double largest, double sum) {
  return Number(std::isnan(sum) ? kNaN : largest);
}

AlgorithmText Cosine(const FirstPass& sums, const DumpPair& pair) {
  if (sums.count == 1) return {"1.000000", "This tensor is scalar."};
  const double x = std::sqrt(sums.xx), y = std::sqrt(sums.yy);
  if (x <= kEpsilon && y <= kEpsilon) return {"1.0", ""};
  const bool is_x_zero = std::sqrt(x) <= kEpsilon;
  if (is_x_zero || std::sqrt(y) <= kEpsilon) {
    return {"NaN", fmt::format("Cannot compare by Cosine Similarity. All the data is zero in {}.",
                               is_x_zero ? pair.target_file : pair.golden_file)};
  }
  const double cosine = sums.xy / x / y;
  return Number(cosine > 1 ? 1 : cosine);
}

AlgorithmText Euclidean(const FirstPass& sums) {
  if (std::sqrt(sums.yy) <= kEpsilon) return Number(0);
  return Number(std::sqrt(sums.squares / sums.yy));
}

AlgorithmText Divergence(const SecondPass& spreads) {
  if (std::isinf(spreads.divergence)) {
    return {"inf", "The Kullback-Leibler divergence is infinite."};
  }
  return Number(spreads.divergence);
}

// "(mean;deviation)" with three decimals.
std::string MeanAndDeviation(double mean, double deviation) {
  std::string text = "(";
  const auto append = [&text](double value) {
    if (std::isnan(value)) {
      text += "nan";
    } else {
      AppendFixed(value, 3, text);
    }
  };
  append(mean);
  text += ';';
  append(deviation);
  return text += ')';
}

// Population standard deviations.
AlgorithmText Deviation(const FirstPass& sums, const SecondPass& spreads) {
  const auto count = static_cast<double>(sums.count);
  return {MeanAndDeviation(sums.x / count, std::sqrt(spreads.squares_x / count)) + "," +
              MeanAndDeviation(sums.y / count, std::sqrt(spreads.squares_y / count)),
          ""};
}

// What the algorithms of one pair are computed from.
struct Passes {
  FirstPass sums;
  SecondPass spreads;
};

AlgorithmText Run(DumpAlgorithm algorithm, const Passes& passes, const DumpPair& pair) {
  const FirstPass& sums = passes.sums;
  const auto count = static_cast<double>(sums.count);
  switch (algorithm) {
    case DumpAlgorithm::kCosineSimilarity:
      return Cosine(sums, pair);
    case DumpAlgorithm::kMaxAbsoluteError:
      return LargestError(sums.max_absolute, sums.absolute);
    case DumpAlgorithm::kAccumulatedRelativeError:
      return Number(sums.relative);
    case DumpAlgorithm::kRelativeEuclideanDistance:
      return Euclidean(sums);
    case DumpAlgorithm::kKullbackLeiblerDivergence:
      return Divergence(passes.spreads);
    case DumpAlgorithm::kStandardDeviation:
      return Deviation(sums, passes.spreads);
    case DumpAlgorithm::kMeanAbsoluteError:
      return Number(sums.absolute / count);
    case DumpAlgorithm::kRootMeanSquareError:
      return Number(std::sqrt(sums.squares / count));
    case DumpAlgorithm::kMaxRelativeError:
      return LargestError(sums.max_relative, sums.relative);
    case DumpAlgorithm::kMeanRelativeError:
      return Number(sums.relative / count);
  }
  return {"NaN", ""};
}

// Whether doubles hold every value, so that the sums tell what the elements would.
bool IsExactAsDouble(DType dtype) {
  return InfoOf(dtype).kind != DTypeKind::kComplex && dtype != DType::kInt64 &&
         dtype != DType::kUInt64;
}

// Nothing where an element is not finite, or a square was none or may have vanished.
std::optional<ArrayDifference> DifferenceOf(const FirstPass& sums, const DumpPair& pair) {
  const bool is_known = sums.count > 0 && IsExactAsDouble(pair.target.dtype) &&
                        IsExactAsDouble(pair.golden.dtype) && std::isfinite(sums.xx) &&
                        std::isfinite(sums.yy);
  if (!is_known) return std::nullopt;
  ArrayDifference difference;
  difference.count = sums.count;
  difference.differs = sums.max_absolute > 0;
  difference.target_max = std::max(std::fabs(sums.min_x), std::fabs(sums.max_x));
  difference.golden_max = std::max(std::fabs(sums.min_y), std::fabs(sums.max_y));
  difference.max_abs = sums.max_absolute;
  difference.difference_norm = std::sqrt(sums.squares);
  difference.golden_norm = std::sqrt(sums.yy);
  constexpr double kLeast = 0x1p-400;  // squares of less may vanish
  const auto vanishes = [](double largest) { return largest > 0 && largest < kLeast; };
  if (vanishes(difference.max_abs) || vanishes(difference.golden_max)) return std::nullopt;
  return difference;
}

// Why an algorithm is not defined for a pair; empty: it is.
std::string WhyNot(DumpAlgorithm algorithm, const DumpPair& pair) {
  const std::string_view name = DumpAlgorithmName(algorithm);
  if (pair.target.element_count() == 0) {
    return fmt::format("Failed to execute 'compare' in '{}'. The tensors have no elements.", name);
  }
  const bool is_bool = pair.target.dtype == DType::kBool && pair.golden.dtype == DType::kBool;
  if (is_bool && algorithm != DumpAlgorithm::kCosineSimilarity &&
      algorithm != DumpAlgorithm::kRelativeEuclideanDistance) {
    return fmt::format("Algorithm {} does not support Boolean types.", name);
  }
  return {};
}

}  // namespace

std::string_view DumpAlgorithmName(DumpAlgorithm algorithm) {
  return kNames[static_cast<size_t>(algorithm)];
}

std::optional<DumpAlgorithm> ParseDumpAlgorithm(std::string_view text) {
  if (const auto number = ParseNatural(text)) {
    if (*number >= static_cast<int64_t>(kDumpAlgorithmCount)) return std::nullopt;
    return static_cast<DumpAlgorithm>(*number);
  }
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), text);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<DumpAlgorithm>(found - std::begin(kNames));
}

std::vector<DumpAlgorithm> AllDumpAlgorithms() {
  std::vector<DumpAlgorithm> all;
  for (size_t i = 0; i < kDumpAlgorithmCount; ++i) all.push_back(static_cast<DumpAlgorithm>(i));
  return all;
}

DumpMeasures MeasureDumps(std::span<const DumpAlgorithm> algorithms, const DumpPair& pair) {
  Passes passes;
  passes.sums = SumsOf(pair);
  const bool needs_spreads = std::any_of(algorithms.begin(), algorithms.end(), [](auto algorithm) {
    return algorithm == DumpAlgorithm::kStandardDeviation ||
           algorithm == DumpAlgorithm::kKullbackLeiblerDivergence;
  });
  if (needs_spreads) passes.spreads = SpreadsOf(passes.sums, pair);
  DumpMeasures measures;
  measures.texts.reserve(algorithms.size());
  for (const DumpAlgorithm algorithm : algorithms) {
    const std::string why_not = WhyNot(algorithm, pair);
    measures.texts.push_back(why_not.empty() ? Run(algorithm, passes, pair)
                                             : AlgorithmText{"NaN", why_not});
  }
  measures.difference = DifferenceOf(passes.sums, pair);
  return measures;
}

std::vector<AlgorithmText> RunDumpAlgorithms(std::span<const DumpAlgorithm> algorithms,
                                             const DumpPair& pair) {
  return MeasureDumps(algorithms, pair).texts;
}

namespace {

constexpr size_t kBlock = 4096;  // elements widened at a time
constexpr double kFloatEpsilon = std::numeric_limits<float>::epsilon();

size_t CountOf(const TensorView& view) { return static_cast<size_t>(view.element_count()); }

// Elements from `first` on, at most kBlock of them, as float32.
class Widened {
 public:
  Widened(const TensorView& view, size_t first) : count_(std::min(kBlock, CountOf(view) - first)) {
    const std::byte* data = view.data + first * InfoOf(view.dtype).size_bytes;
    kernels::ActiveTable().to_float(view.dtype, data, count_, values_.data());
  }
  [[nodiscard]] size_t size() const { return count_; }
  double operator[](size_t i) const { return values_[i]; }

 private:
  size_t count_;
  std::array<float, kBlock> values_;
};

struct Sums {
  double dot = 0, target = 0, golden = 0, difference = 0;  // squares
  double max_relative = 0, relative = 0, max_absolute = 0, absolute = 0;
  double target_max = -std::numeric_limits<double>::infinity();
  double golden_max = -std::numeric_limits<double>::infinity();
  void Add(double m, double g) {
    dot += m * g;
    target += m * m;
    golden += g * g;
    difference += (m - g) * (m - g);
    target_max = std::max(target_max, m);
    golden_max = std::max(golden_max, g);
    if (std::abs(g) <= kFloatEpsilon) return;
    const double error = std::abs(m - g), quotient = std::abs(m / g - 1);
    max_relative = std::max(max_relative, quotient);
    relative += quotient;
    max_absolute = std::max(max_absolute, error);
    absolute += error;
  }
};

// sum p (log p - log q) of the softmax of both; the largest element goes off first, so that no
// power overflows.
double KlDivergence(const TensorView& target, const TensorView& golden, const Sums& sums) {
  double target_powers = 0, golden_powers = 0;
  double weighted = 0;  // sum exp(g) * (g - m), both without their largest
  for (size_t first = 0; first < CountOf(golden); first += kBlock) {
    const Widened m(target, first), g(golden, first);
    for (size_t i = 0; i < g.size(); ++i) {
      const double a = m[i] - sums.target_max, b = g[i] - sums.golden_max;
      target_powers += std::exp(a);
      golden_powers += std::exp(b);
      weighted += std::exp(b) * (b - a);
    }
  }
  const double divergence =
      weighted / golden_powers - std::log(golden_powers) + std::log(target_powers);
  return std::max(divergence, 0.0);
}

double Cosine(const Sums& sums) {
  if (sums.target == 0 && sums.golden == 0) return 1;
  if (sums.target == 0 || sums.golden == 0) return 0;
  constexpr double kTenDigits = 1e10;
  const double cosine = sums.dot / (std::sqrt(sums.target) * std::sqrt(sums.golden));
  return std::round(cosine * kTenDigits) / kTenDigits;
}

}  // namespace

TorchairMetrics MeasureAsTorchair(const TensorView& target, const TensorView& golden) {
  Sums sums;
  const size_t count = CountOf(golden);
  for (size_t first = 0; first < count; first += kBlock) {
    const Widened m(target, first), g(golden, first);
    for (size_t i = 0; i < g.size(); ++i) sums.Add(m[i], g[i]);
  }
  const auto number = static_cast<double>(count);
  const double norm = std::sqrt(sums.golden);
  return {Cosine(sums),
          sums.max_relative,
          sums.relative / number,
          sums.max_absolute,
          sums.absolute / number,
          KlDivergence(target, golden, sums),
          norm <= kFloatEpsilon ? 0 : std::sqrt(sums.difference) / norm};
}

FloatStatistics StatisticsAsFloat(const TensorView& view) {
  FloatStatistics statistics;
  statistics.max = -std::numeric_limits<double>::infinity();
  statistics.min = -statistics.max;
  bool has_nan = false;
  double sum = 0;
  for (size_t first = 0; first < CountOf(view); first += kBlock) {
    const Widened values(view, first);
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      statistics.max = std::max(statistics.max, value);
      statistics.min = std::min(statistics.min, value);
      statistics.all_finite = statistics.all_finite && std::isfinite(value);
      has_nan = has_nan || std::isnan(value);
      sum += value;
    }
  }
  statistics.mean = static_cast<float>(sum / static_cast<double>(CountOf(view)));
  if (has_nan) statistics.max = statistics.min = std::numeric_limits<double>::quiet_NaN();
  return statistics;
}

}  // namespace plumbline::measure

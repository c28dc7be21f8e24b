#include "measure/dump_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text_parts.h"
#include "measure/widened.h"

namespace plumbline::measure {
namespace {

constexpr size_t kLanes = 8;
constexpr double kEpsilon = 2.220446e-16;          // as the tool spells it
constexpr double kFloor = 1.1920928955078125e-07;  // of probabilities: epsilon of float32
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kNames[kDumpAlgorithmCount] = {
    "CosineSimilarity",          "MaxAbsoluteError",          "AccumulatedRelativeError",
    "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
    "MeanAbsoluteError",         "RootMeanSquareError",       "MaxRelativeError",
    "MeanRelativeError"};

using Lanes = std::array<double, kLanes>;

double Sum(const Lanes& lanes) {
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Sums of the first pass. Extremes leave NaN out; the sums beside them tell that there was one.
struct FirstPass {
  size_t count = 0;
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  double absolute = 0, squares = 0, relative = 0;  // of the differences
  double max_absolute = 0, max_relative = 0;
  double min_x = kInfinity, max_x = -kInfinity, min_y = kInfinity, max_y = -kInfinity;
};

struct FirstLanes {
  Lanes x{}, y{}, xx{}, yy{}, xy{}, absolute{}, squares{}, relative{};
  Lanes max_absolute{}, max_relative{};
  Lanes min_x, max_x, min_y, max_y;

  FirstLanes() {
    min_x.fill(kInfinity);
    min_y.fill(kInfinity);
    max_x.fill(-kInfinity);
    max_y.fill(-kInfinity);
  }

  void Add(size_t lane, double a, double b) {
    const double difference = std::fabs(a - b);
    // |x / y - 1| where |y| is above epsilon; NaN of y goes through.
    const double ratio = std::fabs(b) <= kEpsilon ? 0.0 : std::fabs(a / b - 1.0);
    x[lane] += a;
    y[lane] += b;
    xx[lane] += a * a;
    yy[lane] += b * b;
    xy[lane] += a * b;
    absolute[lane] += difference;
    squares[lane] += difference * difference;
    relative[lane] += ratio;
    max_absolute[lane] = max_absolute[lane] < difference ? difference : max_absolute[lane];
    max_relative[lane] = max_relative[lane] < ratio ? ratio : max_relative[lane];
    min_x[lane] = a < min_x[lane] ? a : min_x[lane];
    max_x[lane] = max_x[lane] < a ? a : max_x[lane];
    min_y[lane] = b < min_y[lane] ? b : min_y[lane];
    max_y[lane] = max_y[lane] < b ? b : max_y[lane];
  }
};

// Calls body(x, y, count) for all elements, widened a block at a time.
template <class F>
void ForBlocks(const DumpPair& pair, const F& body) {
  const auto count = static_cast<size_t>(pair.target.element_count());
  const size_t target_bytes = InfoOf(pair.target.dtype).size_bytes;
  const size_t golden_bytes = InfoOf(pair.golden.dtype).size_bytes;
  std::array<double, kWidenedBlock> x, y;
  for (size_t at = 0; at < count; at += kWidenedBlock) {
    const size_t size = std::min(kWidenedBlock, count - at);
    Widen(pair.target.dtype, pair.target.data + at * target_bytes, size, x.data());
    Widen(pair.golden.dtype, pair.golden.data + at * golden_bytes, size, y.data());
    body(x.data(), y.data(), size);
  }
}

FirstPass SumsOf(const DumpPair& pair) {
  FirstLanes lanes;
  ForBlocks(pair, [&](const double* x, const double* y, size_t size) {
    size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) lanes.Add(lane, x[i + lane], y[i + lane]);
    }
    for (; i < size; ++i) lanes.Add(i % kLanes, x[i], y[i]);
  });
  FirstPass sums;
  sums.count = static_cast<size_t>(pair.target.element_count());
  sums.x = Sum(lanes.x);
  sums.y = Sum(lanes.y);
  sums.xx = Sum(lanes.xx);
  sums.yy = Sum(lanes.yy);
  sums.xy = Sum(lanes.xy);
  sums.absolute = Sum(lanes.absolute);
  sums.squares = Sum(lanes.squares);
  sums.relative = Sum(lanes.relative);
  sums.max_absolute = *std::max_element(lanes.max_absolute.begin(), lanes.max_absolute.end());
  sums.max_relative = *std::max_element(lanes.max_relative.begin(), lanes.max_relative.end());
  sums.min_x = *std::min_element(lanes.min_x.begin(), lanes.min_x.end());
  sums.min_y = *std::min_element(lanes.min_y.begin(), lanes.min_y.end());
  sums.max_x = *std::max_element(lanes.max_x.begin(), lanes.max_x.end());
  sums.max_y = *std::max_element(lanes.max_y.begin(), lanes.max_y.end());
  return sums;
}

std::string Fixed(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{:.6f}", value);
}

AlgorithmText Number(double value) { return {Fixed(value), ""}; }

// The largest of values whose sum is NaN exactly if one of them is.
AlgorithmText Largest(double largest, double sum) {
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

// A tensor as a distribution: x -> max((x - offset) * scale, floor), to be divided by its sum.
struct Distribution {
  double offset = 0, scale = 1;

  [[nodiscard]] double At(double value) const {
    const double p = (value - offset) * scale;
    return p < kFloor ? kFloor : p;
  }
};

Distribution DistributionOf(double min, double max) {
  if (!(max > min)) return {};
  return {min, 1 / (max - min)};
}

// sum p/P ln((p/P) / (q/Q)) = (sum p ln(p/q)) / P + ln(Q/P), with P and Q the sums of p and q.
double KullbackLeibler(const FirstPass& sums, const DumpPair& pair) {
  if (std::isnan(sums.x + sums.y)) return kNaN;
  const Distribution of_x = DistributionOf(sums.min_x, sums.max_x);
  const Distribution of_y = DistributionOf(sums.min_y, sums.max_y);
  Lanes p_lanes{}, q_lanes{}, log_lanes{};
  ForBlocks(pair, [&](const double* x, const double* y, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      const double p = of_x.At(x[i]), q = of_y.At(y[i]);
      p_lanes[i % kLanes] += p;
      q_lanes[i % kLanes] += q;
      log_lanes[i % kLanes] += p * std::log(p / q);
    }
  });
  const double p_sum = Sum(p_lanes);
  const double result = Sum(log_lanes) / p_sum + std::log(Sum(q_lanes) / p_sum);
  return std::fabs(result) < kEpsilon ? 0 : result;
}

AlgorithmText Divergence(const FirstPass& sums, const DumpPair& pair) {
  const double result = KullbackLeibler(sums, pair);
  if (std::isinf(result)) {
    return {"inf", "The Kullback-Leibler divergence is infinite."};
  }
  return Number(result);
}

// Population standard deviations, around the means that are known.
AlgorithmText Deviation(const FirstPass& sums, const DumpPair& pair) {
  const auto count = static_cast<double>(sums.count);
  const double mean_x = sums.x / count, mean_y = sums.y / count;
  Lanes x_lanes{}, y_lanes{};
  ForBlocks(pair, [&](const double* x, const double* y, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      const double dx = x[i] - mean_x, dy = y[i] - mean_y;
      x_lanes[i % kLanes] += dx * dx;
      y_lanes[i % kLanes] += dy * dy;
    }
  });
  const auto part = [](double mean, double deviation) {
    const auto spelled = [](double value) {
      return std::isnan(value) ? std::string("nan") : fmt::format("{:.3f}", value);
    };
    return "(" + spelled(mean) + ";" + spelled(deviation) + ")";
  };
  return {part(mean_x, std::sqrt(Sum(x_lanes) / count)) + "," +
              part(mean_y, std::sqrt(Sum(y_lanes) / count)),
          ""};
}

AlgorithmText Run(DumpAlgorithm algorithm, const FirstPass& sums, const DumpPair& pair) {
  const auto count = static_cast<double>(sums.count);
  switch (algorithm) {
    case DumpAlgorithm::kCosineSimilarity:
      return Cosine(sums, pair);
    case DumpAlgorithm::kMaxAbsoluteError:
      return Largest(sums.max_absolute, sums.absolute);
    case DumpAlgorithm::kAccumulatedRelativeError:
      return Number(sums.relative);
    case DumpAlgorithm::kRelativeEuclideanDistance:
      return Euclidean(sums);
    case DumpAlgorithm::kKullbackLeiblerDivergence:
      return Divergence(sums, pair);
    case DumpAlgorithm::kStandardDeviation:
      return Deviation(sums, pair);
    case DumpAlgorithm::kMeanAbsoluteError:
      return Number(sums.absolute / count);
    case DumpAlgorithm::kRootMeanSquareError:
      return Number(std::sqrt(sums.squares / count));
    case DumpAlgorithm::kMaxRelativeError:
      return Largest(sums.max_relative, sums.relative);
    case DumpAlgorithm::kMeanRelativeError:
      return Number(sums.relative / count);
  }
  return {"NaN", ""};
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

std::vector<AlgorithmText> RunDumpAlgorithms(std::span<const DumpAlgorithm> algorithms,
                                             const DumpPair& pair) {
  const FirstPass sums = SumsOf(pair);
  std::vector<AlgorithmText> texts;
  for (const DumpAlgorithm algorithm : algorithms) {
    const std::string why_not = WhyNot(algorithm, pair);
    texts.push_back(why_not.empty() ? Run(algorithm, sums, pair) : AlgorithmText{"NaN", why_not});
  }
  return texts;
}

}  // namespace plumbline::measure

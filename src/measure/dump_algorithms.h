// The measures by which msaccucmp compares two dumped tensors, spelled as its result files have
// them (docs/reference/msaccucmp.md, "Algorithms"), and those of upstream's report on compiled
// graphs.

#ifndef PLUMBLINE_MEASURE_DUMP_ALGORITHMS_H_
#define PLUMBLINE_MEASURE_DUMP_ALGORITHMS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/array_verdict.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {

// In the order of their numbers on the command line.
enum class DumpAlgorithm : uint8_t {
  kCosineSimilarity,
  kMaxAbsoluteError,
  kAccumulatedRelativeError,
  kRelativeEuclideanDistance,
  kKullbackLeiblerDivergence,
  kStandardDeviation,
  kMeanAbsoluteError,
  kRootMeanSquareError,
  kMaxRelativeError,
  kMeanRelativeError,
};
inline constexpr size_t kDumpAlgorithmCount = 10;

// "CosineSimilarity".
std::string_view DumpAlgorithmName(DumpAlgorithm algorithm);
// By name (case-sensitive) or number.
std::optional<DumpAlgorithm> ParseDumpAlgorithm(std::string_view text);
std::vector<DumpAlgorithm> AllDumpAlgorithms();

// Two contiguous tensors of equally many elements, target first.
struct DumpPair {
  TensorView target, golden;
  std::string_view target_file, golden_file;  // for messages
};

struct AlgorithmText {
  std::string value;    // "0.999998", "NaN", "inf", "(0.000;1.000),(0.000;1.000)"
  std::string message;  // why there is no number, or empty
};

struct DumpMeasures {
  std::vector<AlgorithmText> texts;  // one per algorithm
  // What a verdict needs, from the same pass. Nothing: JudgeArrays() must look at the elements.
  std::optional<ArrayDifference> difference;
};

// Elements are taken as doubles, sums are in double; NaN and infinities go through the formulas as
// IEEE arithmetic has it, so that a NaN of either side makes every measure NaN. Complex numbers
// differ by their distance in the plane, and the cosine is of their parts; the divergence and the
// deviations are of the moduli. Pairs of bool have only the cosine and the relative Euclidean
// distance; tensors without elements have nothing. Two texts look better than the tensors are, as
// readers of the files know them: the cosine of two tensors that are all zero is "1.0", the
// relative Euclidean distance from a golden that is all zero is 0. The verdict (array_verdict.h)
// tells these apart.
DumpMeasures MeasureDumps(std::span<const DumpAlgorithm> algorithms, const DumpPair& pair);
// The texts alone.
std::vector<AlgorithmText> RunDumpAlgorithms(std::span<const DumpAlgorithm> algorithms,
                                             const DumpPair& pair);

// The metrics of upstream's report on compiled graphs (docs/reference/torchair.md).

inline constexpr std::array<std::string_view, 7> kTorchairMetricNames = {
    "cosine_similarity",   "max_relative_error", "mean_relative_error",        "max_absolute_error",
    "mean_absolute_error", "kl_divergence",      "relative_euclidean_distance"};

// In the order of the names. Errors count only where |golden| is above 2^-23: a difference at a
// golden 0 shows in none of the four. Elements are taken as float32.
using TorchairMetrics = std::array<double, kTorchairMetricNames.size()>;

// Of two contiguous tensors of equally many elements, at least one, none NaN or Inf.
TorchairMetrics MeasureAsTorchair(const TensorView& target, const TensorView& golden);

struct FloatStatistics {
  double max = 0, min = 0, mean = 0;  // NaN where an element is
  bool all_finite = true;
};
// Of a contiguous tensor with elements, taken as float32.
FloatStatistics StatisticsAsFloat(const TensorView& view);

}  // namespace plumbline::measure

#endif  // PLUMBLINE_MEASURE_DUMP_ALGORITHMS_H_

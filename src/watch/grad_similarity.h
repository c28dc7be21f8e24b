// `plumb grad-compare`: which share of the signs of gradients agree in two trainings, step by step.

#ifndef PLUMBLINE_WATCH_GRAD_SIMILARITY_H_
#define PLUMBLINE_WATCH_GRAD_SIMILARITY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline {

// A share below this at the first step, or one that is smaller than at the step before by more than
// this, means that numbers went wrong there.
inline constexpr double kLeastFirstSimilarity = 0.97;
inline constexpr double kMostSimilarityDrop = 0.03;

// A parameter over the steps.
struct SimilarityRow {
  std::string parameter;
  // Equal signs over elements; 0 without elements. Nothing: one side, or both, has no gradient.
  std::vector<std::optional<double>> values;
  std::vector<uint64_t> elements;  // 0: without elements, or nothing to compare
};

struct SimilaritySuspect {
  std::string parameter;
  int64_t rank = 0;
  int64_t step = 0;
  double value = 0;
  std::string rule;  // why, in words
};

// A gradient that is not finite, by max, min or norm in its grad_summary_{step}.csv. NaN counts as
// a sign that is not above 0.
struct NonfiniteGradient {
  std::string parameter;
  int64_t rank = 0;
  int64_t step = 0;
  std::string side;  // "target", "golden", "both"
};

// One rank.
struct RankSimilarity {
  std::optional<int64_t> rank;  // nothing: the directories are those of a rank themselves
  std::vector<int64_t> steps;   // ascending
  std::vector<SimilarityRow> rows;
  SimilarityRow summary;                    // over the elements of all parameters
  std::vector<SimilaritySuspect> suspects;  // each parameter's first; by step, then by value
  uint64_t missing = 0;                     // cells where one side alone has a gradient
  uint64_t lonely_steps = 0;                // that one side alone has
  uint64_t nonfinite = 0;                   // gradients that are not finite, on either side
  std::optional<NonfiniteGradient> first_nonfinite;  // by step
  std::vector<std::string> warnings;
};

enum class SimilarityPlot : uint8_t { kNone, kSvg, kPng };

struct GradCompareOptions {
  SimilarityPlot plot = SimilarityPlot::kPng;
  int threads = 0;  // 0: one per core
  // Steps read, of all ranks together.
  std::function<void(uint64_t done, uint64_t all)> progress;
};

struct GradComparison {
  std::string target, golden, page;  // paths; page: empty before it is written
  std::vector<RankSimilarity> ranks;
  std::optional<SimilaritySuspect> first;  // of all ranks
  std::optional<NonfiniteGradient> first_nonfinite;
  uint64_t lonely_ranks = 0;  // that one side alone has
  bool is_distributed = false;
  std::vector<std::string> warnings;
};

// Directories of one rank: steps are those that both have, parameters those that a
// grad_summary_{step}.csv of either names. Bool .npy files and packed signs, on either side.
// kNotFound: no directory, no step or no summary in common. kUnsupported: shapes differ.
// kInvalidArgument: an array is not bool. kCorrupt, kIo.
Result<RankSimilarity> CompareGradientsOfRank(const std::string& target, const std::string& golden,
                                              const GradCompareOptions& options);

// Of directories that hold rank{R} each, those that both have; otherwise of one rank.
Result<GradComparison> CompareGradients(const std::string& target, const std::string& golden,
                                        const GradCompareOptions& options);

// Writes into `output`, of several ranks into `output`/rank{R}: similarities.csv,
// similarities_picture/{parameter}_similarities.png or .svg, first_suspect.csv; and one page,
// `output`/grad_compare.html. What was there is replaced, other files stay. kIo.
Status WriteGradComparison(GradComparison& comparison, const std::string& output,
                           const GradCompareOptions& options);

// The answer; the first line names the first suspect, or what is not finite no later.
std::string GradComparisonText(const GradComparison& comparison);
// Why not everything could be compared.
std::vector<std::string> WarningsOf(const GradComparison& comparison);

// The page alone; WriteGradComparison() calls it.
Status WriteGradPage(const GradComparison& comparison, const std::string& path);

}  // namespace plumbline

#endif  // PLUMBLINE_WATCH_GRAD_SIMILARITY_H_

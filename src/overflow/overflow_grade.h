// How bad each recorded call is by its NaN and Inf, as upstream grades the nodes of a graph.

#ifndef PLUMBLINE_OVERFLOW_OVERFLOW_GRADE_H_
#define PLUMBLINE_OVERFLOW_OVERFLOW_GRADE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/rank_directories.h"
#include "plumbline/record.h"
#include "plumbline/result.h"
#include "record/overflow_level.h"

namespace plumbline {

// What made the level. An anomaly is a Max, Min or Mean that is NaN or infinite.
enum class OverflowScene : uint8_t {
  kProduced,    // inputs clean, an output is not: critical
  kHandedOn,    // both are not: high
  kSwallowed,   // inputs are not, outputs clean: medium
  kNormJumped,  // both clean; the outputs' largest Norm is more than 100 times the inputs': high
};
std::string_view OverflowSceneText(OverflowScene scene);

struct OverflowGrade {
  OverflowLevel level = OverflowLevel::kMedium;
  OverflowScene scene = OverflowScene::kSwallowed;
};

// Upstream's: outputs whose largest Norm is more than this many times that of the inputs.
inline constexpr double kLargestNormRatio = 100;

// Nothing: no anomaly, or one that means nothing, of memory that a call only fills.
std::optional<OverflowGrade> GradeOfCall(const Call& call,
                                         double largest_norm_ratio = kLargestNormRatio);

struct GradedCall {
  std::string name;
  OverflowGrade grade;
};

struct RankGrades {
  load::RankDirectory directory;
  std::vector<GradedCall> calls;  // in the order of the dump
  std::array<uint64_t, kOverflowLevels> counts = {};
  uint64_t entries = 0;
  uint64_t tensors = 0, tensors_not_judged = 0;  // those without statistics
};

struct StepGrades {
  std::string path;
  std::vector<RankGrades> ranks;
};

struct GradeReport {
  std::vector<StepGrades> steps;
  std::vector<std::string> not_judged;  // why this may not be the whole truth
  std::array<uint64_t, kOverflowLevels> counts = {};
  uint64_t entries = 0, ranks = 0;  // ranks of all steps
  std::string file;                 // written; empty: nothing was graded

  [[nodiscard]] bool found() const { return counts != std::array<uint64_t, kOverflowLevels>{}; }
};

// Of every step below `path` (overflow/steps_to_check.h). Writes overflow_levels_{ns}.json into
// `directory` when a call was graded. A rank that cannot be read is named in `not_judged`; an error
// when none can be, or the file cannot be written.
Result<GradeReport> GradeOverflows(const std::string& path, const std::string& directory,
                                   int threads);

// "overflow levels: 1 critical, 4 high, 0 medium of 20 entries of 2 ranks".
std::string GradeAnswer(const GradeReport& report);
// The document of overflow_levels_{ns}.json, with the answer and what was not judged.
Result<std::string> FormatGrades(const GradeReport& report);

}  // namespace plumbline

#endif  // PLUMBLINE_OVERFLOW_OVERFLOW_GRADE_H_

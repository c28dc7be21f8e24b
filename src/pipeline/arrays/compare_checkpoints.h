// Two checkpoints, two arrays or two trees of arrays: every parameter measured and judged
// (docs/reference/checkpoints.md).

#ifndef PLUMBLINE_PIPELINE_ARRAYS_COMPARE_CHECKPOINTS_H_
#define PLUMBLINE_PIPELINE_ARRAYS_COMPARE_CHECKPOINTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/arrays/checkpoint_values.h"
#include "plumbline/compare.h"
#include "plumbline/tensor.h"

namespace plumbline {

enum class Presence : uint8_t { kBoth, kTargetOnly, kGoldenOnly };

// One parameter.
struct ComparedParameter {
  std::string name;
  Presence presence = Presence::kBoth;
  DType target_dtype = DType::kFloat32, golden_dtype = DType::kFloat32;  // of the sides that are
  Shape target_sizes, golden_sizes;
  Verdict verdict = Verdict::kNotComparable;
  std::string reason;          // stable code (measure/array_verdict.h)
  bool has_nonfinite = false;  // NaN or infinity at a place; the metrics are of the other elements
  std::string detail;          // a sentence where the code does not say enough; mostly empty
  double error = 0;            // relative, L2; NaN where none is defined
  double expected = 0;
  Metric l2 = Absent::kNotRecorded;  // |target - golden|, in double
  TensorMetrics metrics;
  uint64_t first_mismatch = 0;  // flat index; valid if metrics.mismatch_count > 0

  // The two sides agree, though in a way that proves little: zeros, or no elements.
  [[nodiscard]] bool agrees_trivially() const { return reason == "zero-both" || reason == "empty"; }
};

struct CheckpointComparison {
  std::string target_path, golden_path;
  bool of_arrays = false;                     // each side is one array without a name
  std::vector<ComparedParameter> parameters;  // in order of name
  std::array<uint64_t, kVerdictCount> counts{};
  uint64_t target_only = 0, golden_only = 0, trivial = 0;
  ComparedValues values;  // what is plain and no tensor
  std::vector<std::string> warnings;

  // Every parameter is the same or within noise, and no plain value differs; what agrees trivially
  // does not count against it, but alone it is not enough.
  [[nodiscard]] bool is_good() const;
};

struct CheckpointOptions {
  int threads = 0;  // 0: one per core
  // As CompareOptions::on_progress.
  std::function<void(double done_ratio)> on_progress;
};

// Reads and compares two paths that load::LooksLikeCheckpoint(). Memory: the files are mapped;
// parameters that lie in pieces are put together one per thread at a time. Errors: those of
// load::Checkpoint::Open(). A parameter that cannot be read is a row.
Result<CheckpointComparison> CompareCheckpoints(const std::string& target,
                                                const std::string& golden,
                                                const CheckpointOptions& options = {});

// The answer in a few lines, the first one in short. Ended by '\n'.
std::string CheckpointSummary(const CheckpointComparison& comparison);
// One JSON object: answer, counts, warnings; with `rows` every parameter.
Result<std::string> CheckpointJson(const CheckpointComparison& comparison);
// The text of ckpt_similarity.json: upstream's keys l2, cos, numel, shape of every common name, and
// `only_in` (1: target, 2: golden), verdict, reason and max_abs beside them.
std::string SimilarityJson(const CheckpointComparison& comparison);
// kInvalidArgument: a word other than suspicious, broken, unmatched, any. As FailsOn(Comparison).
Result<bool> FailsOn(const CheckpointComparison& comparison,
                     const std::vector<std::string>& conditions);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_ARRAYS_COMPARE_CHECKPOINTS_H_

// Two checkpoints compared: parameters paired by name, plain values, files and text of the answer.

#ifndef PLUMBLINE_ARRAYS_COMPARE_CHECKPOINTS_H_
#define PLUMBLINE_ARRAYS_COMPARE_CHECKPOINTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "load/checkpoint.h"
#include "plumbline/compare.h"
#include "plumbline/tensor.h"

namespace plumbline {

// Names of parameters of two checkpoints that mean the same under different wrappers.

struct AlignedNames {
  std::vector<std::string> target, golden;  // in the order given, unique on each side
  std::vector<std::string> notes;           // what was left out, one sentence each
};

// Leaves out wrappers ("module.", "_orig_mod.", ...) and the longest common beginning that one side
// has in addition ("state_dict.model."), each only where more names agree without it. Pure. Names
// are unique on each side.
AlignedNames AlignNames(std::vector<std::string> target, std::vector<std::string> golden);

// The plain values of two checkpoints, beside their tensors: step numbers, learning rates,
// settings.

struct DifferingValue {
  std::string name;
  torch_pt::PlainValue target, golden;
};

struct ComparedValues {
  uint64_t common = 0;                          // names that both sides have
  std::vector<DifferingValue> differing;        // of these, in order of name
  uint64_t target_only = 0, golden_only = 0;    // not compared
  uint64_t target_other = 0, golden_other = 0;  // neither tensors nor plain values: not compared
};

// Pairs values of the same name; both sides are in order of name. Numbers agree whatever their
// types up to eight roundings of a double, NaN with NaN; everything else when it is equal. Pure.
ComparedValues CompareValues(const load::Checkpoint& target, const load::Checkpoint& golden);

// As Python writes it: None, True, 3, 0.001, 'text'.
std::string PlainText(const torch_pt::PlainValue& value);
// "2 of 14 plain values differ, 3 other values not compared"; empty: there are no values.
std::string ValuesText(const ComparedValues& values);

// Two checkpoints, two arrays or two trees of arrays: every parameter measured and judged
// (docs/reference/checkpoints.md).

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

// Comparing two checkpoints with the result files of it, for the program and for Python.

struct CheckpointReport {
  CheckpointComparison comparison;
  std::vector<std::string> files;  // written, in order
};

// CompareCheckpoints() with `threads` and `on_progress` of the options, then the files that its
// `formats` ask for, into `output_dir`: ckpt_similarity.json, or the path itself where that ends in
// .json, and the workbooks of trees of arrays. An empty `output_dir`: none. Errors: also kIo, when
// a named file exists or nothing can be written; the first before the work.
Result<CheckpointReport> CompareCheckpointFiles(const std::string& target,
                                                const std::string& golden,
                                                const CompareOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_ARRAYS_COMPARE_CHECKPOINTS_H_

// The perturbation check of one process: what is examined, what was found, and where it is written.

#ifndef PLUMBLINE_WATCH_PERTURB_CHECK_H_
#define PLUMBLINE_WATCH_PERTURB_CHECK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "config/config.h"
#include "config/name_pattern.h"
#include "watch/perturb/output_difference.h"
#include "watch/perturb/preheat.h"
#include "watch/perturb/result_files.h"

namespace plumbline::perturb {

// A call, as rows name it.
struct CheckedCall {
  std::string api;   // "Torch.matmul"
  std::string name;  // "Torch.matmul.0.forward"
  int64_t number = 0;
};

// An output that differs too much.
struct OutputRow {
  std::optional<Difference> difference;  // none: values without a ratio
  std::string dtype, shape;              // of the original; empty for what is no tensor
  std::optional<int64_t> index;          // in a list or tuple
};

// The two runs of a call, compared.
struct Comparison {
  CheckedCall call;
  Perturbation mode = Perturbation::kNoChange;
  std::vector<OutputRow> rows;  // of inconsistent outputs
  bool fills_max_rel = true;    // false: upstream leaves the column empty, a float may stand there
  double ratio = 0;             // largest of all outputs; 0: none is a number
  std::string dtype;            // of the first tensor of the original, as rows spell it
  double default_threshold = 1;
  uint64_t elements = 0;  // of all outputs
};

// What the operator itself makes of the same change, in float64: how much of a difference its own
// condition explains. Nothing: not known.
using Expected = std::optional<Difference>;

// One per process. Methods need the program's lock.
class Check {
 public:
  // `framework`: "pytorch", "mindspore", "mindtorch". kInvalidArgument: what the framework has not,
  // all at once; kNotFound, kCorrupt, kIo: the threshold file.
  static Result<std::unique_ptr<Check>> Create(Config config, std::string_view framework);

  [[nodiscard]] const PerturbationConfig& config() const { return config_.perturbation; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return config_.warnings; }
  [[nodiscard]] bool is_mindspore() const { return is_mindspore_; }

  // A window opens. The first one tells the rank.
  void Begin(int64_t step, std::optional<int> rank);
  // Whether the call is examined at all.
  [[nodiscard]] bool Selects(const CheckedCall& call);
  // Says how a call takes part in the preheat; is_compared without one.
  Preheat::Call CountForPreheat(const std::string& api);
  [[nodiscard]] double Threshold(const CheckedCall& call, std::optional<DType> dtype,
                                 const std::string& dtype_text, Perturbation mode) const;
  [[nodiscard]] RatioRule Rule(DType second) const;
  // Whether this difference is to be explained, which costs some runs in float64: the first two of
  // an API and mode, what is twice the largest so far, and others for a 64th of all that is compared.
  [[nodiscard]] bool WantsExpected(const Comparison& comparison);

  void AddSample(const Comparison& comparison, bool agrees_with_cpu);
  void Report(const Comparison& comparison, const Expected& expected);
  void Skip(const CheckedCall& call, Perturbation mode, std::string_view reason);
  void Fixed(const CheckedCall& call, const Replacement& replacement);

  // Writes the summary; at the end of the preheat its thresholds too.
  void EndStep();
  // The same, and says what was found.
  void Close();

 private:
  explicit Check(Config config, bool is_mindspore);

  using Key = std::tuple<std::string, Perturbation>;
  struct Tally {
    uint64_t calls = 0, inconsistent = 0, unexplained = 0, unknown = 0, skipped = 0,
             fixed = 0;
    double max_rel = 0;
    std::string worst;     // text of max_rel of the worst row
    std::string expected;  // text of that row
    double excess = 0;     // largest; times what the operator's condition explains
    int64_t first_step = -1, first_number = -1;
    std::map<std::string, uint64_t, std::less<>> reasons;
    uint64_t estimates = 0;
    double estimated_change = 0;  // largest
  };
  [[nodiscard]] std::string RankText() const;
  [[nodiscard]] std::string_view StageText() const;
  static void AddRow(const OutputRow& row, const Expected& expected, double excess, Tally* tally);
  static double ExcessOf(const Comparison& comparison, const OutputRow& row,
                         const Expected& expected);
  void WriteSummary();
  void LogAnswer() const;

  Config config_;
  bool is_mindspore_;
  ResultFiles files_;
  Preheat preheat_;
  bool has_thresholds_ = false;
  bool wrote_thresholds_ = false;
  bool has_begun_ = false;
  bool has_news_ = false;  // since the summary was written
  uint64_t compared_elements_ = 0, estimated_elements_ = 0;
  int64_t step_ = 0;
  std::optional<int> rank_;
  std::map<Key, Tally> tallies_;
  struct Listed {
    NamePattern pattern;
    uint64_t calls = 0;  // that it selects
  };
  std::vector<Listed> listed_;  // of list or scope
};

}  // namespace plumbline::perturb

#endif  // PLUMBLINE_WATCH_PERTURB_CHECK_H_

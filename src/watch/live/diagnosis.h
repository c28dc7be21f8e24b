// What went wrong first in a training, told from samples of its values step by step.
//
// The rules compare a value with those of the steps before it, so that no training needs limits of
// its own; each asks for more than healthy trainings do. docs/reference/black-box.md lists them.

#ifndef PLUMBLINE_WATCH_LIVE_DIAGNOSIS_H_
#define PLUMBLINE_WATCH_LIVE_DIAGNOSIS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watch/live/step_rows.h"

namespace plumbline::watch {

// In the order in which one explains the other where several begin at the same step.
enum class Fault : uint8_t {
  kSetting,         // learning rate, momentum or decay of the optimizer jumped
  kNotCleared,      // gradients of the step before were still there
  kSameBatch,       // the model got the same input again
  kDiverged,        // ranks that had the same parameters have others
  kStale,           // a parameter went back to values it had before
  kWeight,          // a parameter jumped
  kNonFinite,       // NaN or infinity
  kMomentum,        // the optimizer's state does not follow from its gradient
  kStalled,         // a parameter that moved at every step stays as it is
  kDeadGradient,    // a gradient became exactly zero
  kDeadActivation,  // an output became zero
  kActivation,      // an output jumped, or grows without end
  kLoss,            // the loss jumped
  kGradient,        // gradients jumped, or grow without end
};
std::string_view NameOf(Fault fault);
std::optional<Fault> FaultNamed(std::string_view name);

struct Finding {
  Fault fault = Fault::kLoss;
  int64_t step = 0;       // the first bad one
  std::string name;       // of the row: a parameter, a module's output, "loss", "lr.0"
  std::string place;      // the module that it belongs to; empty: the whole training
  std::string text;       // what is wrong, with numbers
  uint64_t position = 0;  // in the flow of the step
  // An output alone that holds infinities, as masks do on purpose.
  bool is_suspicion = false;
};

// Whether `a` explains `b` rather than the other way: by step, cause, position.
bool IsEarlier(const Finding& a, const Finding& b);

// Names of rows of kind kOther that the rules know.
inline constexpr std::string_view kLossRow = "loss";
inline constexpr std::string_view kUnclearedRow = "uncleared";  // norm of what was not cleared
inline constexpr std::string_view kInputRow = "input";
// Settings of group 0 of the optimizer and so on: "lr.0". beta1 and momentum stand for optimizers
// whose state follows from them as Adam's and SGD's does.
inline constexpr std::array<std::string_view, 5> kSettings = {"lr", "beta1", "beta2", "momentum",
                                                              "weight_decay"};

// Looks at the steps in ascending order. Single-threaded.
class Diagnosis {
 public:
  // What this step adds; the same fault of the same row once.
  std::vector<Finding> Look(const StepRows& rows);
  // What waits for the next step, which does not come.
  std::vector<Finding> Finish();

 private:
  // Steps in succession in which something is so; the longest such time that is over.
  struct Run {
    uint64_t steps = 0, longest = 0;
    int64_t since = 0;

    void Take(bool is_so, int64_t step);
    // Long enough to stay so, by what was before.
    [[nodiscard]] bool is_lasting() const;
  };
  // The values of a parameter in one step.
  struct ParameterLook {
    int64_t step = 0;
    double digest = 0, norm = 0, min = 0, max = 0;
  };
  // What is known of a row of earlier steps.
  struct Past {
    std::deque<double> norms, zeros;  // the newest last; norms without those that jumped
    std::deque<ParameterLook> looks;
    uint64_t seen = 0;
    uint64_t moved = 0;    // steps in succession with another digest
    uint64_t unmoved = 0;  // of the input: with the same
    Run still;             // a parameter that stays as it is
    Run dead;              // without elements that are not zero
    Run above;             // a norm above `above_what`, the largest before the run
    double above_what = 0;
    uint64_t alive = 0;    // with elements that are not zero
    uint64_t jumps = 0;    // far above the past
    uint64_t held = 0;     // above the past, and not part of it yet
    uint64_t growing = 0;  // above the step before
    double growth_start = 0;
    double last = 0, highest = 0;
    double last_norm = 0;
    bool has_moved = false;
    bool may_be_infinite = false;  // an output that held infinities from its first steps on
  };
  using Rows = std::map<std::string, const Row*, std::less<>>;

  Past& PastOf(MonitorKind kind, const Row& row);
  void LookForNonFinite(MonitorKind kind, const Row& row);
  // Whether the learning rate is so low that updates may vanish in rounding.
  [[nodiscard]] bool HardlyLearns() const;
  void LookForInfinity(const Row& row, Past& past);
  void LookAtSetting(const Row& row);
  void LookAtLoss(const Row& row);
  void LookAtOther(const Row& row);
  void LookAtParameter(const Row& row);
  void LookAtMovement(const Row& row, Past& past);
  static bool MayBeClamped(const TensorValues& values, const std::deque<ParameterLook>& looks);
  // Whether what the optimizer adds to a parameter may well be lost in rounding: of such a one
  // nothing follows from whether it moves.
  [[nodiscard]] bool IsLostInRounding(const Row& row) const;
  [[nodiscard]] bool IsAtItsBounds(const Row& row) const;
  void LookAtGradient(const Row& row);
  void LookAtActivation(const Row& row);
  void LookAtMomentum(const Row& row);
  // Whether the norm is `factor` times the largest of the past for the second time in succession,
  // or has grown without end. `since`: the first bad step.
  std::optional<std::string> Jump(Past& past, double norm, double factor, int64_t* since);
  void ConfirmGradients();
  void ConfirmStalls();
  void LookAtAllGradients();
  [[nodiscard]] Finding FindingOf(Fault fault, int64_t step, MonitorKind kind, const Row& row,
                                  std::string text) const;
  void Report(Fault fault, int64_t step, MonitorKind kind, const Row& row, std::string text);
  [[nodiscard]] std::optional<double> Setting(std::string_view name) const;

  std::map<std::pair<size_t, std::string>, Past> past_;
  std::set<std::pair<Fault, std::string>> reported_;
  std::vector<Finding> found_;
  std::vector<Finding> unconfirmed_;  // of gradients, which a scaler may skip
  std::vector<Finding> stalls_;
  std::vector<Finding> tolerated_;  // infinities of this step that are a fault with others alone
  std::map<std::string, double, std::less<>> settings_;
  // Of the step before: norms of gradients, parameters and momenta.
  std::map<std::string, double, std::less<>> gradients_, momenta_, weights_;
  std::map<std::string, double, std::less<>> gradients_now_, momenta_now_, weights_now_;
  uint64_t rows_ = 0, rows_up_ = 0;  // gradients of this step; those far above their past
  uint64_t steps_up_ = 0;            // steps in succession in which most of them were
  const Row* highest_row_ = nullptr;
  double highest_ratio_ = 0;
  double highest_rate_ = 0;      // of learning, over all groups and steps
  double largest_gradient_ = 0;  // of this step
  double loss_ = 1;              // of this step; 0: there is nothing to learn
  uint64_t scaler_skips_ = 0;    // steps that were skipped for their gradients
  uint64_t parameters_ = 0, moved_ = 0;
  uint64_t skipped_ = 0;  // steps in succession without any movement
  int64_t step_ = 0, previous_ = 0;
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_DIAGNOSIS_H_

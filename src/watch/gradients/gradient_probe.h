// Gradients of a training, recorded when its optimizers step: task grad_probe.

#ifndef PLUMBLINE_WATCH_GRADIENTS_GRADIENT_PROBE_H_
#define PLUMBLINE_WATCH_GRADIENTS_GRADIENT_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "kernels/tensor_scan.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"
#include "watch/gradients/gradient_files.h"
#include "watch/gradients/step_counter.h"

namespace plumbline::gradients {

// The gradient of a parameter, which is known by its number.
struct Gradient {
  size_t parameter = 0;
  TensorView view;
};

// One per process. Thread-compatible.
class GradientProbe {
 public:
  // `config`: of task grad_probe.
  explicit GradientProbe(const Config& config);

  // The parameters from here on, behind those before; returns what they are called in the files:
  // a name that is taken already gets a number. Warns of listed names that are of none.
  void AddParameters(std::span<const std::string> names);

  // An optimizer is about to step, which holds the parameters `own` (numbers; needed by iteration
  // alone). Returns the numbers of those whose gradients are to be given to Take(). Makes the
  // directory of the rank at the first step that is recorded; nothing: not distributed. What fails
  // is logged once, and nothing is recorded any more.
  std::vector<size_t> Begin(StepCounter::Optimizer optimizer, std::span<const size_t> own,
                            std::optional<int> rank);
  // Reads the gradients, large ones with the help of `team`. Complex ones are left out, with a
  // warning. Touches nothing but this object: no lock of the program is needed.
  void Take(std::span<const Gradient> gradients, const kernels::Team& team);
  // All that there are have been given. The step is written if no optimizer follows in it.
  void End();

  // Numbers the next step. False: one has begun.
  bool SetFirstStep(int64_t step);
  // Waits for the files of all steps that are complete.
  void Drain();
  // Writes what is left.
  void Close();

  // A gradient that could not be read, told once per parameter.
  void MissGradient(size_t parameter, const std::string& why);
  [[nodiscard]] std::string directory() const;

 private:
  struct Taken {
    grad_summary::Row row;
    Signs signs;
  };
  [[nodiscard]] bool Open(std::optional<int> rank);
  void Read(const Gradient& gradient, const kernels::Team& team, Taken* taken) const;
  void AddMd5(std::span<const Gradient> gradients, const kernels::Team& team);
  void WriteStep();

  const Config config_;
  StepCounter counter_;
  std::vector<std::string> names_;
  std::vector<bool> is_listed_;
  std::vector<StepCounter::Optimizer> owners_;  // 0: none known
  std::vector<bool> is_missed_;
  std::vector<double> bounds_;
  std::unique_ptr<GradientFiles> files_;
  bool is_off_ = false;
  bool has_warned_of_several_ = false;
  bool has_told_absent_ = false;
  size_t wanted_ = 0;  // gradients at this turn
  std::optional<int64_t> step_;  // recorded now
  bool is_written_ = false;      // all that was taken of it
  StepCounter::Turn turn_;
  std::map<size_t, Taken> taken_;  // of the step, by number of the parameter
};

}  // namespace plumbline::gradients

#endif  // PLUMBLINE_WATCH_GRADIENTS_GRADIENT_PROBE_H_

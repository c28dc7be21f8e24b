// Thresholds that adapt: outputs that agree with the CPU lower them, one that does not pins them.

#ifndef PLUMBLINE_WATCH_PERTURB_PREHEAT_H_
#define PLUMBLINE_WATCH_PERTURB_PREHEAT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::perturb {

// The thresholds of one process, by type of API ("Torch.matmul") and dtype of the output. Steps are
// counted from the first collected one: that one only counts calls. Thread-compatible.
class Preheat {
 public:
  Preheat(int64_t steps, int64_t most_samples) : steps_(steps), most_samples_(most_samples) {}

  // A step that is collected begins; the same number again does nothing.
  void BeginStep(int64_t step);

  // A call of `api`.
  struct Call {
    bool is_compared = false;  // false: only counted
    bool is_sampled = false;   // to be compared with the CPU, then AddSample()
    int64_t number = 0, calls = 0;
  };
  Call CountCall(const std::string& api);

  // Whether a threshold was found or loaded for it.
  [[nodiscard]] bool Knows(const std::string& api, const std::string& dtype) const;
  // T of an output; `default_threshold` is the least it can be.
  [[nodiscard]] double ThresholdOf(const std::string& api, const std::string& dtype,
                                   double default_threshold) const;
  struct Sample {
    double ratio = 0;  // largest over the outputs; 0: none is a number
    bool agrees_with_cpu = true;
    double default_threshold = 1;
  };
  void AddSample(const std::string& api, const std::string& dtype, const Sample& sample);

  // Whether the last step of the preheat is over.
  [[nodiscard]] bool is_over() const { return index_ >= steps_; }

  // {api: {dtype: {"threshold": t, "frozen": b, "samples": n}}}, and back. kCorrupt names the byte.
  [[nodiscard]] std::string Text() const;
  Status Load(std::string_view text);

 private:
  struct Threshold {
    double value = 2.05;
    bool is_frozen = false;
    int64_t samples = 0;
    std::vector<double> good, bad;  // ratios of this step
    double least = 1;
  };
  struct Api {
    int64_t calls_of_first_step = 0;
    int64_t calls = 0, samples = 0;  // of this step
    std::map<std::string, Threshold> thresholds;
  };
  [[nodiscard]] int64_t SamplesOf(const Api& api) const;
  static void Adjust(Threshold* threshold);

  const int64_t steps_, most_samples_;
  int64_t index_ = -1;  // of the open step among those collected
  int64_t step_ = -1;
  std::map<std::string, Api> apis_;
};

}  // namespace plumbline::perturb

#endif  // PLUMBLINE_WATCH_PERTURB_PREHEAT_H_

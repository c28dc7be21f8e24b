// What task free_benchmark is asked for: which calls are run a second time, with what changed in
// their inputs, and what becomes of the difference.

#ifndef PLUMBLINE_CONFIG_PERTURBATION_H_
#define PLUMBLINE_CONFIG_PERTURBATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

// What a second run changes.
enum class Perturbation : uint8_t {
  kImprovePrecision,  // narrow floats become float32
  kAddNoise,
  kBitNoise,
  kChangeValue,
  kNoChange,
  kToCpu,  // runs on the CPU, narrow floats as float32
};
// "improve_precision" and so on.
std::string_view PerturbationName(Perturbation mode);
std::optional<Perturbation> PerturbationNamed(std::string_view name);
// Whether it changes values of one tensor, and leaves types and devices alone.
bool ChangesValues(Perturbation mode);

struct PerturbationConfig {
  std::vector<std::string> scope;  // complete names; not empty: only these
  std::vector<std::string> list;   // parts of names
  std::vector<Perturbation> modes = {Perturbation::kImprovePrecision};  // each once
  bool on_cpu = false;       // fuzz_device
  bool fixes = false;        // handler_type
  bool is_backward = false;  // fuzz_stage
  bool has_preheat = false;
  int64_t preheat_step = 15;
  int64_t max_sample = 20;
  bool has_ulp_noise = false;    // noise: a neighbouring number instead of a constant
  bool sees_non_finite = true;   // NaN and Inf on one side only are a difference
  std::string threshold_file;    // thresholds that an earlier preheat found

  friend bool operator==(const PerturbationConfig&, const PerturbationConfig&) = default;
};

}  // namespace plumbline

#endif  // PLUMBLINE_CONFIG_PERTURBATION_H_

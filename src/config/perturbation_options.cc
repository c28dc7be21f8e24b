#include "config/perturbation_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file/file.h"

namespace plumbline {
namespace {

constexpr std::pair<Perturbation, std::string_view> kModes[] = {
    {Perturbation::kAddNoise, "add_noise"},
    {Perturbation::kChangeValue, "change_value"},
    {Perturbation::kImprovePrecision, "improve_precision"},
    {Perturbation::kNoChange, "no_change"},
    {Perturbation::kBitNoise, "bit_noise"},
    {Perturbation::kToCpu, "to_cpu"},
};

}  // namespace

std::string_view PerturbationName(Perturbation mode) {
  return std::ranges::find(kModes, mode, [](const auto& row) { return row.first; })->second;
}

std::optional<Perturbation> PerturbationNamed(std::string_view name) {
  for (const auto& [mode, word] : kModes) {
    if (word == name) return mode;
  }
  return std::nullopt;
}

bool ChangesValues(Perturbation mode) {
  return mode == Perturbation::kAddNoise || mode == Perturbation::kBitNoise ||
         mode == Perturbation::kChangeValue;
}

}  // namespace plumbline

namespace plumbline::settings {
namespace {

constexpr std::string_view kSameDevice[] = {"npu", "gpu", "cuda", "device"};

Result<Perturbation> AsMode(std::string_view field, const Json& value) {
  const auto mode = value.AsText() == nullptr ? std::nullopt : PerturbationNamed(*value.AsText());
  if (mode) return *mode;
  std::vector<std::string_view> words;
  for (const auto& row : kModes) words.push_back(row.second);
  return Invalid(field, value, "one of " + Join(words) + ", or a list of such");
}

// A word that stands for a bool: `no` or `yes`.
Result<bool> OneOfTwo(std::string_view field, const Json& value, std::string_view no,
                      std::string_view yes) {
  const std::string_view words[] = {no, yes};
  PL_TRY_ASSIGN(const std::string word, OneOf(field, value, words));
  return word == yes;
}

Error Wrong(std::string_view field, std::string_view what) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("free_benchmark.{}: {}", field, what));
}

std::string ModesText(const PerturbationConfig& config) {
  std::vector<std::string_view> words;
  for (const Perturbation mode : config.modes) words.push_back(PerturbationName(mode));
  return Join(words);
}

}  // namespace

Status SetFuzzDevice(std::string_view field, const Json& value, Config& config) {
  const std::string* word = value.AsText();
  const bool is_same = word != nullptr && std::ranges::count(kSameDevice, *word) > 0;
  config.perturbation.on_cpu = word != nullptr && *word == "cpu";
  if (is_same || config.perturbation.on_cpu) return {};
  return Invalid(field, value, "one of npu, cpu; gpu, cuda and device mean npu");
}

Status SetPerturbations(std::string_view field, const Json& value, Config& config) {
  std::vector<Perturbation> modes;
  if (value.AsList() == nullptr) {
    PL_TRY_ASSIGN(const Perturbation mode, AsMode(field, value));
    modes.push_back(mode);
  } else {
    for (const Json& item : *value.AsList()) {
      PL_TRY_ASSIGN(const Perturbation mode, AsMode(field, item));
      if (std::ranges::count(modes, mode) == 0) modes.push_back(mode);
    }
    if (modes.empty()) return Invalid(field, value, "at least one mode");
  }
  config.perturbation.modes = std::move(modes);
  return {};
}

Status SetHandler(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.perturbation.fixes, OneOfTwo(field, value, "check", "fix"));
  return {};
}

Status SetFuzzLevel(std::string_view field, const Json& value, Config&) {
  constexpr std::string_view kOnly[] = {"L1"};
  PL_TRY(OneOf(field, value, kOnly));
  return {};
}

Status SetFuzzStage(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.perturbation.is_backward, OneOfTwo(field, value, "forward", "backward"));
  return {};
}

Status SetNoise(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.perturbation.has_ulp_noise, OneOfTwo(field, value, "absolute", "ulp"));
  return {};
}

Status SetThresholdFile(std::string_view field, const Json& value, Config& config) {
  PL_TRY_ASSIGN(config.perturbation.threshold_file, AsString(field, value));
  const std::string& path = config.perturbation.threshold_file;
  if (path.empty() || KindOf(path) == PathKind::kFile) return {};
  return Invalid(field, value, "an existing free_benchmark_threshold.json");
}

Status SetCotangent(std::string_view field, const Json& value, Config&) {
  // PyTorch uses the gradient that arrives; MindSpore's checks run before there is one.
  constexpr std::string_view kWords[] = {"ones", "real"};
  PL_TRY(OneOf(field, value, kWords));
  return {};
}

std::vector<Error> WrongPerturbations(const Config& config) {
  std::vector<Error> errors;
  const PerturbationConfig& asked = config.perturbation;
  if (config.level != Level::kL1) {
    errors.push_back(Error(ErrorCode::kInvalidArgument,
                           fmt::format("level: is \"{}\" (expected L1 with task free_benchmark)",
                                       LevelName(config.level))));
  }
  if (!asked.scope.empty() && !asked.list.empty()) {
    errors.push_back(Wrong("scope", "is given beside list (expected one of them)"));
  }
  const auto wrong_mode = [&](Perturbation mode) {
    return asked.on_cpu != (mode == Perturbation::kToCpu);
  };
  if (std::ranges::any_of(asked.modes, wrong_mode)) {
    errors.push_back(
        Wrong("fuzz_device", fmt::format("is \"{}\" with pert_mode {} (expected cpu "
                                         "with to_cpu alone, and npu with all others)",
                                         asked.on_cpu ? "cpu" : "npu", ModesText(asked))));
  }
  if (!asked.fixes) return errors;
  if (asked.has_preheat) errors.push_back(Wrong("if_preheat", "is true with handler_type fix"));
  if (asked.is_backward) {
    errors.push_back(Wrong("fuzz_stage",
                           "is \"backward\" with handler_type fix (expected "
                           "forward)"));
  }
  const Perturbation mode = asked.modes.front();
  const bool is_exact = mode == Perturbation::kImprovePrecision || mode == Perturbation::kToCpu;
  if (asked.modes.size() != 1 || !is_exact) {
    errors.push_back(Wrong("pert_mode", fmt::format("is {} with handler_type fix (expected "
                                                    "improve_precision or to_cpu)",
                                                    ModesText(asked))));
  }
  return errors;
}

std::vector<Error> WrongOnMindSpore(Config& config) {
  std::vector<Error> errors;
  PerturbationConfig& asked = config.perturbation;
  if (asked.on_cpu) {
    errors.push_back(Wrong("fuzz_device",
                           "is \"cpu\" (expected npu with MindSpore, which has no "
                           "to_cpu)"));
  }
  if (asked.has_preheat) {
    config.warnings.push_back("free_benchmark.if_preheat: has no effect with MindSpore");
    asked.has_preheat = false;
  }
  return errors;
}

}  // namespace plumbline::settings

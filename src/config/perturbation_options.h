// The options of section free_benchmark.

#ifndef PLUMBLINE_CONFIG_PERTURBATION_OPTIONS_H_
#define PLUMBLINE_CONFIG_PERTURBATION_OPTIONS_H_

#include <string>
#include <vector>

#include "config/options.h"

namespace plumbline::settings {

Setter SetFuzzDevice;
Setter SetPerturbations;
Setter SetHandler;
Setter SetFuzzLevel;
Setter SetFuzzStage;
Setter SetNoise;
Setter SetThresholdFile;
Setter SetCotangent;

// What is wrong with the section as a whole, for any framework; empty: nothing.
std::vector<Error> WrongPerturbations(const Config& config);
// What MindSpore does not have; options without effect there are added to config.warnings.
std::vector<Error> WrongOnMindSpore(Config& config);

}  // namespace plumbline::settings

#endif  // PLUMBLINE_CONFIG_PERTURBATION_OPTIONS_H_

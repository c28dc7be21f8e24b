#include "config/reconcile.h"

#include <fmt/format.h>

#include <string_view>

#include "config/setting_values.h"

namespace plumbline::settings {
namespace {

// Settings of the tasks that look for something, with the rest known.
Status ReconcileSearch(const Config& config) {
  const bool debug = config.level == Level::kDebug;
  const auto wrong_level = [&](std::string_view expected) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("level: is \"{}\" (expected {} with task {})", LevelName(config.level),
                             expected, TaskName(config.task)));
  };
  if (config.task == Task::kOverflowCheck && (debug || config.level == Level::kL2)) {
    return wrong_level("L0, L1 or mix");
  }
  if (config.task == Task::kNanCheck) {
    if (config.level != Level::kL1) return wrong_level("L1");
    if (!config.data_mode.output) {
      return Error(ErrorCode::kInvalidArgument,
                   "nan_check.data_mode: has inputs only, and is_nan tells about the whole call "
                   "(expected \"output\" or \"all\" too)");
    }
  }
  if (config.bench_path.empty()) return {};
  if (config.summary_mode != SummaryMode::kMd5) {
    return Error(ErrorCode::kInvalidArgument,
                 "tensor.bench_path: is given, and calls are compared by their checksums (expected "
                 "summary_mode \"md5\" with it)");
  }
  return debug || config.level == Level::kL2 ? wrong_level("L0, L1 or mix") : Status();
}

// Level L2 records one call of one API.
Status CheckOperators(const Config& config) {
  if (config.level != Level::kL2) return {};
  if (!config.scope.empty()) {
    return Invalid(fmt::format("{}.scope", TaskName(config.task)), Json(config.scope),
                   "none at level L2, where list names one call");
  }
  if (config.list.size() != 1) {
    return Invalid(fmt::format("{}.list", TaskName(config.task)), Json(config.list),
                   "1 at level L2, the name of the call to look into, such as "
                   "Functional.linear.0.forward");
  }
  return {};
}

}  // namespace

Status Reconcile(Config& config) {
  PL_TRY(CheckOperators(config));
  const bool debug = config.level == Level::kDebug;
  if (config.async_dump && config.task == Task::kTensor && config.list.empty() && !debug) {
    return Error(ErrorCode::kInvalidArgument,
                 "tensor.list: is empty (expected at least one name with async_dump)");
  }
  PL_TRY(ReconcileSearch(config));
  if (config.task == Task::kStructure) {
    if (config.level != Level::kL0 && config.level != Level::kMix) {
      config.warnings.push_back(fmt::format(
          "level: is \"{}\", and task structure records modules: mix is used (expected L0 or mix)",
          LevelName(config.level)));
      config.level = Level::kMix;
    }
    // Backward calls have a place in construct.json; no part of any call is read.
    config.data_mode = {.forward = false, .backward = true, .input = false, .output = false};
  }
  if (debug && !config.tensor_list.empty()) {
    config.warnings.push_back("statistics.tensor_list: has no effect at level debug");
    config.tensor_list.clear();
  }
  if (debug && !config.steps.empty()) {
    config.warnings.push_back("step: has no effect at level debug, which writes one file per run");
  }
  return {};
}

}  // namespace plumbline::settings

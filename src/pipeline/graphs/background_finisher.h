// Passes of finish_dump.h beside a training.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_BACKGROUND_FINISHER_H_
#define PLUMBLINE_PIPELINE_GRAPHS_BACKGROUND_FINISHER_H_

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "pipeline/graphs/finish_dump.h"

namespace plumbline::pipeline {

// Owns one thread while a pass runs. Single-threaded from outside. A destroyed one waits for the
// pass; what it did not see is there for the next one.
class BackgroundFinisher {
 public:
  BackgroundFinisher(std::string tree, FinishOptions options)
      : finisher_(std::move(tree), std::move(options)) {}

  // Begins a pass over what is complete; does nothing while one runs.
  void Begin();
  // Waits, then takes everything that is left. The counts are of all passes. The training must not
  // write any more. Errors of the last pass, or of an earlier one if the last went well.
  Result<FinishReport> Finish();

 private:
  void Add(const Result<FinishReport>& report);

  DumpFinisher finisher_;
  FinishReport total_;
  std::optional<Error> error_;
  std::atomic<bool> runs_ = false;
  std::jthread thread_;  // the last member: joined before the others end
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_BACKGROUND_FINISHER_H_

#include "pipeline/graphs/background_finisher.h"

namespace plumbline::pipeline {

void BackgroundFinisher::Begin() {
  if (runs_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  thread_ = std::jthread([this] {
    Add(finisher_.Pass(/*is_live=*/true));
    runs_ = false;
  });
}

Result<FinishReport> BackgroundFinisher::Finish() {
  if (thread_.joinable()) thread_.join();
  const Result<FinishReport> last = finisher_.Pass(/*is_live=*/false);
  Add(last);
  if (!last) return last.error();
  if (error_) return *error_;
  return total_;
}

void BackgroundFinisher::Add(const Result<FinishReport>& report) {
  if (!report) {
    error_ = report.error();
    return;
  }
  total_.directories += report->directories;
  total_.rows += report->rows;
  total_.dropped += report->dropped;
  total_.sampled += report->sampled;
  // The last pass counts what is left.
  total_.unfinished = report->unfinished;
  total_.unreadable = report->unreadable;
  total_.contradicted = report->contradicted;
  total_.left_out = report->left_out;
  total_.problems = report->problems;
}

}  // namespace plumbline::pipeline

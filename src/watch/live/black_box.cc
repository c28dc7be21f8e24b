#include "watch/live/black_box.h"

#include <charconv>
#include <utility>

#include "base/file/file.h"

namespace plumbline::watch {
namespace {

constexpr int64_t kStepsAfter = 8;  // that a finding's later symptoms show in

// The first step in "actv_64-127.csv"; nothing for other names.
std::optional<int64_t> FirstStepIn(const std::string& name) {
  const size_t mark = name.rfind('_');
  if (mark == std::string::npos || !name.ends_with(".csv")) return std::nullopt;
  int64_t first = 0;
  const auto read = std::from_chars(name.data() + mark + 1, name.data() + name.size(), first);
  if (read.ec != std::errc() || *read.ptr != '-') return std::nullopt;
  return first;
}

}  // namespace

std::vector<Op> BlackBoxOps() {
  return {Op::kNorm, Op::kMin, Op::kMax, Op::kMean, Op::kZeros, Op::kNans, Op::kInfs, Op::kDigest};
}

BlackBoxSink::BlackBoxSink(std::string directory, int64_t steps)
    : directory_(std::move(directory)),
      steps_(steps),
      files_(NewCsvSink(directory_, {BlackBoxOps(), std::nullopt, steps})) {}

Status BlackBoxSink::Write(const StepRows& rows) {
  if (is_frozen()) return {};
  const int64_t block = rows.step / steps_;
  if (block != block_) PL_TRY(RemoveOld(block));
  block_ = block;
  PL_TRY(files_->Write(rows));
  const std::vector<Finding> found = diagnosis_.Look(rows);
  const std::scoped_lock lock(mutex_);
  for (const Finding& finding : found) {
    if (!first_ || IsEarlier(finding, *first_)) first_ = finding;
  }
  is_frozen_ = first_ && rows.step >= first_->step + kStepsAfter;
  return {};
}

std::optional<Finding> BlackBoxSink::First() const {
  const std::scoped_lock lock(mutex_);
  return first_;
}

bool BlackBoxSink::is_frozen() const {
  const std::scoped_lock lock(mutex_);
  return is_frozen_;
}

Status BlackBoxSink::RemoveOld(int64_t block) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory_));
  for (const std::string& name : names) {
    const std::optional<int64_t> first = FirstStepIn(name);
    if (first && *first < (block - 1) * steps_) PL_TRY(RemoveFile(JoinPath(directory_, name)));
  }
  return {};
}

}  // namespace plumbline::watch

#include "watch/live/black_box.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"

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

std::string FindingsJson(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& one : findings) {
    json::Value value = json::Value::Object();
    value.Put("step", json::Value(one.step));
    value.Put("fault", json::Value(NameOf(one.fault)));
    value.Put("module", json::Value(std::string_view(one.place)));
    value.Put("name", json::Value(std::string_view(one.name)));
    value.Put("text", json::Value(std::string_view(one.text)));
    lines.push_back(value.Text());
  }
  return fmt::format("[{}]\n", fmt::join(lines, ",\n"));
}

Result<std::vector<Finding>> ReadFindings(std::string_view text) {
  PL_TRY_ASSIGN(const json::Value document, json::Value::Parse(text));
  std::vector<Finding> findings;
  const json::Value::List* list = document.AsList();
  if (list == nullptr) return Error(ErrorCode::kCorrupt, "no list of findings");
  for (const json::Value& one : *list) {
    const auto word = [&](std::string_view key) {
      const json::Value* value = one.Find(key);
      const std::string* found = value == nullptr ? nullptr : value->AsText();
      return found == nullptr ? std::string() : *found;
    };
    const auto fault = FaultNamed(word("fault"));
    const json::Value* step = one.Find("step");
    const auto number = step == nullptr ? std::nullopt : step->AsInteger();
    if (!fault || !number) {
      return Error(ErrorCode::kCorrupt, "no list of findings (expected step, fault, text)");
    }
    findings.push_back({*fault, *number, word("name"), word("module"), word("text"),
                        findings.size(), false});
  }
  return findings;
}

BlackBoxSink::BlackBoxSink(std::string directory, int64_t steps)
    : directory_(std::move(directory)), steps_(steps) {
  if (!directory_.empty()) {
    files_ = NewCsvSink(directory_, {BlackBoxOps(), std::nullopt, steps});
  }
}

// The rules look first: a disk that is full does not make them blind.
Status BlackBoxSink::Write(const StepRows& rows) {
  if (is_frozen()) return {};
  const Status told = Take(diagnosis_.Look(rows), rows.step);
  if (files_ == nullptr) return {};
  const int64_t block = rows.step / steps_;
  if (block != block_) PL_TRY(RemoveOld(block));
  block_ = block;
  PL_TRY(files_->Write(rows));
  return told;
}

Status BlackBoxSink::Take(std::vector<Finding> found, int64_t step) {
  std::string text;
  {
    const std::scoped_lock lock(mutex_);
    for (Finding& finding : found) {
      const bool is_earlier = !first_fault_ || finding.step < *first_fault_;
      if (!finding.is_suspicion && is_earlier) first_fault_ = finding.step;
      const auto place = std::ranges::upper_bound(findings_, finding, IsEarlier);
      findings_.insert(place, std::move(finding));
    }
    is_frozen_ |= first_fault_ && step >= *first_fault_ + kStepsAfter;
    if (!found.empty()) text = FindingsJson(findings_);
  }
  if (text.empty() || directory_.empty()) return {};
  return WriteFileAtomically(JoinPath(directory_, kFindingsFile), text, /*durable=*/false);
}

Status BlackBoxSink::Close() {
  const Status told = Take(diagnosis_.Finish(), 0);
  if (files_ != nullptr) PL_TRY(files_->Close());
  return told;
}

std::optional<Finding> BlackBoxSink::First() const {
  const std::scoped_lock lock(mutex_);
  return findings_.empty() ? std::nullopt : std::optional(findings_.front());
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

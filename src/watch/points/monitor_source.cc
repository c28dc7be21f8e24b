// The csv files of a training monitor: statistics of parameters, gradients and activations by step.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "load/monitor_files.h"
#include "watch/live/step_files.h"
#include "watch/points/recording.h"
#include "watch/rules/monitor_tensor.h"

namespace plumbline::watch {
namespace {

// Decimals of a number as it is printed: 3 of 0.125, 9 of 2.5e-08.
int DecimalsOf(double value) {
  if (!std::isfinite(value) || value == std::floor(value)) return 0;
  const std::string text = PythonFloat(value);
  const size_t mark = text.find('e'), dot = text.find('.');
  const std::string digits = text.substr(0, mark);
  int decimals = dot == std::string::npos || dot > digits.size()
                     ? 0
                     : static_cast<int>(digits.size() - dot) - 1;
  if (mark != std::string::npos) decimals -= std::atoi(text.c_str() + mark + 1);
  return std::max(decimals, 0);
}

// Half a unit of the last significant digit of 1.00000000, relative to it.
constexpr double kPrintedSlack = 0.5e-8;
static_assert(kSignificantDigits == 9);

class MonitorPart : public StepPart {
 public:
  Result<std::vector<WatchedTensor>> Read() override { return std::move(tensors); }
  Result<std::unique_ptr<HeldTensor>> Open(const WatchedTensor& tensor) override {
    return Error(ErrorCode::kUnsupported, tensor.name + ": a monitor keeps no elements");
  }
  std::vector<WatchedTensor> tensors;
};

// How numbers of a directory are printed, where it says so.
struct PrintedForm {
  std::optional<int> decimals;  // behind the point
  bool is_significant = false;  // kSignificantDigits of them
};

PrintedForm FormOf(const std::string& directory) {
  const auto text = ReadFile(JoinPath(directory, kNamesFile));
  const auto document = text ? json::Value::Parse(*text) : json::Value();
  const json::Value* digits = document ? document->Find(kDigitsMember) : nullptr;
  PrintedForm form;
  if (digits == nullptr) return form;
  form.is_significant = digits->AsText() != nullptr && *digits->AsText() == "auto";
  if (const auto number = digits->AsInteger()) form.decimals = static_cast<int>(*number);
  return form;
}

// How far numbers of a file may be from the true ones: half a unit of the last decimal. A monitor
// that rounds to few decimals shows 0 for what is small.
double SlackOfDecimals(int decimals) {
  constexpr int kFewest = 1, kRounded = 14;
  if (decimals > kRounded) return 0;  // every digit is there
  return 0.5 * std::pow(10.0, -std::max(decimals, kFewest)) * (1 + 1e-9);
}

class MonitorReader {
 public:
  explicit MonitorReader(Recording& recording) : recording_(recording) {}

  Status Run(const std::string& path) {
    PL_TRY_ASSIGN(const auto directories, load::NeedMonitorDirectories(path));
    damage_.TakeBrokenLinks(path);
    size_t number = 0;
    for (const load::MonitorDirectory& directory : directories) {
      resumed_.Begin(++number);
      const PrintedForm form = FormOf(directory.path);
      for (const load::MonitorFile& file : damage_.FilesOf(directory)) {
        ReadOne(directory.rank, file, form);
      }
    }
    recording_.damaged = damage_.places;
    recording_.notes = std::move(damage_.sentences);
    if (left_out_ > 0) {
      recording_.notes.push_back(fmt::format(
          "{}: {} of a training that was resumed are left out; the later directory counts", path,
          CountText(left_out_, "row")));
    }
    if (has_unclear_) JudgeUnclear();
    for (auto& [key, part] : parts_) {
      for (WatchedTensor& tensor : part->tensors) {
        const bool is_weight = (tensor.kinds & kWeight) != 0;
        tensor.is_trained = is_weight && trained_.contains(tensor.name);
      }
      recording_.parts.push_back(std::move(part));
    }
    if (!recording_.parts.empty()) return {};
    if (damage_.first_error) return *damage_.first_error;
    return Error(ErrorCode::kNotFound, fmt::format("{}: no row in any csv file", path));
  }

 private:
  struct Place {
    MonitorPart* part = nullptr;
    size_t at = 0;
  };

  // `form`: without one, numbers have as many decimals as any in the file.
  void ReadOne(int64_t rank, const load::MonitorFile& file, const PrintedForm& form) {
    const auto end = resumed_.EndOf(rank, file.kind);
    int decimals = 0;
    std::vector<Place> added;
    const auto facts = load::VisitMonitorFile(
        file.path, file.kind, [&](auto statistics, load::MonitorRow& row) -> Status {
          if (end && row.step >= *end) {
            ++left_out_;
            return {};
          }
          resumed_.Take(rank, file.kind, row.step);
          added.push_back(Add(rank, file, statistics, row));
          for (size_t i = 0; i < statistics.size(); ++i) {
            if (row.values[i]) decimals = std::max(decimals, DecimalsOf(*row.values[i]));
          }
          return {};
        });
    const double absolute = SlackOfDecimals(form.decimals.value_or(decimals));
    for (const Place& place : added) {
      RecordedStatistics& statistics = place.part->tensors[place.at].statistics;
      statistics.absolute_slack = form.is_significant ? 0 : absolute;
      if (form.is_significant) statistics.relative_slack = statistics.mean_slack = kPrintedSlack;
    }
    damage_.Take(file.path, facts);
  }

  Place Add(int64_t rank, const load::MonitorFile& file, std::span<const std::string> statistics,
            const load::MonitorRow& row) {
    std::shared_ptr<MonitorPart>& part = parts_[{row.step, rank}];
    if (part == nullptr) {
      part = std::make_shared<MonitorPart>();
      part->step = row.step;
      part->rank = rank;
      part->path = file.path;
    }
    WatchedTensor tensor = MonitorTensor({file.kind, row.name, row.vpp_stage, row.micro_step},
                                         statistics, row.values);
    tensor.place = static_cast<int64_t>(part->tensors.size());
    if (TellsOfTraining(file.kind)) trained_.insert(row.name);
    has_unclear_ = has_unclear_ || tensor.is_unclear;
    part->tensors.push_back(std::move(tensor));
    return {part.get(), part->tensors.size() - 1};
  }

  // A tensor that was there before, on any rank, was NaN.
  void JudgeUnclear() {
    std::unordered_map<std::string, int64_t> first_there;
    for (const auto& [key, part] : parts_) {
      for (const WatchedTensor& tensor : part->tensors) {
        if (tensor.has_statistics) first_there.try_emplace(tensor.Key(), part->step);
      }
    }
    for (const auto& [key, part] : parts_) {
      for (WatchedTensor& tensor : part->tensors) {
        if (!tensor.is_unclear) continue;
        const auto first = first_there.find(tensor.Key());
        if (first == first_there.end() || first->second >= part->step) continue;
        tensor.is_unclear = false;
        tensor.has_statistics = tensor.statistics.shows_nan = true;
      }
    }
  }

  Recording& recording_;
  load::MonitorDamage damage_;
  bool has_unclear_ = false;
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<MonitorPart>> parts_;
  load::ResumedRows resumed_;
  std::set<std::string> trained_;  // names that have gradients or moments
  uint64_t left_out_ = 0;
};

}  // namespace

Result<Recording> OpenMonitor(const std::string& path) {
  Recording recording;
  recording.kind = "monitor files";
  recording.tensors_advice =
      "the monitor keeps statistics alone: give it all of ops (norm, min, max, mean, nans, zeros) "
      "and more ndigits, or record the tensors";
  PL_TRY(MonitorReader(recording).Run(path));
  return recording;
}

}  // namespace plumbline::watch

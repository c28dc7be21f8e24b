// The csv files of a training monitor: statistics of parameters, gradients and activations by step.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/text/number_text.h"
#include "formats/table/monitor_kinds.h"
#include "load/monitor_files.h"
#include "watch/points/recording.h"

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

class MonitorPart : public StepPart {
 public:
  Result<std::vector<WatchedTensor>> Read() override { return std::move(tensors); }
  Result<std::unique_ptr<HeldTensor>> Open(const WatchedTensor& tensor) override {
    return Error(ErrorCode::kUnsupported, tensor.name + ": a monitor keeps no elements");
  }
  std::vector<WatchedTensor> tensors;
};

TensorKinds KindsOfFile(std::string_view kind) {
  if (kind.starts_with("param")) return kAnyTensor | kWeight;
  if (kind.starts_with("grad_") || kind == "actv_grad") return kAnyTensor | kGradient;
  return kAnyTensor;
}

// How far numbers of a file may be from the true ones: half a unit of the last decimal that any of
// them has. A monitor that rounds to few decimals shows 0 for what is small.
double SlackOfDecimals(int decimals) {
  constexpr int kFewest = 1, kRounded = 14;
  if (decimals > kRounded) return 0;  // every digit is there
  return 0.5 * std::pow(10.0, -std::max(decimals, kFewest)) * (1 + 1e-9);
}

// Whether it is one of the numbers that rules know.
bool TakeStatistic(std::string_view name, double value, RecordedStatistics& out) {
  constexpr double kMost = 0x1p63;
  const bool is_count = value >= 0 && value < kMost;
  if (name == "nans" && is_count) out.nan_count = static_cast<uint64_t>(value);
  if (name == "infs" && is_count) out.inf_count = static_cast<uint64_t>(value);
  const std::pair<std::string_view, std::optional<double>*> numbers[] = {
      {"norm", &out.norm}, {"max", &out.max}, {"min", &out.min},
      {"mean", &out.mean}, {"zeros", &out.small_fraction}};
  for (const auto& [known, to] : numbers) {
    if (name != known) continue;
    if (!std::isnan(value)) *to = value;
    return true;
  }
  return false;
}

// "fc.input", "fc.input_1", "fc.grad_input.1".
bool IsOfInput(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  name = name.substr(0, end + 1);
  if (name.ends_with('_') || name.ends_with('.')) name.remove_suffix(1);
  return name.ends_with(".input") || name.ends_with(".grad_input");
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
      for (const load::MonitorFile& file : damage_.FilesOf(directory)) {
        ReadOne(directory.rank, file);
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

  void ReadOne(int64_t rank, const load::MonitorFile& file) {
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
    for (const Place& place : added) {
      place.part->tensors[place.at].statistics.absolute_slack = SlackOfDecimals(decimals);
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
    WatchedTensor tensor;
    tensor.name = row.name;
    tensor.io = file.kind;
    tensor.slot = std::to_string(row.micro_step);
    tensor.slot_number = row.micro_step;
    if (row.vpp_stage > 0) tensor.graph = std::to_string(row.vpp_stage);
    tensor.place = static_cast<int64_t>(part->tensors.size());
    tensor.kinds = KindsOfFile(file.kind);
    const bool is_of_weight = file.kind.starts_with("grad_") || file.kind.starts_with("exp_avg");
    if (is_of_weight) trained_.insert(row.name);
    const bool is_activation = HasMicroSteps(file.kind);
    tensor.is_input = is_activation && IsOfInput(row.name);
    TakeValues(statistics, row, tensor);
    part->tensors.push_back(std::move(tensor));
    return {part.get(), part->tensors.size() - 1};
  }

  void TakeValues(std::span<const std::string> names, const load::MonitorRow& row,
                  WatchedTensor& tensor) {
    const load::RowTensor there = load::TensorOf(names, row);
    tensor.has_statistics = there == load::RowTensor::kThere;
    tensor.is_unclear = there == load::RowTensor::kUnclear;
    has_unclear_ = has_unclear_ || tensor.is_unclear;
    if (!tensor.has_statistics) return;
    RecordedStatistics& out = tensor.statistics;
    const auto nan = load::TellingNaN(names, row);
    for (size_t i = 0; i < names.size(); ++i) {
      if (!row.values[i] || !TakeStatistic(names[i], *row.values[i], out)) continue;
      out.shows_nan = out.shows_nan || nan == i;
      out.shows_inf = out.shows_inf || std::isinf(*row.values[i]);
    }
    // A sum of squares may be infinite where no element is.
    if (out.inf_count) out.shows_inf = false;
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
        tensor.has_statistics = true;
        tensor.statistics.shows_nan = true;
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

#include "watch/gradients/gradient_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "base/memory/digest.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "formats/array/sign_pack.h"
#include "tensor/half.h"

namespace plumbline::gradients {
namespace {

using grad_summary::Row;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// `value` rounded to the precision of a gradient, at most float32.
double InPrecisionOf(DType dtype, double value) {
  const auto narrow = static_cast<float>(value);
  const NarrowFormat* const format = NarrowFormatOf(dtype);
  if (format == nullptr || std::isnan(narrow)) return static_cast<double>(narrow);
  return static_cast<double>(NarrowToFloat(*format, FloatToNarrow(*format, narrow)));
}

// NaN makes all of them NaN, as in the frameworks; so does an empty gradient, which has no extremes.
void FillStatistics(const kernels::Moments& moments, DType dtype, Row* row) {
  const bool is_nan = moments.nan_count > 0 || moments.count == 0;
  row->max = is_nan ? kNaN : InPrecisionOf(dtype, moments.max);
  row->min = is_nan ? kNaN : InPrecisionOf(dtype, moments.min);
  row->norm = InPrecisionOf(dtype, std::sqrt(moments.sum_squares));
}

// Of the intervals between bounds, then of the zeros. NaN is in the last interval.
std::vector<uint64_t> CountsOf(const kernels::TensorScan& scan) {
  const kernels::Moments& moments = scan.moments;
  std::vector<uint64_t> counts;
  uint64_t above = moments.count - moments.nan_count;
  for (const uint64_t next : scan.above) {
    counts.push_back(above - next);
    above = next;
  }
  counts.push_back(above + moments.nan_count);
  counts.push_back(moments.zero_count);
  return counts;
}

// MD5 of the elements as float32, in row-major order.
Result<std::string> Md5AsFloats(const TensorView& view) {
  if (view.dtype == DType::kFloat32 && view.is_contiguous()) {
    return Md5Hex({view.data, view.size_bytes()});
  }
  PL_TRY_ASSIGN(const Tensor copy, Tensor::Copy(view));
  const auto count = static_cast<size_t>(view.element_count());
  std::vector<float> floats(count);
  if (count > 0) {
    kernels::ActiveTable().to_float(view.dtype, copy.view().data, count, floats.data());
  }
  return Md5Hex(std::as_bytes(std::span(floats)));
}

// Digests of several gradients, each by one worker.
struct SharedDigests {
  std::span<const Gradient> gradients;
  std::vector<Result<std::string>> digests;
  std::atomic<size_t> next = 0;

  static void Work(void* self, int /*worker*/) { static_cast<SharedDigests*>(self)->Run(); }
  void Run() {
    for (size_t i = next++; i < gradients.size(); i = next++) {
      digests[i] = Md5AsFloats(gradients[i].view);
    }
  }
};

}  // namespace

GradientProbe::GradientProbe(const Config& config)
    : config_(config), counter_(config.grad_probe.by_iteration) {
  if (config.grad_probe.level != GradLevel::kL2) return;
  for (const GradProbeConfig::Bound& bound : config.grad_probe.bounds) {
    bounds_.push_back(static_cast<double>(static_cast<float>(bound.value)));
  }
}

void GradientProbe::AddParameters(std::span<const std::string> names) {
  const std::vector<std::string>& listed = config_.grad_probe.param_list;
  for (const std::string& given : names) {
    std::string name = given;
    for (int n = 1; std::ranges::count(names_, name) > 0; ++n) {
      name = fmt::format("{}.{}", given, n);
    }
    is_listed_.push_back(listed.empty() || std::ranges::count(listed, name) > 0);
    names_.push_back(std::move(name));
  }
  owners_.resize(names_.size());
  is_missed_.resize(names_.size());
  for (const std::string& name : listed) {
    if (std::ranges::count(names_, name) > 0) continue;
    LogWarning(fmt::format("grad_probe.param_list: \"{}\" is no parameter of the model", name));
  }
}

bool GradientProbe::Open(std::optional<int> rank) {
  if (files_) return true;
  if (is_off_) return false;
  const GradProbeConfig& settings = config_.grad_probe;
  if (rank && !config_.ranks.empty() && std::ranges::count(config_.ranks, *rank) == 0) {
    is_off_ = true;
    return false;
  }
  grad_summary::Columns columns{.has_md5 = settings.level == GradLevel::kL0,
                                .has_shares = settings.level == GradLevel::kL2,
                                .bounds = {}};
  for (const GradProbeConfig::Bound& bound : settings.bounds) columns.bounds.push_back(bound.text);
  auto files = GradientFiles::Create(config_.dump_path, rank.value_or(0), std::move(columns),
                                     settings.packed);
  if (!files) {
    LogWarning("the gradient probe records nothing: " + files.error().message());
    is_off_ = true;
    return false;
  }
  files_ = *std::move(files);
  LogInfo(fmt::format("gradients will be saved in {}", files_->path()));
  return true;
}

std::vector<size_t> GradientProbe::Begin(StepCounter::Optimizer optimizer,
                                         std::span<const size_t> own, std::optional<int> rank) {
  turn_ = counter_.Next(optimizer);
  if (counter_.has_several() && !config_.grad_probe.by_iteration &&
      !std::exchange(has_warned_of_several_, true)) {
    LogWarning("grad_probe: several optimizers step, and each of their steps counts. For steps "
               "that are iterations set grad_probe.step_by to \"iteration\"");
  }
  for (const size_t parameter : own) {
    if (parameter < owners_.size()) owners_[parameter] = optimizer;
  }
  if (turn_.begins) {
    WriteStep();
    taken_.clear();
    step_.reset();
    const bool is_selected =
        config_.steps.empty() || std::ranges::binary_search(config_.steps, turn_.step);
    if (is_selected && Open(rank)) step_ = turn_.step;
    is_written_ = false;
  }
  std::vector<size_t> wanted;
  for (size_t i = 0; step_ && i < names_.size(); ++i) {
    // Without an owner: as it is when the first optimizer of the step is about to step.
    const bool is_ones_turn = owners_[i] == 0 ? turn_.begins : owners_[i] == optimizer;
    if (!is_listed_[i] || !(is_ones_turn || !config_.grad_probe.by_iteration)) continue;
    taken_.erase(i);
    wanted.push_back(i);
  }
  is_written_ = is_written_ && wanted.empty();
  wanted_ = wanted.size();
  return wanted;
}

void GradientProbe::Read(const Gradient& gradient, const kernels::Team& team, Taken* taken) const {
  const TensorView& view = gradient.view;
  const auto elements = static_cast<uint64_t>(view.element_count());
  kernels::ScanWants wants{.bounds = bounds_, .team = &team};
  if (config_.grad_probe.level != GradLevel::kL0) {
    taken->signs.bytes = sign_pack::BytesFor(elements);
    taken->signs.bits = std::make_shared_for_overwrite<uint8_t[]>(taken->signs.bytes);
    wants.signs = taken->signs.bits.get();
  }
  const kernels::TensorScan scan = kernels::ScanTensor(view, wants);
  Row& row = taken->row;
  row.name = names_[gradient.parameter];
  row.elements = elements;
  row.shape.assign(view.sizes.begin(), view.sizes.end());
  FillStatistics(scan.moments, view.dtype, &row);
  if (config_.grad_probe.level == GradLevel::kL2) row.counts = CountsOf(scan);
}

void GradientProbe::Take(std::span<const Gradient> gradients, const kernels::Team& team) {
  if (!step_) return;
  for (const Gradient& gradient : gradients) {
    if (InfoOf(gradient.view.dtype).kind == DTypeKind::kComplex) {
      MissGradient(gradient.parameter, "its elements are complex, which have no sign");
      continue;
    }
    Read(gradient, team, &taken_[gradient.parameter]);
  }
  if (config_.grad_probe.level == GradLevel::kL0) AddMd5(gradients, team);
}

void GradientProbe::AddMd5(std::span<const Gradient> gradients, const kernels::Team& team) {
  SharedDigests shared{.gradients = gradients, .digests = {}};
  shared.digests.resize(gradients.size(), std::string());
  if (team.size > 1) {
    team.run(team.size, &SharedDigests::Work, &shared);
  } else {
    shared.Run();
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto taken = taken_.find(gradients[i].parameter);
    if (taken == taken_.end()) continue;
    if (shared.digests[i]) {
      taken->second.row.md5 = *shared.digests[i];
    } else {
      MissGradient(gradients[i].parameter, shared.digests[i].error().message());
    }
  }
}

void GradientProbe::End() {
  if (step_ && !has_told_absent_ && taken_.size() < wanted_) {
    has_told_absent_ = true;
    LogInfo(fmt::format("step {}: {} of {} have no gradient to record; such rows are left out",
                        turn_.step, wanted_ - taken_.size(), CountText(wanted_, "parameter")));
  }
  if (turn_.ends) WriteStep();
}

void GradientProbe::WriteStep() {
  if (!step_ || !files_ || std::exchange(is_written_, true)) return;
  Step step{.number = *step_, .rows = {}, .signs = {}};
  for (const auto& [parameter, taken] : taken_) {
    step.rows.push_back(taken.row);
    if (taken.signs.bits) step.signs.push_back(taken.signs);
  }
  files_->Write(std::move(step));
}

bool GradientProbe::SetFirstStep(int64_t step) {
  if (counter_.has_begun()) return false;
  counter_.SetFirst(step);
  return true;
}

void GradientProbe::Drain() {
  if (files_) files_->Drain();
}

void GradientProbe::Close() {
  WriteStep();
  taken_.clear();
  step_.reset();
  files_.reset();
  is_off_ = true;
}

void GradientProbe::MissGradient(size_t parameter, const std::string& why) {
  if (is_missed_[parameter]) return;
  is_missed_[parameter] = true;
  LogWarning(fmt::format("the gradient of {} is not recorded: {}", names_[parameter], why));
}

std::string GradientProbe::directory() const { return files_ ? files_->path() : std::string(); }

}  // namespace plumbline::gradients

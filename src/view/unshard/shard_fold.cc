#include "view/unshard/shard_fold.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "record/recorded_number.h"
#include "view/merge/merged_values.h"

namespace plumbline::view {
namespace {

using Parts = std::span<const TensorRecord* const>;

// A copy of the whole, but for rounding: a rank that has another one is wrong.
constexpr double kNearlyACopy = 1e-3;
// Of the root mean square: means of summands are sums of rounded numbers.
constexpr double kSameSum = 1e-4;

// Nothing where the product has no room in 64 bits.
std::optional<int64_t> ElementsOf(const TensorRecord& tensor) {
  const Result<int64_t> count = ElementCount(tensor.shape);
  return count ? std::optional(*count) : std::nullopt;
}

void DropStatistics(TensorRecord& tensor) { TakeStatistics(TensorRecord(), tensor); }

double Or(const Statistic& statistic, double otherwise) {
  return NumberOf(statistic).value_or(otherwise);
}

bool AreAlike(Parts parts) {
  return std::ranges::all_of(parts, [&](const TensorRecord* part) {
    return AgreeIn(*parts.front(), *part, Sameness::kNearly);
  });
}

// How far a copy of golden is from it, as a share of golden's norm.
double DistanceOf(const TensorRecord& part, const TensorRecord& golden) {
  const double scale = std::max(std::abs(Or(golden.norm, 0)), 1e-30);
  double distance = 0;
  for (const auto which :
       {&TensorRecord::max, &TensorRecord::min, &TensorRecord::mean, &TensorRecord::norm}) {
    const auto a = NumberOrTruth(part.*which), b = NumberOrTruth(golden.*which);
    if (!a || !b || *a == *b) continue;
    const double apart = std::abs(*a - *b) / scale;
    if (std::isnan(apart)) return std::numeric_limits<double>::infinity();
    distance = std::max(distance, apart);
  }
  return distance;
}

// Whether golden's mean is the sum of the parts' means, or their average.
bool AreSummands(const TensorRecord& golden, Parts parts) {
  const std::optional<int64_t> elements = ElementsOf(golden);
  const auto mean = NumberOf(golden.mean), norm = NumberOf(golden.norm);
  if (!IsMergeable(golden) || !elements || *elements == 0 || !mean || !norm) return false;
  double sum = 0, norms = *norm;
  for (const TensorRecord* const part : parts) {
    const auto own = NumberOf(part->mean), own_norm = NumberOf(part->norm);
    if (!own || !own_norm) return false;
    sum += *own;
    norms += *own_norm;
  }
  const double near = kSameSum * norms / std::sqrt(static_cast<double>(*elements));
  const double average = sum / static_cast<double>(parts.size());
  return std::abs(sum - *mean) <= near || std::abs(average - *mean) <= near;
}

// The average or the sum of values of one element, if it is golden's.
std::optional<TensorRecord> AverageOf(const TensorRecord& golden, Parts parts) {
  constexpr double kSameValue = 1e-5;
  const auto value = NumberOf(golden.mean);
  if (!value || !std::isfinite(*value) || ElementsOf(golden) != 1) return std::nullopt;
  double sum = 0;
  for (const TensorRecord* const part : parts) {
    const auto own = NumberOf(part->mean);
    if (!own) return std::nullopt;
    sum += *own;
  }
  for (const double found : {sum / static_cast<double>(parts.size()), sum}) {
    if (std::abs(found - *value) > kSameValue * std::abs(*value)) continue;
    TensorRecord tensor = *parts.front();
    tensor.max = tensor.min = tensor.mean = found;
    tensor.norm = std::abs(found);
    ForgetContents(tensor);
    return tensor;
  }
  return std::nullopt;
}

// All of golden's shape.
FoldedTensor FoldWhole(const TensorRecord& golden, Parts parts) {
  FoldedTensor folded{.share = Share::kWhole, .tensor = *parts.front()};
  if (AreAlike(parts)) return folded;
  if (auto average = AverageOf(golden, parts)) {
    return {.share = Share::kAverage, .tensor = std::move(*average)};
  }
  const auto copies = std::ranges::count_if(
      parts, [&](const TensorRecord* part) { return DistanceOf(*part, golden) <= kNearlyACopy; });
  // Of a sum whose other summands are zero one is the sum; so is the copy of a rank whose peers
  // lost theirs.
  const auto zeros = std::ranges::count_if(
      parts, [](const TensorRecord* part) { return NumberOf(part->norm) == 0.0; });
  const bool is_one_alone = copies == 1 && zeros + 1 == static_cast<std::ptrdiff_t>(parts.size());
  if (is_one_alone || (copies == 0 && AreSummands(golden, parts))) {
    folded.share = Share::kSummands;
    DropStatistics(folded.tensor);
    return folded;
  }
  folded.share = Share::kDivided;
  folded.tensor = **std::ranges::max_element(
      parts, {}, [&](const TensorRecord* part) { return DistanceOf(*part, golden); });
  return folded;
}

// The dimensions along which parts are smaller; nothing if one is larger or has others.
std::optional<std::vector<size_t>> DividedDimensions(const TensorRecord& golden, Parts parts) {
  std::vector<size_t> divided;
  for (const TensorRecord* const part : parts) {
    if (part->shape.size() != golden.shape.size()) return std::nullopt;
    for (size_t i = 0; i < golden.shape.size(); ++i) {
      if (part->shape[i] > golden.shape[i]) return std::nullopt;
      if (part->shape[i] == golden.shape[i]) continue;
      if (std::ranges::find(divided, i) == divided.end()) divided.push_back(i);
    }
  }
  std::ranges::sort(divided);
  return divided;
}

// The statistics of `copies` equal copies of all parts. Requires: some elements.
TensorRecord Joined(Parts parts, int64_t copies) {
  std::vector<TensorRecord> own;
  double elements = 0, sum = 0;
  for (const TensorRecord* const part : parts) {
    const double count = static_cast<double>(ElementsOf(*part).value_or(0));
    if (count == 0) continue;
    own.push_back(*part);
    elements += count;
    sum += Or(part->mean, 0) * count;
  }
  TensorsAt at{"", {}};
  for (TensorRecord& part : own) at.tensors.push_back(&part);
  MergeTensors(at);
  TensorRecord joined = std::move(own.front());
  if (NumberOf(joined.mean)) joined.mean = sum / elements;
  if (const auto norm = NumberOf(joined.norm)) {
    joined.norm = *norm / std::sqrt(static_cast<double>(copies));
  }
  for (const auto which :
       {&TensorRecord::nan_count, &TensorRecord::inf_count, &TensorRecord::zero_count}) {
    std::optional<int64_t>& count = joined.*which;
    if (count && *count % copies == 0) {
      *count /= copies;
    } else {
      count.reset();
    }
  }
  ForgetContents(joined);
  return joined;
}

}  // namespace

void Divide(TensorRecord& tensor, double divisor) {
  for (const auto which :
       {&TensorRecord::max, &TensorRecord::min, &TensorRecord::mean, &TensorRecord::norm}) {
    if (const auto number = NumberOf(tensor.*which)) tensor.*which = *number / divisor;
  }
  for (const auto which : {&TensorRecord::max_finite, &TensorRecord::min_finite}) {
    const auto number = tensor.*which ? NumberOf(*(tensor.*which)) : std::nullopt;
    if (number) tensor.*which = Statistic(*number / divisor);
  }
  ForgetContents(tensor);
}

FoldedTensor FoldShards(const TensorRecord& golden, Parts parts) {
  const bool are_whole = std::ranges::all_of(
      parts, [&](const TensorRecord* part) { return part->shape == golden.shape; });
  if (are_whole) return FoldWhole(golden, parts);
  FoldedTensor folded;
  folded.tensor = *parts.front();
  folded.tensor.shape = golden.shape;
  DropStatistics(folded.tensor);
  const std::optional<int64_t> whole = ElementsOf(golden);
  int64_t held = 0;
  for (const TensorRecord* const part : parts) {
    const std::optional<int64_t> own = ElementsOf(*part);
    if (!own || !IsMergeable(*part) || __builtin_add_overflow(held, *own, &held)) return folded;
  }
  if (!whole || *whole == 0 || held == 0 || held % *whole != 0) return folded;
  const int64_t copies = held / *whole;
  const auto divided = DividedDimensions(golden, parts);
  if (!divided && copies != 1) return folded;
  folded.share = divided ? Share::kShards : Share::kPacked;
  folded.dimensions = divided.value_or(std::vector<size_t>());
  folded.parts = static_cast<int64_t>(parts.size()) / copies;
  folded.tensor = Joined(parts, copies);
  folded.tensor.shape = golden.shape;
  return folded;
}

}  // namespace plumbline::view

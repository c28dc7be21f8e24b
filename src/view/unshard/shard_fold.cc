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

// The average or the sum of values of one element, if it is golden's.
std::optional<TensorRecord> AverageOf(const TensorRecord& golden, Parts parts) {
  constexpr double kSameValue = 1e-5;
  const auto value = NumberOf(golden.mean);
  if (!value || !std::isfinite(*value) || ElementsOf(golden) != 1) return std::nullopt;
  double sum = 0;
  for (const TensorRecord* const part : parts) {
    const auto own = NumberOf(part->mean);
    // Who has golden's own value has no summand of it.
    if (!own || std::abs(*own - *value) <= kSameValue * std::abs(*value)) return std::nullopt;
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
FoldedTensor FoldWhole(const TensorRecord& golden, Parts parts, TensorKind kind) {
  FoldedTensor folded{.share = Share::kWhole, .tensor = *parts.front()};
  if (AreAlike(parts)) return folded;
  const bool may_be_own = kind == TensorKind::kValue;
  if (auto average = may_be_own ? AverageOf(golden, parts) : std::nullopt) {
    return {.share = Share::kAverage, .tensor = std::move(*average)};
  }
  const auto copies = std::ranges::count_if(
      parts, [&](const TensorRecord* part) { return DistanceOf(*part, golden) <= kNearlyACopy; });
  // Of a sum whose other summands are zero one is the sum; so is the copy of a rank whose peers
  // lost theirs.
  const auto zeros = std::ranges::count_if(
      parts, [](const TensorRecord* part) { return NumberOf(part->norm) == 0.0; });
  const bool is_one_alone = copies == 1 && zeros + 1 == static_cast<std::ptrdiff_t>(parts.size());
  // Of one element the average or the sum would have told.
  const bool is_told = ElementsOf(golden) == 1 && std::holds_alternative<double>(golden.max);
  if (may_be_own && !is_told && (copies == 0 || is_one_alone)) {
    folded.share = Share::kSummands;
    DropStatistics(folded.tensor);
    return folded;
  }
  folded.share = Share::kDivided;
  folded.tensor = **std::ranges::max_element(
      parts, {}, [&](const TensorRecord* part) { return DistanceOf(*part, golden); });
  return folded;
}

// One of every `copies` equal parts; nothing if they are not there as often.
std::vector<const TensorRecord*> OneOfEach(Parts parts, int64_t copies) {
  std::vector<std::pair<const TensorRecord*, int64_t>> kinds;
  std::vector<const TensorRecord*> kept;
  for (const TensorRecord* const part : parts) {
    auto same = std::ranges::find_if(kinds, [&](const auto& kind) {
      return kind.first->shape == part->shape && AgreeIn(*kind.first, *part, Sameness::kNearly);
    });
    if (same == kinds.end()) same = kinds.emplace(kinds.end(), part, 0);
    if (same->second++ % copies == 0) kept.push_back(part);
  }
  const bool are_copied =
      std::ranges::all_of(kinds, [&](const auto& kind) { return kind.second % copies == 0; });
  return are_copied ? kept : std::vector<const TensorRecord*>();
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

// The statistics of all parts together. Sums of whole numbers are whole, so that they come out as
// exactly as one rank has them. Requires: some elements.
TensorRecord Joined(Parts parts) {
  std::vector<TensorRecord> own;
  double elements = 0, sum = 0, squares = 0;
  for (const TensorRecord* const part : parts) {
    const double count = static_cast<double>(ElementsOf(*part).value_or(0));
    if (count == 0) continue;
    own.push_back(*part);
    elements += count;
    sum += Or(part->mean, 0) * count;
    squares += Or(part->norm, 0) * Or(part->norm, 0);
  }
  const bool is_whole = own.front().dtype_text.find("int") != std::string::npos;
  TensorsAt at{"", {}};
  for (TensorRecord& part : own) at.tensors.push_back(&part);
  MergeTensors(at);
  TensorRecord joined = std::move(own.front());
  if (NumberOf(joined.mean)) joined.mean = (is_whole ? std::round(sum) : sum) / elements;
  if (NumberOf(joined.norm) && is_whole) joined.norm = std::sqrt(std::round(squares));
  ForgetContents(joined);
  return joined;
}

// A rank that has another type than golden is the one that shows.
void TakeOtherType(const TensorRecord& golden, Parts parts, TensorRecord& tensor) {
  for (const TensorRecord* const part : parts) {
    if (part->dtype_text != golden.dtype_text) tensor.dtype_text = part->dtype_text;
  }
}

}  // namespace

bool HasStatisticsOf(const TensorRecord& golden, const TensorRecord& tensor) {
  return NumberOrTruth(tensor.norm).has_value() == NumberOrTruth(golden.norm).has_value() &&
         DistanceOf(tensor, golden) <= kSameStatistic;
}

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

FoldedTensor FoldShards(const TensorRecord& golden, Parts parts, TensorKind kind) {
  const bool are_whole = std::ranges::all_of(
      parts, [&](const TensorRecord* part) { return part->shape == golden.shape; });
  if (are_whole) {
    FoldedTensor folded = FoldWhole(golden, parts, kind);
    TakeOtherType(golden, parts, folded.tensor);
    return folded;
  }
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
  const std::vector<const TensorRecord*> distinct = OneOfEach(parts, copies);
  if (distinct.empty()) {
    folded.share = Share::kSummands;  // of shards
    return folded;
  }
  folded.share = divided ? Share::kShards : Share::kPacked;
  folded.dimensions = divided.value_or(std::vector<size_t>());
  folded.parts = static_cast<int64_t>(distinct.size());
  folded.tensor = Joined(distinct);
  folded.tensor.shape = golden.shape;
  TakeOtherType(golden, parts, folded.tensor);
  return folded;
}

}  // namespace plumbline::view

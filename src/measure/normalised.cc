#include "measure/normalised.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/standards.h"
#include "plumbline/tensor.h"

namespace plumbline::measure {
namespace {

// Roundings of a few operations in a row, with margin.
constexpr double kRoundings = 4;

// Sums over one group.
struct Group {
  double count = 0, mean = 0, variance = 0;
  // Of the gradient g that comes in times w: means of g w, of |g w|, of g w and |g w| times x less
  // its mean over the deviation.
  double gradient = 0, size = 0, along = 0, size_along = 0;
};

class Groups {
 public:
  explicit Groups(const Normalisation& call) : call_(call) {
    const size_t count = call.block == 0 ? call.channels : call.x.size() / call.block;
    groups_.resize(count);
    for (size_t i = 0; i < call.x.size(); ++i) {
      ++Of(i).count;
      Of(i).mean += call.x[i];
    }
    for (Group& group : groups_) group.mean /= group.count;
    for (size_t i = 0; i < call.x.size(); ++i) {
      const double centred = call.x[i] - Of(i).mean;
      Of(i).variance += centred * centred;
    }
    for (Group& group : groups_) group.variance /= group.count;
  }

  [[nodiscard]] Group& Of(size_t i) { return groups_[GroupOf(i)]; }
  [[nodiscard]] const Group& Of(size_t i) const { return groups_[GroupOf(i)]; }
  [[nodiscard]] double WeightOf(size_t i) const { return At(call_.w, i, 1); }
  [[nodiscard]] double BiasOf(size_t i) const { return At(call_.b, i, 0); }
  [[nodiscard]] double InverseOf(size_t i) const {
    return 1 / std::sqrt(Of(i).variance + call_.epsilon);
  }
  [[nodiscard]] double NormalOf(size_t i) const { return (call_.x[i] - Of(i).mean) * InverseOf(i); }
  // Size of what is subtracted over what is left.
  [[nodiscard]] double ConditionOf(size_t i) const {
    return (std::abs(call_.x[i]) + std::abs(Of(i).mean)) * InverseOf(i);
  }
  // The same of all elements of the group, on which its deviation hangs.
  [[nodiscard]] double GroupConditionOf(size_t i) const {
    return 1 + std::abs(Of(i).mean) * InverseOf(i);
  }
  // Errors of sums over the group, in roundoffs.
  [[nodiscard]] double DepthOf(size_t i) const { return 1 + std::log2(Of(i).count); }

  void AddGradient(std::span<const double> incoming) {
    for (size_t i = 0; i < incoming.size(); ++i) {
      Group& group = Of(i);
      const double gradient = incoming[i] * WeightOf(i) / group.count;
      group.gradient += gradient;
      group.size += std::abs(gradient);
      group.along += gradient * NormalOf(i);
      group.size_along += std::abs(gradient * NormalOf(i));
    }
  }

 private:
  [[nodiscard]] size_t ChannelOf(size_t i) const { return i / call_.places % call_.channels; }
  [[nodiscard]] size_t GroupOf(size_t i) const {
    return call_.block == 0 ? ChannelOf(i) : i / call_.block;
  }
  [[nodiscard]] double At(std::span<const double> values, size_t i, double otherwise) const {
    return values.empty() ? otherwise : values[ChannelOf(i)];
  }

  const Normalisation& call_;
  std::vector<Group> groups_;
};

bool Fits(const Normalisation& call, std::span<const double> result) {
  const auto is_of_channels = [&](std::span<const double> values) {
    return values.empty() || values.size() == call.channels;
  };
  const size_t row = call.channels * call.places;
  return !call.x.empty() && call.x.size() == result.size() && row > 0 && call.x.size() % row == 0 &&
         (call.block == 0 || call.x.size() % call.block == 0) && is_of_channels(call.w) &&
         is_of_channels(call.b);
}

}  // namespace

bool IsNormalised(const Normalisation& call, std::span<const double> y, double unit_roundoff) {
  if (!Fits(call, y)) return false;
  const Groups groups(call);
  const double sum_roundoff = std::min(unit_roundoff, UnitRoundoff(DType::kFloat32));
  for (size_t i = 0; i < y.size(); ++i) {
    const double scaled = groups.NormalOf(i) * groups.WeightOf(i);
    const double value = scaled + groups.BiasOf(i);
    const double of_sums = groups.ConditionOf(i) * std::abs(groups.WeightOf(i)) +
                           groups.GroupConditionOf(i) * std::abs(scaled);
    const double rounding = unit_roundoff * (std::abs(scaled) + std::abs(groups.BiasOf(i))) +
                            sum_roundoff * groups.DepthOf(i) * of_sums;
    if (!(std::abs(y[i] - value) <= kRoundings * rounding)) return false;  // also for NaN
  }
  return true;
}

bool IsGradientOfNormalised(const Normalisation& call, std::span<const double> incoming,
                            std::span<const double> gradient, double unit_roundoff) {
  if (!Fits(call, gradient) || incoming.size() != gradient.size()) return false;
  Groups groups(call);
  groups.AddGradient(incoming);
  const double sum_roundoff = std::min(unit_roundoff, UnitRoundoff(DType::kFloat32));
  for (size_t i = 0; i < gradient.size(); ++i) {
    const Group& group = groups.Of(i);
    const double own = incoming[i] * groups.WeightOf(i), normal = groups.NormalOf(i);
    const double value = groups.InverseOf(i) * (own - group.gradient - normal * group.along);
    const double condition = groups.GroupConditionOf(i);
    const double terms = std::abs(own) + group.size + std::abs(normal) * group.size_along;
    // `normal` itself is off by its condition, in every element.
    const double of_normal =
        groups.ConditionOf(i) * std::abs(group.along) + std::abs(normal) * condition * group.size;
    const double of_sums = groups.InverseOf(i) * (terms + of_normal) + condition * std::abs(value);
    const double rounding =
        unit_roundoff * std::abs(value) + sum_roundoff * groups.DepthOf(i) * of_sums;
    if (!(std::abs(gradient[i] - value) <= kRoundings * rounding)) return false;
  }
  return true;
}

}  // namespace plumbline::measure

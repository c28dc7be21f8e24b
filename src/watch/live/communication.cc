#include "watch/live/communication.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumbline::watch {
namespace {

double SmallerOf(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double LargerOf(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// Infinity hides no NaN, as it would in hypot().
double NormOf(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN()
                                        : std::hypot(a, b);
}

double ElementCountOf(const TensorValues& values) {
  double count = 1;
  for (const int64_t size : values.shape) count *= static_cast<double>(size);
  return count;
}

}  // namespace

TensorValues Joined(std::span<const TensorValues> parts) {
  if (parts.empty()) return NoValues();
  TensorValues whole = parts.front();
  if (parts.size() == 1) return whole;
  double count = whole.dtype ? ElementCountOf(whole) : 0;
  for (const TensorValues& part : parts.subspan(1)) {
    const double more = ElementCountOf(part);
    const auto weighted = [&](Op op) {
      if (more > 0 && count > 0) {
        whole.of(op) = (whole.of(op) * count + part.of(op) * more) / (count + more);
      } else if (more > 0) {
        whole.of(op) = part.of(op);
      }
    };
    for (const Op op : {Op::kMean, Op::kZeros}) weighted(op);
    if (count > 0 && more > 0) {
      whole.of(Op::kMin) = SmallerOf(whole.of(Op::kMin), part.of(Op::kMin));
      whole.of(Op::kMax) = LargerOf(whole.of(Op::kMax), part.of(Op::kMax));
    } else if (more > 0) {
      for (const Op op : {Op::kMin, Op::kMax}) whole.of(op) = part.of(op);
    }
    whole.of(Op::kNorm) = NormOf(whole.of(Op::kNorm), part.of(Op::kNorm));
    for (const Op op : {Op::kNans, Op::kInfs}) whole.of(op) += part.of(op);
    count += more;
  }
  whole.of(Op::kId) = std::numeric_limits<double>::quiet_NaN();
  whole.shape = {static_cast<int64_t>(count)};
  return whole;
}

void CommunicationValues::Add(const std::string& name, const TensorValues& values) {
  const auto [place, is_new] = places_.emplace(name, sums_.size());
  if (is_new) {
    sums_.push_back({name, {values, 1}});
    sums_.back().second.values.of(Op::kId) = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  Sum& sum = sums_[place->second].second;
  ++sum.calls;
  sum.values.of(Op::kMin) = SmallerOf(sum.values.of(Op::kMin), values.of(Op::kMin));
  sum.values.of(Op::kMax) = LargerOf(sum.values.of(Op::kMax), values.of(Op::kMax));
  for (const Op op : {Op::kNorm, Op::kNans, Op::kInfs, Op::kMean, Op::kZeros}) {
    sum.values.of(op) += values.of(op);
  }
}

std::vector<std::pair<std::string, TensorValues>> CommunicationValues::Take() {
  std::vector<std::pair<std::string, TensorValues>> taken;
  for (auto& [name, sum] : sums_) {
    for (const Op op : {Op::kMean, Op::kZeros}) sum.values.of(op) /= static_cast<double>(sum.calls);
    taken.emplace_back(std::move(name), std::move(sum.values));
  }
  sums_.clear();
  places_.clear();
  return taken;
}

}  // namespace plumbline::watch

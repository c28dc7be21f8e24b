#include "capture/gradient_places.h"

#include <utility>

namespace plumbline::capture {

GradientPlaces::GradientPlaces(const std::vector<GradientEdge>& edges,
                               std::vector<SeenGradient> gradients)
    : edges_(edges), gradients_(std::move(gradients)) {
  FindRanges();
}

bool GradientPlaces::Fits(size_t gradient, size_t edge) const {
  const GradientEdge& known = edges_[edge];
  if (!known.is_there) return false;
  const SeenGradient& seen = gradients_[gradient];
  return seen.is_none || !known.shape || seen.shape == known.shape;
}

void GradientPlaces::FindRanges() {
  const size_t count = gradients_.size();
  first_.resize(count);
  last_.resize(count);
  size_t from = 0;
  for (size_t i = 0; i < count; ++i, ++from) {
    while (from < edges_.size() && !Fits(i, from)) ++from;
    if (from == edges_.size()) {
      has_places_ = false;
      return;
    }
    first_[i] = from;
  }
  size_t end = edges_.size();
  for (size_t i = count; i-- > 0;) {
    while (!Fits(i, end - 1)) --end;  // ends at first_[i] at the latest
    last_[i] = --end;
  }
}

GradientPlaces::Answer GradientPlaces::At(size_t edge, size_t* gradient) const {
  if (!has_places_) return Answer::kUnknown;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (edge < first_[i] || edge > last_[i] || !Fits(i, edge)) continue;
    *gradient = i;
    return first_[i] == last_[i] ? Answer::kFound : Answer::kUnknown;
  }
  return Answer::kNone;
}

}  // namespace plumbline::capture

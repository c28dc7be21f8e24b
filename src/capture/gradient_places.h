// Which input of an autograd node each gradient belongs to.

#ifndef PLUMBLINE_CAPTURE_GRADIENT_PLACES_H_
#define PLUMBLINE_CAPTURE_GRADIENT_PLACES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "plumbline/tensor.h"

namespace plumbline::capture {

// What flows along one edge of a node.
struct GradientEdge {
  bool is_there = false;       // there is a node at its end
  std::optional<Shape> shape;  // nothing where the framework does not say
};

// One of the gradients that a hook of the node got.
struct SeenGradient {
  bool is_none = false;
  std::optional<Shape> shape;  // nothing: it does not tell
};

// The gradients of a node's inputs, where there are fewer than edges: the node of a function that
// MindSpore compiled (jit) has those alone that somebody wants, in the order of the edges. Which
// edge each belongs to follows from the shapes, as far as they tell.
class GradientPlaces {
 public:
  GradientPlaces(const std::vector<GradientEdge>& edges, std::vector<SeenGradient> gradients);

  // Where the gradient along an edge is.
  enum class Answer : uint8_t {
    kFound,   // `*gradient` is its position
    kNone,    // none flows
    kUnknown  // cannot be told
  };
  [[nodiscard]] Answer At(size_t edge, size_t* gradient) const;

 private:
  [[nodiscard]] bool Fits(size_t gradient, size_t edge) const;
  void FindRanges();

  const std::vector<GradientEdge>& edges_;
  std::vector<SeenGradient> gradients_;
  bool has_places_ = true;
  // The first and the last edge that each gradient may belong to.
  std::vector<size_t> first_, last_;
};

}  // namespace plumbline::capture

#endif  // PLUMBLINE_CAPTURE_GRADIENT_PLACES_H_

// Which input of an autograd node each gradient belongs to.

#ifndef PLUMBLINE_PYTHON_BINDINGS_GRADIENT_PLACES_H_
#define PLUMBLINE_PYTHON_BINDINGS_GRADIENT_PLACES_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace plumbline::python {

// The shapes of what flows along the edges of a node; nothing where there is no edge, or the
// framework does not say. Refers to no node. Requires the interpreter lock.
class EdgeShapes {
 public:
  EdgeShapes() = default;
  // `edges`: a tuple of (node or None, number), as `next_functions` of MindSpore's nodes.
  explicit EdgeShapes(PyObject* edges);

 private:
  friend class GradientPlaces;
  struct Edge {
    bool is_there = false;
    std::optional<std::vector<int64_t>> shape;
  };
  std::vector<Edge> edges_;
};

// The gradients of a node's inputs, as a hook of the node gets them. Most nodes have one for each
// edge, or None. The node of a function that MindSpore compiled (jit) has those alone that somebody
// wants, in the order of the edges; which edge each belongs to follows from the shapes, as far as
// they tell. Borrows both arguments. Requires the interpreter lock.
class GradientPlaces {
 public:
  GradientPlaces(const EdgeShapes& shapes, PyObject* gradients);

  // The gradient along an edge, borrowed; Py_None when none flows. Null: cannot be told.
  [[nodiscard]] PyObject* At(size_t edge) const;

 private:
  [[nodiscard]] bool Fits(size_t gradient, size_t edge) const;
  void FindRanges();

  const EdgeShapes& shapes_;
  PyObject* gradients_;
  size_t count_;  // of gradients
  bool is_short_;
  bool has_places_ = true;
  // The first and the last edge that each gradient may belong to, where there are too few.
  std::vector<size_t> first_, last_;
};

}  // namespace plumbline::python

#endif  // PLUMBLINE_PYTHON_BINDINGS_GRADIENT_PLACES_H_

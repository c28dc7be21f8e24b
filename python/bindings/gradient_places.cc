#include "gradient_places.h"

#include "callback.h"

namespace plumbline::python {
namespace {

// A sequence of integers; nothing for something else.
std::optional<std::vector<int64_t>> ShapeOf(PyObject* owner) {
  static PyObject* const name = PyUnicode_InternFromString("shape");
  PyObject* sizes = owner == nullptr ? nullptr : PyObject_GetAttr(owner, name);
  std::optional<std::vector<int64_t>> shape;
  if (sizes != nullptr && (PyTuple_Check(sizes) || PyList_Check(sizes))) {
    shape.emplace();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sizes); ++i) {
      shape->push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(sizes, i)));
    }
  }
  Py_XDECREF(sizes);
  if (PyErr_Occurred() == nullptr) return shape;
  DropError();
  return std::nullopt;
}

// What a node expects as gradient of its output `number`.
std::optional<std::vector<int64_t>> ShapeAt(PyObject* node, long long number) {
  static PyObject* const name = PyUnicode_InternFromString("_input_metadata");
  PyObject* all = PyObject_GetAttr(node, name);
  std::optional<std::vector<int64_t>> shape;
  if (all != nullptr && PyTuple_Check(all) && number >= 0 && number < PyTuple_GET_SIZE(all)) {
    shape = ShapeOf(PyTuple_GET_ITEM(all, number));
  }
  Py_XDECREF(all);
  if (PyErr_Occurred() != nullptr) DropError();
  return shape;
}

}  // namespace

EdgeShapes::EdgeShapes(PyObject* edges) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges); ++i) {
    PyObject* edge = PyTuple_GET_ITEM(edges, i);
    PyObject* node = PyTuple_GET_ITEM(edge, 0);
    Edge& known = edges_.emplace_back();
    known.is_there = node != Py_None;
    if (!known.is_there) continue;
    known.shape = ShapeAt(node, PyLong_AsLongLong(PyTuple_GET_ITEM(edge, 1)));
  }
}

GradientPlaces::GradientPlaces(const EdgeShapes& shapes, PyObject* gradients)
    : shapes_(shapes),
      gradients_(gradients),
      count_(static_cast<size_t>(PyTuple_GET_SIZE(gradients))),
      is_short_(count_ < shapes.edges_.size()) {
  if (is_short_) FindRanges();
}

bool GradientPlaces::Fits(size_t gradient, size_t edge) const {
  const EdgeShapes::Edge& known = shapes_.edges_[edge];
  if (!known.is_there) return false;
  PyObject* value = PyTuple_GET_ITEM(gradients_, static_cast<Py_ssize_t>(gradient));
  return value == Py_None || !known.shape || ShapeOf(value) == known.shape;
}

void GradientPlaces::FindRanges() {
  const size_t edges = shapes_.edges_.size();
  first_.resize(count_);
  last_.resize(count_);
  size_t from = 0;
  for (size_t i = 0; i < count_; ++i, ++from) {
    while (from < edges && !Fits(i, from)) ++from;
    if (from == edges) {
      has_places_ = false;
      return;
    }
    first_[i] = from;
  }
  size_t end = edges;
  for (size_t i = count_; i-- > 0;) {
    while (!Fits(i, end - 1)) --end;  // ends at first_[i] at the latest
    last_[i] = --end;
  }
}

PyObject* GradientPlaces::At(size_t edge) const {
  if (!is_short_) {
    return edge < count_ ? PyTuple_GET_ITEM(gradients_, static_cast<Py_ssize_t>(edge)) : Py_None;
  }
  if (!has_places_) return nullptr;
  for (size_t i = 0; i < count_; ++i) {
    if (edge < first_[i] || edge > last_[i] || !Fits(i, edge)) continue;
    if (first_[i] != last_[i]) return nullptr;
    return PyTuple_GET_ITEM(gradients_, static_cast<Py_ssize_t>(i));
  }
  return Py_None;
}

}  // namespace plumbline::python

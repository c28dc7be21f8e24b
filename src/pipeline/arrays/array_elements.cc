#include "pipeline/arrays/array_elements.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>
#include <utility>

#include "tensor/element_value.h"

namespace plumbline {
namespace {

const std::byte* AddressOf(const TensorView& view, size_t i) {
  return view.data + i * InfoOf(view.dtype).size_bytes;
}

struct ToValue {
  template <class T>
  long double operator()(T value) const {
    return static_cast<long double>(value);
  }
  template <class T>
  long double operator()(T real, T imaginary) const {
    return std::hypot(static_cast<long double>(real), static_cast<long double>(imaginary));
  }
};

struct ToParts {
  using Parts = std::pair<long double, long double>;
  template <class T>
  Parts operator()(T value) const {
    return {static_cast<long double>(value), 0};
  }
  template <class T>
  Parts operator()(T real, T imaginary) const {
    return {static_cast<long double>(real), static_cast<long double>(imaginary)};
  }
};

struct ToText {
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  template <class T>
  std::string operator()(T value) const {
    if constexpr (sizeof(T) == 1) return fmt::format("{}", static_cast<int>(value));
    std::string text = fmt::format("{}", value);
    const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
    return std::is_floating_point_v<T> && is_whole ? text + ".0" : text;
  }
  template <class T>
  std::string operator()(T real, T imaginary) const {
    return fmt::format("({}{:+}j)", real, imaginary);
  }
};

}  // namespace

long double ElementValue(const TensorView& view, size_t i) {
  return VisitElement(view.dtype, AddressOf(view, i), ToValue());
}

long double ElementDistance(const TensorView& one, const TensorView& other, size_t i) {
  const auto [x, x_imaginary] = VisitElement(one.dtype, AddressOf(one, i), ToParts());
  const auto [y, y_imaginary] = VisitElement(other.dtype, AddressOf(other, i), ToParts());
  const long double real = x == y ? 0 : std::abs(x - y);
  if (x_imaginary == y_imaginary) return real;
  return std::hypot(real, x_imaginary - y_imaginary);
}

std::string ElementText(const TensorView& view, size_t i) {
  return VisitElement(view.dtype, AddressOf(view, i), ToText());
}

}  // namespace plumbline

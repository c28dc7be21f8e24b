#include "pipeline/arrays/array_elements.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

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

std::string ElementText(const TensorView& view, size_t i) {
  return VisitElement(view.dtype, AddressOf(view, i), ToText());
}

}  // namespace plumbline

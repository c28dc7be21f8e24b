// JSON texts of answers, without blanks: NaN and infinities are the texts "nan", "inf" and "-inf",
// integers above 2^53 texts of their digits, as a page of a browser can tell them apart.

#ifndef PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_
#define PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace plumbline::view {

// Built piece by piece; inside an object every value is preceded by Key(). Calls chain.
// Single-threaded.
class JsonAnswer {
 public:
  JsonAnswer& Open(char bracket);  // '{' or '['
  JsonAnswer& Close(char bracket);
  JsonAnswer& Key(std::string_view key);

  JsonAnswer& Null();
  JsonAnswer& Truth(bool truth);
  JsonAnswer& Text(std::string_view text);
  // The shortest digits that read back to the same double.
  JsonAnswer& Number(double number);
  // With five digits, enough for errors in a list; NaN is null: there is none.
  JsonAnswer& Error(float number);
  // A value that is JSON already.
  JsonAnswer& Raw(std::string_view json);
  template <std::integral T>
  JsonAnswer& Integer(T number) {
    constexpr uint64_t kExact = uint64_t{1} << 53;
    const bool is_negative = std::cmp_less(number, 0);
    const auto bits = static_cast<uint64_t>(number);
    AppendInteger(is_negative ? 0 - bits : bits, is_negative,
                  (is_negative ? 0 - bits : bits) > kExact);
    return *this;
  }
  // A value by its type: of a float an Error(), of an optional or a variant what it holds or null,
  // of a range a list, of a function whatever it writes.
  template <class T>
  JsonAnswer& Put(const T& value);
  // Members of the object that is open: keys, each with its value behind it.
  template <class T, class... More>
  JsonAnswer& Members(std::string_view key, const T& value, const More&... more) {
    Key(key).Put(value);
    if constexpr (sizeof...(more) > 0) Members(more...);
    return *this;
  }
  template <class... Pairs>
  JsonAnswer& Object(const Pairs&... pairs) {
    return Open('{').Members(pairs...).Close('}');
  }
  // A list with what `add` writes for each element.
  template <class Range, class Add>
  JsonAnswer& List(const Range& range, const Add& add) {
    Open('[');
    for (const auto& element : range) add(element);
    return Close(']');
  }

  [[nodiscard]] size_t size() const { return text_.size(); }  // bytes so far
  // The text so far, which is a document when all brackets are closed.
  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  void Separate();
  void AppendInteger(uint64_t magnitude, bool is_negative, bool in_quotes);

  std::string text_;
  bool is_first_ = true;  // nothing in the innermost container, or a key stands before
};

template <class T>
JsonAnswer& JsonAnswer::Put(const T& value) {
  if constexpr (std::is_same_v<T, std::monostate> || std::is_null_pointer_v<T>) {
    return Null();
  } else if constexpr (std::is_same_v<T, bool>) {
    return Truth(value);
  } else if constexpr (std::is_integral_v<T>) {
    return Integer(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return Number(value);
  } else if constexpr (std::is_same_v<T, float>) {
    return Error(value);
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return Text(value);
  } else if constexpr (std::is_invocable_v<const T&>) {
    value();
    return *this;
  } else if constexpr (requires { value.has_value(); }) {
    return value ? Put(*value) : Null();
  } else if constexpr (requires { value.index(); }) {
    return std::visit([this](const auto& held) -> JsonAnswer& { return this->Put(held); }, value);
  } else {
    return List(value, [this](const auto& element) { this->Put(element); });
  }
}

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_

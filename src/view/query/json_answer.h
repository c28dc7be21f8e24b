// JSON texts of answers, without blanks: NaN and infinities are the texts "nan", "inf" and "-inf",
// integers above 2^53 texts of their digits, as a page of a browser can tell them apart.

#ifndef PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_
#define PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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
  // Lists.
  template <class List>
  JsonAnswer& Texts(const List& texts) {
    Open('[');
    for (const auto& text : texts) Text(text);
    return Close(']');
  }
  void Numbers(std::span<const double> numbers);
  template <std::integral T>
  void Integers(std::span<const T> numbers) {
    Open('[');
    for (const T number : numbers) Integer(number);
    Close(']');
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

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_

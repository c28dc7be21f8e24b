// JSON texts of answers, without blanks: NaN and infinities are the texts "nan", "inf" and "-inf",
// integers above 2^53 texts of their digits, as a page of a browser can tell them apart.

#ifndef PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_
#define PLUMBLINE_VIEW_QUERY_JSON_ANSWER_H_

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace plumbline::view {

// Built piece by piece; inside an object every value is preceded by Key(). Single-threaded.
class JsonAnswer {
 public:
  void Open(char bracket);  // '{' or '['
  void Close(char bracket);
  JsonAnswer& Key(std::string_view key);

  void Null();
  void Truth(bool truth);
  void Text(std::string_view text);
  // The shortest digits that read back to the same double.
  void Number(double number);
  template <std::integral T>
  void Integer(T number) {
    constexpr uint64_t kExact = uint64_t{1} << 53;
    const bool is_negative = std::cmp_less(number, 0);
    const auto bits = static_cast<uint64_t>(number);
    AppendInteger(is_negative ? 0 - bits : bits, is_negative,
                  (is_negative ? 0 - bits : bits) > kExact);
  }
  // Lists.
  void Numbers(std::span<const double> numbers);
  template <std::integral T>
  void Integers(std::span<const T> numbers) {
    Open('[');
    for (const T number : numbers) Integer(number);
    Close(']');
  }

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

#include "base/number_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace plumbline {
namespace {

// A double in scientific notation: at most 17 digits, point, sign, exponent.
constexpr size_t kMaxChars = 32;
// Python's repr switches to scientific notation outside these decimal exponents.
constexpr int kMinFixedExponent = -4, kMaxFixedExponent = 15;

// Shortest digits d.ddd x 10^exponent of a finite value.
struct Decimal {
  std::array<char, kMaxChars> digits;
  size_t count = 0;
  int exponent = 0;
};

Decimal ShortestDigits(double magnitude) {
  std::array<char, kMaxChars> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), magnitude,
                                 std::chars_format::scientific)
                       .ptr;
  Decimal decimal;
  const char* p = text.data();
  for (; *p != 'e'; ++p) {
    if (*p != '.') decimal.digits[decimal.count++] = *p;
  }
  ++p;
  if (*p == '+') ++p;
  std::from_chars(p, end, decimal.exponent);
  return decimal;
}

char* AppendFixed(const Decimal& decimal, char* out) {
  int point = decimal.exponent + 1;  // digits before the point
  if (point <= 0) {
    *out++ = '0';
    *out++ = '.';
    for (; point < 0; ++point) *out++ = '0';
    for (size_t i = 0; i < decimal.count; ++i) *out++ = decimal.digits[i];
    return out;
  }
  const auto whole = static_cast<size_t>(point);
  for (size_t i = 0; i < whole; ++i) *out++ = i < decimal.count ? decimal.digits[i] : '0';
  *out++ = '.';
  if (decimal.count <= whole) *out++ = '0';
  for (size_t i = whole; i < decimal.count; ++i) *out++ = decimal.digits[i];
  return out;
}

char* AppendScientific(const Decimal& decimal, char* out) {
  *out++ = decimal.digits[0];
  if (decimal.count > 1) *out++ = '.';
  for (size_t i = 1; i < decimal.count; ++i) *out++ = decimal.digits[i];
  *out++ = 'e';
  *out++ = decimal.exponent < 0 ? '-' : '+';
  const int exponent = std::abs(decimal.exponent);
  if (exponent < 10) *out++ = '0';
  return std::to_chars(out, out + 3, exponent).ptr;
}

void AppendFinite(double value, std::string& out) {
  std::array<char, 2 * kMaxChars> text;
  char* p = text.data();
  if (std::signbit(value)) *p++ = '-';
  const Decimal decimal = ShortestDigits(std::fabs(value));
  const bool fixed = decimal.exponent >= kMinFixedExponent && decimal.exponent <= kMaxFixedExponent;
  p = fixed ? AppendFixed(decimal, p) : AppendScientific(decimal, p);
  out.append(text.data(), static_cast<size_t>(p - text.data()));
}

void Append(double value, std::array<std::string_view, 3> special, std::string& out) {
  if (std::isfinite(value)) return AppendFinite(value, out);
  if (std::isnan(value)) {
    out += special[0];
  } else {
    out += special[value < 0 ? 2 : 1];
  }
}

}  // namespace

void AppendPythonFloat(double value, std::string& out) {
  Append(value, {"nan", "inf", "-inf"}, out);
}

std::string PythonFloat(double value) {
  std::string text;
  AppendPythonFloat(value, text);
  return text;
}

void AppendJsonFloat(double value, std::string& out) {
  Append(value, {"NaN", "Infinity", "-Infinity"}, out);
}

std::string CountText(uint64_t count, std::string_view noun, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", count, noun) : fmt::format("{} {}", count, plural);
}

}  // namespace plumbline

#include "base/text/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

namespace plumbline {
namespace {

// Python's repr switches to scientific notation outside these decimal exponents.
constexpr int kMinFixedExponent = -4, kMaxFixedExponent = 15;
// The digits of a finite value, 17 of them, in the order in which memory holds the characters:
// words that are stored at once, at the place and again behind the point, save copies of single
// bytes.
struct Decimal {
  char first;
  uint64_t next, last;  // eight characters each
  int count;            // of the 17, without the zeros at the end
  int exponent;         // d.ddd x 10^exponent
};

constexpr int kMaxDigits = 17;
constexpr uint64_t kEightDigits = 100'000'000;

constexpr auto kPowersOfTen = [] {
  std::array<uint64_t, kMaxDigits + 1> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

// As doubles: up to 22 they are exact.
constexpr auto kRealPowersOfTen = [] {
  std::array<double, 23> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

int DigitsIn(uint64_t number) {
  // Nearly all have 16 or 17: the comparisons from above end at once.
  int count = kMaxDigits;
  while (count > 1 && number < kPowersOfTen[static_cast<size_t>(count) - 1]) --count;
  return count;
}

// Eight characters of a number below 10^8: halves, quarters and digits by multiplication, all at
// once in the lanes of one word.
uint64_t EightCharacters(uint64_t number) {
  const uint64_t halves = number / 10000 | (number % 10000) << 32;
  const uint64_t hundreds = (halves * 10486 >> 20) & 0x7F0000007F;
  const uint64_t quarters = hundreds | (halves - 100 * hundreds) << 16;
  const uint64_t tens = (quarters * 103 >> 10) & 0x000F000F000F000F;
  return (tens | (quarters - 10 * tens) << 8) + 0x3030303030303030;
}

// The shortest digits by Dragonbox, from the part of fmt that is not documented, in half the time
// of std::to_chars: results of a million rows are mostly numbers.
Decimal ShortestDigits(double magnitude) {
  const auto found = fmt::detail::dragonbox::to_decimal(magnitude);
  const int count = DigitsIn(found.significand);
  const uint64_t scaled = found.significand * kPowersOfTen[static_cast<size_t>(kMaxDigits - count)];
  const uint64_t rest = scaled % (kEightDigits * kEightDigits);
  return {static_cast<char>('0' + scaled / (kEightDigits * kEightDigits)),
          EightCharacters(rest / kEightDigits), EightCharacters(rest % kEightDigits), count,
          found.exponent + count - 1};
}

void Store(uint64_t characters, char* out) { std::memcpy(out, &characters, sizeof(characters)); }

void StoreDigits(const Decimal& decimal, char* out) {
  *out = decimal.first;
  Store(decimal.next, out + 1);
  Store(decimal.last, out + 9);
}

char* AppendFixed(const Decimal& decimal, char* out) {
  if (decimal.exponent < 0) {
    std::memcpy(out, "0.000", 5);
    out += 1 - decimal.exponent;
    StoreDigits(decimal, out);
    return out + decimal.count;
  }
  StoreDigits(decimal, out);
  const int whole = decimal.exponent + 1;  // digits before the point
  out[whole] = '.';
  if (whole <= 8) {
    Store(decimal.next >> (8 * (whole - 1)), out + whole + 1);
    Store(decimal.last, out + 10);
  } else {
    Store(decimal.last >> (8 * (whole - 9)), out + whole + 1);
  }
  return out + std::max(decimal.count, whole + 1) + 1;
}

// "e-05" behind the digits.
char* StoreExponent(int exponent, char* out) {
  *out++ = 'e';
  *out++ = exponent < 0 ? '-' : '+';
  const int magnitude = std::abs(exponent);
  if (magnitude < 10) *out++ = '0';
  return std::to_chars(out, out + 3, magnitude).ptr;
}

char* AppendScientific(const Decimal& decimal, char* out) {
  out[0] = decimal.first;
  out[1] = '.';
  Store(decimal.next, out + 2);
  Store(decimal.last, out + 10);
  out += decimal.count == 1 ? 1 : decimal.count + 1;
  return StoreExponent(decimal.exponent, out);
}

void AppendFinite(double value, std::string& out) {
  constexpr size_t kMaxChars = 32;
  const size_t before = out.size();
  out.resize(before + kMaxChars);
  char* p = out.data() + before;
  if (std::signbit(value)) *p++ = '-';
  const Decimal decimal = ShortestDigits(std::fabs(value));
  const bool fixed = decimal.exponent >= kMinFixedExponent && decimal.exponent <= kMaxFixedExponent;
  p = fixed ? AppendFixed(decimal, p) : AppendScientific(decimal, p);
  out.resize(static_cast<size_t>(p - out.data()));
}

// A magnitude of few digits: significand x 10^(exponent + 1 - digits).
struct Rounded {
  uint64_t significand;
  int exponent;
};

constexpr int kMostRoundedDigits = 9;

// Nothing where one product or quotient by a power of ten does not tell how to round.
std::optional<Rounded> RoundedTo(int digits, double magnitude) {
  constexpr double kLeast = 1e-12, kMost = 1e15;  // the powers are doubles themselves
  // Eight times the error of a result below 2^30: nearer to the middle of two it is not told.
  constexpr double kDoubt = 0x1p-20;
  if (digits > kMostRoundedDigits || !(magnitude >= kLeast && magnitude < kMost)) return {};
  // The binary exponent by log10(2): the decimal one, or one less.
  const auto binary = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023;
  int exponent = binary * 1233 >> 12;
  const auto scaled_to = [magnitude](int power) {
    return power >= 0 ? magnitude * kRealPowersOfTen[static_cast<size_t>(power)]
                      : magnitude / kRealPowersOfTen[static_cast<size_t>(-power)];
  };
  const uint64_t most = kPowersOfTen[static_cast<size_t>(digits)];
  double scaled = scaled_to(digits - 1 - exponent);
  if (scaled >= static_cast<double>(most)) scaled = scaled_to(digits - 1 - ++exponent);
  auto significand = static_cast<uint64_t>(scaled + 0.5);
  if (std::fabs(scaled - static_cast<double>(significand)) >= 0.5 - kDoubt) return {};
  if (significand == most) {
    significand /= 10;
    ++exponent;
  }
  return Rounded{significand, exponent};
}

void AppendRounded(const Rounded& rounded, int digits, std::string& out) {
  std::array<char, kMostRoundedDigits> text;
  uint64_t rest = rounded.significand;
  for (int i = digits; i-- > 0; rest /= 10) {
    text[static_cast<size_t>(i)] = static_cast<char>('0' + rest % 10);
  }
  int count = digits;  // without the zeros at the end
  while (count > 1 && text[static_cast<size_t>(count) - 1] == '0') --count;
  std::array<char, 24> made;
  char* at = made.data();
  const auto store = [&](int from, int to) { at = std::copy(&text[0] + from, &text[0] + to, at); };
  const bool fixed = rounded.exponent >= kMinFixedExponent && rounded.exponent < digits;
  if (fixed && rounded.exponent < 0) {
    at = std::fill_n(at, 1 - rounded.exponent, '0');
    made[1] = '.';
    store(0, count);
  } else {
    const int whole = fixed ? rounded.exponent + 1 : 1;
    store(0, whole);
    if (count > whole) *at++ = '.';
    if (count > whole) store(whole, count);
  }
  if (!fixed) at = StoreExponent(rounded.exponent, at);
  out.append(made.data(), at);
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

void AppendFixed(double value, int decimals, std::string& out) {
  constexpr double kMostScaled = 0x1p+32;
  // Twice the error of a product below 2^32: nearer to the middle of two texts fmt decides.
  constexpr double kDoubt = 0x1p-20;
  const uint64_t power = kPowersOfTen[static_cast<size_t>(decimals)];
  const double scaled = std::fabs(value) * static_cast<double>(power);
  if (scaled < kMostScaled) {
    const auto rounded = static_cast<uint64_t>(scaled + 0.5);
    if (std::fabs(scaled - static_cast<double>(rounded)) < 0.5 - kDoubt) {
      constexpr size_t kRoom = 24;
      char text[kRoom];
      char* at = text + kRoom;
      uint64_t rest = rounded;
      for (int i = 0; i < decimals; ++i, rest /= 10) *--at = static_cast<char>('0' + rest % 10);
      if (decimals > 0) *--at = '.';
      do {
        *--at = static_cast<char>('0' + rest % 10);
        rest /= 10;
      } while (rest != 0);
      if (std::signbit(value)) *--at = '-';
      out.append(at, text + kRoom);
      return;
    }
  }
  fmt::format_to(std::back_inserter(out), "{:.{}f}", value, decimals);
}

void AppendGeneral(double value, int digits, std::string& out) {
  if (const auto rounded = RoundedTo(digits, std::fabs(value))) {
    if (value < 0) out += '-';
    return AppendRounded(*rounded, digits, out);
  }
  if (!std::isfinite(value)) return AppendPythonFloat(value, out);
  constexpr size_t kRoom = 32;
  std::array<char, kRoom> text;
  const auto end =
      std::to_chars(text.begin(), text.end(), value, std::chars_format::general, digits).ptr;
  out.append(text.begin(), end);
}

std::string CountText(uint64_t count, std::string_view noun, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", count, noun) : fmt::format("{} {}", count, plural);
}

}  // namespace plumbline

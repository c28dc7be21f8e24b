#include "config/setting_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumbline::settings {
namespace {

constexpr int64_t kMaxNumber = 1'000'000;  // largest rank or step, and longest list of them

bool IsDecimal(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A value of at most kMaxNumber; larger ones, of any length, give kMaxNumber + 1.
int64_t DecimalValue(std::string_view digits) {
  int64_t value = 0;
  for (const char c : digits) value = std::min(value * 10 + (c - '0'), kMaxNumber + 1);
  return value;
}

Result<std::pair<int64_t, int64_t>> ParseRange(std::string_view field, const Json& item) {
  const auto& text = *item.get_ptr<const std::string*>();
  const std::string_view view = text;
  const size_t hyphen = view.find('-');
  if (hyphen == std::string_view::npos || view.find('-', hyphen + 1) != std::string_view::npos) {
    return Invalid(field, item, "an integer or a range such as \"3-5\"");
  }
  const std::string_view left = view.substr(0, hyphen);
  const std::string_view right = view.substr(hyphen + 1);
  if (!IsDecimal(left) || !IsDecimal(right)) {
    return Invalid(field, item, "a range with a decimal number on both sides of the hyphen");
  }
  const auto range = std::pair(DecimalValue(left), DecimalValue(right));
  if (range.first > kMaxNumber || range.second > kMaxNumber) {
    return Invalid(field, item, "range boundaries from 0 to 1000000");
  }
  if (range.first > range.second) {
    return Invalid(field, item, "a left boundary that is not greater than the right one");
  }
  return range;
}

// Finds where a text stops being JSON; the DOM parser reports errors without a place.
class ErrorFinder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    position_ = position > 0 ? position - 1 : 0;  // it counts from 1
    return false;
  }
  [[nodiscard]] size_t position() const { return position_; }

 private:
  size_t position_ = 0;
};

}  // namespace

Error Invalid(std::string_view field, const Json& value, std::string_view expected) {
  constexpr size_t kShownBytes = 60;
  std::string shown = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  // The parser turns integers that no 64 bits hold into the nearest double.
  constexpr double kFirstBeyond = 9223372036854775808.0;
  const bool is_beyond = value.is_number_float() && std::abs(value.get<double>()) >= kFirstBeyond;
  if (is_beyond) shown = fmt::format("about {}, beyond 64 bits", shown);
  if (shown.size() > kShownBytes) shown = shown.substr(0, kShownBytes) + "...";
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: is {} (expected {})", field, shown, expected));
}

Error NotBuilt(std::string_view field, std::string_view value, std::string_view expected) {
  return Error(ErrorCode::kUnsupported,
               fmt::format("{}: \"{}\" is not built yet. Use {}", field, value, expected));
}

Result<std::string> AsString(std::string_view field, const Json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr) return Invalid(field, value, "a string");
  return *text;
}

Result<bool> AsBool(std::string_view field, const Json& value) {
  const auto* truth = value.get_ptr<const bool*>();
  if (truth == nullptr) return Invalid(field, value, "true or false");
  return *truth;
}

Result<std::optional<int64_t>> AsLimit(std::string_view field, const Json& value) {
  constexpr std::string_view kExpected = "-1 (no limit) or an integer of at least 1";
  if (!value.is_number_integer()) return Invalid(field, value, kExpected);
  // Numbers beyond int64_t are kept unsigned.
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) {
    return Invalid(field, value, kExpected);
  }
  const auto number = value.get<int64_t>();
  if (number == -1) return std::optional<int64_t>();
  if (number < 1) return Invalid(field, value, kExpected);
  return std::optional<int64_t>(number);
}

Result<uint64_t> AsByteCount(std::string_view field, const Json& value) {
  if (!value.is_number_unsigned()) return Invalid(field, value, "a number of bytes, 0 or more");
  return value.get<uint64_t>();
}

Result<std::vector<std::string>> AsStringList(std::string_view field, const Json& value) {
  std::vector<std::string> list;
  if (!value.is_array()) return Invalid(field, value, "a list of strings");
  for (const Json& item : value) {
    const auto* text = item.get_ptr<const std::string*>();
    if (text == nullptr) return Invalid(field, value, "a list of strings");
    list.push_back(*text);
  }
  return list;
}

Result<std::string> OneOf(std::string_view field, const Json& value,
                          std::span<const std::string_view> allowed) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text != nullptr && std::ranges::count(allowed, *text) > 0) return *text;
  return Invalid(field, value, fmt::format("one of {}", fmt::join(allowed, ", ")));
}

Result<std::vector<int64_t>> NumberList(std::string_view field, const Json& value) {
  if (value.is_null()) return std::vector<int64_t>();
  if (!value.is_array()) return Invalid(field, value, "a list such as [0, \"2-5\"]");
  if (value.size() > static_cast<size_t>(kMaxNumber)) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: has {} elements (expected at most {})", field, value.size(), kMaxNumber));
  }
  std::vector<int64_t> numbers;
  for (const Json& item : value) {
    if (item.is_string()) {
      PL_TRY_ASSIGN(const auto range, ParseRange(field, item));
      for (int64_t n = range.first; n <= range.second; ++n) numbers.push_back(n);
      // Overlapping long ranges must not add up to unbounded memory.
      if (numbers.size() > 4 * static_cast<size_t>(kMaxNumber)) {
        std::ranges::sort(numbers);
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      }
      continue;
    }
    if (!item.is_number_integer()) {
      return Invalid(field, item, "every element to be an integer or a range such as \"3-5\"");
    }
    const bool huge = item.is_number_unsigned() && item.get<uint64_t>() > uint64_t{kMaxNumber};
    if (huge || item.get<int64_t>() < 0) {
      return Invalid(field, item, "every element to be between 0 and 1000000");
    }
    numbers.push_back(item.get<int64_t>());
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Result<Json> ParseJson(std::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("not valid JSON at byte {} of {} (expected strict JSON: no comments, no "
                           "trailing commas)",
                           FindJsonError(text).value_or(0), text.size()));
}

std::optional<size_t> FindJsonError(std::string_view text) {
  ErrorFinder finder;
  if (Json::sax_parse(text.begin(), text.end(), &finder)) return std::nullopt;
  return finder.position();
}

}  // namespace plumbline::settings

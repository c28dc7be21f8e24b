#include "base/text/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"

namespace plumbline::json {

namespace {

constexpr uint32_t kHighSurrogate = 0xD800, kLowSurrogate = 0xDC00, kAfterSurrogates = 0xE000;
// Integers of at most this many digits fit int64_t without a check.
constexpr std::ptrdiff_t kSafeDigits = 18;

// Code point at the front of `text` and its length in bytes; length 0 if it is not UTF-8. Lone
// surrogates are accepted on request.
struct Decoded {
  uint32_t code_point;
  size_t length;
};

Decoded DecodeUtf8(std::string_view text, bool allow_surrogates) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // C0, C1 and F5 to FF never occur; 80 to BF only continue.
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {0, 0};
  uint32_t code_point = lead & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!IsUtf8Continuation(text[i])) return {0, 0};
    code_point = code_point << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  const bool overlong = (length == 3 && code_point < 0x800) ||
                        (length == 4 && (code_point < 0x10000 || code_point > 0x10FFFF));
  const bool surrogate = code_point >= kHighSurrogate && code_point < kAfterSurrogates;
  if (overlong || (surrogate && !allow_surrogates)) return {0, 0};
  return {code_point, length};
}

void AppendUnit(uint32_t unit, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  const char text[] = {
      '\\',           'u', kHex[unit >> 12 & 15], kHex[unit >> 8 & 15], kHex[unit >> 4 & 15],
      kHex[unit & 15]};
  out.append(text, sizeof(text));
}

// True for bytes that stand for themselves between quotes.
bool IsPlain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

// Appends the escape of the character at the front of `text`; returns its length in bytes.
size_t AppendEscape(std::string_view text, std::string& out) {
  constexpr std::string_view kShort = "\"\\\n\r\t\b\f";
  constexpr std::string_view kLetters = "\"\\nrtbf";
  if (const size_t at = kShort.find(text[0]); at != std::string_view::npos) {
    out += '\\';
    out += kLetters[at];
    return 1;
  }
  const Decoded decoded = DecodeUtf8(text, /*allow_surrogates=*/true);
  if (decoded.length == 0) {
    AppendUnit(kLowSurrogate | static_cast<unsigned char>(text[0]), out);
    return 1;
  }
  if (decoded.code_point < 0x10000) {
    AppendUnit(decoded.code_point, out);
  } else {
    const uint32_t offset = decoded.code_point - 0x10000;
    AppendUnit(kHighSurrogate | offset >> 10, out);
    AppendUnit(kLowSurrogate | (offset & 0x3FF), out);
  }
  return decoded.length;
}

// Number of leading bytes of [at, end) that need no decoding inside a string, in steps of 8: bytes
// below 0x20, above 0x7F, quotes and backslashes stop the run.
const char* SkipPlainWords(const char* at, const char* end) {
  constexpr uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  while (end - at >= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    const uint64_t quotes = word ^ (kOnes * '"');
    const uint64_t slashes = word ^ (kOnes * '\\');
    // Top bits mark zero bytes of the xors, bytes below 0x20, and bytes above 0x7F; false marks
    // can only follow a true one.
    const uint64_t stops = ((quotes - kOnes) & ~quotes) | ((slashes - kOnes) & ~slashes) |
                           ((word - kOnes * 0x20) & ~word) | word;
    if ((stops & kTops) != 0) return at + std::countr_zero(stops & kTops) / 8;
    at += 8;
  }
  return at;
}

}  // namespace

void AppendString(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    out.append(text.data(), plain);
    text.remove_prefix(plain);
    if (!text.empty()) text.remove_prefix(AppendEscape(text, out));
  }
  out += '"';
}

Reader::Reader(std::string_view text, int max_depth)
    : begin_(text.data()),
      at_(text.data()),
      end_(text.data() + text.size()),
      max_depth_(max_depth) {
  if (text.starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
}

void Reader::Extend(std::string_view text) {
  at_ = text.data() + offset();
  begin_ = text.data();
  end_ = text.data() + text.size();
  // The mark is looked for where a text begins.
  if (at_ == begin_ && text.starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
}

bool Reader::Fail(std::string_view expected) {
  if (!failed()) {
    failure_ = at_ == end_ ? Failure::kTruncated : Failure::kSyntax;
    expected_ = expected;
  }
  return false;
}

Error Reader::error() const {
  switch (failure_) {
    case Failure::kTooDeep:
      return Error(ErrorCode::kUnsupported,
                   fmt::format("byte {}: nested deeper than {} levels", offset(), max_depth_));
    case Failure::kTruncated:
      return Error(ErrorCode::kCorrupt,
                   fmt::format("byte {}: the text ends early (expected {})", offset(), expected_));
    default:
      return Error(ErrorCode::kCorrupt,
                   fmt::format("byte {}: not JSON (expected {}, got {:#04x})", offset(), expected_,
                               static_cast<unsigned char>(*at_)));
  }
}

void Reader::SkipBlanks() {
  if (failed()) return;  // offset() must stay where the failure is
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
}

Kind Reader::Peek() {
  SkipBlanks();
  if (failed() || at_ == end_) return Kind::kNone;
  switch (*at_) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return end_ - at_ > 1 && at_[1] == 'a' ? Kind::kNumber : Kind::kNull;
    case 'N':
    case 'I':
    case 'i':
    case '-':
      return Kind::kNumber;
    default:
      return *at_ >= '0' && *at_ <= '9' ? Kind::kNumber : Kind::kNone;
  }
}

bool Reader::Literal(std::string_view word) {
  if (failed()) return false;
  for (const char c : word) {
    if (at_ == end_ || *at_ != c) return Fail(word);
    ++at_;
  }
  return true;
}

bool Reader::ReadNull() {
  SkipBlanks();
  return Literal("null");
}

bool Reader::ReadBool(bool& value) {
  SkipBlanks();
  value = at_ != end_ && *at_ == 't';
  return Literal(value ? "true" : "false");
}

bool Reader::Digits() {
  if (at_ == end_ || *at_ < '0' || *at_ > '9') return Fail("a digit");
  while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
  return true;
}

bool Reader::SpecialNumber(Number& value) {
  const bool negative = *at_ == '-';
  if (negative) ++at_;
  const char lead = at_ == end_ ? '\0' : *at_;
  if (lead == 'N' || lead == 'n') {
    value = std::numeric_limits<double>::quiet_NaN();
    return Literal(lead == 'N' ? "NaN" : "nan");
  }
  const double infinity = std::numeric_limits<double>::infinity();
  value = negative ? -infinity : infinity;
  return Literal(lead == 'i' ? "inf" : "Infinity");
}

bool Reader::FloatingNumber(const char* start, Number& value) {
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    if (!Digits()) return false;
  }
  bool negative_exponent = false;
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    negative_exponent = at_ != end_ && *at_ == '-';
    if (at_ != end_ && (*at_ == '-' || *at_ == '+')) ++at_;
    if (!Digits()) return false;
  }
  double number = 0;
  if (std::from_chars(start, at_, number).ec == std::errc::result_out_of_range) {
    // Python reads 1e400 as inf and 1e-400 as 0.0.
    number = negative_exponent ? 0.0 : std::numeric_limits<double>::infinity();
    if (*start == '-') number = -number;
  }
  value = number;
  return true;
}

bool Reader::ReadNumber(Number& value) {
  SkipBlanks();
  if (failed()) return false;
  if (at_ == end_) return Fail("a number");
  const char* const start = at_;
  const bool negative = *at_ == '-';
  const char* const digits = at_ + (negative ? 1 : 0);
  const char lead = digits == end_ ? '\0' : *digits;
  if (lead == 'N' || lead == 'n' || lead == 'I' || lead == 'i') return SpecialNumber(value);
  at_ = digits;
  if (!Digits()) return false;
  if (*digits == '0' && at_ - digits > 1) {
    at_ = digits + 1;
    return Fail("no digit after a leading zero");
  }
  if (at_ != end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E')) {
    return FloatingNumber(start, value);
  }
  if (at_ - digits <= kSafeDigits) {
    int64_t number = 0;
    for (const char* p = digits; p != at_; ++p) number = number * 10 + (*p - '0');
    value = negative ? -number : number;
    return true;
  }
  int64_t number = 0;
  if (std::from_chars(start, at_, number).ec == std::errc()) {
    value = number;
  } else {
    value = std::string_view(start, static_cast<size_t>(at_ - start));
  }
  return true;
}

bool Reader::ReadString(std::string_view& value) {
  SkipBlanks();
  if (failed()) return false;
  if (at_ == end_ || *at_ != '"') return Fail("a string");
  ++at_;
  const char* const start = at_;
  for (;;) {
    at_ = SkipPlainWords(at_, end_);
    if (at_ == end_) return Fail("the end of a string");
    if (*at_ == '"') {
      value = {start, static_cast<size_t>(at_ - start)};
      ++at_;
      return true;
    }
    if (*at_ == '\\') {
      if (!ReadEscaped(start)) return false;
      value = scratch_;
      return true;
    }
    if (!SkipUtf8()) return false;
  }
}

bool Reader::SkipUtf8() {
  if (static_cast<unsigned char>(*at_) < 0x20) return Fail("no control character in a string");
  const size_t length =
      DecodeUtf8({at_, static_cast<size_t>(end_ - at_)}, /*allow_surrogates=*/false).length;
  if (length == 0) return Fail("UTF-8");
  at_ += length;
  return true;
}

bool Reader::ReadEscaped(const char* start) {
  scratch_.assign(start, at_);
  for (;;) {
    const char* const run = at_;
    at_ = SkipPlainWords(at_, end_);
    while (at_ != end_ && *at_ != '"' && *at_ != '\\') {
      if (!SkipUtf8()) return false;
      at_ = SkipPlainWords(at_, end_);
    }
    scratch_.append(run, at_);
    if (at_ == end_) return Fail("the end of a string");
    if (*at_++ == '"') return true;
    if (!ReadEscape()) return false;
  }
}

bool Reader::ReadEscape() {
  if (at_ == end_) return Fail("an escape");
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
  if (const size_t at = kLetters.find(*at_); at != std::string_view::npos) {
    scratch_ += kMeaning[at];
    ++at_;
    return true;
  }
  if (*at_ != 'u') return Fail("an escape");
  ++at_;
  uint32_t unit;
  if (!ReadUnicode(unit)) return false;
  const bool high = unit >= kHighSurrogate && unit < kLowSurrogate;
  if (high && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
    const char* const after_high = at_;
    at_ += 2;
    uint32_t low;
    if (!ReadUnicode(low)) return false;
    if (low >= kLowSurrogate && low < kAfterSurrogates) {
      unit = 0x10000 + ((unit - kHighSurrogate) << 10) + (low - kLowSurrogate);
    } else {
      at_ = after_high;
    }
  }
  AppendUtf8(unit, scratch_);
  return true;
}

bool Reader::ReadUnicode(uint32_t& unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ == end_) return Fail("four hexadecimal digits");
    const char c = *at_;
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      unit = unit << 4 | static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      unit = unit << 4 | static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      return Fail("four hexadecimal digits");
    }
  }
  return true;
}

bool Reader::Open(char bracket, std::string_view expected) {
  SkipBlanks();
  if (failed()) return false;
  if (at_ == end_ || *at_ != bracket) return Fail(expected);
  if (depth_ == max_depth_) {
    failure_ = Failure::kTooDeep;
    return false;
  }
  ++at_;
  ++depth_;
  first_ = true;
  return true;
}

bool Reader::EnterObject() { return Open('{', "an object"); }
bool Reader::EnterArray() { return Open('[', "a list"); }

bool Reader::NextItem(char bracket, std::string_view expected) {
  SkipBlanks();
  if (failed()) return false;
  if (at_ == end_) return Fail(expected);
  if (*at_ == bracket) {
    ++at_;
    --depth_;
    first_ = false;
    return false;
  }
  if (!first_) {
    if (*at_ != ',') return Fail(expected);
    ++at_;
    SkipBlanks();
  }
  first_ = false;
  return true;
}

bool Reader::NextElement() { return NextItem(']', "a comma or ]"); }

bool Reader::NextMember(std::string_view& key) {
  if (!NextItem('}', "a comma or }")) return false;
  if (!ReadString(key)) return false;
  SkipBlanks();
  if (at_ == end_ || *at_ != ':') return Fail("a colon");
  ++at_;
  return true;
}

bool Reader::SkipValue() {
  std::string_view text;
  Number number;
  bool truth;
  switch (Peek()) {
    case Kind::kNull:
      return ReadNull();
    case Kind::kBool:
      return ReadBool(truth);
    case Kind::kNumber:
      return ReadNumber(number);
    case Kind::kString:
      return ReadString(text);
    case Kind::kArray:
      EnterArray();
      while (NextElement()) SkipValue();
      return !failed();
    case Kind::kObject:
      EnterObject();
      while (NextMember(text)) SkipValue();
      return !failed();
    case Kind::kNone:
      break;
  }
  return Fail("a value");
}

bool Reader::GoesOnWith(std::string_view text) {
  SkipBlanks();
  return !failed() && std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(text);
}

bool Reader::SkipKnown(std::string_view value) {
  if (!GoesOnWith(value)) return false;
  at_ += value.size();
  first_ = false;
  return true;
}

bool Reader::EnterKnown(std::string_view head) {
  const int inside = 2;  // the object and a list in it
  if (depth_ + inside > max_depth_ || !GoesOnWith(head)) return false;
  at_ += head.size();
  ++depth_;
  first_ = false;
  return true;
}

bool Reader::ReadEnd() {
  SkipBlanks();
  if (failed()) return false;
  if (at_ == end_) return true;
  return Fail("nothing after the document");
}

// Reads a document with json::Reader and refuses what only Python writes.
class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Result<Value> Run(size_t* error_at) {
    Value value = Read();
    if (is_good_ && in_.ReadEnd()) return value;
    if (in_.failed()) bad_at_ = in_.offset();
    if (error_at != nullptr) *error_at = bad_at_;
    if (in_.failed()) return in_.error();
    return Error(ErrorCode::kCorrupt, fmt::format("byte {}: not strict JSON", bad_at_));
  }

 private:
  Value Read() {
    Value value;
    switch (in_.Peek()) {
      case Kind::kObject:
        ReadObject(value.value_.emplace<Value::Members>());
        break;
      case Kind::kArray:
        ReadList(value.value_.emplace<Value::List>());
        break;
      case Kind::kString:
        ReadText(value.value_.emplace<std::string>());
        break;
      case Kind::kNumber:
        ReadNumber(value);
        break;
      case Kind::kBool:
        is_good_ = in_.ReadBool(value.value_.emplace<bool>()) && is_good_;
        break;
      default:
        is_good_ = in_.SkipValue() && is_good_;
    }
    return value;
  }

  void ReadObject(Value::Members& members) {
    std::string_view key;
    is_good_ = in_.EnterObject() && is_good_;
    while (is_good_ && in_.NextMember(key)) {
      CheckText(key);
      members.push_back({std::string(key), {}});
      members.back().value = Read();
    }
    is_good_ = is_good_ && !in_.failed();
  }

  void ReadList(Value::List& list) {
    is_good_ = in_.EnterArray() && is_good_;
    while (is_good_ && in_.NextElement()) list.push_back(Read());
    is_good_ = is_good_ && !in_.failed();
  }

  void ReadText(std::string& value) {
    std::string_view text;
    is_good_ = in_.ReadString(text) && is_good_;
    CheckText(text);
    value = text;
  }

  void CheckText(std::string_view text) {
    if (!IsUtf8(text)) Refuse();
  }

  void ReadNumber(Value& value) {
    Number number;
    if (!in_.ReadNumber(number)) {
      is_good_ = false;
    } else if (const auto* integer = std::get_if<int64_t>(&number)) {
      value.value_ = *integer;
    } else if (const auto* real = std::get_if<double>(&number)) {
      if (!std::isfinite(*real)) Refuse();
      value.value_ = *real;
    } else {
      const auto digits = std::get<std::string_view>(number);
      uint64_t natural = 0;
      double nearest = 0;
      const char* const end = digits.data() + digits.size();
      if (std::from_chars(digits.data(), end, natural).ec == std::errc()) {
        value.value_ = natural;
      } else if (std::from_chars(digits.data(), end, nearest).ec == std::errc()) {
        value.value_ = nearest;
      } else {
        Refuse();
      }
    }
  }

  void Refuse() {
    if (is_good_) bad_at_ = in_.offset();
    is_good_ = false;
  }

  Reader in_;
  bool is_good_ = true;
  size_t bad_at_ = 0;
};

Value::Value(bool truth) : value_(truth) {}
Value::Value(int64_t number) : value_(number) {}
Value::Value(std::string_view text) : value_(std::string(text)) {}
Value::Value(const char* text) : value_(std::string(text)) {}

Value::Value(const std::vector<std::string>& texts) {
  List& list = value_.emplace<List>();
  for (const std::string& text : texts) list.emplace_back(text);
}

Value::Value(const std::vector<int64_t>& numbers) {
  List& list = value_.emplace<List>();
  for (const int64_t number : numbers) list.emplace_back(number);
}

Value::Value(List elements) : value_(std::move(elements)) {}

Value Value::Object() {
  Value value;
  value.value_.emplace<Members>();
  return value;
}

Result<Value> Value::Parse(std::string_view text, size_t* error_at) {
  return Parser(text).Run(error_at);
}

std::optional<int64_t> Value::AsInteger() const {
  const auto* number = std::get_if<int64_t>(&value_);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<uint64_t> Value::AsNatural() const {
  if (const auto* number = std::get_if<uint64_t>(&value_)) return *number;
  const auto* number = std::get_if<int64_t>(&value_);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

std::optional<double> Value::AsReal() const {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  if (const auto* number = std::get_if<int64_t>(&value_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(&value_)) return static_cast<double>(*number);
  return std::nullopt;
}

const Value* Value::Find(std::string_view key) const {
  const auto* members = std::get_if<Members>(&value_);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->rbegin(), members->rend(),
                                  [&](const Member& member) { return member.key == key; });
  return found == members->rend() ? nullptr : &found->value;
}

std::vector<std::string_view> Value::Keys() const {
  std::vector<std::string_view> keys;
  if (const auto* members = std::get_if<Members>(&value_)) {
    for (const Member& member : *members) keys.push_back(member.key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void Value::Put(std::string_view key, Value value) {
  if (const Value* old = Find(key)) {
    *const_cast<Value*>(old) = std::move(value);
  } else {
    std::get<Members>(value_).push_back({std::string(key), std::move(value)});
  }
}

void Value::Remove(std::string_view key) {
  auto* members = std::get_if<Members>(&value_);
  if (members == nullptr) return;
  std::erase_if(*members, [&](const Member& member) { return member.key == key; });
}

std::string Value::Text(int indent) const {
  std::string out;
  AppendTo(out, indent, 0);
  return out;
}

void Value::AppendTo(std::string& out, int indent, int level) const {
  const auto append_text = [&](std::string_view text) {
    AppendString(IsUtf8(text) ? std::string(text) : ReplaceInvalidUtf8(text), out);
  };
  const auto append_all = [&](const auto& items, std::string_view brackets, const auto& append) {
    const auto break_line = [&](int to) {
      if (indent > 0) out.append(1, '\n').append(static_cast<size_t>(to * indent), ' ');
    };
    out += brackets[0];
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ',';
      break_line(level + 1);
      append(items[i]);
    }
    if (!items.empty()) break_line(level);
    out += brackets[1];
  };
  if (is_null()) {
    out += "null";
  } else if (const bool* truth = AsBool()) {
    out += *truth ? "true" : "false";
  } else if (const std::string* text = AsText()) {
    append_text(*text);
  } else if (const auto integer = AsInteger()) {
    out += std::to_string(*integer);
  } else if (const auto natural = AsNatural()) {
    out += std::to_string(*natural);
  } else if (const auto real = AsReal()) {
    AppendPythonFloat(*real, out);
  } else if (const List* list = AsList()) {
    append_all(*list, "[]", [&](const Value& one) { one.AppendTo(out, indent, level + 1); });
  } else {
    append_all(std::get<Members>(value_), "{}", [&](const Member& one) {
      append_text(one.key);
      out += indent > 0 ? ": " : ":";
      one.value.AppendTo(out, indent, level + 1);
    });
  }
}

}  // namespace plumbline::json

// JSON text: a pull reader and string escaping, as the files of upstream need them.
//
// The reader takes what Python's json module writes, which is more than the standard: the tokens
// NaN, Infinity and -Infinity, integers of any size, lone surrogates in \u escapes. It also takes
// nan, inf and -inf, numbers beyond the range of double (read as infinity or zero), and a UTF-8
// byte order mark. simdjson refuses the tokens and is therefore not used for these files.

#ifndef PLUMBLINE_BASE_JSON_H_
#define PLUMBLINE_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "plumbline/result.h"

namespace plumbline::json {

// Appends `text` (UTF-8) in quotes as Python's json.dumps does by default: ASCII only, everything
// outside U+0020 to U+007E as \uXXXX in lower case, surrogate pairs above U+FFFF, short forms for
// \n \r \t \b \f. A lone surrogate in its three-byte form becomes its own escape; any other byte
// that is not UTF-8 becomes \udc80 to \udcff, as Python spells undecodable bytes of file names.
void AppendString(std::string_view text, std::string& out);

// What the next value is, by its first character.
enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject, kNone };

// An integer, a double, or the digits of an integer outside int64_t (a view into the text).
using Number = std::variant<int64_t, double, std::string_view>;

// Reads one document front to back. `text` must outlive the reader. Failures stick: after the first
// one every call returns false and failed() is true; error() says what and where.
//
//   if (in.EnterObject()) while (in.NextMember(key)) { ...read one value... }
//
// Containers nested deeper than `max_depth` are a failure. Thread-compatible.
class Reader {
 public:
  enum class Failure : uint8_t {
    kNone,
    kTruncated,  // the text ends inside the document
    kSyntax,
    kTooDeep,
  };

  explicit Reader(std::string_view text, int max_depth = 512);

  // Reads on in `text`, which begins as the text so far and is longer; it may stand elsewhere.
  // Requires: not failed.
  void Extend(std::string_view text);

  // kNone at the end of the text and before a character that starts no value.
  Kind Peek();
  bool ReadNull();
  bool ReadBool(bool& value);
  bool ReadNumber(Number& value);
  // The decoded text, valid until the next ReadString or NextMember. Lone surrogates are kept in
  // their three-byte form. Bytes that are not UTF-8 are a failure.
  bool ReadString(std::string_view& value);
  // Consumes the opening bracket; then call Next...() until it returns false, reading exactly one
  // value after each true.
  bool EnterObject();
  bool EnterArray();
  // False at the closing bracket (consumed) or on failure. The key is valid until the next
  // ReadString or NextMember.
  bool NextMember(std::string_view& key);
  bool NextElement();
  bool SkipValue();
  // Steps over the next value if the text goes on with `value`, the text of a list or object that
  // was stepped over before; otherwise does nothing. Requires: not deeper than that value stood.
  bool SkipKnown(std::string_view value);
  // Enters the next object, up to behind the colon of a member, if the text goes on with `head`,
  // which was read so before from the opening bracket on and whose values hold no containers but
  // lists of plain values; otherwise does nothing.
  bool EnterKnown(std::string_view head);
  // True if only blanks are left; otherwise a failure.
  bool ReadEnd();

  [[nodiscard]] bool failed() const { return failure_ != Failure::kNone; }
  [[nodiscard]] Failure failure() const { return failure_; }
  // Bytes consumed, counted from the start of the text.
  [[nodiscard]] size_t offset() const { return static_cast<size_t>(at_ - begin_); }
  // "byte 17: expected ...". kUnsupported when too deep, otherwise kCorrupt. Requires: failed().
  [[nodiscard]] Error error() const;

 private:
  bool Fail(std::string_view expected);
  void SkipBlanks();
  bool Open(char bracket, std::string_view expected);
  // Steps over the comma before the next item. False at `bracket` and on failure.
  bool NextItem(char bracket, std::string_view expected);
  bool GoesOnWith(std::string_view text);
  bool Literal(std::string_view word);
  bool SpecialNumber(Number& value);
  bool FloatingNumber(const char* start, Number& value);
  bool Digits();
  bool ReadEscaped(const char* start);
  bool ReadEscape();
  bool ReadUnicode(uint32_t& unit);
  bool SkipUtf8();

  const char* begin_;
  const char* at_;
  const char* end_;
  int depth_ = 0;
  int max_depth_;
  bool first_ = false;  // no item of the innermost container has been read yet
  Failure failure_ = Failure::kNone;
  std::string_view expected_;
  std::string scratch_;  // decoded text of a string with escapes
};

}  // namespace plumbline::json

#endif  // PLUMBLINE_BASE_JSON_H_

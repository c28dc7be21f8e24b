// JSON text: a pull reader and string escaping, as the files of upstream need them, and documents
// in memory.
//
// The reader takes what Python's json module writes, which is more than the standard: the tokens
// NaN, Infinity and -Infinity, integers of any size, lone surrogates in \u escapes. It also takes
// nan, inf and -inf, numbers beyond the range of double (read as infinity or zero), and a UTF-8
// byte order mark. Libraries refuse the tokens, so that one more parser would read other files
// than this one. Small files that must be strict JSON are read by Value::Parse().

#ifndef PLUMBLINE_BASE_TEXT_JSON_H_
#define PLUMBLINE_BASE_TEXT_JSON_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

// A JSON document in memory: for small files that are looked into, and for values that are built.
// Large ones are read value by value, by the Reader above.

struct Member;

// A value of any kind; null by default. Each As...() gives nothing for a value of another kind.
// Thread-compatible.
class Value {
 public:
  using List = std::vector<Value>;
  using Members = std::vector<Member>;

  Value() = default;
  explicit Value(bool truth);
  explicit Value(int64_t number);
  explicit Value(std::string_view text);
  explicit Value(const char* text);  // which would be a bool
  explicit Value(const std::vector<std::string>& texts);
  explicit Value(const std::vector<int64_t>& numbers);
  explicit Value(List elements);
  static Value Object();

  // Strict JSON, nested at most 512 deep: no NaN or Infinity, no number beyond the range of double,
  // no lone surrogate; a byte order mark is stepped over. Integers that no 64 bits hold become the
  // nearest double. kCorrupt or kUnsupported, naming the byte, which `error_at` gets as well.
  static Result<Value> Parse(std::string_view text, size_t* error_at = nullptr);

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Members>(value_); }
  [[nodiscard]] bool is_integer() const { return AsInteger() || AsNatural(); }

  [[nodiscard]] const bool* AsBool() const { return std::get_if<bool>(&value_); }
  [[nodiscard]] const std::string* AsText() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const List* AsList() const { return std::get_if<List>(&value_); }
  [[nodiscard]] const Members* AsMembers() const { return std::get_if<Members>(&value_); }
  [[nodiscard]] std::optional<int64_t> AsInteger() const;   // written as one, and within int64_t
  [[nodiscard]] std::optional<uint64_t> AsNatural() const;  // the same of uint64_t
  [[nodiscard]] std::optional<double> AsReal() const;       // of any number

  // The member of an object, the last of several with this key; null without one and for a value of
  // another kind. Valid until the object changes.
  [[nodiscard]] const Value* Find(std::string_view key) const;
  // The keys of an object, ascending, each once.
  [[nodiscard]] std::vector<std::string_view> Keys() const;
  // Sets a member, behind the others if it is new. Requires: is_object().
  void Put(std::string_view key, Value value);
  void Remove(std::string_view key);

  // The document: on one line without blanks, or with `indent` blanks per level. ASCII; U+FFFD for
  // what is not UTF-8.
  [[nodiscard]] std::string Text(int indent = 0) const;

  friend bool operator==(const Value&, const Value&) = default;

 private:
  friend class Parser;
  void AppendTo(std::string& out, int indent, int level) const;

  // A natural number is here only beyond int64_t.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, List, Members> value_;
};

struct Member {
  std::string key;
  Value value;
  friend bool operator==(const Member&, const Member&) = default;
};

}  // namespace plumbline::json

#endif  // PLUMBLINE_BASE_TEXT_JSON_H_

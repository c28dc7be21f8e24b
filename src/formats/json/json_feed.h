// JSON texts that are too large, or too particular, for a document in memory: written piece by
// piece, loaded while they are read, and rewritten with all they hold.

#ifndef PLUMBLINE_FORMATS_JSON_JSON_FEED_H_
#define PLUMBLINE_FORMATS_JSON_JSON_FEED_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/streamed_text.h"
#include "base/memory/name_table.h"
#include "base/text/json.h"
#include "plumbline/result.h"

namespace plumbline::json {

// Builds one JSON document piece by piece: the answers that `plumb` prints for other programs.

// Inside an object every value is preceded by Key(), or added with its key. Single-threaded.
class Document {
 public:
  void Open(char bracket);  // '{' or '['
  void Close(char bracket);
  void Key(std::string_view key);
  void Text(std::string_view text);
  // A value that is JSON already.
  void Raw(std::string_view json);
  void Member(std::string_view key, std::string_view text);
  void Number(std::string_view key, uint64_t number);
  void Truth(std::string_view key, bool truth);
  void Texts(std::string_view key, const std::vector<std::string>& texts);
  // The document on one line; Raw() values are as they were given.
  [[nodiscard]] const std::string& line() const { return text_; }
  // The same with two blanks per level. An error only when a Raw() value was no JSON.
  [[nodiscard]] Result<std::string> Finish() const;

 private:
  void Separate();

  std::string text_;
  bool first_ = true;  // nothing in the innermost container, or a key stands before
};

}  // namespace plumbline::json

namespace plumbline {

// A JSON text that is loaded while it is read, so that memory does not grow with the file.

// A reader and the part of its text that is loaded. Read every value, or key and value, through
// Read(). Not copyable; single-threaded.
class JsonFeed {
 public:
  // A text in memory, or one that comes from `file`; both must outlive the feed.
  JsonFeed(std::string_view text, int max_depth) : text_(text), in_(text, max_depth) {}
  JsonFeed(StreamedText& file, int max_depth)
      : file_(&file), text_(file.view()), in_(text_, max_depth) {}
  JsonFeed(const JsonFeed&) = delete;
  JsonFeed& operator=(const JsonFeed&) = delete;

  json::Reader& in() { return in_; }
  [[nodiscard]] const json::Reader& in() const { return in_; }
  // What is loaded; moves when more is. Positions in it stay.
  [[nodiscard]] std::string_view text() const { return text_; }

  // Runs `read`, which reads on from in(). If it comes to the end of the loaded part, more is
  // loaded and `read` runs again from where it began: what it leaves elsewhere must not add up.
  // Memory is that of the largest value read so. Errors: those of `read` and of StreamedText.
  template <class F>
  Status Read(const F& read) {
    PL_TRY(LoadAhead());
    for (;;) {
      if (is_whole()) return read();
      const json::Reader before = in_;
      Status status = read();
      if (!MayGoOn(status.has_value())) return status;
      in_ = before;
      PL_TRY(LoadMore());
    }
  }
  // What follows the document: nothing but blanks, of which any number is stepped over.
  Status ReadEnd();
  // What was read is not needed any more.
  void Release(size_t bytes) {
    if (file_ != nullptr) file_->Release(bytes);
  }

 private:
  [[nodiscard]] bool is_whole() const { return file_ == nullptr || file_->is_whole(); }
  // Loads more if little is left.
  Status LoadAhead() {
    constexpr size_t kLeast = size_t{1} << 20;
    if (is_whole() || text_.size() - in_.offset() >= kLeast) return {};
    return LoadMore();
  }
  // Whether what was read may be another value, or no failure, with the text behind the loaded
  // part: a number may go on there, and a character be cut.
  [[nodiscard]] bool MayGoOn(bool is_read) const {
    constexpr size_t kLongestToken = 64;
    const size_t left = text_.size() - in_.offset();
    if (is_read) return left == 0;
    return left < kLongestToken || in_.failure() == json::Reader::Failure::kTruncated;
  }
  // As much again as lies ahead, which reads a large value in time that grows with its size.
  Status LoadMore();

  StreamedText* file_ = nullptr;
  std::string_view text_;
  json::Reader in_;
};

}  // namespace plumbline

namespace plumbline::json {

// JSON text in, JSON text out: another indentation, texts replaced, everything else kept.
//
// Unknown keys, repeated keys, the spelling of every number and the order of members survive, which
// they would not on the way through Call. Output is ASCII, as Python's json module writes it.

struct RewriteOptions {
  int indent = 1;        // blanks per level
  int outer_levels = 0;  // level of the line on which the text will stand
  // NaN, Infinity and -Infinity as the texts "NaN", "Infinity" and "-Infinity", which standard JSON
  // allows; numbers beyond the range of double become the infinite ones.
  bool strict = false;
  // New text for the text value of member `key` (at any depth); nothing keeps it.
  std::function<std::optional<std::string>(std::string_view key, std::string_view text)> replace =
      {};
};

// Appends the rewritten document to `out`. kCorrupt and kUnsupported as json::Reader::error().
Status Rewrite(std::string_view text, const RewriteOptions& options, std::string& out);

}  // namespace plumbline::json

namespace plumbline {

// Repeated keys of a JSON object, settled as Python's json module settles them.

// Leaves the last row of each name, at the place of the first row of that name. `name_of(row)` is a
// reference to the row's own std::string. Returns how many rows were dropped.
template <class Row, class NameOf>
size_t KeepLastOfEach(std::vector<Row>& rows, const NameOf& name_of) {
  NameTable first(rows.size());
  const auto name_at = [&](size_t i) { return std::string_view(name_of(rows[i])); };
  std::vector<size_t> first_of;  // row of the same name
  first_of.reserve(rows.size());
  size_t dropped = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    first_of.push_back(first.Add(i, name_at));
    if (first_of[i] != i) ++dropped;
  }
  if (dropped == 0) return 0;
  size_t kept = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (first_of[i] != i) rows[first_of[i]] = std::move(rows[i]);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (first_of[i] != i) continue;
    if (kept != i) rows[kept] = std::move(rows[i]);
    ++kept;
  }
  rows.resize(kept);
  return dropped;
}

}  // namespace plumbline

#endif  // PLUMBLINE_FORMATS_JSON_JSON_FEED_H_

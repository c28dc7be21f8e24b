// Builds one JSON document piece by piece: the answers that `plumb` prints for other programs.

#ifndef PLUMBLINE_FORMATS_JSON_DOCUMENT_H_
#define PLUMBLINE_FORMATS_JSON_DOCUMENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::json {

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
  // The document with two blanks per level. An error only when a Raw() value was no JSON.
  [[nodiscard]] Result<std::string> Finish() const;

 private:
  void Separate();

  std::string text_;
  bool first_ = true;  // nothing in the innermost container, or a key stands before
};

}  // namespace plumbline::json

#endif  // PLUMBLINE_FORMATS_JSON_DOCUMENT_H_

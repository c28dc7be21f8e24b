// Python dictionaries and JSON, given in pieces of which some do not belong to them.

#ifndef PLUMBLINE_PIPELINE_RUN_CONFIG_PYTHON_LITERAL_H_
#define PLUMBLINE_PIPELINE_RUN_CONFIG_PYTHON_LITERAL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/record.h"

namespace plumbline::pipeline {

// Takes one value apart into tokens. Texts in single or double quotes (adjacent ones are one),
// numbers, True, False, None and their spellings in JSON, dictionaries with texts as keys, lists,
// and tuples, which become lists.
class LiteralParser {
 public:
  // Whether `piece` continues the value up to its end; if not, nothing of it was taken. What
  // follows the end of the value in the same piece does not count. `failed_at`: where the token
  // begins that does not fit.
  bool Add(std::string_view piece, size_t* failed_at = nullptr);
  [[nodiscard]] bool complete() const { return !tokens_.empty() && open_.empty(); }
  // Requires: complete().
  Value Take();

 private:
  enum class Kind : uint8_t { kOpen, kClose, kColon, kComma, kText, kOther };
  enum class Wants : uint8_t { kFirst, kItem, kColon, kValue, kEnd };
  struct Token {
    Kind kind = Kind::kOther;
    char bracket = 0;  // of kOpen and kClose
    Value value;       // of kText and kOther
  };
  // A container that is not closed yet.
  struct Open {
    char bracket = 0;
    Wants wants = Wants::kFirst;
    bool after_text = false;  // the last token is a text that may go on
  };

  static bool Read(std::string_view& rest, Token& token);
  bool Accept(Token token);
  bool AcceptValue(Token token);
  Value Build(size_t& at) const;

  std::vector<Token> tokens_;
  std::vector<Open> open_;
};

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RUN_CONFIG_PYTHON_LITERAL_H_

// The JSON text of an answer, without blanks: pages ask often, and small answers are quick.

#ifndef PLUMBLINE_VIEW_QUERY_ANSWER_TEXT_H_
#define PLUMBLINE_VIEW_QUERY_ANSWER_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "view/store/node_detail.h"

namespace plumbline::view {

// Appends one JSON document; commas are set where they belong. Calls chain. Single-threaded.
class AnswerText {
 public:
  AnswerText& Open(char bracket);   // '{' or '['
  AnswerText& Close(char bracket);  // '}' or ']'
  AnswerText& Key(std::string_view key);
  AnswerText& Text(std::string_view text);
  AnswerText& Integer(int64_t number);  // beyond 2^53 a text: a page has doubles alone
  // The shortest digits that tell the double; NaN and infinities are texts.
  AnswerText& Number(double number);
  // With five digits, enough for errors in a list; NaN is null: there is none.
  AnswerText& Error(float number);
  AnswerText& Truth(bool truth);
  AnswerText& Null();
  AnswerText& Scalar(const StoredScalar& scalar);
  AnswerText& Raw(std::string_view json);
  template <class List>
  AnswerText& Texts(const List& texts) {
    Open('[');
    for (const auto& text : texts) Text(text);
    return Close(']');
  }

  [[nodiscard]] size_t size() const { return text_.size(); }
  std::string Take() { return std::move(text_); }

 private:
  void Separate();
  std::string text_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_ANSWER_TEXT_H_

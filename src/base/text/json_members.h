// Members of JSON objects, without a look at whether they are there.

#ifndef PLUMBLINE_BASE_TEXT_JSON_MEMBERS_H_
#define PLUMBLINE_BASE_TEXT_JSON_MEMBERS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text/json.h"

namespace plumbline::json {

// Empty where `object` has no such member, or one of another kind.
inline std::string_view TextAt(const Value& object, std::string_view key) {
  const Value* const member = object.Find(key);
  const std::string* const text = member == nullptr ? nullptr : member->AsText();
  return text == nullptr ? std::string_view() : *text;
}

inline const Value::List& ListAt(const Value& object, std::string_view key) {
  static const Value::List kNone;
  const Value* const member = object.Find(key);
  const Value::List* const list = member == nullptr ? nullptr : member->AsList();
  return list == nullptr ? kNone : *list;
}

inline uint64_t NaturalAt(const Value& object, std::string_view key) {
  const Value* const member = object.Find(key);
  return member == nullptr ? 0 : member->AsNatural().value_or(0);
}

}  // namespace plumbline::json

#endif  // PLUMBLINE_BASE_TEXT_JSON_MEMBERS_H_

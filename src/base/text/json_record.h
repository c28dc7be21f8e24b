// Values as JSON lists of their members, both ways by one function, for files that one process of
// this program leaves for another.
//
// A type tells its members in namespace scope:
//
//   void VisitRecord(auto& archive, json::RecordOf<BadValue> auto& bad) {
//     archive(bad.path, bad.what);
//   }
//
// Members may be bool, numbers, texts, and optional values, vectors and arrays of what may be one.
// An enumeration goes through archive.Choice(value, last).

#ifndef PLUMBLINE_BASE_TEXT_JSON_RECORD_H_
#define PLUMBLINE_BASE_TEXT_JSON_RECORD_H_

#include <array>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text/json.h"

namespace plumbline::json {

template <class T, class U>
concept RecordOf = std::same_as<std::remove_const_t<T>, U>;

// Appends to a JSON text; floating-point numbers are exact.
class RecordWriter {
 public:
  template <class... T>
  void operator()(const T&... members) {
    (Put(members), ...);
  }
  template <class E>
  void Choice(const E& value, E /*last*/) {
    Put(static_cast<uint64_t>(value));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

  template <class T>
  void Put(const T& value) {
    Separate();
    if constexpr (std::same_as<T, bool>) {
      text_ += value ? "true" : "false";
    } else if constexpr (std::integral<T>) {
      text_ += std::to_string(value);
    } else if constexpr (std::floating_point<T>) {
      PutReal(static_cast<long double>(value));
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      AppendString(std::string_view(value), text_);
    } else {
      PutRecord(value);
    }
  }

 private:
  template <class T>
  void PutRecord(const T& value) {
    text_ += '[';
    if constexpr (requires { value.has_value(); }) {
      if (value) Put(*value);
    } else if constexpr (requires { value.begin(); }) {
      for (const auto& element : value) Put(element);
    } else {
      VisitRecord(*this, value);
    }
    text_ += ']';
  }

  void PutReal(long double value) {
    char digits[64];
    const int size = std::snprintf(digits, sizeof(digits), "%La", value);
    AppendString(std::string_view(digits, static_cast<size_t>(size)), text_);
  }

  void Separate() {
    if (!text_.empty() && text_.back() != '[') text_ += ',';
  }

  std::string text_;
};

// Reads what RecordWriter wrote. Members of another kind keep their values, and good() is false
// from then on.
class RecordReader {
 public:
  explicit RecordReader(const Value::List& list) : list_(&list) {}

  [[nodiscard]] bool good() const { return good_; }
  // Whether there was nothing more.
  [[nodiscard]] bool is_whole() const { return good_ && at_ == list_->size(); }

  template <class T>
  static bool ReadOne(const Value& from, T& value) {
    return TakeFrom(from, value);
  }

  template <class... T>
  void operator()(T&... members) {
    (Take(members), ...);
  }
  template <class E>
  void Choice(E& value, E last) {
    uint64_t number = 0;
    Take(number);
    good_ = good_ && number <= static_cast<uint64_t>(last);
    if (good_) value = static_cast<E>(number);
  }

 private:
  template <class T>
  void Take(T& value) {
    const Value* const from = at_ < list_->size() ? &(*list_)[at_++] : nullptr;
    good_ = good_ && from != nullptr && TakeFrom(*from, value);
  }

  template <class T>
  static bool TakeFrom(const Value& from, T& value) {
    if constexpr (std::same_as<T, bool>) {
      return from.AsBool() != nullptr && ((value = *from.AsBool()), true);
    } else if constexpr (std::integral<T>) {
      return TakeInteger(from, value);
    } else if constexpr (std::floating_point<T>) {
      return TakeReal(from, value);
    } else if constexpr (std::constructible_from<T, std::string_view> &&
                         std::convertible_to<const T&, std::string_view>) {
      return from.AsText() != nullptr && ((value = T(std::string_view(*from.AsText()))), true);
    } else {
      return from.AsList() != nullptr && TakeRecord(*from.AsList(), value);
    }
  }

  template <class T>
  static bool TakeInteger(const Value& from, T& value) {
    const auto take = [&](const auto& number) {
      if (!number || !std::in_range<T>(*number)) return false;
      value = static_cast<T>(*number);
      return true;
    };
    return take(from.AsInteger()) || take(from.AsNatural());
  }

  template <class T>
  static bool TakeReal(const Value& from, T& value) {
    const std::string* const text = from.AsText();
    if (text == nullptr || text->empty()) return false;
    char* end = nullptr;
    value = static_cast<T>(std::strtold(text->c_str(), &end));
    return end == text->c_str() + text->size();
  }

  template <class T>
  static bool TakeRecord(const Value::List& list, T& value) {
    RecordReader in(list);
    if constexpr (requires { value.has_value(); }) {
      value.reset();
      if (!list.empty()) in.Take(value.emplace());
    } else if constexpr (requires { value.emplace_back(); }) {
      value.clear();
      for (size_t i = 0; i < list.size() && in.good_; ++i) in.Take(value.emplace_back());
    } else if constexpr (requires { value.begin(); }) {
      for (auto& element : value) in.Take(element);
    } else {
      VisitRecord(in, value);
    }
    return in.is_whole();
  }

  const Value::List* list_;
  size_t at_ = 0;
  bool good_ = true;
};

// The value as one JSON text.
template <class T>
std::string RecordText(const T& value) {
  RecordWriter out;
  out.Put(value);
  return out.text();
}

// The other way round; false where `from` holds no such value.
template <class T>
bool ReadRecord(const Value& from, T& value) {
  return RecordReader::ReadOne(from, value);
}

}  // namespace plumbline::json

#endif  // PLUMBLINE_BASE_TEXT_JSON_RECORD_H_

// Values that many records hold at once: immutable texts and small structures, stored once.
//
// A comparison of a long step has millions of items, and most of what they say is the same from
// item to item: types, shapes, reasons, call stacks. A handle here takes eight bytes; copies share
// what it stands for, and may be made and dropped on any thread.

#ifndef PLUMBLINE_SHARED_VALUE_H_
#define PLUMBLINE_SHARED_VALUE_H_

#include <atomic>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace plumbline {

// An immutable text of less than 4 GiB. Behaves as a std::string_view of it; the view lives as long
// as any of the copies.
class Text {
 public:
  Text() = default;
  Text(std::string_view text);  // NOLINT: implicit, as for strings
  Text(const std::string& text) : Text(std::string_view(text)) {}  // NOLINT
  Text(const char* text) : Text(std::string_view(text)) {}         // NOLINT
  Text(const Text& other) noexcept : body_(other.body_) {
    if (body_ != nullptr) body_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Text(Text&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Text& operator=(Text other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~Text() {
    if (body_ != nullptr) Drop();
  }

  [[nodiscard]] std::string_view view() const {
    return body_ == nullptr
               ? std::string_view()
               : std::string_view(reinterpret_cast<const char*>(body_ + 1), body_->size);
  }
  operator std::string_view() const { return view(); }          // NOLINT: implicit by design
  operator std::string() const { return std::string(view()); }  // NOLINT

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] size_t size() const { return body_ == nullptr ? 0 : body_->size; }
  [[nodiscard]] char operator[](size_t i) const { return view()[i]; }
  [[nodiscard]] char front() const { return view().front(); }
  [[nodiscard]] char back() const { return view().back(); }
  [[nodiscard]] bool starts_with(std::string_view part) const { return view().starts_with(part); }
  [[nodiscard]] bool ends_with(std::string_view part) const { return view().ends_with(part); }
  [[nodiscard]] size_t find(std::string_view part, size_t from = 0) const {
    return view().find(part, from);
  }
  [[nodiscard]] size_t find(char c, size_t from = 0) const { return view().find(c, from); }
  [[nodiscard]] size_t rfind(std::string_view part) const { return view().rfind(part); }
  [[nodiscard]] size_t rfind(char c) const { return view().rfind(c); }
  [[nodiscard]] std::string_view substr(size_t from, size_t count = std::string_view::npos) const {
    return view().substr(from, count);
  }
  // Whether both are copies of one; equal texts need not be.
  [[nodiscard]] bool Shares(const Text& other) const { return body_ == other.body_; }

  friend bool operator==(const Text& a, const Text& b) {
    return a.body_ == b.body_ || a.view() == b.view();
  }
  template <class T>
  requires(!std::same_as<T, Text> && std::convertible_to<const T&, std::string_view>) friend bool
  operator==(const Text& a, const T& b) {
    return a.view() == std::string_view(b);
  }
  friend std::string operator+(const Text& a, std::string_view b) {
    return std::string(a.view()).append(b);
  }
  friend std::string operator+(std::string a, const Text& b) {
    return std::move(a.append(b.view()));
  }
  friend std::ostream& operator<<(std::ostream& out, const Text& text) {
    return out << text.view();
  }

 private:
  friend class OptionalText;
  struct Body {  // the characters follow it
    std::atomic<uint32_t> references;
    uint32_t size;
  };
  void Drop();

  Body* body_ = nullptr;  // null: the empty text
};
// For fmt, which finds it by argument.
inline std::string_view format_as(const Text& text) { return text.view(); }

// Nothing or a text, in the bytes of a text; as std::optional<Text>.
class OptionalText {
 public:
  OptionalText() = default;
  OptionalText(std::nullopt_t) {}  // NOLINT: implicit, as for std::optional
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, OptionalText> &&
           std::constructible_from<Text, T&&>) OptionalText(T&& text)  // NOLINT: implicit by design
      : text_(std::forward<T>(text)) {
    if (text_.body_ == nullptr) text_ = EmptyText();
  }

  [[nodiscard]] bool has_value() const { return text_.body_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const Text& operator*() const { return text_; }
  const Text* operator->() const { return &text_; }
  [[nodiscard]] Text value_or(const Text& other) const { return has_value() ? text_ : other; }

  friend bool operator==(const OptionalText& a, const OptionalText& b) {
    return a.has_value() == b.has_value() && a.text_ == b.text_;
  }
  template <class T>
  requires std::convertible_to<const T&, std::string_view>
  friend bool operator==(const OptionalText& a, const T& b) {
    return a.has_value() && a.text_.view() == std::string_view(b);
  }

 private:
  static const Text& EmptyText();  // a text of no characters that is there

  Text text_;
};

// An immutable T. Default-constructed it stands for T().
template <class T>
class Shared {
 public:
  Shared() = default;
  Shared(T value) : body_(new Body{{1}, std::move(value)}) {}  // NOLINT: implicit by design
  Shared(const Shared& other) noexcept : body_(other.body_) {
    if (body_ != nullptr) body_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~Shared() {
    if (body_ != nullptr && body_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete body_;
    }
  }

  const T& operator*() const { return body_ == nullptr ? Default() : body_->value; }
  const T* operator->() const { return &**this; }
  operator const T&() const { return **this; }  // NOLINT: implicit by design
  // Replaces the value by a changed copy.
  template <class Change>
  void Edit(const Change& change) {
    T value = **this;
    change(value);
    *this = Shared(std::move(value));
  }

  // Of values that are containers.
  [[nodiscard]] bool empty() const { return (**this).empty(); }
  [[nodiscard]] size_t size() const { return (**this).size(); }
  [[nodiscard]] auto begin() const { return (**this).begin(); }
  [[nodiscard]] auto end() const { return (**this).end(); }
  [[nodiscard]] decltype(auto) front() const { return (**this).front(); }
  [[nodiscard]] decltype(auto) operator[](size_t i) const { return (**this)[i]; }

  friend bool operator==(const Shared& a, const Shared& b) {
    return a.body_ == b.body_ || *a == *b;
  }
  friend bool operator==(const Shared& a, const T& b) { return *a == b; }

 private:
  struct Body {
    std::atomic<uint32_t> references;
    T value;
  };
  static const T& Default() {
    static const T value{};
    return value;
  }

  Body* body_ = nullptr;
};

// Nothing, a T of its own, or a reference to a T that somebody else keeps. Copies of a reference
// refer to the same T; copies of an own T have their own. Otherwise as std::optional.
template <class T>
class Slot {
 public:
  Slot() = default;
  Slot(T value) : bits_(Bits(new T(std::move(value))) | kOwned) {}  // NOLINT: implicit by design
  // `value` must outlive the slot and its copies.
  static Slot ReferTo(T& value) {
    Slot slot;
    slot.bits_ = Bits(&value);
    return slot;
  }
  Slot(const Slot& other) : bits_(other.bits_) {
    if ((bits_ & kOwned) != 0) bits_ = Bits(new T(*other)) | kOwned;
  }
  Slot(Slot&& other) noexcept : bits_(std::exchange(other.bits_, 0)) {}
  Slot& operator=(Slot other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~Slot() {
    if ((bits_ & kOwned) != 0) delete Pointer();
  }

  void reset() { *this = Slot(); }
  T& emplace() { return *(*this = Slot(T())); }
  [[nodiscard]] bool has_value() const { return bits_ != 0; }
  explicit operator bool() const { return bits_ != 0; }
  T& operator*() { return *Pointer(); }
  const T& operator*() const { return *Pointer(); }
  T* operator->() { return Pointer(); }
  const T* operator->() const { return Pointer(); }

 private:
  static constexpr uintptr_t kOwned = 1;
  static_assert(alignof(T) > 1);
  static uintptr_t Bits(T* value) { return reinterpret_cast<uintptr_t>(value); }
  T* Pointer() const { return reinterpret_cast<T*>(bits_ & ~kOwned); }

  uintptr_t bits_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_SHARED_VALUE_H_

// What a dump says of one value: a recorded number or text, and the four statistics of an item.

#ifndef PLUMBLINE_RECORDED_H_
#define PLUMBLINE_RECORDED_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "plumbline/shared_value.h"

namespace plumbline {

// A recorded statistic or scalar argument: null, truth value, exact integer, double, or the text
// Python's str() gives for anything else.
using Recorded = std::variant<std::monostate, bool, int64_t, double, Text>;

// Max, min, mean and norm; of scalars four times the value. As an array of Recorded in little more
// than half its bytes: a long comparison has millions. Elements are values, not references.
class RecordedStatistics {
 public:
  using Array = std::array<Recorded, 4>;

  // What `statistics[i]` is of statistics that may change.
  class Place {
   public:
    Place(const Place&) = default;
    Place& operator=(const Place& other) { return *this = Recorded(other); }
    Place& operator=(Recorded value) {
      all_.Set(i_, std::move(value));
      return *this;
    }
    operator Recorded() const { return std::as_const(all_)[i_]; }  // NOLINT: implicit by design

   private:
    friend class RecordedStatistics;
    Place(RecordedStatistics& all, size_t i) : all_(all), i_(i) {}
    RecordedStatistics& all_;
    const size_t i_;
  };

  RecordedStatistics() = default;
  RecordedStatistics(const Array& values) {  // NOLINT: implicit by design
    for (size_t i = 0; i < size(); ++i) Set(i, values[i]);
  }
  RecordedStatistics(Recorded max, Recorded min, Recorded mean, Recorded norm)
      : RecordedStatistics(
            Array{std::move(max), std::move(min), std::move(mean), std::move(norm)}) {}
  RecordedStatistics(const RecordedStatistics& other) {
    if (!other.has_text()) {
      TakeBytes(other);
      return;
    }
    for (size_t i = 0; i < size(); ++i) Set(i, other[i]);
  }
  RecordedStatistics(RecordedStatistics&& other) noexcept {
    TakeBytes(other);
    other.kinds_ = 0;
  }
  RecordedStatistics& operator=(RecordedStatistics other) noexcept {
    Drop();
    TakeBytes(other);
    other.kinds_ = 0;
    return *this;
  }
  ~RecordedStatistics() { Drop(); }

  [[nodiscard]] static constexpr size_t size() { return 4; }
  [[nodiscard]] Recorded operator[](size_t i) const {
    switch (KindAt(i)) {
      case kNone:
        return {};
      case kTruth:
        return cells_[i].truth;
      case kInteger:
        return cells_[i].integer;
      case kReal:
        return cells_[i].real;
      case kText:
        return cells_[i].text;
    }
    return {};
  }
  [[nodiscard]] Place operator[](size_t i) { return {*this, i}; }
  // Null if it is of another kind. Valid until it is changed.
  template <class T>
  [[nodiscard]] const T* As(size_t i) const {
    if constexpr (std::is_same_v<T, bool>) {
      return KindAt(i) == kTruth ? &cells_[i].truth : nullptr;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return KindAt(i) == kInteger ? &cells_[i].integer : nullptr;
    } else if constexpr (std::is_same_v<T, double>) {
      return KindAt(i) == kReal ? &cells_[i].real : nullptr;
    } else {
      static_assert(std::is_same_v<T, Text>);
      return KindAt(i) == kText ? &cells_[i].text : nullptr;
    }
  }
  [[nodiscard]] Array array() const { return {(*this)[0], (*this)[1], (*this)[2], (*this)[3]}; }
  operator Array() const { return array(); }  // NOLINT: implicit by design

  void fill(const Recorded& value) {
    for (size_t i = 0; i < size(); ++i) Set(i, value);
  }
  void Set(size_t i, double value) { Put(i, kReal).real = value; }
  void Set(size_t i, Recorded value) {
    if (const auto* real = std::get_if<double>(&value)) {
      Put(i, kReal).real = *real;
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      Put(i, kInteger).integer = *integer;
    } else if (const auto* truth = std::get_if<bool>(&value)) {
      Put(i, kTruth).truth = *truth;
    } else if (auto* text = std::get_if<Text>(&value)) {
      std::construct_at(&Put(i, kText).text, std::move(*text));
    } else {
      Put(i, kNone);
    }
  }

  friend bool operator==(const RecordedStatistics& a, const RecordedStatistics& b) {
    for (size_t i = 0; i < size(); ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  // The indices of Recorded's alternatives, three bits in four.
  enum Kind : uint16_t { kNone, kTruth, kInteger, kReal, kText };
  static constexpr uint16_t kTextBits = 0x4444;
  union Cell {
    Cell() : integer(0) {}
    ~Cell() {}
    bool truth;
    int64_t integer;
    double real;
    Text text;
  };
  static_assert(sizeof(Cell) == sizeof(int64_t));

  [[nodiscard]] bool has_text() const { return (kinds_ & kTextBits) != 0; }
  [[nodiscard]] Kind KindAt(size_t i) const { return static_cast<Kind>((kinds_ >> (4 * i)) & 0xF); }
  Cell& Put(size_t i, Kind kind) {
    if (KindAt(i) == kText) std::destroy_at(&cells_[i].text);
    kinds_ = static_cast<uint16_t>((kinds_ & ~(0xF << (4 * i))) | (kind << (4 * i)));
    return cells_[i];
  }
  void Drop() {
    for (size_t i = 0; has_text() && i < size(); ++i) Put(i, kNone);
  }
  // Of `other`, which must forget its texts.
  void TakeBytes(const RecordedStatistics& other) {
    std::memcpy(static_cast<void*>(cells_.data()), static_cast<const void*>(other.cells_.data()),
                sizeof(cells_));
    kinds_ = other.kinds_;
  }

  std::array<Cell, 4> cells_;
  uint16_t kinds_ = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_RECORDED_H_

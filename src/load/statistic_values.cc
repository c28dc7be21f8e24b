#include "load/statistic_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/memory/digest.h"
#include "base/text/number_text.h"
#include "kernels/kernel_table.h"
#include "kernels/tensor_scan.h"

namespace plumbline::load {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kMostDigits = 15;  // beyond, a double needs the shortest text that reads back

struct SignCounts {
  uint64_t negative = 0, positive = 0, negative_inf = 0, positive_inf = 0;
};

template <class T>
void CountSigns(std::span<const T> values, SignCounts& counts) {
  for (const T value : values) {
    counts.negative += value < 0 ? 1 : 0;
    counts.positive += value > 0 ? 1 : 0;
    counts.negative_inf += value == -std::numeric_limits<T>::infinity() ? 1 : 0;
    counts.positive_inf += value == std::numeric_limits<T>::infinity() ? 1 : 0;
  }
}

class Values {
 public:
  Values(const TensorView& view, int digits)
      : view_(view), digits_(digits), moments_(kernels::ScanTensor(view, {}).moments) {}

  std::string TextOf(std::string_view item) {
    if (item == "max") return ExtremeText(moments_.max, /*is_max=*/true);
    if (item == "min") return ExtremeText(moments_.min, /*is_max=*/false);
    if (item == "avg") return Real(moments_.sum / static_cast<double>(moments_.count));
    if (item == "l2norm") return Real(std::sqrt(moments_.sum_squares));
    if (item == "count") return std::to_string(moments_.count);
    if (item == "nan count") return std::to_string(moments_.nan_count);
    if (item == "zero count") return std::to_string(moments_.zero_count);
    if (item == "negative zero count") return std::to_string(Signs().negative);
    if (item == "positive zero count") return std::to_string(Signs().positive);
    if (item == "negative inf count") return std::to_string(Signs().negative_inf);
    if (item == "positive inf count") return std::to_string(Signs().positive_inf);
    if (item == "md5" || item == "hash:md5") return OrNull(Md5Hex(Bytes()));
    return SlicedSha1();
  }

 private:
  static std::string OrNull(const Result<std::string>& digest) { return digest.value_or("null"); }

  [[nodiscard]] std::string Real(double value) const {
    if (moments_.count == 0) return "null";
    if (std::isnan(value)) return "nan";
    if (digits_ > kMostDigits) return fmt::format("{}", value);
    std::string text;
    AppendGeneral(value, digits_, text);
    return text;
  }

  // Integers that a double cannot hold keep their value where the digits allow it.
  [[nodiscard]] std::string ExtremeText(double value, bool is_max) const {
    const DTypeKind kind = InfoOf(view_.dtype).kind;
    const bool exact = digits_ > kMostDigits && moments_.count > 0;
    if (exact && kind == DTypeKind::kSigned) {
      return std::to_string(is_max ? moments_.int_max : moments_.int_min);
    }
    if (exact && kind == DTypeKind::kUnsigned) {
      return std::to_string(is_max ? moments_.uint_max : moments_.uint_min);
    }
    return Real(moments_.nan_count > 0 ? kNaN : value);
  }

  // The elements in row-major order.
  std::span<const std::byte> Bytes() {
    if (view_.is_contiguous()) return {view_.data, view_.size_bytes()};
    if (copy_.empty()) {
      copy_.resize(view_.size_bytes());
      CopyContiguous(view_, copy_);
    }
    return copy_;
  }

  const SignCounts& Signs() {
    if (signs_) return *signs_;
    signs_.emplace();
    const DTypeInfo& info = InfoOf(view_.dtype);
    if (info.kind == DTypeKind::kComplex) {
      signs_->positive = moments_.count - moments_.nan_count - moments_.zero_count;
      signs_->positive_inf = moments_.inf_count;
      return *signs_;
    }
    const std::span<const std::byte> bytes = Bytes();
    constexpr size_t kChunk = 1024;
    std::array<float, kChunk> floats;
    std::array<double, kChunk> doubles;
    const auto total = static_cast<size_t>(view_.element_count());
    for (size_t from = 0; from < total; from += kChunk) {
      const size_t count = std::min(kChunk, total - from);
      const std::byte* data = bytes.data() + from * info.size_bytes;
      if (view_.dtype == DType::kFloat64) {  // float32 would round its smallest to zero
        std::memcpy(doubles.data(), data, count * sizeof(double));
        CountSigns(std::span<const double>(doubles.data(), count), *signs_);
      } else {
        kernels::ActiveTable().to_float(view_.dtype, data, count, floats.data());
        CountSigns(std::span<const float>(floats.data(), count), *signs_);
      }
    }
    return *signs_;
  }

  std::string SlicedSha1() {
    constexpr size_t kSliceElements = 20480;
    const std::span<const std::byte> bytes = Bytes();
    const size_t slice = kSliceElements * InfoOf(view_.dtype).size_bytes;
    if (bytes.size() <= slice) return OrNull(Sha1Hex(bytes));
    std::string joined;
    for (size_t from = 0; from < bytes.size(); from += slice) {
      const auto part = Sha1Hex(bytes.subspan(from, std::min(slice, bytes.size() - from)));
      if (!part) return OrNull(part);
      joined += *part;
    }
    return OrNull(Sha1Hex(std::as_bytes(std::span(joined))));
  }

  const TensorView& view_;
  const int digits_;
  const kernels::Moments moments_;
  std::optional<SignCounts> signs_;
  std::vector<std::byte> copy_;
};

}  // namespace

std::vector<std::string> StatisticTexts(const TensorView& view, std::span<const std::string> items,
                                        int digits) {
  Values values(view, digits);
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const std::string& item : items) texts.push_back(values.TextOf(item));
  return texts;
}

}  // namespace plumbline::load

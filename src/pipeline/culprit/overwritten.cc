#include "pipeline/culprit/overwritten.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text_parts.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "pipeline/culprit/call_arguments.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
namespace {

// Calls that write over all of their first input, whatever that holds.
constexpr auto kWrites = std::to_array<std::string_view>(
    {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "cauchy_",
     "exponential_", "geometric_", "log_normal_"});

DTypeKind KindOf(const Item& item) {
  const std::optional<DType> dtype = item.dtype ? ParseDType(*item.dtype) : std::nullopt;
  return dtype ? InfoOf(*dtype).kind : DTypeKind::kComplex;
}

// Whether a recorded statistic is this number, to the digits that recorders write. True where
// it is not recorded.
bool IsAbout(const Recorded& recorded, double wanted) {
  constexpr double kDigits = 0x1p-20;
  const std::optional<double> number = NumberOf(recorded);
  return !number || std::abs(*number - wanted) <= kDigits * wanted;
}

// Whether whole numbers name each of `size` places once, as far as is recorded: as many numbers,
// with the extremes, the sum and the sum of squares of all places.
bool NamesEachPlace(const Item& index, int64_t size) {
  const auto n = static_cast<double>(size);
  return measure::ElementsOf(index) == n && IsAbout(index.statistics[0], n - 1) &&
         IsAbout(index.statistics[1], 0) && IsAbout(index.statistics[2], (n - 1) / 2) &&
         IsAbout(index.statistics[3], std::sqrt((n - 1) * n * (2 * n - 1) / 6));
}

// Whether "[start, stop, step]" takes all of `size` places.
bool TakesAll(const Item& slice, int64_t size) {
  const auto* text = std::get_if<Text>(&slice.statistics[0]);
  if (text == nullptr || text->view().size() < 2) return false;
  const std::string_view inner = text->view().substr(1, text->view().size() - 2);
  const std::vector<std::string_view> parts = SplitAt(inner, ',');
  constexpr size_t kParts = 3;
  if (parts.size() != kParts) return false;
  const auto number = [](std::string_view part, int64_t otherwise) {
    if (part.starts_with(' ')) part.remove_prefix(1);
    return part == "None" ? std::optional(otherwise) : ParseInteger(part);
  };
  const auto stop = number(parts[1], size);
  return number(parts[0], 0) == 0 && stop && *stop >= size && number(parts[2], 1) == 1;
}

// The index of `x[...] = value`, part by part, over the dimensions of x.
class Index {
 public:
  explicit Index(const Shape& written) : written_(written) {}

  void Add(const Item& part) { parts_.push_back(&part); }

  [[nodiscard]] bool NamesAll() const {
    if (parts_.empty()) return false;
    size_t dimension = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Item& part = *parts_[i];
      if (part.dtype == "ellipsis") {
        size_t behind = 0;
        for (size_t k = i + 1; k < parts_.size(); ++k) behind += DimensionsOf(*parts_[k]);
        dimension = std::max(dimension, written_.size() - std::min(written_.size(), behind));
        continue;
      }
      const size_t next = dimension + DimensionsOf(part);
      if (next > written_.size() || !NamesAllOf(part, dimension)) return false;
      dimension = next;
    }
    return std::ranges::count_if(parts_, [](const Item* each) { return IsList(*each); }) <= 1;
  }

 private:
  // A tensor of places. Several of them go together, place by place.
  static bool IsList(const Item& part) {
    return part.is_tensor && KindOf(part) != DTypeKind::kBool;
  }
  // Dimensions of what is written that a part goes over.
  static size_t DimensionsOf(const Item& part) {
    const bool is_truth = std::holds_alternative<bool>(part.statistics[0]);
    if (part.is_tensor) return IsList(part) ? 1 : part.shape->size();
    return part.dtype && !is_truth ? 1 : 0;  // none: a new dimension
  }
  [[nodiscard]] bool NamesAllOf(const Item& part, size_t dimension) const {
    const auto* least = std::get_if<bool>(&part.statistics[1]);
    if (least != nullptr) return *least;
    if (part.is_tensor && !IsList(part)) return false;  // truth values that are not recorded
    if (!part.dtype) return true;
    const int64_t size = written_[dimension];
    if (part.is_tensor) return NamesEachPlace(part, size);
    return part.dtype == "slice" ? TakesAll(part, size) : NumberOf(part.statistics[0]) && size == 1;
  }

  const Shape& written_;
  std::vector<const Item*> parts_;
};

bool SetsAllItems(const Item& written, std::string_view name, std::span<const ComparedRow> rows,
                  bool of_target) {
  Index index(*written.shape);
  for (const ComparedRow& row : rows) {
    const Slot<Item>& item = measure::SideOf(row, of_target);
    if (!item || !measure::IsInput(*item)) continue;
    const std::string_view own = measure::ShortName(*item, name);
    if (own == "input.1" || own.starts_with("input.1.")) index.Add(*item);
  }
  return index.NamesAll();
}

// x.index_copy_(dimension, index, source)
bool CopiesToAll(const Item& written, std::string_view name, std::span<const ComparedRow> rows,
                 bool of_target) {
  const Item* dimension = ArgumentOf(rows, name, of_target, 1, "dim");
  const Item* index = ArgumentOf(rows, name, of_target, 2, "index");
  if (dimension == nullptr || index == nullptr || !index->is_tensor) return false;
  auto place = NumberOf(dimension->statistics[0]).value_or(-0.5);
  const auto count = static_cast<double>(written.shape->size());
  if (place < 0) place += count;
  if (!(place >= 0 && place < count) || place != std::floor(place)) return false;
  return NamesEachPlace(*index, (*written.shape)[static_cast<size_t>(place)]);
}

bool IsReplacedOn(const Item& written, std::string_view name, std::span<const ComparedRow> rows,
                  bool of_target) {
  const std::string_view own = measure::ShortName(written, name);
  if (own == "input.out" || own == "kwargs.out") {
    return name.starts_with("Torch.") || name.starts_with("Functional.");
  }
  if (own != "input.0") return false;
  const std::string_view api = measure::ApiOfCall(name);
  if (api == "__setitem__") return SetsAllItems(written, name, rows, of_target);
  if (api == "index_copy_") return CopiesToAll(written, name, rows, of_target);
  return std::ranges::find(kWrites, api) != kWrites.end();
}

}  // namespace

bool IsOverwritten(const ComparedRow& row, std::string_view name,
                   std::span<const ComparedRow> rows) {
  if (!measure::IsInput(row) || !measure::HasTensors(row)) return false;
  if (KindOfCall(name) != CallKind::kForward) return false;
  return IsReplacedOn(*row.target, name, rows, true) &&
         IsReplacedOn(*row.golden, name, rows, false);
}

}  // namespace plumbline::pipeline

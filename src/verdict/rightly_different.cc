#include "verdict/rightly_different.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "base/text/text_parts.h"
#include "match/call_align.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/value.h"
#include "verdict/call_rows.h"
#include "verdict/contents.h"
#include "verdict/recomputed.h"

namespace plumbline::verdict {

namespace {

// A call that returns where along a dimension the wanted elements are.
struct Choice {
  std::string_view api;
  size_t dimension;       // place of that argument
  size_t direction = 99;  // place of `largest` or `descending`; 99: none
  bool largest = true;    // unless that argument says otherwise
};
constexpr std::array kChoices = {
    Choice{"topk", 2, 3, true},  Choice{"sort", 1, 2, false},    Choice{"argsort", 1, 2, false},
    Choice{"argmax", 1},         Choice{"argmin", 1, 99, false}, Choice{"max", 1},
    Choice{"min", 1, 99, false},
};

// The calls whose results jump element by element.
constexpr auto kSteps = std::to_array<std::string_view>(
    {"ceil", "eq", "floor", "ge", "gt", "le", "lt", "ne", "round", "sign", "trunc"});

std::string_view PlainApi(std::string_view call_name) {
  std::string_view api = measure::ApiOfCall(call_name);
  if (api.size() > 4 && api.starts_with("__") && api.ends_with("__")) {
    return api.substr(2, api.size() - 4);
  }
  if (api.ends_with('_')) api.remove_suffix(1);
  return api;
}

bool TruthOf(const Item* item, bool otherwise) {
  const bool* truth = item == nullptr ? nullptr : item->statistics.As<bool>(0);
  return truth == nullptr ? otherwise : *truth;
}

// Elements of a tensor as `outer` x `length` x `inner`, chosen along the middle.
struct Layout {
  size_t outer = 1, length = 1, inner = 1;
};

// One side's choice.
struct Chosen {
  Layout read;
  size_t count = 0;  // chosen in each row
  std::vector<double> values, indices;
  bool largest = true;

  [[nodiscard]] size_t rows() const { return read.outer * read.inner; }
  [[nodiscard]] double IndexAt(size_t row, size_t k) const {
    return indices[(row / read.inner * count + k) * read.inner + row % read.inner];
  }
  [[nodiscard]] double ValueAt(size_t row, size_t place) const {
    return values[(row / read.inner * read.length + place) * read.inner + row % read.inner];
  }
};

// Nothing where a dimension is named of which `shape` has none.
std::optional<Layout> LayoutOf(const Shape& shape, const Item* dimension, bool whole_if_absent) {
  Layout layout;
  if (dimension == nullptr || !dimension->dtype) {
    if (whole_if_absent || shape.empty()) {
      for (const int64_t size : shape) layout.length *= static_cast<size_t>(size);
      return layout;
    }
  }
  const bool is_given = dimension != nullptr && dimension->dtype;
  const auto number = is_given ? NumberOf(dimension->statistics[0]) : std::optional(-1.0);
  const auto count = static_cast<double>(shape.size());
  if (!number || std::floor(*number) != *number) return std::nullopt;
  const double at = *number < 0 ? *number + count : *number;
  if (!(at >= 0 && at < count)) return std::nullopt;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = static_cast<size_t>(shape[i]);
    (i < static_cast<size_t>(at) ? layout.outer : layout.inner) *= size;
  }
  layout.length = static_cast<size_t>(shape[static_cast<size_t>(at)]);
  layout.inner /= std::max<size_t>(layout.length, 1);
  return layout;
}

std::optional<Chosen> ChosenOn(const Comparison& comparison, const ComparedRow& row,
                               const Choice& choice, bool of_target) {
  const ComparedCall& call = comparison.calls[row.call];
  const Text& name = measure::NameOn(call, of_target);
  const auto rows = measure::RowsOf(comparison, call);
  const Item* read = ArgumentOf(rows, name, of_target, 0, "input");
  if (read == nullptr || !read->is_tensor) return std::nullopt;
  const bool is_whole = choice.api.starts_with("arg") && choice.api != "argsort";
  const auto layout =
      LayoutOf(read->shape, ArgumentOf(rows, name, of_target, choice.dimension, "dim"), is_whole);
  auto values = RecordedElements(comparison, *read, of_target);
  auto indices = RecordedElements(comparison, *measure::SideOf(row, of_target), of_target);
  if (!layout || !values || !indices || layout->length == 0) return std::nullopt;
  Chosen chosen{*layout, 0, std::move(*values), std::move(*indices), choice.largest};
  if (chosen.rows() == 0 || chosen.indices.size() % chosen.rows() != 0) return std::nullopt;
  chosen.count = chosen.indices.size() / chosen.rows();
  const std::string_view keyword = choice.api == "topk" ? "largest" : "descending";
  chosen.largest =
      TruthOf(choice.direction < 99 ? ArgumentOf(rows, name, of_target, choice.direction, keyword)
                                    : nullptr,
              choice.largest);
  return chosen;
}

// Whether the chosen places of a row hold the wanted elements: no place twice, and none left out
// that holds a better one. `is_sorted`: in the wanted order.
bool IsRight(const Chosen& chosen, size_t row, bool is_sorted) {
  std::vector<bool> is_chosen(chosen.read.length, false);
  const double sign = chosen.largest ? 1 : -1;
  double least = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < chosen.count; ++k) {
    const double index = chosen.IndexAt(row, k);
    if (!(index >= 0 && index < static_cast<double>(chosen.read.length))) return false;
    const auto place = static_cast<size_t>(index);
    const double value = sign * chosen.ValueAt(row, place);
    if (is_chosen[place] || std::isnan(value) || (is_sorted && value > least)) return false;
    is_chosen[place] = true;
    least = std::min(least, value);
  }
  for (size_t place = 0; place < chosen.read.length; ++place) {
    if (!is_chosen[place] && !(sign * chosen.ValueAt(row, place) <= least)) return false;
  }
  return true;
}

// Where what is chosen otherwise, or `all`, is chosen rightly on both sides.
std::optional<std::string> FlippedRows(const Chosen& target, const Chosen& golden, bool is_sorted,
                                       bool all) {
  size_t flipped = 0;
  for (size_t i = 0; i < golden.rows(); ++i) {
    bool differs = false;
    for (size_t k = 0; k < golden.count; ++k) {
      differs = differs || target.IndexAt(i, k) != golden.IndexAt(i, k);
    }
    if (!differs && !all) continue;
    if (!IsRight(target, i, is_sorted) || !IsRight(golden, i, is_sorted)) return std::nullopt;
    flipped += differs ? 1 : 0;
  }
  return fmt::format("routing flip: {} of {} rows", flipped, golden.rows());
}

std::optional<std::string> RoutingFlip(const Comparison& comparison, const ComparedRow& row,
                                       const Choice& choice) {
  const auto target = ChosenOn(comparison, row, choice, true);
  const auto golden = target ? ChosenOn(comparison, row, choice, false) : std::nullopt;
  if (!golden || golden->rows() != target->rows() || golden->count != target->count) {
    return std::nullopt;
  }
  return FlippedRows(*target, *golden, choice.api.ends_with("sort"), /*all=*/false);
}

// Of the indices that a module returns beside scores which agree: where they are those of the
// largest scores in all rows, by these it chose.
std::optional<std::string> FlipBesideScores(const Comparison& comparison, const ComparedRow& row) {
  const Shape& chosen = *row.golden->shape;
  if (chosen.empty() || !measure::IsExact(*row.target, *row.golden)) return std::nullopt;
  const auto side = [&](const ComparedRow& scores, bool of_target) -> std::optional<Chosen> {
    const Shape& read = *scores.golden->shape;
    auto values = RecordedElements(comparison, *measure::SideOf(scores, of_target), of_target);
    auto indices = RecordedElements(comparison, *measure::SideOf(row, of_target), of_target);
    if (!values || !indices || values->empty() || indices->empty()) return std::nullopt;
    const auto length = static_cast<size_t>(read.back());
    return Chosen{{values->size() / length, length, 1},
                  static_cast<size_t>(chosen.back()),
                  std::move(*values),
                  std::move(*indices)};
  };
  for (const ComparedRow& each : measure::RowsOf(comparison, comparison.calls[row.call])) {
    const bool may_be = measure::HasTensors(each) && measure::IsGood(each.verdict) &&
                        !measure::IsExact(*each.target, *each.golden) &&
                        each.target->shape == each.golden->shape;
    if (!may_be || each.golden->shape->size() != chosen.size()) continue;
    const Shape& read = *each.golden->shape;
    const bool fits = std::equal(read.begin(), read.end() - 1, chosen.begin(), chosen.end() - 1) &&
                      read.back() > chosen.back();
    const auto target = fits ? side(each, true) : std::nullopt;
    const auto golden = target ? side(each, false) : std::nullopt;
    if (!golden) continue;
    if (auto text = FlippedRows(*target, *golden, /*is_sorted=*/false, /*all=*/true)) return text;
  }
  return std::nullopt;
}

// Which elements of the target stand against which of golden's.
struct ElementPairs {
  std::vector<std::pair<double, double>> each;  // sorted, each once
  size_t count = 0, differing = 0;
};

// Nothing where elements are not recorded, or are NaN.
std::optional<ElementPairs> PairsOf(const Comparison& comparison, const ComparedRow& row) {
  const auto target = RecordedElements(comparison, *row.target, true);
  const auto golden = target ? RecordedElements(comparison, *row.golden, false) : std::nullopt;
  if (!golden || golden->size() != target->size()) return std::nullopt;
  ElementPairs pairs;
  pairs.count = golden->size();
  for (size_t i = 0; i < pairs.count; ++i) {
    if (std::isnan((*target)[i]) || std::isnan((*golden)[i])) return std::nullopt;
    pairs.differing += (*target)[i] != (*golden)[i] ? 1 : 0;
    pairs.each.emplace_back((*target)[i], (*golden)[i]);
  }
  std::ranges::sort(pairs.each);
  pairs.each.erase(std::unique(pairs.each.begin(), pairs.each.end()), pairs.each.end());
  return pairs;
}

// As far as the extremes tell.
bool MayBePartOf(const Item& part, const Item& whole) {
  const auto max = NumberOf(part.statistics[0]), max_of_whole = NumberOf(whole.statistics[0]);
  const auto min = NumberOf(part.statistics[1]), min_of_whole = NumberOf(whole.statistics[1]);
  return !(max && max_of_whole && *max > *max_of_whole) &&
         !(min && min_of_whole && *min < *min_of_whole);
}

// Whole repeats show each difference as often as it is repeated.
bool IsPartOrRepeat(const ElementPairs& pairs, const ElementPairs& of_flip) {
  const bool is_part = pairs.count < of_flip.count;
  const bool fits = is_part
                        ? pairs.differing <= of_flip.differing
                        : pairs.count % of_flip.count == 0 &&
                              pairs.differing == pairs.count / of_flip.count * of_flip.differing;
  return fits && std::ranges::includes(of_flip.each, pairs.each);
}

}  // namespace

bool IsTakenFromFlip(const Comparison& comparison, const ComparedRow& row,
                     std::span<const uint32_t> flips) {
  constexpr size_t kMostFlips = 64;
  if (flips.empty() || !measure::HasTensors(row)) return false;
  flips = flips.last(std::min(flips.size(), kMostFlips));
  std::optional<ElementPairs> pairs;
  for (size_t i = flips.size(); i-- > 0;) {
    const ComparedRow& flip = comparison.rows[flips[i]];
    if (!measure::HasTensors(flip) || !MayBePartOf(*row.target, *flip.target) ||
        !MayBePartOf(*row.golden, *flip.golden)) {
      continue;
    }
    if (!pairs) pairs = PairsOf(comparison, row);
    if (!pairs) return false;
    const auto of_flip = PairsOf(comparison, flip);
    if (of_flip && of_flip->count > 0 && IsPartOrRepeat(*pairs, *of_flip)) return true;
  }
  return false;
}

bool IsNearBehindFlip(const Comparison& comparison, const ComparedRow& row, bool is_beside) {
  constexpr uint32_t kMostCalls = 8;
  if (!measure::HasTensors(row) || row.golden->shape->empty()) return false;
  const ComparedCall& call = comparison.calls[row.call];
  const bool is_choice = measure::IsExact(*row.target, *row.golden);
  if (KindOfCall(call.target_name) != CallKind::kForward || row.golden->role != ItemRole::kInput ||
      !(is_choice || measure::ShortName(*row.target, call.target_name) == "input.0")) {
    return false;
  }
  if (is_beside) return true;
  const uint32_t begin = row.call - std::min(row.call, kMostCalls);
  const auto rows = std::span(comparison.rows)
                        .subspan(comparison.calls[begin].first_row,
                                 call.first_row - comparison.calls[begin].first_row);
  return std::ranges::any_of(rows, [&](const ComparedRow& each) {
    return each.reason == kFollowsFlip && measure::HasTensors(each) &&
           !each.golden->shape->empty() &&
           each.golden->shape->front() == row.golden->shape->front();
  });
}

std::optional<std::string> ValidFlip(const Comparison& comparison, const ComparedRow& row) {
  if (comparison.mode != CompareMode::kTensor || comparison.of_saves || !measure::HasTensors(row)) {
    return std::nullopt;
  }
  const Text& name = comparison.calls[row.call].target_name;
  if (KindOfCall(name) != CallKind::kForward || row.target->shape != row.golden->shape) {
    return std::nullopt;
  }
  if (match::IsModuleCall(name)) return FlipBesideScores(comparison, row);
  const std::string_view api = PlainApi(name);
  const auto choice = std::ranges::find(kChoices, api, &Choice::api);
  if (choice != kChoices.end()) {
    // The elements beside the indices are judged as any others.
    if (!measure::IsExact(*row.target, *row.golden)) return std::nullopt;
    return RoutingFlip(comparison, row, *choice);
  }
  const bool is_step = std::ranges::find(kSteps, api) != kSteps.end();
  if (!is_step || !FollowsFromInputs(comparison, row) ||
      !GoldenFollowsFromInputs(comparison, row)) {
    return std::nullopt;
  }
  return fmt::format("flip: {} of {} elements", row.tensor->mismatch_count,
                     row.tensor->element_count);
}

void MarkAsFlip(const std::string& text, ComparedRow& row) {
  row.verdict = Verdict::kWithinNoise;
  row.reason = kFlip;
  row.DropNotes([](std::string_view code) { return code == kFlip; });
  row.AddNote({std::string(kFlip), text});
}

namespace {

// Calls that write over all of their first input, whatever that holds.
constexpr auto kWrites = std::to_array<std::string_view>(
    {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "cauchy_",
     "exponential_", "geometric_", "log_normal_"});

// Calls that write into a part of their first input, or into all of it.
constexpr auto kPartWrites =
    std::to_array<std::string_view>({"__setitem__", "index_copy_", "index_fill_", "index_put_",
                                     "masked_fill_", "masked_scatter_", "put_", "scatter_"});

// Calls that return the memory of their first input, or parts of it.
constexpr auto kViews = std::to_array<std::string_view>(
    {"__getitem__", "as_strided", "chunk",     "detach",  "diagonal",     "expand",
     "flatten",     "movedim",    "narrow",    "permute", "reshape",      "select",
     "split",       "squeeze",    "swapaxes",  "t",       "tensor_split", "transpose",
     "unbind",      "unflatten",  "unsqueeze", "view",    "view_as"});

bool IsAmong(std::span<const std::string_view> names, std::string_view api) {
  return std::ranges::find(names, api) != names.end();
}

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
  const auto* text = slice.statistics.As<Text>(0);
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
    const auto* least = part.statistics.As<bool>(1);
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
  return IsAmong(kWrites, api);
}

// Whether `row` is the first input of a paired forward call among `names`.
bool IsFirstInputOf(std::span<const std::string_view> names, const Comparison& comparison,
                    const ComparedRow& row) {
  const ComparedCall& call = comparison.calls[row.call];
  if (!call.paired() || !measure::HasTensors(row) || row.target->role != ItemRole::kInput) {
    return false;
  }
  return KindOfCall(call.target_name) == CallKind::kForward &&
         measure::ShortName(*row.target, call.target_name) == "input.0" &&
         IsAmong(names, measure::ApiOfCall(call.target_name));
}

// Whether a tensor is given as the argument `place`, as "0.1" or "tensor".
bool HasTensorNamed(std::span<const ComparedRow> rows, std::string_view call_name,
                    std::string_view place) {
  return std::ranges::any_of(rows, [&](const ComparedRow& each) {
    if (!measure::HasTensors(each) || !measure::IsInput(each)) return false;
    const std::string_view name = measure::ShortName(*each.target, call_name);
    return name.substr(std::min(name.size(), name.find('.') + 1)) == place;
  });
}

// Whether the call is communication of which an argument holds something only after it.
bool Receives(const Comparison& comparison, const ComparedCall& call) {
  constexpr std::string_view kOutput = "output.";
  if (!call.paired() || !call.target_name.starts_with("Distributed.")) return false;
  const auto rows = measure::RowsOf(comparison, call);
  return std::ranges::any_of(rows, [&](const ComparedRow& row) {
    if (!measure::HasTensors(row) || measure::IsInput(row)) return false;
    const std::string_view own = measure::ShortName(*row.target, call.target_name);
    return own.starts_with(kOutput) &&
           !HasTensorNamed(rows, call.target_name, own.substr(kOutput.size()));
  });
}

// Follows memory that may be unwritten through the calls behind the one of `row`.
class Memory {
 public:
  Memory(const Comparison& comparison, const ComparedRow& row)
      : comparison_(comparison), whole_(row) {
    Add(row);
    place_ = PlaceOf(row.call);
    Follow(row.call);
  }

  // Whether what the call of `row` returns of the memory agrees.
  [[nodiscard]] bool IsViewGood() const { return place_ && ReturnsWhatAgrees(whole_.call); }

  // Adds what call number `call` views of the memory, or, of the place of a `narrow`, of views.
  void Follow(uint32_t call) {
    if (!comparison_.calls[call].paired() || (call != whole_.call && !place_)) return;
    const auto rows = measure::RowsOf(comparison_, comparison_.calls[call]);
    const bool is_view = std::ranges::any_of(rows, [&](const ComparedRow& each) {
      return IsViewed(comparison_, each) && IsHeld(each);
    });
    if (!is_view && call != whole_.call) return;
    for (const ComparedRow& each : rows) {
      if (measure::IsInput(each) || !measure::HasTensors(each) || Agrees(each)) continue;
      Add(each);
      views_.push_back(&each);
      if (call == whole_.call) parts_.push_back(&each);
    }
  }

  // Whether a later `narrow` of the memory takes the place that the first one takes, or one around
  // it, and returns what agrees: it was written in between, or is nothing but right.
  [[nodiscard]] bool IsPlaceGoodIn(uint32_t call,
                                   const std::function<bool(const Item&)>& is_known) const {
    const std::optional<Place> later = place_ && call != whole_.call ? PlaceOf(call) : std::nullopt;
    if (!later || later->dimension != place_->dimension || later->begin > place_->begin ||
        later->end < place_->end) {
      return false;
    }
    const auto rows = measure::RowsOf(comparison_, comparison_.calls[call]);
    const bool is_of_memory = std::ranges::any_of(rows, [&](const ComparedRow& each) {
      if (!IsViewed(comparison_, each) || !IsOfForm(*each.target, *whole_.target)) return false;
      const std::optional<ContentKey> key = KeyOf(*each.golden);
      return key && !made_.contains(*key) && !is_known(*each.golden);
    });
    return is_of_memory && ReturnsWhatAgrees(call);
  }

  // Whether `row` reads a tensor of the form of the place of a `narrow`, or of a view of that, which
  // agrees and which no recorded call computed.
  bool IsPartGoodIn(const ComparedRow& row, const std::function<bool(const Item&)>& is_known) {
    if (!place_ || row.call == whole_.call || !measure::HasTensors(row)) return false;
    if (!comparison_.calls[row.call].paired()) return false;
    const bool is_of_part = std::ranges::any_of(views_, [&](const ComparedRow* each) {
      return IsOfForm(*row.target, *each->target) && IsOfForm(*row.golden, *each->golden);
    });
    const std::optional<ContentKey> key = is_of_part ? KeyOf(*row.golden) : std::nullopt;
    if (!key) return false;
    if (!measure::IsInput(row)) {
      const std::string_view api = measure::ApiOfCall(comparison_.calls[row.call].target_name);
      if (!IsAmong(kViews, api)) computed_.insert(*key);
      return false;
    }
    return !computed_.contains(*key) && !is_known(*row.golden) && Agrees(row);
  }

  // Whether a call but views and writes reads what is in the memory. Another value on one side is
  // judged there.
  [[nodiscard]] bool IsReadIn(const ComparedRow& row) const {
    if (!measure::IsInput(row)) return false;
    const bool is_read = std::ranges::any_of(contents_, [&](const Contents& each) {
      const bool by_target = row.target && Holds(*row.target, each.target);
      const bool by_golden = row.golden && Holds(*row.golden, each.golden);
      if (row.target && row.golden) return by_target && by_golden;
      return (by_target || by_golden) && IsTelling(row.item());
    });
    if (!is_read || IsViewedOrWritten(comparison_, row)) return false;
    const ComparedCall& call = comparison_.calls[row.call];
    return !call.paired() ||
           !IsOverwritten(row, call.target_name, measure::RowsOf(comparison_, call));
  }

  // Whether `row` shows the memory when it is whole, or what is written into it differs.
  // `is_received`: its call is communication that receives.
  bool IsToldBy(const ComparedRow& row, bool is_received,
                const std::function<bool(const Item&)>& is_known) {
    if (!comparison_.calls[row.call].paired() || !measure::HasTensors(row)) return false;
    const bool is_input = measure::IsInput(row);
    const bool is_of_write = IsOfWrite(row);
    if (is_input && is_of_write && !IsViewedOrWritten(comparison_, row)) {
      return IsOfMemory(row) && !Agrees(row);  // what is written
    }
    if (is_received) return IsOfMemoryOrPart(row) && Agrees(row);
    if (!IsOfForm(*row.target, *whole_.target) || !IsOfForm(*row.golden, *whole_.golden)) {
      return false;
    }
    const std::optional<ContentKey> key = KeyOf(*row.golden);
    if (!key || made_.contains(*key) || (is_input && is_known(*row.golden))) return false;
    if (is_input || is_of_write) return Agrees(row);
    made_.insert(*key);
    return false;
  }

 private:
  struct Contents {
    std::optional<ContentKey> target, golden;
  };
  // What a `narrow` takes, the same on both sides.
  struct Place {
    double dimension = 0, begin = 0, end = 0;
  };

  [[nodiscard]] std::optional<Place> PlaceOf(uint32_t call) const {
    const ComparedCall& narrow = comparison_.calls[call];
    if (!narrow.paired() || KindOfCall(narrow.target_name) != CallKind::kForward ||
        measure::ApiOfCall(narrow.target_name) != "narrow") {
      return std::nullopt;
    }
    std::array<std::optional<double>, 4> numbers;
    for (const ComparedRow& row : measure::RowsOf(comparison_, narrow)) {
      if (!row.target || !row.golden || !measure::IsInput(row)) continue;
      const std::string_view own = measure::ShortName(*row.target, narrow.target_name);
      for (size_t i = 1; i < numbers.size(); ++i) {
        if (own != fmt::format("input.{}", i)) continue;
        numbers[i] = NumberOf(row.target->statistics[0]);
        if (numbers[i] != NumberOf(row.golden->statistics[0])) return std::nullopt;
      }
    }
    if (!numbers[1] || !numbers[2] || !numbers[3] || *numbers[2] < 0) return std::nullopt;
    return Place{*numbers[1], *numbers[2], *numbers[2] + *numbers[3]};
  }
  [[nodiscard]] bool ReturnsWhatAgrees(uint32_t call) const {
    bool returns = false;
    for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[call])) {
      if (measure::IsInput(row) || !measure::HasTensors(row)) continue;
      if (!Agrees(row)) return false;
      returns = true;
    }
    return returns;
  }
  [[nodiscard]] bool IsHeld(const ComparedRow& row) const {
    return row.target && row.golden &&
           std::ranges::any_of(contents_, [&](const Contents& each) {
             return Holds(*row.target, each.target) && Holds(*row.golden, each.golden);
           });
  }

  void Add(const ComparedRow& row) {
    contents_.push_back({KeyOf(*row.target), KeyOf(*row.golden)});
  }
  static bool Holds(const Item& item, const std::optional<ContentKey>& key) {
    return key && KeyOf(item) == key;
  }
  static bool IsOfForm(const Item& item, const Item& other) {
    return item.dtype == other.dtype && item.shape_text == other.shape_text;
  }
  // Up to what two runs may differ by; it is judged where it stands.
  static bool Agrees(const ComparedRow& row) {
    const auto target = KeyOf(*row.target), golden = KeyOf(*row.golden);
    if (!target || !golden) return false;
    if (*target == *golden) return true;
    constexpr size_t kNorm = 3;
    for (const Item* item : {&*row.target, &*row.golden}) {
      if (!NumberOf(item->statistics[kNorm])) return false;
    }
    const double apart =
        measure::StatisticError(row.target->statistics, row.golden->statistics,
                                static_cast<int64_t>(measure::ElementsOf(*row.golden)));
    return apart <= measure::LargestNoise(measure::RoundoffOf(*row.target, *row.golden));
  }
  [[nodiscard]] bool IsOfWrite(const ComparedRow& row) const {
    const Text& name = comparison_.calls[row.call].target_name;
    return KindOfCall(name) == CallKind::kForward && IsAmong(kPartWrites, measure::ApiOfCall(name));
  }
  [[nodiscard]] bool IsOfMemoryOrPart(const ComparedRow& row) const {
    const auto is_of = [&](const ComparedRow& each) {
      return IsOfForm(*row.target, *each.target) && IsOfForm(*row.golden, *each.golden);
    };
    return is_of(whole_) ||
           std::ranges::any_of(parts_, [&](const ComparedRow* each) { return is_of(*each); });
  }
  // Whether the call of `row`, a write into a part, writes into a tensor of this form.
  [[nodiscard]] bool IsOfMemory(const ComparedRow& row) const {
    const auto rows = measure::RowsOf(comparison_, comparison_.calls[row.call]);
    return std::ranges::any_of(rows, [&](const ComparedRow& each) {
      return IsFirstInputOf(kPartWrites, comparison_, each) &&
             IsOfForm(*each.golden, *whole_.golden);
    });
  }

  const Comparison& comparison_;
  const ComparedRow& whole_;
  std::optional<Place> place_;             // that the call of `whole_` takes
  std::unordered_set<ContentKey, ContentKeyHash> computed_;  // golden's, of the form of a part
  std::vector<const ComparedRow*> parts_;  // what is viewed of it
  std::vector<const ComparedRow*> views_;  // and what is viewed of that
  std::vector<Contents> contents_;
  std::unordered_set<ContentKey, ContentKeyHash> made_;  // golden's, by calls
};

}  // namespace

bool IsBeforeReceiver(const Comparison& comparison, const ComparedRow& row) {
  constexpr size_t kMostCalls = 16;
  const auto calls = std::span(comparison.calls).subspan(row.call + 1);
  return std::ranges::any_of(calls.first(std::min(calls.size(), kMostCalls)),
                             [&](const ComparedCall& call) { return Receives(comparison, call); });
}

bool IsViewed(const Comparison& comparison, const ComparedRow& row) {
  return IsFirstInputOf(kViews, comparison, row);
}

bool IsViewedOrWritten(const Comparison& comparison, const ComparedRow& row) {
  return IsViewed(comparison, row) || IsFirstInputOf(kPartWrites, comparison, row);
}

bool IsUnwritten(const Comparison& comparison, const ComparedRow& row, bool is_of_unwritten,
                 bool is_of_known_form,
                 const std::function<bool(const Item& golden)>& is_known) {
  constexpr size_t kMostCalls = 256;
  if (!IsViewedOrWritten(comparison, row)) return false;
  Memory memory(comparison, row);
  bool is_told = is_of_unwritten || (is_of_known_form && memory.IsViewGood());
  const size_t end = std::min(comparison.calls.size(), size_t{row.call} + 1 + kMostCalls);
  for (size_t i = row.call; i < end; ++i) {
    const auto rows = measure::RowsOf(comparison, comparison.calls[i]);
    for (const ComparedRow& each : rows) {
      if (i != row.call && memory.IsReadIn(each)) return false;
    }
    const bool is_received = !is_told && Receives(comparison, comparison.calls[i]);
    for (const ComparedRow& each : rows) {
      is_told = is_told || memory.IsToldBy(each, is_received, is_known);
    }
    is_told = is_told || memory.IsPlaceGoodIn(static_cast<uint32_t>(i), is_known);
    for (const ComparedRow& each : rows) {
      is_told = memory.IsPartGoodIn(each, is_known) || is_told;
    }
    if (i != row.call) memory.Follow(static_cast<uint32_t>(i));
    if (is_told && !is_of_unwritten) return true;
  }
  return is_told;
}

bool IsOverwritten(const ComparedRow& row, std::string_view name,
                   std::span<const ComparedRow> rows) {
  if (!measure::IsInput(row) || !measure::HasTensors(row)) return false;
  if (KindOfCall(name) != CallKind::kForward) return false;
  return IsReplacedOn(*row.target, name, rows, true) &&
         IsReplacedOn(*row.golden, name, rows, false);
}

}  // namespace plumbline::verdict

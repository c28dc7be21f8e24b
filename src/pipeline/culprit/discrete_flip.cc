#include "pipeline/culprit/discrete_flip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "pipeline/culprit/call_arguments.h"
#include "pipeline/culprit/recomputed_call.h"
#include "pipeline/culprit/recorded_elements.h"
#include "record/recorded_number.h"
#include "record/value.h"

namespace plumbline::pipeline {
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
  const bool* truth = item == nullptr ? nullptr : std::get_if<bool>(&item->statistics[0]);
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
  const std::string& name = measure::NameOn(call, of_target);
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

std::optional<std::string> RoutingFlip(const Comparison& comparison, const ComparedRow& row,
                                       const Choice& choice) {
  const auto target = ChosenOn(comparison, row, choice, true);
  const auto golden = target ? ChosenOn(comparison, row, choice, false) : std::nullopt;
  if (!golden || golden->rows() != target->rows() || golden->count != target->count) {
    return std::nullopt;
  }
  const bool is_sorted = choice.api.ends_with("sort");
  size_t flipped = 0;
  for (size_t i = 0; i < golden->rows(); ++i) {
    bool differs = false;
    for (size_t k = 0; k < golden->count; ++k) {
      differs = differs || target->IndexAt(i, k) != golden->IndexAt(i, k);
    }
    if (!differs) continue;
    if (!IsRight(*target, i, is_sorted) || !IsRight(*golden, i, is_sorted)) return std::nullopt;
    ++flipped;
  }
  return fmt::format("routing flip: {} of {} rows", flipped, golden->rows());
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

std::optional<std::string> ValidFlip(const Comparison& comparison, const ComparedRow& row) {
  if (comparison.mode != CompareMode::kTensor || comparison.of_saves || !measure::HasTensors(row)) {
    return std::nullopt;
  }
  const std::string& name = comparison.calls[row.call].target_name;
  if (KindOfCall(name) != CallKind::kForward || row.target->shape != row.golden->shape) {
    return std::nullopt;
  }
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
  std::erase_if(row.notes, [](const Note& note) { return note.code == kFlip; });
  row.notes.push_back({std::string(kFlip), text});
}

}  // namespace plumbline::pipeline

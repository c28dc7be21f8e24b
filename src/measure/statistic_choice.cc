#include "measure/statistic_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <variant>

namespace plumbline::measure {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"max", "min", "mean", "norm"};
constexpr size_t kFewestTensors = 2;

// Of one side: in how many tensors a statistic may be, and in how many it is.
struct Counts {
  std::array<size_t, 4> due{}, there{};

  [[nodiscard]] bool Lacks(size_t i) const { return due[i] >= kFewestTensors && there[i] == 0; }
  [[nodiscard]] bool HasAll() const { return std::ranges::none_of(there, std::logical_not()); }
};

bool IsThere(const Recorded& value) { return !std::holds_alternative<std::monostate>(value); }

void Count(const Slot<Item>& item, Counts& counts) {
  if (!item || !item->is_tensor || std::ranges::none_of(item->statistics, IsThere)) return;
  for (size_t i = 0; i < kNames.size(); ++i) {
    const bool is_extreme = i < 2;
    if (IsThere(item->statistics[i])) {
      ++counts.there[i];
    } else if (!is_extreme && MayLackMean(*item)) {
      continue;
    }
    ++counts.due[i];
  }
}

bool Any(const StatisticSet& set) { return std::ranges::any_of(set, std::identity()); }

// "max", "max and mean", "max, min and mean".
std::string NamesOf(const StatisticSet& set) {
  std::string text;
  const auto count = static_cast<size_t>(std::ranges::count(set, true));
  size_t shown = 0;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (!set[i]) continue;
    if (shown > 0) text += shown + 1 == count ? " and " : ", ";
    text += kNames[i];
    ++shown;
  }
  return text;
}

}  // namespace

bool StatisticChoice::is_complete() const { return !Any(target_lacks) && !Any(golden_lacks); }

StatisticSet StatisticChoice::left_out() const {
  StatisticSet set{};
  for (size_t i = 0; i < set.size(); ++i) set[i] = target_lacks[i] || golden_lacks[i];
  return set;
}

StatisticChoice ChoiceOf(std::span<const ComparedRow> rows) {
  Counts target, golden;
  for (const ComparedRow& row : rows) {
    Count(row.target, target);
    Count(row.golden, golden);
    if (target.HasAll() && golden.HasAll()) return {};
  }
  StatisticChoice choice;
  size_t left = 0;
  for (size_t i = 0; i < kNames.size(); ++i) {
    choice.target_lacks[i] = target.Lacks(i) && golden.there[i] > 0;
    choice.golden_lacks[i] = golden.Lacks(i) && target.there[i] > 0;
    left += target.there[i] > 0 && golden.there[i] > 0 ? 1 : 0;
  }
  return left > 0 ? choice : StatisticChoice();
}

std::string ChoiceText(const StatisticChoice& choice) {
  std::string text;
  const auto add = [&](std::string_view side, const StatisticSet& lacks) {
    if (!Any(lacks)) return;
    text += fmt::format("{}the {} has no {}", text.empty() ? "" : ", ", side, NamesOf(lacks));
  };
  add("target", choice.target_lacks);
  add("golden", choice.golden_lacks);
  StatisticSet compared = choice.left_out();
  for (bool& each : compared) each = !each;
  return fmt::format("{}: only {} {} compared", text, NamesOf(compared),
                     std::ranges::count(compared, true) == 1 ? "was" : "were");
}

bool AreXorDigests(std::span<const ComparedRow> rows) {
  const auto is_xor = [](const Slot<Item>& item) {
    return item && item->is_tensor && item->digest.view().starts_with("0x");
  };
  return std::ranges::any_of(
      rows, [&](const ComparedRow& row) { return is_xor(row.target) || is_xor(row.golden); });
}

bool MayLackMean(const Item& item) {
  const std::optional<DType> dtype = item.dtype ? ParseDType(*item.dtype) : std::nullopt;
  if (!dtype) return false;
  return InfoOf(*dtype).kind != DTypeKind::kFloat || *dtype == DType::kFloat64 ||
         InfoOf(*dtype).size_bytes == 1;
}

}  // namespace plumbline::measure

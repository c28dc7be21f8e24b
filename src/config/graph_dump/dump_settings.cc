#include "config/graph_dump/dump_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text/text_parts.h"

namespace plumbline::graph_dump {

namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kCharacters = "0123456789-|";
constexpr std::string_view kExpected = "\"all\", or numbers and ranges such as \"0|5-8\"";

// MindSpore keeps iterations in 32 bits.
std::optional<uint64_t> NumberOf(std::string_view text) {
  const std::optional<int64_t> number = ParseNatural(text);
  if (!number || *number > int64_t{std::numeric_limits<uint32_t>::max()}) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

void AddItem(std::string_view item, Iterations& out) {
  const auto never = [&](std::string_view why) {
    out.warnings.push_back(fmt::format("item \"{}\" can never match: {}", item, why));
  };
  if (item.empty()) {
    out.warnings.emplace_back("an empty item between two '|' is ignored");
    return;
  }
  const std::vector<std::string_view> ends = SplitAt(item, '-');
  if (ends.size() > 2 || !std::ranges::all_of(ends, IsDigits)) {
    never("it is neither a number nor a range of two numbers");
    return;
  }
  const std::optional<uint64_t> first = NumberOf(ends.front()), last = NumberOf(ends.back());
  if (!first || !last) {
    never("a number has more than 32 bits");
  } else if (*first > *last) {
    never("it ends before it begins");
  } else {
    out.ranges.emplace_back(*first, *last);
  }
}

}  // namespace

bool Iterations::Contains(uint64_t iteration) const {
  return all || std::ranges::any_of(ranges, [&](const auto& range) {
           return range.first <= iteration && iteration <= range.second;
         });
}

Result<Iterations> ParseIterations(std::string_view text) {
  Iterations out;
  if (text == kAll) {
    out.all = true;
    return out;
  }
  if (text.empty()) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("is empty (expected {})", kExpected));
  }
  const size_t bad = text.find_first_not_of(kCharacters);
  if (bad != std::string_view::npos) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("is \"{}\", with '{}' at position {} (expected {})", text, text[bad],
                             bad, kExpected));
  }
  for (const std::string_view item : SplitAt(text, '|')) AddItem(item, out);
  return out;
}

std::string IterationText(std::span<const int64_t> numbers, bool with_ranges) {
  if (numbers.empty()) return std::string(kAll);
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (with_ranges && last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    if (!text.empty()) text += '|';
    text += std::to_string(numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace plumbline::graph_dump

#include "watch/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text_parts.h"

namespace plumbline::watch {

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "";
}

Result<NumberList> NumberList::Parse(std::string_view text) {
  NumberList list;
  const std::string_view trimmed = Trimmed(text);
  if (trimmed.empty() || trimmed == "all") return list;
  constexpr int64_t kLast = INT64_MAX;
  for (std::string_view part : SplitAt(trimmed, ',')) {
    part = Trimmed(part);
    const size_t dash = part.find('-');
    const std::string_view first = part.substr(0, std::min(dash, part.size()));
    const std::string_view last = dash == std::string_view::npos ? first : part.substr(dash + 1);
    const auto from = first.empty() ? std::optional<int64_t>(0) : ParseNatural(first);
    const auto to = last.empty() ? std::optional<int64_t>(kLast) : ParseNatural(last);
    const bool is_nothing = first.empty() && last.empty();
    if (is_nothing || !from || !to || *from > *to) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("is \"{}\" (expected numbers such as 3,5-8,10-)", text));
    }
    list.parts_.push_back({*from, *to});
  }
  return list;
}

bool NumberList::Holds(int64_t number) const {
  if (parts_.empty()) return true;
  return std::ranges::any_of(
      parts_, [&](const Part& part) { return part.first <= number && number <= part.last; });
}

std::string NumberList::MissingFrom(const std::set<int64_t>& there) const {
  std::string text;
  for (const Part& part : parts_) {
    const auto found = there.lower_bound(part.first);
    if (found != there.end() && *found <= part.last) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", part.first);
    if (part.last == INT64_MAX) {
      text += '-';
    } else if (part.last != part.first) {
      text += fmt::format("-{}", part.last);
    }
  }
  return text;
}

namespace {

// Length of the class "[...]" at the start of `pattern`, and whether it holds `c`; 0: it is none.
size_t MatchClass(std::string_view pattern, char c, bool& holds) {
  const size_t end = pattern.find(']', 2);
  if (end == std::string_view::npos) return 0;
  std::string_view inside = pattern.substr(1, end - 1);
  const bool is_negated = inside.starts_with('!');
  if (is_negated) inside.remove_prefix(1);
  holds = false;
  for (size_t i = 0; i < inside.size(); ++i) {
    const bool is_span = i + 2 < inside.size() && inside[i + 1] == '-';
    holds = holds || (is_span ? inside[i] <= c && c <= inside[i + 2] : inside[i] == c);
    if (is_span) i += 2;
  }
  holds = holds != is_negated;
  return end + 1;
}

// Whether all of `name` is described, with * ? and [...].
bool MatchesWhole(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, back = 0;
  while (n < name.size()) {
    bool holds = false;
    size_t step = 0;
    if (p < pattern.size()) {
      if (pattern[p] == '*') {
        star = p++;
        back = n;
        continue;
      }
      if (pattern[p] == '[') step = MatchClass(pattern.substr(p), name[n], holds);
      if (step == 0) {
        step = 1;
        holds = pattern[p] == '?' || pattern[p] == name[n];
      }
    }
    if (holds) {
      p += step;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++back;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  const bool from_start = pattern.starts_with('^'), to_end = pattern.ends_with('$');
  if (from_start) pattern.remove_prefix(1);
  if (to_end) pattern.remove_suffix(1);
  if (pattern.find_first_of("*?[") == std::string_view::npos) {
    if (from_start && to_end) return name == pattern;
    if (from_start) return name.starts_with(pattern);
    if (to_end) return name.ends_with(pattern);
    return name.find(pattern) != std::string_view::npos;
  }
  std::string whole;
  if (!from_start) whole += '*';
  whole += pattern;
  if (!to_end) whole += '*';
  return MatchesWhole(whole, name);
}

}  // namespace plumbline::watch

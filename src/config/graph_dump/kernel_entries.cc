#include "config/graph_dump/kernel_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text_parts.h"

namespace plumbline::graph_dump {
namespace {

constexpr std::string_view kRegexStart = "name-regex(";
constexpr std::string_view kOpMark = "-op";
// The standard library compiles and matches by recursion, which deep ones would carry too far.
constexpr size_t kLongestExpression = 1000;
constexpr size_t kLongestName = 4096;

std::string Cleaned(std::string text) {
  std::erase(text, '"');
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

EntryKind KindOfEntry(std::string_view text) {
  if (text.starts_with(kRegexStart) && text.ends_with(')')) return EntryKind::kRegex;
  const bool is_plain =
      text.find('/') == std::string_view::npos && text.find(kOpMark) == std::string_view::npos;
  return is_plain ? EntryKind::kType : EntryKind::kName;
}

// The standard library reports a bad expression by an exception; it ends here.
std::optional<std::regex_constants::error_type> Compile(std::string_view text, std::regex& out) {
  try {
    out.assign(text.begin(), text.end(), std::regex::ECMAScript);
    return std::nullopt;
  } catch (const std::regex_error& error) {
    return error.code();
  }
}

struct Opener {
  char bracket;
  size_t at;
};

// Where brackets do not fit each other: one that is never closed, or that closes nothing.
std::optional<size_t> LooseBracket(std::string_view text) {
  std::vector<Opener> open;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool in_class = !open.empty() && open.back().bracket == '[';
    if (text[i] == '\\') {
      ++i;
    } else if (in_class) {
      if (text[i] == ']') open.pop_back();
    } else if (text[i] == '[' || text[i] == '(') {
      open.push_back({text[i], i});
    } else if (text[i] == ')') {
      if (open.empty()) return i;
      open.pop_back();
    }
  }
  if (open.empty()) return std::nullopt;
  return open.back().at;
}

// The character with which the shortest beginning stops being an expression for this reason.
size_t PositionOf(std::string_view text, std::regex_constants::error_type reason) {
  if (const std::optional<size_t> loose = LooseBracket(text)) return *loose;
  std::regex unused;
  for (size_t size = 1; size < text.size(); ++size) {
    if (Compile(text.substr(0, size), unused) == reason) return size - 1;
  }
  return text.empty() ? 0 : text.size() - 1;
}

// The part of a full name that types are looked for in: behind the last '/', before the last '-'.
std::string_view OwnName(std::string_view full_name) {
  const size_t slash = full_name.rfind('/');
  if (slash != std::string_view::npos) full_name.remove_prefix(slash + 1);
  return full_name.substr(0, full_name.rfind('-'));
}

}  // namespace

Result<KernelEntries> KernelEntries::Parse(const std::vector<std::string>& entries) {
  KernelEntries out;
  for (size_t i = 0; i < entries.size(); ++i) {
    std::string text = Cleaned(entries[i]);
    if (text.empty()) {
      out.warnings_.push_back(fmt::format("kernels[{}]: is empty and ignored", i));
      continue;
    }
    const bool is_known =
        std::ranges::any_of(out.entries_, [&](const Entry& known) { return known.text == text; });
    if (is_known) {
      out.warnings_.push_back(fmt::format("kernels[{}]: \"{}\" is there twice", i, text));
      continue;
    }
    Entry entry{i, text, KindOfEntry(text), LowerCase(text), {}};
    if (entry.kind == EntryKind::kRegex && text.size() > kLongestExpression) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("kernels[{}]: an expression of {} characters (expected at most {})",
                               i, text.size(), kLongestExpression));
    }
    if (entry.kind == EntryKind::kRegex) {
      const std::string_view inner =
          std::string_view(text).substr(kRegexStart.size(), text.size() - kRegexStart.size() - 1);
      if (const auto reason = Compile(inner, entry.expression)) {
        return Error(ErrorCode::kInvalidArgument,
                     fmt::format("kernels[{}]: \"{}\" is no regular expression from position {} on "
                                 "(expected ECMAScript syntax)",
                                 i, text, kRegexStart.size() + PositionOf(inner, *reason)));
      }
    } else if (text.starts_with(kRegexStart)) {
      out.warnings_.push_back(fmt::format(
          "kernels[{}]: \"{}\" does not end in ')' and is no expression but a name", i, text));
    }
    out.entries_.push_back(std::move(entry));
  }
  return out;
}

bool KernelEntries::Matches(const Entry& entry, std::string_view full_name) {
  switch (entry.kind) {
    case EntryKind::kRegex:
      return full_name.size() <= kLongestName &&
             std::regex_match(full_name.begin(), full_name.end(), entry.expression);
    case EntryKind::kName:
      return entry.text == full_name;
    case EntryKind::kType:
      break;
  }
  return LowerCase(OwnName(full_name)).find(entry.lower) != std::string::npos;
}

std::optional<size_t> KernelEntries::Select(std::string_view full_name) const {
  if (entries_.empty()) return 0;
  for (const EntryKind kind : {EntryKind::kRegex, EntryKind::kName, EntryKind::kType}) {
    for (const Entry& entry : entries_) {
      if (entry.kind == kind && Matches(entry, full_name)) return entry.index;
    }
  }
  return std::nullopt;
}

}  // namespace plumbline::graph_dump

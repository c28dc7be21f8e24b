#include "config/graph_dump/kernel_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text_parts.h"

namespace plumbline::graph_dump {
namespace {

constexpr std::string_view kRegexStart = "name-regex(";
constexpr std::string_view kOpMark = "-op";

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
    if (entry.kind == EntryKind::kRegex && text.size() > Expression::kLongest) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("kernels[{}]: an expression of {} characters (expected at most {})",
                               i, text.size(), Expression::kLongest));
    }
    if (entry.kind == EntryKind::kRegex) {
      const std::string_view inner =
          std::string_view(text).substr(kRegexStart.size(), text.size() - kRegexStart.size() - 1);
      if (const auto wrong = entry.expression.Compile(inner, Expression::Use::kIsWhole)) {
        return Error(ErrorCode::kInvalidArgument,
                     fmt::format("kernels[{}]: \"{}\" is no regular expression from position {} on "
                                 "(expected ECMAScript syntax)",
                                 i, text, kRegexStart.size() + *wrong));
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
      return entry.expression.Matches(full_name);
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

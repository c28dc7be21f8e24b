#include "help_page.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/text/text_parts.h"

namespace plumbline::cli {
namespace {

constexpr size_t kHelpColumn = 26;  // where the words about an option begin
constexpr const char* kExamples = "Examples:";
constexpr const char* kStatuses = "Exit status:";

// What each exit status says unless a command has other words.
const std::map<int, std::string>& CommonStatuses() {
  static const std::map<int, std::string> statuses = {{0, "done"},
                                                      {2, "wrong usage, or inputs that do not fit"},
                                                      {3, "file or directory not found"},
                                                      {4, "not supported"},
                                                      {5, "damaged file"},
                                                      {6, "input or output error"}};
  return statuses;
}

std::string Joined(std::string_view notes, const std::vector<std::string>& examples,
                   const std::map<int, std::string>& statuses) {
  std::string text(notes);
  if (!text.empty()) text += "\n\n";
  text += kExamples;
  for (const std::string& example : examples) text += "\n  " + example;
  text += fmt::format("\n\n{}", kStatuses);
  for (const auto& [status, meaning] : statuses)
    text += fmt::format("\n  {:<2} {}", status, meaning);
  return text;
}

std::string NamesText(const TreeOption& option) {
  std::string text;
  for (size_t i = 0; i < option.shown_names; ++i) {
    text += (text.empty() ? "" : ", ") + option.names[i];
  }
  const std::string value = option.ValueText();
  return value.empty() ? text : text + " " + value;
}

// "  NAMES   words about it".
std::string Entry(const std::string& names, std::string_view help, size_t width) {
  std::string text = "  " + names;
  if (help.empty()) return text + "\n";
  if (text.size() + 2 > kHelpColumn) {
    text = "  " + Wrapped(names, 2, 6, width) + "\n" + std::string(kHelpColumn, ' ');
  } else {
    text.resize(kHelpColumn, ' ');
  }
  return text + Wrapped(help, kHelpColumn, kHelpColumn, width) + "\n";
}

std::string OptionEntries(const std::string& title, const std::vector<TreeOption>& options,
                          size_t width) {
  if (options.empty()) return {};
  std::string text = "\n" + title + "\n";
  for (const TreeOption& option : options) {
    const std::string help = option.is_required && option.names[0].starts_with('-')
                                 ? option.help + " (required)"
                                 : option.help;
    text += Entry(NamesText(option), help, width);
  }
  return text;
}

// An example is one command: it goes on behind a backslash.
std::string ExampleLine(std::string_view line, size_t width) {
  std::string text = Wrapped(line, 2, 6, width - 2);
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 3)) {
    text.insert(at, " \\");
  }
  return "  " + text;
}

std::string FooterLines(const std::string& footer, size_t width) {
  std::string text, paragraph, section;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += Wrapped(paragraph, 0, 0, width) + "\n";
    paragraph.clear();
  };
  for (const std::string_view line : SplitAt(footer, '\n')) {
    if (line == kExamples || line == kStatuses) section = line;
    if (!line.empty() && line[0] != ' ' && line != kExamples && line != kStatuses) {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
      continue;
    }
    end_paragraph();
    if (line.empty() || line[0] != ' ') {
      text += std::string(line) + "\n";
    } else if (section == kExamples) {
      text += ExampleLine(line.substr(2), width) + "\n";
    } else {
      text += "  " + Wrapped(line.substr(2), 2, 5, width) + "\n";
    }
  }
  end_paragraph();
  return text;
}

}  // namespace

std::string FooterText(std::string_view notes, const std::vector<std::string>& examples,
                       const ExitStatuses& own) {
  std::map<int, std::string> statuses = CommonStatuses();
  for (const auto& [status, meaning] : own) statuses[status] = meaning;
  return Joined(notes, examples, statuses);
}

std::string FooterWithOwnStatuses(std::string_view notes, const std::vector<std::string>& examples,
                                  const ExitStatuses& statuses) {
  return Joined(notes, examples, {statuses.begin(), statuses.end()});
}

size_t TerminalWidth() {
  constexpr size_t kLeast = 40, kMost = 120, kUsual = 80;
  size_t width = kUsual;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  } else if (const char* columns = std::getenv("COLUMNS")) {
    if (const auto number = ParseNatural(columns); number && *number > 0) {
      width = static_cast<size_t>(*number);
    }
  }
  return std::clamp(width, kLeast, kMost);
}

std::string Wrapped(std::string_view text, size_t first, size_t indent, size_t width) {
  std::string out;
  size_t column = first;
  bool at_start = true;
  for (const std::string_view word : SplitAt(text, ' ')) {
    if (!at_start && column + 1 + word.size() > width) {
      while (out.ends_with(' ')) out.pop_back();
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!at_start) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at_start = false;
  }
  return out;
}

std::string HelpText(const TreeCommand& command, std::string_view name, size_t width) {
  std::string text = Wrapped(command.summary, 0, 0, width) + "\n\n";
  text += Wrapped(fmt::format("Usage: {} {}", name, command.usage), 0, 7, width) + "\n";
  text += OptionEntries("Arguments:", command.arguments, width);
  text += OptionEntries("Options:", command.options, width);
  if (!command.commands.empty()) text += "\nCommands:\n";
  for (const TreeCommand& below : command.commands) text += Entry(below.name, below.summary, width);
  return command.footer.empty() ? text : text + "\n" + FooterLines(command.footer, width);
}

}  // namespace plumbline::cli

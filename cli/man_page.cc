#include "man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/file/commit_file.h"
#include "base/file/file.h"
#include "base/text/text_parts.h"
#include "plumbline/c_api.h"

namespace plumbline::cli {
namespace {

// As it reads, whatever roff makes of backslashes, hyphens and lines that start with a dot.
std::string Roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string FileNameOf(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name + ".1";
}

void AddOptions(const char* title, const std::vector<TreeOption>& options, std::string& out) {
  if (options.empty()) return;
  out += fmt::format(".SH {}\n", title);
  for (const TreeOption& option : options) {
    std::string names;
    for (size_t i = 0; i < option.shown_names; ++i) {
      names += fmt::format("{}\\fB{}\\fR", i == 0 ? "" : ", ", Roff(option.names[i]));
    }
    const std::string value = option.ValueText();
    if (!value.empty()) names += fmt::format(" \\fI{}\\fR", Roff(value));
    out += fmt::format(".TP\n{}\n{}", names, Roff(option.help));
    if (option.is_required && option.names[0].starts_with('-')) out += " (required)";
    for (size_t i = option.shown_names; i < option.names.size(); ++i) {
      out += (i == option.shown_names ? " Also " : ", ") + Roff(option.names[i]);
    }
    out += '\n';
  }
}

// Examples and statuses have sections; notes are paragraphs, lines with blanks in front stay.
void AddFooter(const std::string& footer, std::string& out) {
  bool is_in_notes = false;
  for (const std::string_view line : SplitAt(footer, '\n')) {
    if (line == "Examples:" || line == "Exit status:") {
      out += line == "Examples:" ? ".SH EXAMPLES\n" : ".SH EXIT STATUS\n";
      is_in_notes = true;
    } else if (line.empty()) {
      if (is_in_notes) out += ".PP\n";
    } else {
      if (!is_in_notes) out += ".SH NOTES\n";
      is_in_notes = true;
      out += line[0] == ' ' ? fmt::format(".nf\n{}\n.fi\n", Roff(line)) : Roff(line) + "\n";
    }
  }
}

Status WritePages(const TreeCommand& command, const std::string& name,
                  const std::string& directory) {
  PL_TRY(WriteFileAtomically(JoinPath(directory, FileNameOf(name)), ManPage(command, name),
                             /*durable=*/false));
  for (const TreeCommand& below : command.commands) {
    if (!below.HasPage()) continue;
    PL_TRY(WritePages(below, name + " " + below.name, directory));
  }
  return {};
}

}  // namespace

std::string ManPage(const TreeCommand& command, const std::string& name) {
  std::string title = name;
  std::ranges::replace(title, ' ', '-');
  std::string upper = title;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string out = fmt::format(
      ".TH {} 1 \"\" \"plumbline {}\" \"plumbline\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n"
      "\\fB{}\\fR {}\n",
      Roff(upper), PLUMBLINE_VERSION, Roff(title), Roff(command.summary), Roff(name),
      Roff(command.usage));
  AddOptions("ARGUMENTS", command.arguments, out);
  AddOptions("OPTIONS", command.options, out);
  if (!command.commands.empty()) out += ".SH COMMANDS\n";
  for (const TreeCommand& below : command.commands) {
    out += below.HasPage() ? fmt::format(".TP\n\\fB{}\\fR(1)\n", Roff(title + "-" + below.name))
                           : fmt::format(".TP\n\\fB{}\\fR\n", Roff(below.name));
    out += Roff(below.summary) + "\n";
  }
  AddFooter(command.footer, out);
  if (const size_t space = name.rfind(' '); space != std::string::npos) {
    std::string above = name.substr(0, space);
    std::ranges::replace(above, ' ', '-');
    out += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", Roff(above));
  }
  return out;
}

Status WriteManPages(const TreeCommand& program, const std::string& directory) {
  PL_TRY(MakeDirectories(directory));
  return WritePages(program, program.name, directory);
}

}  // namespace plumbline::cli

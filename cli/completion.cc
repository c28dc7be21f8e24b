#include "completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace plumbline::cli {
namespace {

// Calls `visit` with each command and its place: "" of the program, "/dump-config/new".
void VisitAll(const TreeCommand& command, const std::string& place,
              const std::function<void(const TreeCommand&, const std::string&)>& visit) {
  visit(command, place);
  for (const TreeCommand& below : command.commands) {
    VisitAll(below, place + "/" + below.name, visit);
  }
}

// In single quotes, for every shell.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Places of all commands but the program, as patterns of a case.
std::string Places(const TreeCommand& program, const char* between) {
  std::vector<std::string> places;
  VisitAll(program, "", [&](const TreeCommand&, const std::string& place) {
    if (!place.empty()) places.push_back(place);
  });
  return fmt::format("{}", fmt::join(places, between));
}

std::string CommandNames(const TreeCommand& command) {
  std::string names;
  for (const TreeCommand& below : command.commands) {
    names += (names.empty() ? "" : " ") + below.name;
  }
  return names;
}

// Names that help pages show.
std::string OptionNames(const TreeCommand& command) {
  std::string names;
  for (const TreeOption& option : command.options) {
    for (size_t i = 0; i < option.shown_names; ++i) {
      names += (names.empty() ? "" : " ") + option.names[i];
    }
  }
  return names;
}

bool TakesFile(const TreeOption& option) {
  return option.choices.empty() && !option.value.empty() && option.value != "N";
}

// "/compare --mode|/compare -m", of every spelling.
std::string OptionPatterns(const TreeOption& option, const std::string& place) {
  std::string patterns;
  for (const std::string& name : option.names) {
    patterns += (patterns.empty() ? "" : "|") + Quoted(place + " " + name);
  }
  return patterns;
}

// Cases of bash and zsh that say what the value of an option is: `{}` are its choices.
std::string ValueCases(const TreeCommand& program, const char* of_choices, const char* of_file,
                       const char* of_number) {
  std::string text;
  VisitAll(program, "", [&](const TreeCommand& command, const std::string& place) {
    for (const TreeOption& option : command.options) {
      if (option.ValueText().empty()) continue;
      const std::string action =
          !option.choices.empty()
              ? fmt::format(fmt::runtime(of_choices), fmt::join(option.choices, " "))
          : TakesFile(option) ? of_file
                              : of_number;
      text += fmt::format("    {}) {}; return ;;\n", OptionPatterns(option, place), action);
    }
  });
  return text;
}

// "plumb", and what a script of its name is called.
constexpr const char* kHead = "made by `plumb completion {}`; do not edit";

}  // namespace

std::string BashCompletion(const TreeCommand& program) {
  std::string text = fmt::format("# {}\n", fmt::format(fmt::runtime(kHead), "bash"));
  text +=
      "_plumb() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} place= i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$place/${COMP_WORDS[i]}\" in\n";
  text += fmt::format("      {}) place=\"$place/${{COMP_WORDS[i]}}\" ;;\n", Places(program, "|"));
  text +=
      "    esac\n"
      "  done\n"
      "  case \"$place $prev\" in\n";
  text += ValueCases(program, "COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", "_plumb_files",
                     "COMPREPLY=()");
  text +=
      "  esac\n"
      "  case \"$place\" in\n";
  VisitAll(program, "", [&](const TreeCommand& command, const std::string& place) {
    text += fmt::format("    {}) _plumb_words '{}' '{}' ;;\n", Quoted(place), OptionNames(command),
                        CommandNames(command));
  });
  text +=
      "  esac\n"
      "}\n"
      "_plumb_files() {\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
      "}\n"
      "# _plumb_words OPTIONS COMMANDS\n"
      "_plumb_words() {\n"
      "  if [[ $cur == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
      "  elif [[ -n $2 ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$2\" -- \"$cur\"))\n"
      "  else\n"
      "    _plumb_files\n"
      "  fi\n"
      "}\n";
  return text + fmt::format("complete -F _plumb {}\n", program.name);
}

std::string ZshCompletion(const TreeCommand& program) {
  std::string text =
      fmt::format("#compdef {}\n# {}\n", program.name, fmt::format(fmt::runtime(kHead), "zsh"));
  text +=
      "_plumb() {\n"
      "  local cur=${words[CURRENT]} prev=${words[CURRENT-1]} place= i\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case \"$place/${words[i]}\" in\n";
  text += fmt::format("      ({}) place=\"$place/${{words[i]}}\" ;;\n", Places(program, "|"));
  text +=
      "    esac\n"
      "  done\n"
      "  case \"$place $prev\" in\n";
  text += ValueCases(program, "compadd -- {}", "_files", "_message number");
  text +=
      "  esac\n"
      "  local -a options commands\n"
      "  case \"$place\" in\n";
  const auto described = [](const std::string& name, std::string help) {
    std::string escaped;
    for (const char c : help) escaped += c == ':' ? std::string("\\:") : std::string(1, c);
    return Quoted(name + ":" + escaped);
  };
  VisitAll(program, "", [&](const TreeCommand& command, const std::string& place) {
    text += fmt::format("    {})\n      options=(\n", Quoted(place));
    for (const TreeOption& option : command.options) {
      for (size_t i = 0; i < option.shown_names; ++i) {
        text += fmt::format("        {}\n", described(option.names[i], option.help));
      }
    }
    text += "      )\n      commands=(\n";
    for (const TreeCommand& below : command.commands) {
      text += fmt::format("        {}\n", described(below.name, below.summary));
    }
    text += "      ) ;;\n";
  });
  text += fmt::format(
      "  esac\n"
      "  if [[ $cur == -* ]]; then\n"
      "    _describe -o option options\n"
      "  elif (( $#commands )); then\n"
      "    _describe command commands\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}}\n"
      "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
      "  _plumb \"$@\"\n"
      "else\n"
      "  compdef _plumb {}\n"
      "fi\n",
      program.name);
  return text;
}

std::string FishCompletion(const TreeCommand& program) {
  std::string text = fmt::format("# {}\n", fmt::format(fmt::runtime(kHead), "fish"));
  text += fmt::format(
      "function __plumb_at\n"
      "  set -l place ''\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$place/$word\"\n"
      "      case {}\n"
      "        set place \"$place/$word\"\n"
      "    end\n"
      "  end\n"
      "  test \"$place\" = \"$argv[1]\"\n"
      "end\n",
      Places(program, " "));
  VisitAll(program, "", [&](const TreeCommand& command, const std::string& place) {
    const std::string here =
        fmt::format("complete -c {} -n \"__plumb_at '{}'\"", program.name, place);
    if (!command.commands.empty()) text += here + " -f\n";
    for (const TreeCommand& below : command.commands) {
      text += fmt::format("{} -a {} -d {}\n", here, below.name, Quoted(below.summary));
    }
    for (const TreeOption& option : command.options) {
      text += here;
      for (size_t i = 0; i < option.shown_names; ++i) {
        const std::string& name = option.names[i];
        const bool is_long = name.starts_with("--");
        text += is_long            ? " -l " + name.substr(2)
                : name.size() == 2 ? " -s " + name.substr(1)
                                   : " -o " + name.substr(1);
      }
      if (!option.choices.empty()) {
        text += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      } else if (TakesFile(option)) {
        text += " -r -F";
      } else if (!option.value.empty()) {
        text += " -x";
      }
      text += fmt::format(" -d {}\n", Quoted(option.help));
    }
  });
  return text;
}

}  // namespace plumbline::cli

#include "usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/text_parts.h"

namespace plumbline::cli {
namespace {

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : CommandsOf(app)) {
    names.push_back(command->get_name());
    names.insert(names.end(), command->get_aliases().begin(), command->get_aliases().end());
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

bool IsOption(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !ParseReal(word).has_value();
}

// Whether the parser takes `word` for an option of the command, a value behind it included.
bool IsKnownOption(const CLI::App& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  if (command.get_option_no_throw(name) != nullptr) return true;
  const bool is_short = word[1] != '-';
  return is_short && command.get_option_no_throw(word.substr(0, 2)) != nullptr;
}

// "--rank=0,2"; "--json" of a flag, and of an option without its value.
std::string SpelledOption(const CLI::Option& option) {
  std::string word = "--" + option.get_lnames().front();
  if (option.get_items_expected_max() == 0) return word;
  std::string value;
  for (const std::string& part : option.results()) {
    if (!value.empty()) value += option.get_delimiter();
    value += part;
  }
  return value.empty() ? word : word + '=' + value;
}

std::string UnknownOption(const CLI::App& command, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (!IsOption(word) || IsKnownOption(command, word)) continue;
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("{}: no such option.{}", name, MeantHint(name, OptionNames(command)));
  }
  return {};
}

// The commands that the words name, `plumb` itself first, and where their own words begin.
struct Named {
  std::vector<const CLI::App*> commands;
  size_t words = 0;
};

Named NamedBy(const CLI::App& app, const std::vector<std::string>& words) {
  Named named{{&app}};
  for (size_t i = 0; i < words.size(); ++i) {
    const std::vector<const CLI::App*> below = CommandsOf(*named.commands.back());
    const auto found = std::ranges::find_if(
        below, [&](const CLI::App* command) { return command->check_name(words[i]); });
    if (found == below.end()) continue;
    named.commands.push_back(*found);
    named.words = i + 1;
  }
  return named;
}

}  // namespace

std::string MeantHint(std::string_view word, std::span<const std::string> known) {
  constexpr size_t kLeastBeginning = 3;
  std::string meant;
  const auto begins = [&](const std::string& name) { return name.starts_with(word); };
  if (word.size() >= kLeastBeginning && std::ranges::count_if(known, begins) == 1) {
    meant = *std::ranges::find_if(known, begins);
  } else if (word.size() > 2) {
    meant = NearestText(word, known);
  }
  return meant.empty() ? std::string() : fmt::format(" Did you mean {}?", meant);
}

std::string UsageProblem(const CLI::App& app, const std::vector<std::string>& words,
                         const CLI::Error& error) {
  const Named named = NamedBy(app, words);
  const CLI::App& command = *named.commands.back();
  std::string name;
  for (const CLI::App* each : named.commands) name += (name.empty() ? "" : " ") + each->get_name();
  std::string problem;
  const bool is_of_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                           dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
  const std::span<const std::string> own = std::span(words).subspan(named.words);
  if (!is_of_value) problem = UnknownOption(command, own);
  if (problem.empty() && !CommandsOf(command).empty()) {
    const auto word = std::ranges::find_if_not(own, IsOption);
    if (word != own.end()) {
      problem =
          fmt::format("{}: no such command.{}", *word, MeantHint(*word, CommandNames(command)));
    }
  }
  if (problem.empty()) problem = std::string(error.what()) + ".";
  return OneLine(fmt::format("{}: {} Run `{} --help` for more information", name, problem, name));
}

std::vector<std::string> WordsOf(const CLI::App& command, std::span<const std::string_view> but) {
  std::vector<std::string> words, positional;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    if (option->get_lnames().empty()) {
      positional.insert(positional.end(), option->results().begin(), option->results().end());
    } else if (std::ranges::find(but, std::string_view(option->get_lnames().front())) ==
               but.end()) {
      // Where no letter stands between values, each has the option's name.
      const bool has_many = option->get_delimiter() == '\0' && option->results().size() > 1;
      if (!has_many) words.push_back(SpelledOption(*option));
      for (const std::string& value : has_many ? option->results() : std::vector<std::string>()) {
        words.push_back("--" + option->get_lnames().front() + '=' + value);
      }
    }
  }
  // An option that takes several values would take what stands behind it.
  positional.insert(positional.end(), words.begin(), words.end());
  return positional;
}

std::string WithNearestPath(const std::string& message) {
  constexpr size_t kMostNames = 10000;
  std::string path = message.substr(0, message.find(": "));
  if (path.empty() || path == message || KindOf(path) != PathKind::kMissing) return message;
  while (path.ends_with('/')) path.pop_back();
  std::string rest;
  std::string parent(DirectoryOf(path));
  while (!parent.empty() && parent != path && KindOf(parent) == PathKind::kMissing) {
    rest = JoinPath(std::string(BaseName(path)), rest);
    path = parent;
    parent = DirectoryOf(path);
  }
  const Result<std::vector<std::string>> names = ListDirectory(parent.empty() ? "." : parent);
  if (!names || names->size() > kMostNames) return message;
  std::string nearest = NearestText(BaseName(path), *names);
  if (nearest.empty()) return message;
  if (path.find('/') != std::string::npos) nearest = JoinPath(parent, nearest);
  const std::string whole = rest.empty() ? nearest : JoinPath(nearest, rest);
  return fmt::format("{}{} Did you mean {}?", message, message.ends_with('.') ? "" : ".",
                     KindOf(whole) == PathKind::kMissing ? nearest : whole);
}

}  // namespace plumbline::cli

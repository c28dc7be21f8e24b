#include "command_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text/text_parts.h"

namespace plumbline::cli {
namespace {

// What the parser's name of a type tells: "TEXT:{a,b}", "INT:INT in [0 - 4096]".
void AddValue(const std::string& type, TreeOption& option) {
  const size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos) {
    for (const std::string_view choice :
         SplitAt(std::string_view(type).substr(open + 1, close - open - 1), ',')) {
      option.choices.emplace_back(choice.substr(0, choice.find("->")));  // and what it stands for
    }
  } else if (type.starts_with("INT") || type.starts_with("UINT")) {
    option.value = "N";
  } else {
    option.value = type;
  }
}

TreeOption OptionOf(const CLI::Option& option) {
  TreeOption made;
  made.help = option.get_description();
  made.is_required = option.get_required();
  if (option.get_positional()) {
    std::string name = option.get_name(true);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    made.names.push_back(std::move(name));
    made.shown_names = 1;
    return made;
  }
  const std::vector<std::string>&short_names = option.get_snames(),
        &long_names = option.get_lnames();
  if (!short_names.empty()) made.names.push_back("-" + short_names.front());
  if (!long_names.empty()) made.names.push_back("--" + long_names.front());
  made.shown_names = made.names.size();
  for (size_t i = 1; i < short_names.size(); ++i) made.names.push_back("-" + short_names[i]);
  for (size_t i = 1; i < long_names.size(); ++i) made.names.push_back("--" + long_names[i]);
  if (option.get_items_expected_max() > 0) AddValue(option.get_type_name(), made);
  if (!option.get_default_str().empty()) {
    made.help += fmt::format(" (default: {})", option.get_default_str());
  }
  return made;
}

// "[OPTIONS] RULES TARGET".
std::string UsageOf(const TreeCommand& command) {
  std::string usage = "[OPTIONS]";
  for (const TreeOption& option : command.options) {
    if (option.is_required) usage += fmt::format(" {} {}", option.names[0], option.ValueText());
  }
  for (const TreeOption& argument : command.arguments) {
    const std::string& name = argument.names[0];
    usage += argument.is_required ? " " + name : " [" + name + "]";
  }
  if (!command.commands.empty()) usage += " COMMAND";
  return usage;
}

}  // namespace

std::string TreeOption::ValueText() const {
  return choices.empty() ? value : fmt::format("{{{}}}", fmt::join(choices, ","));
}

TreeCommand TreeOf(const CLI::App& app) {
  TreeCommand made;
  made.name = app.get_name();
  made.summary = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? made.arguments : made.options).push_back(OptionOf(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) made.commands.push_back(TreeOf(*command));
  }
  std::ranges::sort(made.commands, {}, &TreeCommand::name);
  made.usage = UsageOf(made);
  made.footer = app.get_footer();
  return made;
}

TreeCommand TreeOf(const WordCommand& command) {
  TreeCommand made;
  made.name = command.name;
  made.summary = command.summary;
  for (const WordOption& option : command.options) {
    TreeOption& out = made.options.emplace_back();
    for (const std::string_view name : {option.short_name, option.long_name}) {
      if (!name.empty() && (out.names.empty() || out.names[0] != name))
        out.names.emplace_back(name);
    }
    out.shown_names = out.names.size();
    if (option.takes == TakesWords::kOne) out.value = "VALUE";
    if (option.takes == TakesWords::kOneOrMore) out.value = "VALUE...";
    out.help = option.help;
  }
  made.usage = UsageOf(made);
  made.footer = command.footer;
  return made;
}

}  // namespace plumbline::cli

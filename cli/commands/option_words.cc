#include "commands/option_words.h"

#include <fmt/format.h>

#include "base/text/text_parts.h"
#include "usage.h"

namespace plumbline::cli {
namespace {

// A word that names an option; numbers below zero do not.
bool LooksLikeOption(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !ParseReal(word).has_value();
}

const WordOption* Find(std::span<const WordOption> options, std::string_view name) {
  for (const WordOption& option : options) {
    if (name == option.short_name || name == option.long_name) return &option;
  }
  return nullptr;
}

// ". Did you mean --output?", or nothing.
std::string Hint(std::span<const WordOption> options, const std::string& name) {
  std::vector<std::string> known;
  for (const WordOption& option : options) {
    for (const std::string_view one : {option.short_name, option.long_name}) {
      if (!one.empty()) known.emplace_back(one);
    }
  }
  const std::string hint = LooksLikeOption(name) ? MeantHint(name, known) : std::string();
  return hint.empty() ? hint : "." + hint;
}

std::string_view KeyOf(const WordOption& option) {
  return option.long_name.empty() ? option.short_name : option.long_name;
}

}  // namespace

Result<OptionWords> OptionWords::Parse(std::span<const WordOption> options,
                                       std::span<const std::string> words) {
  OptionWords parsed;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const bool has_value = LooksLikeOption(words[i]) && equals != std::string::npos;
    const std::string name = words[i].substr(0, has_value ? equals : std::string::npos);
    const WordOption* option = LooksLikeOption(name) ? Find(options, name) : nullptr;
    if (option == nullptr) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("unrecognized argument: {}{}", words[i], Hint(options, name)));
    }
    const auto [entry, is_new] = parsed.values_.try_emplace(std::string(KeyOf(*option)));
    std::vector<std::string>& values = entry->second;
    if (!is_new) {
      return Error(ErrorCode::kInvalidArgument, fmt::format("argument {}: given twice", name));
    }
    if (has_value) values.push_back(words[i].substr(equals + 1));
    const size_t most = option->takes == TakesWords::kNone  ? 0
                        : option->takes == TakesWords::kOne ? 1
                                                            : words.size();
    while (!has_value && values.size() < most && i + 1 < words.size() &&
           !LooksLikeOption(words[i + 1])) {
      values.push_back(words[++i]);
    }
    const bool is_wrong = option->takes == TakesWords::kNone ? has_value : values.empty();
    if (is_wrong) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("argument {}: {}", name, has_value ? "takes no value" : "expected a value"));
    }
  }
  return parsed;
}

bool OptionWords::Has(std::string_view name) const { return values_.contains(name); }

std::string OptionWords::Get(std::string_view name, std::string_view otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? std::string(otherwise)
                                                         : found->second.front();
}

const std::vector<std::string>& OptionWords::All(std::string_view name) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(name);
  return found == values_.end() ? kNone : found->second;
}

}  // namespace plumbline::cli

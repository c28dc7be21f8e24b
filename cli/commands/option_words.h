// Command lines in the style of Python's argparse, with names of several letters behind one dash,
// as upstream's programs have them and CLI11 does not.

#ifndef PLUMBLINE_CLI_COMMANDS_OPTION_WORDS_H_
#define PLUMBLINE_CLI_COMMANDS_OPTION_WORDS_H_

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::cli {

enum class TakesWords : uint8_t { kNone, kOne, kOneOrMore };

struct WordOption {
  std::string_view short_name;  // "-cf"; "" if there is none
  std::string_view long_name;   // "--close_fusion_rule_file"; "" if there is none
  TakesWords takes;
  std::string_view help;
};

// What was given, by the long name of the option, or the short one where there is no other.
class OptionWords {
 public:
  // kInvalidArgument: an unknown option, a missing or surplus value, given twice.
  static Result<OptionWords> Parse(std::span<const WordOption> options,
                                   std::span<const std::string> words);

  [[nodiscard]] bool Has(std::string_view name) const;
  [[nodiscard]] std::string Get(std::string_view name, std::string_view otherwise = "") const;
  [[nodiscard]] const std::vector<std::string>& All(std::string_view name) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_OPTION_WORDS_H_

// Whole numbers on the command line.

#ifndef PLUMBLINE_CLI_COMMANDS_NATURAL_NUMBER_H_
#define PLUMBLINE_CLI_COMMANDS_NATURAL_NUMBER_H_

#include <CLI/App.hpp>
#include <string>

#include "base/text/text_parts.h"

namespace plumbline::cli {

// Refuses everything but 0, 1, 2, ... up to 63 bits, by the text that was given.
inline CLI::Validator NaturalNumber() {
  const auto check = [](const std::string& text) {
    return ParseNatural(text) ? std::string()
                              : "\"" + text + "\" is no number (expected 0, 1, 2, ...)";
  };
  return CLI::Validator(check, "UINT");
}

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_COMMANDS_NATURAL_NUMBER_H_

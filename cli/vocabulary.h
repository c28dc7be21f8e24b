// The options that several commands have: one spelling and one help text each.

#ifndef PLUMBLINE_CLI_VOCABULARY_H_
#define PLUMBLINE_CLI_VOCABULARY_H_

#include <CLI/App.hpp>
#include <string>

namespace plumbline::cli {

// -o, --output. `earlier`: other spellings that stay, such as "--output_path"; no help page shows
// them. A command whose -o is taken by upstream leaves it out: `names` = "--output".
CLI::Option* AddOutput(CLI::App& command, std::string& path, const std::string& help,
                       const std::string& earlier = "", const std::string& names = "-o,--output");

// -j, --threads; also --jobs, which some commands had.
CLI::Option* AddThreads(CLI::App& command, int& threads);

// --json: `what` is "the summary".
CLI::Option* AddJson(CLI::App& command, bool& is_wanted, const std::string& what);

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_VOCABULARY_H_

#include "vocabulary.h"

#include <CLI/CLI.hpp>

#include "base/process/parallel.h"

namespace plumbline::cli {
namespace {

std::string With(const std::string& names, const std::string& earlier) {
  return earlier.empty() ? names : names + "," + earlier;
}

}  // namespace

CLI::Option* AddOutput(CLI::App& command, std::string& path, const std::string& help,
                       const std::string& earlier, const std::string& names) {
  return command.add_option(With(names, earlier), path, help)->type_name("PATH");
}

CLI::Option* AddThreads(CLI::App& command, int& threads) {
  return command.add_option("-j,--threads,--jobs", threads, "worker threads; 0: one per core")
      ->check(CLI::Range(0, kMostThreads));
}

CLI::Option* AddJson(CLI::App& command, bool& is_wanted, const std::string& what) {
  return command.add_flag("--json", is_wanted, "print " + what + " as one JSON object");
}

}  // namespace plumbline::cli

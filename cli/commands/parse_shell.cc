#include <editline/readline.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <utility>

#include "base/file/file.h"
#include "base/process/child_process.h"
#include "commands/parse.h"
#include "terminal.h"

extern char** environ;

namespace plumbline::cli {
namespace {

constexpr const char* kPrompt = "Parse >>> ";
constexpr int kMostHistory = 1000;

// The n-th verb that starts with `text`, for the library to free.
char* NextVerb(const char* text, int state) {
  static size_t next;
  if (state == 0) next = 0;
  const std::span<const ParseVerb> verbs = ParseVerbs();
  while (next < verbs.size()) {
    const ParseVerb& verb = verbs[next++];
    if (verb.name.starts_with(text)) return ::strdup(std::string(verb.name).c_str());
  }
  return nullptr;
}

// Verbs at the start of a line, files (the library's own completion) behind.
char** Complete(const char* text, int start, int /*end*/) {
  return start == 0 ? ::rl_completion_matches(text, NextVerb) : nullptr;
}

// Lines of a terminal with editing, completion and a history that stays; of anything else as is.
class Lines {
 public:
  Lines() : is_terminal_(::isatty(STDIN_FILENO) == 1) {
    if (!is_terminal_) return;
    if (const char* home = std::getenv("HOME")) history_ = JoinPath(home, ".plumb_parse_history");
    ::using_history();
    ::stifle_history(kMostHistory);
    if (!history_.empty()) ::read_history(history_.c_str());
    ::rl_attempted_completion_function = Complete;
  }
  ~Lines() {
    if (is_terminal_ && !history_.empty()) ::write_history(history_.c_str());
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  std::optional<std::string> Next() {
    if (!is_terminal_) {
      std::string line;
      return std::getline(std::cin, line) ? std::optional(line) : std::nullopt;
    }
    char* text = ::readline(kPrompt);
    if (text == nullptr) {
      Print("\n");
      return std::nullopt;
    }
    std::string line(text);
    std::free(text);  // NOLINT: the library allocates it so
    if (!line.empty()) ::add_history(line.c_str());
    return line;
  }

 private:
  const bool is_terminal_;
  std::string history_;
};

// A program with its words, not a shell.
void RunProgram(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(stdout);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (error != 0) {
    PrintError(fmt::format("{}: command not found\n", words[0]));
    return;
  }
  const Result<ChildEnd> end = WaitForChild(child);
  if (!end || end->by_signal || end->number != 0) PrintError("Command execution failed\n");
}

void RunLine(std::vector<std::string> words) {
  const auto verb = std::ranges::find(ParseVerbs(), words[0], &ParseVerb::name);
  if (verb != ParseVerbs().end()) {
    words.erase(words.begin());
    if (verb->run(words) != 0) PrintError("Command execution failed\n");
    return;
  }
  if (words[0] == "help" || words[0] == "-h" || words[0] == "--help") {
    Print(ParseHelp());
    return;
  }
  if (words[0] == "run") words.erase(words.begin());
  if (!words.empty()) RunProgram(words);
}

}  // namespace

Result<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = '\0';
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < line.size();
    if (escapes) {
      word = word.value_or("") + line[++i];
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        *word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      word = word.value_or("");
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else {
      word = word.value_or("") + c;
    }
  }
  if (quote != '\0') {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: a quote never ends", line));
  }
  if (word) words.push_back(*word);
  return words;
}

int RunParseShell() {
  Lines lines;
  while (const std::optional<std::string> line = lines.Next()) {
    Result<std::vector<std::string>> words = SplitWords(*line);
    if (!words) {
      PrintError(fmt::format("{}\n", words.error().message()));
      continue;
    }
    if (words->empty()) continue;
    if (words->front() == "exit" || words->front() == "quit") break;
    RunLine(*std::move(words));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace plumbline::cli

// What the commands say, and how their user stops them. Everything passes here on its way to a
// terminal, so that no name of a dump can act on it (ShownText): control characters and marks of
// the writing direction become '_'.

#ifndef PLUMBLINE_CLI_TERMINAL_H_
#define PLUMBLINE_CLI_TERMINAL_H_

#include <string_view>

namespace plumbline::cli {

// Writes `text`, its line ends included, to standard output.
void Print(std::string_view text);
// The same to standard error.
void PrintError(std::string_view text);
// A line there: "plumb precheck: note: ..."; line ends within `text` become blanks.
void PrintNote(std::string_view command, std::string_view text);

// From now on the first interrupt (SIGINT, SIGTERM) only makes WasInterrupted() true, so that a
// command can end in order, with the exit status kInterrupted; the second one ends the program as
// it would without us.
void AwaitInterrupts();
bool WasInterrupted();
inline constexpr int kInterrupted = 130;

}  // namespace plumbline::cli

#endif  // PLUMBLINE_CLI_TERMINAL_H_

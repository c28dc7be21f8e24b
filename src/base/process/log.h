// Log lines of the recorder: `YYYY-MM-DD HH:MM:SS (pid) [rank R] [LEVEL] text` on stdout.
//
// The level comes from PLUMBLINE_LOG_LEVEL, else MSPROBE_LOG_LEVEL: 0 debug, 1 info (default, also
// for anything else), 2 warning, 3 error, 4 silent. Nothing happens before the first line is
// logged, so importing or linking this costs nothing. Thread-safe.

#ifndef PLUMBLINE_BASE_PROCESS_LOG_H_
#define PLUMBLINE_BASE_PROCESS_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline {

enum class LogLevel : uint8_t { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kSilent = 4 };

// The level a setting asks for; null or not one of "0".."4": kInfo.
LogLevel ParseLogLevel(const char* setting);
// The lowest level that is printed.
void SetLogLevel(LogLevel level);
// Whether lines of this level are printed.
bool IsLogged(LogLevel level);

// Rank shown in every following line; nothing while it is unknown.
void SetLogRank(std::optional<int> rank);

// Where lines go. stdout is upstream's choice and the default; `plumb` uses stderr, because its
// stdout carries results.
enum class LogStream : uint8_t { kStdout, kStderr };
void SetLogStream(LogStream stream);

void LogDebug(std::string_view text);
void LogInfo(std::string_view text);
void LogWarning(std::string_view text);
void LogError(std::string_view text);
// An error that goes to stderr wherever other lines go: what is lost must be seen also where stdout
// is a file on the disk that is full.
void LogLoss(std::string_view text);

// The same text with everything that a terminal acts on instead of showing it, and the
// percent-encoded forms of control characters, replaced by '_', so that a name taken from user data
// cannot forge a line: control characters (C1 too, also as single bytes), line and paragraph
// separators, marks of the writing direction, lone surrogates.
std::string OneLine(std::string_view text);

// The same of a text of several lines: line breaks and tabs stay, and so do percent-encoded forms.
std::string ShownText(std::string_view text);

}  // namespace plumbline

#endif  // PLUMBLINE_BASE_PROCESS_LOG_H_

#include "base/process/log.h"

#include <fmt/format.h>
#include <spdlog/common.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/process/status_line.h"
#include "base/text/text_parts.h"

namespace plumbline {
namespace {

constexpr int kUnknownRank = -1;

// Everything the log needs, made when the first line is logged.
struct LogState {
  LogState()
      : level(ParseLogLevel(LevelSetting())),
        to_stdout("plumbline", std::make_shared<spdlog::sinks::stdout_sink_mt>()),
        to_stderr("plumbline", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    for (spdlog::logger* logger : {&to_stdout, &to_stderr}) {
      logger->set_level(spdlog::level::trace);  // filtered by `level`
      logger->set_pattern("%Y-%m-%d %H:%M:%S (%P) %v");
      // A line may be the last thing a dying process says.
      logger->flush_on(spdlog::level::trace);
    }
  }

  static const char* LevelSetting() {
    const char* own = std::getenv("PLUMBLINE_LOG_LEVEL");
    return own != nullptr ? own : std::getenv("MSPROBE_LOG_LEVEL");
  }

  std::atomic<LogLevel> level;
  std::atomic<int> rank = kUnknownRank;
  std::atomic<LogStream> stream = LogStream::kStdout;
  spdlog::logger to_stdout;
  spdlog::logger to_stderr;
};

LogState& State() {
  static LogState state;
  return state;
}

void Log(LogLevel level, std::string_view level_name, std::string_view text,
         std::optional<LogStream> stream = std::nullopt) {
  LogState& state = State();
  if (level < state.level.load(std::memory_order_relaxed)) return;
  const int rank = state.rank.load(std::memory_order_relaxed);
  const std::string rank_part = rank == kUnknownRank ? "" : fmt::format("[rank {}] ", rank);
  const LogStream to = stream.value_or(state.stream.load(std::memory_order_relaxed));
  spdlog::logger& logger = to == LogStream::kStdout ? state.to_stdout : state.to_stderr;
  const StatusLineAside aside;
  logger.log(spdlog::level::info, "{}[{}] {}", rank_part, level_name, OneLine(text));
}

// A character as bytes: how many, and whether a terminal acts on it.
struct Character {
  size_t bytes;
  bool acts;
};

Character FirstOf(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {1, first < 0x20 || first == 0x7f};
  const size_t bytes = Utf8CharacterBytes(text);
  if (bytes == 0) {
    const bool is_surrogate = first == 0xED && text.size() >= 3 && IsUtf8Continuation(text[1]) &&
                              IsUtf8Continuation(text[2]);
    return is_surrogate ? Character{3, true} : Character{1, first < 0xA0};
  }
  // U+0080 to U+009F; U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069;
  // U+FEFF, which a terminal does not show.
  const std::string_view character = text.substr(0, bytes);
  const bool acts =
      (character >= "\xC2\x80" && character <= "\xC2\x9F") || character == "\xD8\x9C" ||
      character == "\xE2\x80\x8E" || character == "\xE2\x80\x8F" ||
      (character >= "\xE2\x80\xA8" && character <= "\xE2\x80\xAE") ||
      (character >= "\xE2\x81\xA6" && character <= "\xE2\x81\xA9") || character == "\xEF\xBB\xBF";
  return {bytes, acts};
}

// Moves the first character of `text` to `out`, as '_' if a terminal acts on it.
void AppendShown(std::string_view& text, std::string& out) {
  const Character first = FirstOf(text);
  if (first.acts) {
    out += '_';
  } else {
    out += text.substr(0, first.bytes);
  }
  text.remove_prefix(first.bytes);
}

}  // namespace

LogLevel ParseLogLevel(const char* setting) {
  if (setting == nullptr || std::strlen(setting) != 1) return LogLevel::kInfo;
  if (*setting < '0' || *setting > '4') return LogLevel::kInfo;
  return static_cast<LogLevel>(*setting - '0');
}

void SetLogLevel(LogLevel level) { State().level.store(level, std::memory_order_relaxed); }

bool IsLogged(LogLevel level) { return level >= State().level.load(std::memory_order_relaxed); }

void SetLogRank(std::optional<int> rank) {
  State().rank.store(rank.value_or(kUnknownRank), std::memory_order_relaxed);
}

void SetLogStream(LogStream stream) { State().stream.store(stream, std::memory_order_relaxed); }

void LogDebug(std::string_view text) { Log(LogLevel::kDebug, "DEBUG", text); }
void LogInfo(std::string_view text) { Log(LogLevel::kInfo, "INFO", text); }
void LogWarning(std::string_view text) { Log(LogLevel::kWarning, "WARNING", text); }
void LogError(std::string_view text) { Log(LogLevel::kError, "ERROR", text); }
void LogLoss(std::string_view text) { Log(LogLevel::kError, "ERROR", text, LogStream::kStderr); }

std::string OneLine(std::string_view text) {
  constexpr std::string_view kEncoded[] = {"%08", "%0a", "%0b", "%0c", "%0d", "%7f"};
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    bool encoded = false;
    for (const std::string_view form : kEncoded) encoded |= text.starts_with(form);
    if (encoded) {
      line += '_';
      text.remove_prefix(3);
    } else {
      AppendShown(text, line);
    }
  }
  return line;
}

std::string ShownText(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    if (text[0] == '\n' || text[0] == '\t') {
      shown += text[0];
      text.remove_prefix(1);
    } else {
      AppendShown(text, shown);
    }
  }
  return shown;
}

}  // namespace plumbline

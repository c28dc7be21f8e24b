#include "base/log.h"

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
  logger.log(spdlog::level::info, "{}[{}] {}", rank_part, level_name, OneLine(text));
}

}  // namespace

LogLevel ParseLogLevel(const char* setting) {
  if (setting == nullptr || std::strlen(setting) != 1) return LogLevel::kInfo;
  if (*setting < '0' || *setting > '4') return LogLevel::kInfo;
  return static_cast<LogLevel>(*setting - '0');
}

void SetLogLevel(LogLevel level) { State().level.store(level, std::memory_order_relaxed); }

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
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) {
      line += '_';
      continue;
    }
    bool encoded = false;
    for (const std::string_view form : kEncoded) encoded |= text.substr(i, 3) == form;
    line += encoded ? '_' : text[i];
    if (encoded) i += 2;
  }
  return line;
}

}  // namespace plumbline

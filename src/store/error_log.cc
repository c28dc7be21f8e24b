#include "store/error_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string>

#include "base/log.h"
#include "record/run_files.h"

namespace plumbline::error_log {

Status Write(const Directory& directory, std::span<const Loss> losses) {
  std::tm local{};
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &local);
  std::string text;
  for (const Loss& loss : losses) {
    text += fmt::format("[{:%Y-%m-%d %H:%M:%S %z}] [ERROR] {}: {} ({})\n", local, loss.counter,
                        loss.count, OneLine(loss.sentence));
  }
  return WriteFileAtomically(directory, run_files::kErrorLog, text, /*durable=*/false);
}

}  // namespace plumbline::error_log

#include "online/shared_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/file.h"

namespace plumbline::online::shared_place {
namespace {

constexpr std::string_view kStart = "start-", kEnd = "end-", kFrame = ".frame";

std::string SessionText(uint64_t session) { return fmt::format("{:016x}", session); }

template <class T>
std::optional<T> NumberIn(std::string_view text, int base) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

plumbline::Status Start(const std::string& directory, int32_t rank, uint64_t session) {
  const std::string place = JoinPath(directory, fmt::format("{}", rank));
  const std::string mark = JoinPath(place, fmt::format("{}{}", kStart, SessionText(session)));
  if (KindOf(mark) == PathKind::kFile) return {};
  PL_TRY(MakeDirectories(place));
  return WriteFileAtomically(mark, "", false);
}

Result<std::string> FramePath(const std::string& directory, const FrameHeader& header) {
  const std::string place = JoinPath(directory, fmt::format("{}", header.rank));
  const std::string session = SessionText(header.session);
  if (header.kind == FrameKind::kStop) return JoinPath(place, fmt::format("{}{}", kEnd, session));
  const std::string step = JoinPath(place, fmt::format("{}", header.step));
  PL_TRY(MakeDirectories(step));
  return JoinPath(step, fmt::format("{}-{:012}{}", session, header.sequence, kFrame));
}

Result<std::vector<Training>> Trainings(const std::string& directory) {
  std::vector<Training> found;
  PL_TRY_ASSIGN(const std::vector<std::string> ranks, ListDirectory(directory));
  for (const std::string& name : ranks) {
    const std::optional<int32_t> rank = NumberIn<int32_t>(name, 10);
    const std::string place = JoinPath(directory, name);
    if (!rank || KindOf(place) != PathKind::kDirectory) continue;
    PL_TRY_ASSIGN(const std::vector<std::string> marks, ListDirectory(place));
    for (const std::string& mark : marks) {
      if (!mark.starts_with(kStart)) continue;
      const auto session = NumberIn<uint64_t>(std::string_view(mark).substr(kStart.size()), 16);
      if (session) found.push_back({*rank, *session, JoinPath(place, mark)});
    }
  }
  return found;
}

Result<std::vector<std::string>> FramesOf(const std::string& directory, const Training& training) {
  const std::string place = JoinPath(directory, fmt::format("{}", training.rank));
  const std::string session = SessionText(training.session);
  std::vector<std::pair<std::string, std::string>> found;  // name, path
  PL_TRY_ASSIGN(const std::vector<std::string> steps, ListDirectory(place));
  std::string last;
  for (const std::string& name : steps) {
    const std::string path = JoinPath(place, name);
    if (name == fmt::format("{}{}", kEnd, session)) last = path;
    if (!NumberIn<int64_t>(name, 10) || KindOf(path) != PathKind::kDirectory) continue;
    PL_TRY_ASSIGN(const std::vector<std::string> frames, ListDirectory(path));
    for (const std::string& frame : frames) {
      const bool is_of_it = frame.starts_with(session + "-") && frame.ends_with(kFrame);
      if (is_of_it) found.emplace_back(frame, JoinPath(path, frame));
    }
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  for (auto& [frame, path] : found) paths.push_back(std::move(path));
  if (!last.empty()) paths.push_back(std::move(last));
  return paths;
}

}  // namespace plumbline::online::shared_place

#include "formats/table/monitor_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <tuple>
#include <utility>

#include "base/file/file.h"
#include "base/text/text_parts.h"

namespace plumbline {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Of a directory, and what it is sorted by.
struct Dated {
  MonitorDirectory directory;
  int64_t time = 0;
};

std::optional<Dated> DatedOf(const std::string& path, const std::string& name) {
  constexpr std::string_view kMark = "-rank";
  constexpr size_t kTimeLength = 14, kIdLength = 8;
  const std::string_view text(name);
  const auto time = MonitorTime(text.substr(0, std::min(kTimeLength, text.size())));
  if (!time) return std::nullopt;
  Dated found{{JoinPath(path, name), name, 0, *time}, *time};
  std::string_view rest = text.substr(kTimeLength);
  if (rest.starts_with(kMark)) {
    rest.remove_prefix(kMark.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto rank = ParseNatural(rest.substr(0, digits));
    rest.remove_prefix(digits);
    if (!rank || !rest.starts_with('-')) return std::nullopt;
    found.directory.rank = *rank;
    return found;
  }
  if (rest.size() != kIdLength + 1 || rest[0] != '-') return std::nullopt;
  return found;
}

// "rank_3", "rank_3_2". Dump trees have such names too: only with files of a monitor.
std::optional<Dated> NumberedOf(const std::string& path, const std::string& name) {
  constexpr std::string_view kStart = "rank_";
  if (!name.starts_with(kStart)) return std::nullopt;
  const std::string_view text = std::string_view(name).substr(kStart.size());
  const size_t mark = std::min(text.find('_'), text.size());
  const auto rank = ParseNatural(text.substr(0, mark));
  const auto run = mark == text.size() ? 1 : ParseNatural(text.substr(mark + 1));
  if (!rank || !run) return std::nullopt;
  Dated found{{JoinPath(path, name), name, *rank, *run}, *run};
  const auto files = ListDirectory(found.directory.path);
  const bool has_files = files && std::ranges::any_of(*files, [](std::string_view file) {
                           const auto parts = MonitorFileName(file);
                           return parts && parts->is_second_form;
                         });
  return has_files ? std::optional(found) : std::nullopt;
}

// Months of a training that runs over New Year: December is before January.
void TellYears(std::vector<Dated>& directories) {
  constexpr int64_t kMonth = 100'000'000, kNovember = 10 * kMonth, kMarch = 2 * kMonth;
  const bool is_over_new_year =
      std::ranges::any_of(directories, [](const Dated& d) { return d.time >= kNovember; }) &&
      std::ranges::any_of(directories, [](const Dated& d) { return d.time < kMarch; }) &&
      std::ranges::none_of(directories,
                           [](const Dated& d) { return d.time >= kMarch && d.time < kNovember; });
  if (!is_over_new_year) return;
  for (Dated& directory : directories) {
    if (directory.time < kMarch) directory.time += 12 * kMonth;
  }
}

}  // namespace

std::optional<int64_t> MonitorTime(std::string_view text) {
  if (text.size() != 14 || text[5] != '_' || text[8] != '-' || text[11] != '-') return std::nullopt;
  const auto month = std::ranges::find(kMonths, text.substr(0, 3));
  if (month == kMonths.end()) return std::nullopt;
  int64_t time = month - kMonths.begin();
  // Day, hour, minute, second: where they stand, and how many there are.
  constexpr std::array<std::pair<size_t, int64_t>, 4> kParts = {
      {{3, 32}, {6, 24}, {9, 60}, {12, 61}}};
  for (const auto& [at, end] : kParts) {
    const auto part = ParseNatural(text.substr(at, 2));
    if (!part || *part >= end) return std::nullopt;
    time = time * 100 + *part;
  }
  return time;
}

Result<std::vector<MonitorDirectory>> ListMonitorDirectories(const std::string& path) {
  PL_TRY_ASSIGN(const auto names, ListDirectory(path));
  std::vector<Dated> found;
  for (const std::string& name : names) {
    auto dated = DatedOf(path, name);
    if (!dated) dated = NumberedOf(path, name);
    if (dated && KindOf(dated->directory.path) == PathKind::kDirectory) {
      found.push_back(*std::move(dated));
    }
  }
  TellYears(found);
  std::ranges::sort(found, [](const Dated& a, const Dated& b) {
    return std::tie(a.directory.rank, b.time, b.directory.name) <
           std::tie(b.directory.rank, a.time, a.directory.name);
  });
  std::vector<MonitorDirectory> directories;
  for (Dated& dated : found) directories.push_back(std::move(dated.directory));
  return directories;
}

std::optional<MonitorFileParts> MonitorFileName(std::string_view name) {
  constexpr std::string_view kEnd = ".csv", kStep = "step";
  const size_t mark = name.rfind('_');
  if (mark == std::string_view::npos || !name.ends_with(kEnd)) return std::nullopt;
  std::string_view steps = name.substr(mark + 1, name.size() - mark - 1 - kEnd.size());
  const bool is_second_form = steps.starts_with(kStep);
  if (is_second_form) steps.remove_prefix(kStep.size());
  const size_t dash = std::min(steps.find('-'), steps.size());
  const auto first = ParseNatural(steps.substr(0, dash));
  if (!first || dash == steps.size() || !ParseNatural(steps.substr(dash + 1))) return std::nullopt;
  return MonitorFileParts{name.substr(0, mark), *first, is_second_form};
}

std::string NewMonitorDirectoryName(int64_t rank) {
  constexpr auto kShanghai = std::chrono::hours(8);
  const auto now = std::chrono::system_clock::now() + kShanghai;
  std::random_device random;
  return fmt::format("{:%b%d_%H-%M-%S}-rank{}-{:08x}",
                     std::chrono::floor<std::chrono::seconds>(now), rank, random());
}

}  // namespace plumbline

#include "overflow/scan_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/json_record.h"
#include "load/rank_scan_record.h"
#include "overflow/steps_to_check.h"
#include "record/run_files.h"

namespace plumbline {

void VisitRecord(auto& archive, json::RecordOf<ScannedRank> auto& rank) {
  archive(rank.recording, rank.scan);
  archive.Choice(rank.code, ErrorCode::kInternal);
  archive(rank.problem);
}

namespace {

std::string RecordingOf(const load::RankDirectory& directory) {
  return StampOfFile(JoinPath(directory.path, run_files::kDumpJson));
}

Result<std::vector<load::RankDirectory>> AllRanks(const std::string& path) {
  PL_TRY_ASSIGN(std::vector<StepToCheck> steps, StepsToCheck(path));
  std::vector<load::RankDirectory> ranks;
  for (StepToCheck& step : steps) {
    for (load::RankDirectory& rank : step.ranks) ranks.push_back(std::move(rank));
  }
  return ranks;
}

std::string StateOf(const std::vector<load::RankDirectory>& ranks) {
  std::string paths;
  for (const load::RankDirectory& rank : ranks) paths += rank.path + '\n';
  return DigestOfText(paths);
}

// Indexes in it name what is there.
bool IsSound(const RankScan& scan) {
  const auto is_sound = [&](const CommCall& call) {
    return call.group < static_cast<int>(scan.groups.size()) &&
           call.place.calls_before <= scan.calls.size();
  };
  return std::ranges::all_of(scan.calls, is_sound) &&
         std::ranges::all_of(scan.suspects, [&](const Suspect& suspect) {
           return suspect.place.calls_before <= scan.calls.size() &&
                  suspect.place.begin <= suspect.place.end;
         });
}

}  // namespace

Result<RankScan> ScannedRank::Take() {
  if (!scan) return Error(code, problem);
  return std::move(*scan);
}

ScannedRank ScanForOthers(const load::RankDirectory& directory) {
  ScannedRank rank;
  rank.recording = RecordingOf(directory);
  Result<RankScan> scan = ScanRank(directory);
  if (scan) {
    rank.scan = *std::move(scan);
  } else {
    rank.code = scan.error().code();
    rank.problem = scan.error().message();
  }
  return rank;
}

Result<ShardPart> ScanPart(const std::string& path, const ShardPlace& place, int threads) {
  PL_TRY_ASSIGN(const std::vector<load::RankDirectory> ranks, AllRanks(path));
  ShardPart part;
  part.all = ranks.size();
  part.state = StateOf(ranks);
  for (uint64_t i = place.index; i < ranks.size(); i += place.count) part.items[i];
  std::vector<std::pair<const uint64_t, std::string>*> items;
  for (auto& item : part.items) items.push_back(&item);
  RunWithThreads(threads, [&] {
    ParallelFor(items.size(), [&](size_t i) {
      items[i]->second = json::RecordText(ScanForOthers(ranks[items[i]->first]));
    });
  });
  return part;
}

Result<std::vector<ScannedRank>> TakeScans(const std::string& path, const std::string& state,
                                           std::span<const json::Value> items) {
  PL_TRY_ASSIGN(const std::vector<load::RankDirectory> ranks, AllRanks(path));
  if (ranks.size() != items.size() || StateOf(ranks) != state) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: has other ranks than when they were read. Run all shards again", path));
  }
  std::vector<ScannedRank> scans(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const bool is_good =
        json::ReadRecord(items[i], scans[i]) && (!scans[i].scan || IsSound(*scans[i].scan));
    if (!is_good) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: its shards are damaged. Run them again", ranks[i].path));
    }
    if (RecordingOf(ranks[i]) == scans[i].recording) continue;
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: has changed since it was read. Run all shards again", ranks[i].path));
  }
  return scans;
}

}  // namespace plumbline

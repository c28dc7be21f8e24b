#include "precheck/online/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text/text_parts.h"
#include "precheck/precheck_report.h"
#include "precheck/result_rows.h"
#include "precheck/two_sided.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kLedgerStart = "rank", kLedgerEnd = ".ledger";

std::string LedgerPath(const std::string& spool, int32_t rank) {
  return JoinPath(spool, fmt::format("{}{}{}", kLedgerStart, rank, kLedgerEnd));
}

constexpr size_t kFiles = 2, kFilesWithDevice = 4;
constexpr std::string_view kWithDevice = " device";  // behind the time in the ledger

// The numbers of "begin 1 2 3 4 5".
std::optional<std::vector<uint64_t>> NumbersOf(std::string_view words, size_t count) {
  std::vector<uint64_t> numbers;
  while (!words.empty()) {
    words.remove_prefix(1);  // a blank
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
    if (error != std::errc()) return std::nullopt;
    numbers.push_back(number);
    words.remove_prefix(static_cast<size_t>(end - words.data()));
  }
  if (numbers.size() != count) return std::nullopt;
  return numbers;
}

}  // namespace

Result<std::vector<int32_t>> RankFiles::RanksIn(const std::string& spool) {
  std::vector<int32_t> ranks;
  if (KindOf(spool) != PathKind::kDirectory) return ranks;
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(spool));
  for (const std::string& name : names) {
    if (!name.starts_with(kLedgerStart) || !name.ends_with(kLedgerEnd)) continue;
    const char* const begin = name.data() + kLedgerStart.size();
    const char* const end = name.data() + name.size() - kLedgerEnd.size();
    int32_t rank = 0;
    if (std::from_chars(begin, end, rank).ptr == end && begin != end) ranks.push_back(rank);
  }
  return ranks;
}

// "files <time>[ device]", then for each step "begin <session> <step> <sequence> <size of each
// file>" and, behind its rows, "end <size of each file> <counts>".
plumbline::Status RankFiles::ReadLedger(std::string_view text,
                                        std::map<uint64_t, uint64_t>& finished,
                                        std::string& heading) {
  constexpr std::string_view kHeading = "files ", kBegin = "begin", kEnd = "end";
  constexpr size_t kOfStep = 3;
  std::vector<uint64_t> begun;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    ledger_size_ += end + 1;
    if (line.starts_with(kHeading)) {
      heading = line.substr(kHeading.size());
    } else if (line.starts_with(kBegin)) {
      const auto numbers = NumbersOf(line.substr(kBegin.size()), kOfStep + files_.size());
      if (numbers) begun = *numbers;
    } else if (line.starts_with(kEnd) && !begun.empty()) {
      const auto numbers = NumbersOf(line.substr(kEnd.size()), files_.size() + counts_.size());
      if (!numbers) continue;
      for (size_t i = 0; i < files_.size(); ++i) files_[i].size = (*numbers)[i];
      for (size_t i = 0; i < counts_.size(); ++i) counts_[i] = (*numbers)[files_.size() + i];
      uint64_t& last = finished[begun[0]];
      last = std::max(last, begun[2]);
      begun.clear();
      ++steps_;
    }
  }
  return {};
}

plumbline::Status RankFiles::OpenFile(const std::string& path, Kind kind) {
  Grown& grown = files_[kind];
  if (grown.size > 0) {
    PL_TRY_ASSIGN(const uint64_t there, FileSize(path));
    if (there < grown.size) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: is shorter than what was written to it (expected {} bytes, got "
                               "{}). Name another output directory",
                               path, grown.size, there));
    }
    PL_TRY_ASSIGN(File cut, File::OpenUpdate(path));
    PL_TRY(cut.Resize(grown.size));
  } else {
    const std::string header = kind == kDetails  ? HeaderText(DetailsHeader(ResultForm::kPyTorch))
                               : kind == kResult ? HeaderText(ResultHeader(ResultForm::kPyTorch))
                               : kind == kSidedDetails ? TwoSidedDetailsHeader()
                                                       : TwoSidedResultHeader();
    PL_TRY_ASSIGN(File made, File::Create(path));
    PL_TRY(made.Write(header));
    grown.size = header.size();
  }
  PL_TRY_ASSIGN(grown.file, File::OpenAppend(path));
  return {};
}

Result<RankFiles> RankFiles::Open(const Place& place, int32_t rank,
                                  std::map<uint64_t, uint64_t>& finished) {
  RankFiles files;
  files.files_.resize(place.has_device ? kFilesWithDevice : kFiles);
  const std::string ledger = LedgerPath(place.spool, rank);
  const std::string wanted = place.timestamp + std::string(place.has_device ? kWithDevice : "");
  std::string stamp = place.timestamp, earlier;
  if (KindOf(ledger) == PathKind::kFile) {
    PL_TRY_ASSIGN(const std::string text, ReadFile(ledger));
    PL_TRY(files.ReadLedger(text, finished, earlier));
    if (!earlier.empty() && earlier.ends_with(kWithDevice) != place.has_device) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: was begun {} --device_type. Go on with the same command, or "
                               "name another output directory",
                               place.directory, place.has_device ? "without" : "with"));
    }
    if (!earlier.empty()) stamp = earlier.substr(0, earlier.find(' '));
    PL_TRY_ASSIGN(File cut, File::OpenUpdate(ledger));
    PL_TRY(cut.Resize(files.ledger_size_));
  }
  PL_TRY_ASSIGN(files.ledger_, File::OpenAppend(ledger));
  if (earlier.empty()) {
    const std::string line = fmt::format("files {}\n", wanted);
    PL_TRY(files.ledger_.Write(line));
    files.ledger_size_ = line.size();
  }
  const auto open = [&](Kind kind, std::string_view name) {
    return files.OpenFile(
        JoinPath(place.directory, fmt::format("{}_{}_rank{}.csv", name, stamp, rank)), kind);
  };
  PL_TRY(open(kDetails, "accuracy_checking_details"));
  PL_TRY(open(kResult, "accuracy_checking_result"));
  if (!place.has_device) return files;
  PL_TRY(open(kSidedDetails, "api_precision_compare_details"));
  PL_TRY(open(kSidedResult, "api_precision_compare_result"));
  return files;
}

plumbline::Status RankFiles::Append(const JudgedStep& step, const std::vector<CheckedCall>& calls,
                                    int precision) {
  std::vector<std::string> texts(files_.size());
  Counts counts = counts_;
  for (const CheckedCall& call : calls) {
    const CallOutcome& outcome = call.outcome;
    const CallRows rows = RowsOf(outcome, ResultForm::kPyTorch, precision);
    texts[kDetails] += rows.details;
    texts[kResult] += rows.result;
    ++counts[static_cast<size_t>(CallStatus(outcome.forward.status, outcome.backward.status))];
    if (!call.of_device) continue;
    const CallRows sided = TwoSidedRowsOf(outcome, *call.of_device, precision);
    texts[kSidedDetails] += sided.details;
    texts[kSidedResult] += sided.result;
  }
  if (plumbline::Status written = Write(step, texts, counts); !written) {
    (void)ledger_.Resize(ledger_size_);
    for (Grown& grown : files_) (void)grown.file.Resize(grown.size);
    return written;
  }
  for (size_t i = 0; i < texts.size(); ++i) files_[i].size += texts[i].size();
  counts_ = counts;
  ++steps_;
  return {};
}

plumbline::Status RankFiles::Write(const JudgedStep& step, const std::vector<std::string>& texts,
                                   const Counts& counts) {
  std::string begin =
      fmt::format("begin {} {} {}", step.session, step.step, step.last_sequence);
  std::string end = "end";
  for (size_t i = 0; i < texts.size(); ++i) {
    begin += fmt::format(" {}", files_[i].size);
    end += fmt::format(" {}", files_[i].size + texts[i].size());
  }
  begin += '\n';
  for (const uint64_t count : counts) end += fmt::format(" {}", count);
  end += '\n';
  PL_TRY(ledger_.Write(begin));
  for (size_t i = 0; i < texts.size(); ++i) PL_TRY(files_[i].file.Write(texts[i]));
  PL_TRY(ledger_.Write(end));
  ledger_size_ += begin.size() + end.size();
  return {};
}

plumbline::Status RankFiles::AppendRemark(std::string_view name, std::string_view message) {
  std::string row;
  const std::string skip(StatusWord(CheckStatus::kSkip));
  AppendCsvRow(std::vector<std::string>{std::string(name), skip, skip, std::string(message)}, row);
  return files_[kResult].file.Write(row);
}

plumbline::Status RankFiles::Finish() {
  for (Grown& grown : files_) PL_TRY(grown.file.Sync());
  const std::string ledger = ledger_.path();
  PL_TRY(ledger_.Close());
  return RemoveFile(ledger);
}

}  // namespace plumbline::precheck

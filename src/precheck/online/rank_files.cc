#include "precheck/online/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text/text_parts.h"
#include "precheck/precheck_report.h"
#include "precheck/result_rows.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kLedgerStart = "rank", kLedgerEnd = ".ledger";

std::string LedgerPath(const std::string& spool, int32_t rank) {
  return JoinPath(spool, fmt::format("{}{}{}", kLedgerStart, rank, kLedgerEnd));
}

std::string HeaderOf(bool is_result) {
  return HeaderText(is_result ? ResultHeader(ResultForm::kPyTorch)
                              : DetailsHeader(ResultForm::kPyTorch));
}

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

// "files <time>", then for each step "begin <session> <step> <sequence> <details> <result>" and,
// behind its rows, "end <details> <result> <counts>".
plumbline::Status RankFiles::ReadLedger(const std::string& text,
                                        std::map<uint64_t, uint64_t>& finished,
                                        std::string& timestamp) {
  constexpr std::string_view kFiles = "files ", kBegin = "begin", kEnd = "end";
  std::vector<uint64_t> begun;
  std::string_view rest = text;
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    ledger_size_ += end + 1;
    if (line.starts_with(kFiles)) {
      timestamp = line.substr(kFiles.size());
    } else if (line.starts_with(kBegin)) {
      if (const auto numbers = NumbersOf(line.substr(kBegin.size()), 5)) begun = *numbers;
    } else if (line.starts_with(kEnd) && !begun.empty()) {
      const auto numbers = NumbersOf(line.substr(kEnd.size()), 2 + counts_.size());
      if (!numbers) continue;
      details_size_ = (*numbers)[0];
      result_size_ = (*numbers)[1];
      for (size_t i = 0; i < counts_.size(); ++i) counts_[i] = (*numbers)[2 + i];
      uint64_t& last = finished[begun[0]];
      last = std::max(last, begun[2]);
      begun.clear();
      ++steps_;
    }
  }
  return {};
}

plumbline::Status RankFiles::OpenFile(const std::string& path, bool is_result, uint64_t size,
                                      File& file) {
  const bool is_new = size == 0;
  if (!is_new) {
    PL_TRY_ASSIGN(const uint64_t there, FileSize(path));
    if (there < size) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: is shorter than what was written to it (expected {} bytes, got "
                               "{}). Name another output directory",
                               path, size, there));
    }
    PL_TRY_ASSIGN(File cut, File::OpenUpdate(path));
    PL_TRY(cut.Resize(size));
  }
  if (is_new) {
    PL_TRY_ASSIGN(File made, File::Create(path));
    PL_TRY(made.Write(HeaderOf(is_result)));
    (is_result ? result_size_ : details_size_) = HeaderOf(is_result).size();
  }
  PL_TRY_ASSIGN(file, File::OpenAppend(path));
  return {};
}

Result<RankFiles> RankFiles::Open(const std::string& directory, const std::string& spool,
                                  int32_t rank, std::string_view timestamp,
                                  std::map<uint64_t, uint64_t>& finished) {
  RankFiles files;
  const std::string ledger = LedgerPath(spool, rank);
  std::string stamp(timestamp), earlier;
  if (KindOf(ledger) == PathKind::kFile) {
    PL_TRY_ASSIGN(const std::string text, ReadFile(ledger));
    PL_TRY(files.ReadLedger(text, finished, earlier));
    if (!earlier.empty()) stamp = earlier;
    PL_TRY_ASSIGN(File cut, File::OpenUpdate(ledger));
    PL_TRY(cut.Resize(files.ledger_size_));
  }
  PL_TRY_ASSIGN(files.ledger_, File::OpenAppend(ledger));
  if (earlier.empty()) {
    const std::string line = fmt::format("files {}\n", stamp);
    PL_TRY(files.ledger_.Write(line));
    files.ledger_size_ = line.size();
  }
  const auto path = [&](std::string_view kind) {
    return JoinPath(directory, fmt::format("accuracy_checking_{}_{}_rank{}.csv", kind, stamp, rank));
  };
  PL_TRY(files.OpenFile(path("details"), false, files.details_size_, files.details_));
  PL_TRY(files.OpenFile(path("result"), true, files.result_size_, files.result_));
  return files;
}

plumbline::Status RankFiles::Append(const JudgedStep& step,
                                    const std::vector<CallOutcome>& outcomes, int precision) {
  std::string details, result;
  Counts counts = counts_;
  for (const CallOutcome& outcome : outcomes) {
    const CallRows rows = RowsOf(outcome, ResultForm::kPyTorch, precision);
    details += rows.details;
    result += rows.result;
    ++counts[static_cast<size_t>(CallStatus(outcome.forward.status, outcome.backward.status))];
  }
  const std::string begin =
      fmt::format("begin {} {} {} {} {}\n", step.session, step.step, step.last_sequence,
                  details_size_, result_size_);
  const auto write = [&]() -> plumbline::Status {
    PL_TRY(ledger_.Write(begin));
    PL_TRY(details_.Write(details));
    PL_TRY(result_.Write(result));
    const std::string end =
        fmt::format("end {} {} {} {} {} {} {}\n", details_size_ + details.size(),
                    result_size_ + result.size(), counts[0], counts[1], counts[2], counts[3],
                    counts[4]);
    PL_TRY(ledger_.Write(end));
    ledger_size_ += begin.size() + end.size();
    return {};
  };
  if (plumbline::Status written = write(); !written) {
    (void)ledger_.Resize(ledger_size_);
    (void)details_.Resize(details_size_);
    (void)result_.Resize(result_size_);
    return written;
  }
  details_size_ += details.size();
  result_size_ += result.size();
  counts_ = counts;
  ++steps_;
  return {};
}

plumbline::Status RankFiles::AppendRemark(std::string_view name, std::string_view message) {
  std::string row;
  const std::string skip(StatusWord(CheckStatus::kSkip));
  AppendCsvRow(std::vector<std::string>{std::string(name), skip, skip, std::string(message)}, row);
  return result_.Write(row);
}

plumbline::Status RankFiles::Finish() {
  PL_TRY(details_.Sync());
  PL_TRY(result_.Sync());
  const std::string ledger = ledger_.path();
  PL_TRY(ledger_.Close());
  return RemoveFile(ledger);
}

}  // namespace plumbline::precheck

#include "precheck/result_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file/directory.h"
#include "base/memory/digest.h"
#include "base/text/json.h"
#include "base/text/number_text.h"

namespace plumbline::precheck {
namespace {

using csv::RowPlace;

constexpr std::string_view kResultPrefix = "accuracy_checking_result_";
constexpr std::string_view kDetailsPrefix = "accuracy_checking_details_";
constexpr std::string_view kFactsPrefix = "accuracy_checking_run_";
constexpr std::string_view kFactsExtension = ".json";
constexpr std::string_view kExtension = ".csv";
constexpr size_t kTimestampDigits = 14;

std::string FileName(std::string_view prefix, std::string_view timestamp) {
  return fmt::format("{}{}{}", prefix, timestamp, kExtension);
}

std::string FactsName(std::string_view timestamp) {
  return fmt::format("{}{}{}", kFactsPrefix, timestamp, kFactsExtension);
}

// The digits in the name of a result file; kInvalidArgument where it is not named so.
Result<std::string> TimestampOf(const std::string& path) {
  std::string_view digits = BaseName(path);
  bool fits = digits.starts_with(kResultPrefix) && digits.ends_with(kExtension) &&
              digits.size() == kResultPrefix.size() + kTimestampDigits + kExtension.size();
  if (fits) {
    digits = digits.substr(kResultPrefix.size(), kTimestampDigits);
    fits = digits.find_first_not_of("0123456789") == std::string_view::npos;
  }
  if (fits) return std::string(digits);
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: no name of a result file (expected {}<14 digits>{}). Name it as it "
                           "was written",
                           path, kResultPrefix, kExtension));
}

plumbline::Status CheckOwnFile(const std::string& path, std::string_view what) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  if (facts.kind == PathKind::kFile && !facts.is_link) return {};
  if (facts.kind == PathKind::kMissing) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: does not exist (expected the {} of the run to continue)", path, what));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: {} (expected the {} itself)", path,
                           facts.is_link ? "is a symbolic link" : "is no file", what));
}

// Compares the first row of a file with what it must be.
plumbline::Status CheckHeader(const csv::Row& row, const std::vector<std::string_view>& expected) {
  std::string missing;
  for (const std::string_view name : expected) {
    if (std::find(row.begin(), row.end(), name) != row.end()) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!missing.empty()) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the header misses {}. Continue with the files of a pre-check", missing));
  }
  if (std::equal(row.begin(), row.end(), expected.begin(), expected.end())) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the header has {} columns or another order (expected {} as they are "
                           "written)",
                           row.size(), expected.size()));
}

plumbline::Status CheckHasHeader(const std::string& path, const std::vector<RowPlace>& kept) {
  if (!kept.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: holds no header. Start anew without the result file", path));
}

// Writes parts of a file, one behind the other, in its place.
plumbline::Status ReplaceByParts(const std::string& path, const std::vector<RowPlace>& parts) {
  constexpr size_t kBlockBytes = size_t{1} << 20;
  PL_TRY_ASSIGN(const File from, File::OpenRead(path));
  PL_TRY_ASSIGN(const Directory directory, Directory::Open(std::string(DirectoryOf(path))));
  PL_TRY_ASSIGN(AtomicFile to, AtomicFile::Create(directory, BaseName(path)));
  std::vector<std::byte> block(kBlockBytes);
  for (size_t i = 0; i < parts.size();) {
    // Parts that lie one behind the other are one.
    const uint64_t begin = parts[i].begin;
    uint64_t end = parts[i].end;
    while (++i < parts.size() && parts[i].begin == end) end = parts[i].end;
    for (uint64_t at = begin; at < end;) {
      const size_t wanted = std::min<uint64_t>(kBlockBytes, end - at);
      PL_TRY_ASSIGN(const size_t got, from.ReadAt(std::span(block).first(wanted), at));
      if (got == 0) {
        return Error(ErrorCode::kIo, fmt::format("{}: was cut while it was copied", path));
      }
      PL_TRY(to.Write(std::span<const std::byte>(block).first(got)));
      at += got;
    }
  }
  return to.Commit(/*durable=*/true);
}

bool Covers(const std::vector<RowPlace>& parts, uint64_t size) {
  uint64_t at = 0;
  for (const RowPlace& part : parts) {
    if (part.begin != at) return false;
    at = part.end;
  }
  return at == size;
}

// What the details say of one direction of a call, row by row.
class DirectionRows {
 public:
  // `place` is what stands behind the direction: ".output.1_0", ".input.out".
  void Add(std::string_view place, CheckStatus status) {
    constexpr std::string_view kOutput = ".output.";
    has_any_ = true;
    if (status == CheckStatus::kSkip) {
      has_skipped_ = true;
    } else {
      worst_ = std::max(worst_, status);
    }
    if (!place.starts_with(kOutput)) return;
    // Rows of one output stand together, and those of the next one behind them.
    place.remove_prefix(kOutput.size());
    int64_t output = -1;
    std::from_chars(place.data(), place.data() + place.size(), output);
    is_whole_ = is_whole_ && (output == last_ || output == last_ + 1) && output >= 0;
    last_ = output;
  }

  [[nodiscard]] bool has_any() const { return has_any_; }
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  [[nodiscard]] CheckStatus status() const {
    return worst_ == CheckStatus::kNone && has_skipped_ ? CheckStatus::kSkip : worst_;
  }

 private:
  bool has_any_ = false, has_skipped_ = false, is_whole_ = true;
  CheckStatus worst_ = CheckStatus::kNone;  // of those that were judged
  int64_t last_ = -1;                       // output
};

// A call of the earlier run.
struct Earlier {
  RowPlace row;
  ResultFiles::Done done;
  DirectionRows forward = {}, backward = {};
  bool is_again = false;  // to be done again

  [[nodiscard]] bool has_details() const { return forward.has_any() || backward.has_any(); }
  // Whether the details hold what the result says. They have one row of a call that was not run.
  [[nodiscard]] bool Agrees() const {
    const bool is_skipped = done.forward == CheckStatus::kSkip &&
                            done.backward == CheckStatus::kSkip && !backward.has_any();
    return forward.is_whole() && backward.is_whole() && forward.status() == done.forward &&
           (is_skipped || backward.status() == done.backward);
  }
};

// How many there are, and which is the first.
struct NamedCalls {
  size_t count = 0;
  std::string first;

  void Add(std::string_view name) {
    if (count++ == 0) first = name;
  }
};

// What an earlier run wrote, before anything is changed.
class EarlierRun {
 public:
  // `is_own`: no other tool has written rows, which need not agree.
  EarlierRun(ResultForm form, bool retry_skipped, bool is_own)
      : form_(form), retry_skipped_(retry_skipped), is_own_(is_own) {}

  plumbline::Status ReadResult(const std::string& path, const ResultFiles::IsPlanned& is_planned) {
    bool is_header = true;
    const auto end =
        csv::VisitWholeRows(path, [&](csv::Row& row, const RowPlace& place) -> plumbline::Status {
          if (!std::exchange(is_header, false)) return AddResult(row, place, is_planned);
          // The mark at the start of the file stays with the header.
          result_.push_back({0, place.end});
          return CheckHeader(row, ResultHeader(form_));
        });
    if (!end) return end.error();
    return CheckHasHeader(path, result_);
  }

  plumbline::Status ReadDetails(const std::string& path) {
    const auto end =
        csv::VisitWholeRows(path, [&](csv::Row& row, const RowPlace& place) -> plumbline::Status {
          if (details_.empty()) {
            details_.push_back({0, place.end});
            return CheckHeader(row, DetailsHeader(form_));
          }
          if (row.empty()) return {};  // a blank line goes
          const std::string name = ReadName(row);
          const std::string call_name(CallOfOutput(name));
          const auto call = calls_.find(call_name);
          if (call != calls_.end()) {
            AddOutput(name, row, call->second);
            outputs_.push_back({place, &call->second});
          } else if (!retried_.contains(call_name)) {
            // The rows of a call stand together.
            if (std::exchange(last_stray_, call_name) != call_name) strays_.Add(name);
          }
          return {};
        });
    if (!end) return end.error();
    return CheckHasHeader(path, details_);
  }

  // A kill of the machine, a program that writes the result first, or a hand can leave a row whose
  // details are not there, not all of them, or others; that call is done again.
  void DropWhatDoesNotAgree() {
    std::vector<std::pair<const std::string, Earlier>*> order;
    for (auto& call : calls_) order.push_back(&call);
    std::ranges::sort(order, {}, [](const auto* call) { return call->second.row.begin; });
    for (size_t i = 0; i < order.size(); ++i) {
      auto& [name, call] = *order[i];
      call.is_again = IsToDoAgain(name, call);
      if (!call.is_again) continue;
      unlike_.Add(name);
      // What is cut out begins behind any row: the last ones of the call before may be gone, too.
      if (!is_own_ || i == 0 || order[i - 1]->second.is_again) continue;
      order[i - 1]->second.is_again = true;
      ++doubtful_;
    }
    for (const auto* call : order) {
      if (!call->second.is_again) result_.push_back(call->second.row);
    }
    for (const auto& [place, call] : outputs_) {
      if (!call->is_again) details_.push_back(place);
    }
    outputs_.clear();
    std::erase_if(calls_, [](const auto& call) { return call.second.is_again; });
  }

  // What is not as it was written, in words.
  void Tell(const std::string& result_path, const std::string& details_path,
            std::vector<std::string>& warnings) const {
    if (unlike_.count > 0) {
      warnings.push_back(fmt::format(
          "{}: does not hold what {} says of {}, such as {} (rows are missing or were changed). {} "
          "run again{}",
          details_path, BaseName(result_path), CountText(unlike_.count, "call"), unlike_.first,
          unlike_.count == 1 ? "It is" : "They are",
          doubtful_ == 0 ? ""
                         : fmt::format(", with {} before, whose last rows may be missing",
                                       CountText(doubtful_, "call"))));
    }
    if (strays_.count > 0) {
      warnings.push_back(fmt::format(
          "{}: has no row of {} in {}, such as {}. Those of the recording are run again",
          result_path, CountText(strays_.count, "call"), BaseName(details_path), strays_.first));
    }
  }

  [[nodiscard]] const std::vector<RowPlace>& result() const { return result_; }
  [[nodiscard]] const std::vector<RowPlace>& details() const { return details_; }

  [[nodiscard]] ResultFiles::DoneCalls Done() const {
    ResultFiles::DoneCalls done;
    for (const auto& [name, call] : calls_) done.emplace(name, call.done);
    return done;
  }

 private:
  [[nodiscard]] bool IsToDoAgain(const std::string& name, const Earlier& call) const {
    if (is_own_) return !call.Agrees();
    // Release 1.2.2 writes no details of dropout.
    return !call.has_details() && name.find("dropout") == std::string::npos;
  }

  // What a row of the details says about its call. A cell that cannot be read says nothing.
  void AddOutput(std::string_view name, const csv::Row& row, Earlier& call) const {
    constexpr std::string_view kForward = ".forward", kBackward = ".backward";
    const std::vector<std::string_view> header = DetailsHeader(form_);
    const auto column = [&](std::string_view key) -> std::string_view {
      const auto at = static_cast<size_t>(std::ranges::find(header, key) - header.begin());
      return at < row.size() ? std::string_view(row[at]) : std::string_view();
    };
    const CheckStatus status = ParseStatus(column("Status")).value_or(CheckStatus::kNone);
    const std::string_view behind_call = name.substr(CallOfOutput(name).size());
    const bool is_backward = behind_call.starts_with(kBackward);
    ResultFiles::Done& done = call.done;
    (is_backward ? call.backward : call.forward)
        .Add(behind_call.substr(is_backward ? kBackward.size() : kForward.size()), status);
    if (status != CheckStatus::kSkip) {
      done.outputs += status == CheckStatus::kNone ? 0 : 1;
      return;
    }
    const bool is_why = (is_backward ? done.backward : done.forward) == CheckStatus::kSkip;
    if (is_why && !done.skip) done.skip = ParseSkip(column("Message"));
  }

  plumbline::Status AddResult(const csv::Row& row, const RowPlace& place,
                              const ResultFiles::IsPlanned& is_planned) {
    if (row.empty()) return {};  // a blank line goes
    std::string name = ReadName(row);
    if (!is_planned(name)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("holds {}, which is no call of the recording (expected the result "
                               "of the same dump.json). Name that, or start anew without it",
                               name));
    }
    const auto forward = ParseStatus(row.size() > 1 ? row[1] : "?");
    const auto backward = ParseStatus(row.size() > 2 ? row[2] : "?");
    if (!forward || !backward) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("the row of {} has no words for both directions (expected pass, "
                               "Warning, error, SKIP or a blank)",
                               name));
    }
    const ResultFiles::Done done{*forward, *backward, 0, {}};
    const bool skipped = done.forward == CheckStatus::kSkip || done.backward == CheckStatus::kSkip;
    if (retry_skipped_ && skipped) {
      retried_.insert(std::move(name));
      return {};
    }
    // Upstream writes a second row where it fails after the first one, which says nothing new.
    calls_.emplace(std::move(name), Earlier{place, done});
    return {};
  }

  // A row of the details with its call.
  struct Output {
    RowPlace place;
    const Earlier* call;
  };

  ResultForm form_;
  bool retry_skipped_, is_own_;
  std::unordered_map<std::string, Earlier> calls_;
  std::unordered_set<std::string> retried_;
  std::vector<Output> outputs_;
  std::vector<RowPlace> result_, details_;  // what stays of each file, its header first
  NamedCalls unlike_, strays_;  // calls whose details are not as they were; outputs of no call
  std::string last_stray_;
  size_t doubtful_ = 0;  // calls before those of `unlike_`
};

// One row with where it is to go.
struct PlacedRow {
  size_t order;
  RowPlace place;
};

// The rows of a file behind its header in another order, in its place.
plumbline::Status SortFile(const std::string& path, const ResultFiles::PlaceOf& place_of,
                           bool is_details) {
  std::vector<PlacedRow> rows;
  RowPlace header;
  const auto end =
      csv::VisitWholeRows(path, [&](csv::Row& row, const RowPlace& place) -> plumbline::Status {
        if (header.end == 0) {
          header.end = place.end;
          return {};
        }
        const std::string name = ReadName(row);
        const auto order = place_of(is_details ? CallOfOutput(name) : std::string_view(name));
        rows.push_back({order.value_or(std::numeric_limits<size_t>::max()), place});
        return {};
      });
  if (!end) return end.error();
  const auto is_before = [](const PlacedRow& a, const PlacedRow& b) { return a.order < b.order; };
  if (std::is_sorted(rows.begin(), rows.end(), is_before)) return {};
  std::stable_sort(rows.begin(), rows.end(), is_before);
  std::vector<RowPlace> parts = {header};
  for (const PlacedRow& row : rows) parts.push_back(row.place);
  return ReplaceByParts(path, parts);
}

// What ReplaceByParts() leaves beside a file where it is killed.
plumbline::Status RemoveLeftover(const std::string& path) {
  return RemoveFile(JoinPath(DirectoryOf(path), fmt::format(".{}.tmp", BaseName(path))));
}

plumbline::Status WriteHeader(const std::string& path, const std::vector<std::string_view>& names) {
  return WriteFileAtomically(path, HeaderText(names), /*durable=*/false);
}

// ---- The facts of a run ----

constexpr std::string_view kFactsFormat = "plumbline pre-check run";
constexpr uint64_t kFactsVersion = 1;
constexpr uint64_t kLongestFacts = uint64_t{1} << 20;
constexpr std::string_view kRecordingKey = "dump_json", kDigestKey = "dump_json_xxh3";

// A fact as it is written, and what to say where another run has it otherwise. `advice` gets the
// value of the earlier run.
struct Fact {
  std::string_view key;
  std::string text;
  bool is_text = true;  // in quotes
  std::string_view what, advice;
};

std::vector<Fact> FactsOf(const RunFacts& facts) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  return {
      {kDigestKey, facts.digest, true, "of another recording", "Name the dump.json of that run"},
      {"framework", facts.framework, true, "of another framework",
       "Name the recording of that run"},
      {"framework_version", facts.framework_version, true, "of another version of the framework",
       "Go on with --python and the interpreter of that run"},
      {"device", facts.device, true, "of another device", "Go on with --device_type {}"},
      {"device_name", facts.device_name, true, "of another device", "Go on where there is a {}"},
      {"seed", number(facts.seed), false, "of inputs drawn otherwise", "Go on with --seed {}"},
      {"worker_threads", number(facts.worker_threads), false,
       "of executors with another number of threads", "Go on with --worker_threads {}"},
      {"dedupe", number(facts.dedupe), false, "of other calls",
       "Go on with -f as that run had it or not"},
      {"precision", number(facts.precision), false, "in another precision",
       "Go on with --config and the configuration of that run"},
      {"max_abs_err", number(facts.max_abs_error), false, "judged by another limit",
       "Go on with --max_abs_err {}"},
  };
}

// "" where there is no such text.
std::string TextAt(const json::Value& facts, std::string_view key) {
  const json::Value* const found = facts.Find(key);
  return found != nullptr && found->AsText() != nullptr ? *found->AsText() : std::string();
}

// The file is small, or it is not what it should be.
Result<std::string> ReadFacts(const std::string& path) {
  PL_TRY(CheckOwnFile(path, "facts"));
  PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
  if (size <= kLongestFacts) return ReadFile(path);
  return Error(ErrorCode::kCorrupt,
               fmt::format("{}: has {} bytes (expected at most {})", path, size, kLongestFacts));
}

}  // namespace

Result<std::string> DigestOfFile(const std::string& path) {
  constexpr size_t kBlockBytes = size_t{1} << 20;
  PL_TRY_ASSIGN(const File file, File::OpenRead(path));
  std::vector<std::byte> block(kBlockBytes);
  Xxh3 digest;
  for (uint64_t at = 0;;) {
    PL_TRY_ASSIGN(const size_t got, file.ReadAt(block, at));
    if (got == 0) break;
    digest.Update(std::span<const std::byte>(block).first(got));
    at += got;
  }
  const Digest128 value = digest.Finish();
  return fmt::format("{:016x}{:016x}", value.high, value.low);
}

std::string RunFactsJson(const RunFacts& facts) {
  std::string out =
      fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"{}\": ", kFactsFormat,
                  kFactsVersion, kRecordingKey);
  json::AppendString(facts.dump_json, out);
  for (const Fact& fact : FactsOf(facts)) {
    out += fmt::format(",\n  \"{}\": ", fact.key);
    if (fact.is_text) {
      json::AppendString(fact.text, out);
    } else {
      out += fact.text;
    }
  }
  return out + "\n}\n";
}

Result<RunFacts> ParseRunFacts(std::string_view text) {
  PL_TRY_ASSIGN(const json::Value value, json::Value::Parse(text));
  const auto natural = [&](std::string_view key) {
    const json::Value* const found = value.Find(key);
    return found == nullptr ? std::nullopt : found->AsNatural();
  };
  const auto version = natural("version");
  if (TextAt(value, "format") != kFactsFormat || !version) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("no facts of a run (expected the format \"{}\")", kFactsFormat));
  }
  if (*version != kFactsVersion) {
    return Error(ErrorCode::kUnsupported, fmt::format("version {} (expected {}). Go on with the "
                                                      "plumbline that wrote it",
                                                      *version, kFactsVersion));
  }
  const auto seed = natural("seed"), threads = natural("worker_threads");
  const auto precision = natural("precision");
  const json::Value* const dedupe = value.Find("dedupe");
  const json::Value* const limit = value.Find("max_abs_err");
  const bool is_whole = seed && threads && precision && dedupe != nullptr && dedupe->AsBool() &&
                        limit != nullptr && limit->AsReal() && !TextAt(value, kDigestKey).empty();
  if (!is_whole) return Error(ErrorCode::kCorrupt, "facts are missing");
  RunFacts facts{.dump_json = TextAt(value, kRecordingKey),
                 .digest = TextAt(value, kDigestKey),
                 .framework = TextAt(value, "framework"),
                 .framework_version = TextAt(value, "framework_version"),
                 .device = TextAt(value, "device"),
                 .device_name = TextAt(value, "device_name")};
  facts.seed = *seed;
  facts.worker_threads = static_cast<int>(*threads);
  facts.dedupe = *dedupe->AsBool();
  facts.precision = static_cast<int>(*precision);
  facts.max_abs_error = *limit->AsReal();
  return facts;
}

std::string DifferenceOf(const RunFacts& earlier, const RunFacts& now) {
  const std::vector<Fact> theirs = FactsOf(earlier), ours = FactsOf(now);
  for (size_t i = 0; i < theirs.size(); ++i) {
    const bool is_known = !theirs[i].text.empty() && !ours[i].text.empty();
    if (!is_known || theirs[i].text == ours[i].text) continue;
    const bool is_recording = theirs[i].key == kDigestKey;
    const auto place = [&](const RunFacts& facts) {
      return is_recording ? " of " + facts.dump_json : std::string();
    };
    return fmt::format("{} (expected {} {}{}, got {}{}). {}, or start anew without the result file",
                       theirs[i].what, theirs[i].key, theirs[i].text, place(earlier), ours[i].text,
                       place(now), fmt::format(fmt::runtime(theirs[i].advice), theirs[i].text));
  }
  return {};
}

std::string ResultTimestamp(const std::string& directory) {
  for (std::time_t time = std::time(nullptr);; ++time) {
    std::tm local{};
    localtime_r(&time, &local);
    char text[kTimestampDigits + 1];
    std::string timestamp(text, std::strftime(text, sizeof(text), "%Y%m%d%H%M%S", &local));
    const auto is_free = [&](std::string_view prefix) {
      return KindOf(JoinPath(directory, FileName(prefix, timestamp))) == PathKind::kMissing;
    };
    const bool has_facts = KindOf(JoinPath(directory, FactsName(timestamp))) != PathKind::kMissing;
    if (!has_facts && is_free(kResultPrefix) && is_free(kDetailsPrefix)) return timestamp;
  }
}

plumbline::Status RowJournal::Open() {
  PL_TRY_ASSIGN(file, File::OpenAppend(path));
  // Where a file system has no locks, nobody is kept out.
  const Result<bool> locked = file.TryLock();
  if (locked && !*locked) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: another process writes it. Wait until that has ended", path));
  }
  PL_TRY_ASSIGN(size, FileSize(path));
  return RemoveLeftover(path);
}

plumbline::Status RowJournal::CutTo(uint64_t bytes) {
  is_torn = true;
  size = bytes;
  PL_TRY(file.Resize(bytes));
  is_torn = false;
  return {};
}

plumbline::Status RowJournal::Append(std::string_view rows) {
  if (is_torn) PL_TRY(CutTo(size));
  const plumbline::Status written = file.Write(rows);
  if (written) {
    size += rows.size();
    return {};
  }
  // A disk that refuses this too leaves a part, which the next attempt or Resume() takes out.
  (void)CutTo(size);
  return written.error();
}

void ResultFiles::NameFiles(const std::string& directory, std::string timestamp) {
  timestamp_ = std::move(timestamp);
  result_.path = JoinPath(directory, FileName(kResultPrefix, timestamp_));
  details_.path = JoinPath(directory, FileName(kDetailsPrefix, timestamp_));
  facts_path_ = JoinPath(directory, FactsName(timestamp_));
}

plumbline::Status ResultFiles::OpenBoth() {
  PL_TRY(result_.Open());
  return details_.Open();
}

Result<ResultFiles> ResultFiles::Create(const std::string& directory, std::string_view timestamp,
                                        const ResultFilesOptions& options) {
  ResultFiles files(options);
  files.NameFiles(directory, std::string(timestamp));
  PL_TRY(MakeDirectories(directory));
  for (const std::string& path : {files.result_.path, files.details_.path}) {
    if (KindOf(path) == PathKind::kMissing) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: exists already. Continue that run with it, or choose another "
                             "directory",
                             path));
  }
  const plumbline::Status made = files.WriteNew();
  if (made) return files;
  files.RemoveAll();
  return made.error();
}

plumbline::Status ResultFiles::WriteNew() {
  // A result file without the others could not be continued, so it comes last.
  if (options_.facts) {
    PL_TRY(WriteFileAtomically(facts_path_, RunFactsJson(*options_.facts), /*durable=*/false));
  }
  PL_TRY(WriteHeader(details_.path, DetailsHeader(options_.form)));
  PL_TRY(WriteHeader(result_.path, ResultHeader(options_.form)));
  return OpenBoth();
}

plumbline::Status ResultFiles::ReadEarlier(const IsPlanned& is_planned) {
  EarlierRun earlier(options_.form, options_.retry_skipped, earlier_facts_.has_value());
  PL_TRY(earlier.ReadResult(result_.path, is_planned));
  PL_TRY(earlier.ReadDetails(details_.path));
  earlier.DropWhatDoesNotAgree();
  earlier.Tell(result_.path, details_.path, warnings_);
  done_ = earlier.Done();
  kept_result_ = earlier.result();
  kept_details_ = earlier.details();
  return {};
}

plumbline::Status ResultFiles::CheckFacts() {
  if (!options_.facts) return {};
  if (KindOf(facts_path_) == PathKind::kMissing) {
    warnings_.push_back(fmt::format(
        "{}: there is no {} beside it: nobody can check that its results are of this recording, "
        "device and seed",
        result_.path, BaseName(facts_path_)));
    return {};
  }
  PL_TRY_ASSIGN(const std::string text, ReadFacts(facts_path_));
  Result<RunFacts> facts = ParseRunFacts(text);
  if (!facts) return facts.error().In(facts_path_);
  earlier_facts_ = *std::move(facts);
  const std::string difference = DifferenceOf(*earlier_facts_, *options_.facts);
  if (difference.empty()) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: holds results {}", result_.path, difference));
}

plumbline::Status ResultFiles::Begin(const std::optional<RunFacts>& facts) {
  if (!kept_result_) return {};
  if (facts && earlier_facts_) {
    options_.facts = facts;
    PL_TRY(CheckFacts());
    // An earlier run that had nothing to run did not know its device.
    if (earlier_facts_->device.empty() && !facts->device.empty()) {
      PL_TRY(WriteFileAtomically(facts_path_, RunFactsJson(*facts), /*durable=*/false));
    }
  }
  // The result first: killed in between, details of calls that are not done are left, which the
  // next resume takes out.
  if (!Covers(*kept_result_, result_.size)) {
    PL_TRY(ReplaceByParts(result_.path, *kept_result_));
  }
  if (!Covers(*kept_details_, details_.size)) {
    PL_TRY(ReplaceByParts(details_.path, *kept_details_));
  }
  kept_result_.reset();
  kept_details_.reset();
  // They may be other files by now.
  return OpenBoth();
}

Result<ResultFiles> ResultFiles::Resume(const std::string& result_path, const IsPlanned& is_planned,
                                        const ResultFilesOptions& options) {
  PL_TRY_ASSIGN(std::string timestamp, TimestampOf(result_path));
  ResultFiles files(options);
  files.NameFiles(std::string(DirectoryOf(result_path)), std::move(timestamp));
  PL_TRY(CheckOwnFile(files.result_.path, "result file"));
  PL_TRY(CheckOwnFile(files.details_.path, "details file"));
  PL_TRY(files.CheckFacts());
  PL_TRY(files.OpenBoth());
  PL_TRY(files.ReadEarlier(is_planned));
  return files;
}

plumbline::Status ResultFiles::Append(const CallOutcome& outcome) {
  const uint64_t details_before = details_.size;
  const CallRows rows = RowsOf(outcome, options_.form, options_.precision);
  PL_TRY(details_.Append(rows.details));
  const plumbline::Status committed = result_.Append(rows.result);
  if (committed) return {};
  (void)details_.CutTo(details_before);
  return committed.error();
}

plumbline::Status ResultFiles::Sort(const PlaceOf& place_of) {
  if (result_.is_torn) PL_TRY(result_.CutTo(result_.size));
  if (details_.is_torn) PL_TRY(details_.CutTo(details_.size));
  // Both hold the same rows before and after, so either may be replaced first.
  PL_TRY(SortFile(details_.path, place_of, /*is_details=*/true));
  PL_TRY(SortFile(result_.path, place_of, /*is_details=*/false));
  return OpenBoth();
}

plumbline::Status ResultFiles::Close() {
  for (RowJournal* journal : {&details_, &result_}) {
    if (!journal->file.is_open()) continue;
    PL_TRY(journal->file.Sync());
    PL_TRY(journal->file.Close());
  }
  return {};
}

void ResultFiles::RemoveAll() const {
  for (const std::string& path : {details_.path, result_.path, facts_path_}) {
    (void)RemoveFile(path);
  }
}

}  // namespace plumbline::precheck

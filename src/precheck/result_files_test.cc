#include "precheck/result_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "base/file/test_directory.h"

namespace plumbline::precheck::result_files_test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStamp = "20250226101112";
constexpr size_t kCalls = 200;
constexpr size_t kFew = 8;

std::string NameOf(size_t i) { return fmt::format("Torch.op.{}", i); }

OutputRow RowOf(const std::string& call, std::string_view direction, int k, size_t i) {
  OutputRow row;
  row.name = fmt::format("{}.{}.output.{}", call, direction, k);
  row.bench_dtype = "torch.float64";
  row.device_dtype = "torch.float32";
  row.shape = "(2, 3)";
  row.rmse = Number{static_cast<double>(i) / 7};
  row.status = CheckStatus::kPass;
  row.message = "one\n\"two\", three";
  return row;
}

// Every seventh is skipped, every third has two outputs and a backward.
CallOutcome OutcomeOf(size_t i) {
  CallOutcome outcome;
  outcome.name = NameOf(i);
  if (i % 7 == 0) {
    const Skip skip{SkipCause::kBadArgument, "line\nbreak"};
    outcome.forward = outcome.backward = {CheckStatus::kSkip, {}, skip};
    return outcome;
  }
  outcome.forward = {CheckStatus::kPass, {RowOf(outcome.name, "forward", 0, i)}, {}};
  if (i % 3 == 0) {
    outcome.forward.rows.push_back(RowOf(outcome.name, "forward", 1, i));
    outcome.backward = {CheckStatus::kPass, {RowOf(outcome.name, "backward", 0, i)}, {}};
  }
  return outcome;
}

std::optional<size_t> PlaceOf(std::string_view call) {
  if (!call.starts_with("Torch.op.")) return std::nullopt;
  return std::stoul(std::string(call.substr(9)));
}
bool IsPlanned(std::string_view call) { return PlaceOf(call).has_value(); }

// Files that go on with what they hold.
Result<ResultFiles> Begun(Result<ResultFiles> files) {
  if (!files) return files;
  PL_TRY(files->Begin());
  return files;
}

RunFacts SomeFacts() {
  RunFacts facts;
  facts.dump_json = "/runs/a b/dump.json";
  facts.digest = "00112233445566778899aabbccddeeff";
  facts.framework = "pytorch";
  facts.framework_version = "2.13.0";
  facts.device = "npu";
  facts.device_name = "Ascend910B3";
  facts.seed = UINT64_MAX;
  facts.max_abs_error = 1e-4;
  return facts;
}

class ResultFilesTest : public ::testing::Test {
 protected:
  ResultFiles Make(size_t calls) {
    auto files = ResultFiles::Create(out_, kStamp, {});
    EXPECT_TRUE(files) << files.error().message();
    for (size_t i = 0; i < calls; ++i) EXPECT_TRUE(files->Append(OutcomeOf(i)));
    return *std::move(files);
  }
  Result<ResultFiles> Resume(const ResultFilesOptions& options = {}) {
    return Begun(ResultFiles::Resume(result_, IsPlanned, options));
  }
  [[nodiscard]] std::string ResultText() const { return ReadFile(result_).value(); }
  [[nodiscard]] std::string DetailsText() const { return ReadFile(details_).value(); }
  static void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(path, text, /*durable=*/false));
  }

  testing::TestDirectory directory_;
  std::string out_ = directory_.Path("a.b/out");
  std::string result_ = out_ + "/accuracy_checking_result_20250226101112.csv";
  std::string details_ = out_ + "/accuracy_checking_details_20250226101112.csv";
};

TEST_F(ResultFilesTest, NamesModesAndOneTimestamp) {
  const ResultFiles files = Make(1);
  EXPECT_EQ(files.result_path(), result_);
  EXPECT_EQ(files.details_path(), details_);
  struct stat info {};
  for (const std::string& path : {result_, details_}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640U);
  }
  ASSERT_EQ(::stat(out_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750U);
  EXPECT_EQ(ResultFiles::Create(out_, kStamp, {}).error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(ResultFilesTest, ATimestampIsNotUsedTwice) {
  const std::string first = ResultTimestamp(out_);
  EXPECT_EQ(first.size(), 14U);
  const auto files = ResultFiles::Create(out_, first, {});
  ASSERT_TRUE(files);
  EXPECT_GT(ResultTimestamp(out_), first);
}

TEST_F(ResultFilesTest, AResumeKnowsWhatIsDone) {
  { Make(10); }
  const std::string result = ResultText(), details = DetailsText();
  const auto files = Resume();
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_EQ(files->done().size(), 10U);
  EXPECT_EQ(files->done().at("Torch.op.7").forward, CheckStatus::kSkip);
  EXPECT_EQ(files->done().at("Torch.op.3").backward, CheckStatus::kPass);
  EXPECT_EQ(files->done().at("Torch.op.1").backward, CheckStatus::kNone);
  EXPECT_EQ(files->done().at("Torch.op.3").outputs, 3U);
  EXPECT_EQ(files->done().at("Torch.op.7").outputs, 0U);
  ASSERT_TRUE(files->done().at("Torch.op.7").skip);
  EXPECT_EQ(files->done().at("Torch.op.7").skip->cause, SkipCause::kBadArgument);
  EXPECT_EQ(files->done().at("Torch.op.7").skip->detail, "line\nbreak");
  EXPECT_EQ(files->timestamp(), kStamp);
  // Nothing had to go, so nothing changed, and headers stand once.
  EXPECT_EQ(ResultText(), result);
  EXPECT_EQ(DetailsText(), details);
}

// Wherever a kill cuts the files: what is left is what whole calls had.
TEST_F(ResultFilesTest, EveryCutIsRepaired) {
  { Make(4); }
  const std::string result = ResultText(), details = DetailsText();
  const size_t header = HeaderText(ResultHeader(ResultForm::kPyTorch)).size();
  for (size_t size = header; size < result.size(); ++size) {
    Write(result_, result.substr(0, size));
    Write(details_, details);
    auto files = Resume();
    ASSERT_TRUE(files) << size << files.error().message();
    const size_t done = files->done().size();
    for (size_t i = done; i < 4; ++i) ASSERT_TRUE(files->Append(OutcomeOf(i)));
    ASSERT_EQ(ResultText(), result) << size;
    ASSERT_EQ(DetailsText(), details) << size;
  }
}

TEST_F(ResultFilesTest, ACallWithoutDetailsIsDoneAgain) {
  { Make(3); }
  const std::string details = DetailsText();
  Write(details_, details.substr(0, details.find("Torch.op.1.")));
  Write(result_, ResultText() + "Functional.dropout.0,pass, \r\n");
  const auto files = Begun(ResultFiles::Resume(result_, [](std::string_view) { return true; }, {}));
  ASSERT_TRUE(files) << files.error().message();
  // Release 1.2.2 writes no details of dropout.
  EXPECT_EQ(files->done().size(), 2U);
  EXPECT_TRUE(files->done().contains("Torch.op.0"));
  EXPECT_TRUE(files->done().contains("Functional.dropout.0"));
  EXPECT_EQ(ResultText().find("Torch.op.1"), std::string::npos);
}

TEST_F(ResultFilesTest, SkippedCallsAreDoneAgainOnRequest) {
  { Make(15); }
  const std::string result = ResultText(), details = DetailsText();
  auto files = Resume({.retry_skipped = true});
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_EQ(files->done().size(), 12U);  // without 0, 7 and 14
  EXPECT_EQ(ResultText().find("SKIP"), std::string::npos);
  EXPECT_EQ(DetailsText().find("SKIP"), std::string::npos);
  for (const size_t i : {14U, 0U, 7U}) ASSERT_TRUE(files->Append(OutcomeOf(i)));
  ASSERT_TRUE(files->Sort(PlaceOf));
  EXPECT_EQ(ResultText(), result);
  EXPECT_EQ(DetailsText(), details);
}

TEST_F(ResultFilesTest, WhatCannotBeContinuedIsRefused) {
  { Make(2); }
  const auto foreign =
      ResultFiles::Resume(result_, [](std::string_view call) { return call != "Torch.op.1"; }, {});
  EXPECT_EQ(foreign.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(foreign.error().message().find("holds Torch.op.1, which is no call"),
            std::string::npos);
  const std::string renamed = out_ + "/accuracy_checking_result_2025022610111.csv";
  fs::copy(result_, renamed);
  EXPECT_EQ(ResultFiles::Resume(renamed, IsPlanned, {}).error().code(),
            ErrorCode::kInvalidArgument);
  const std::string link = out_ + "/accuracy_checking_result_20250226101113.csv";
  fs::create_symlink(result_, link);
  EXPECT_NE(ResultFiles::Resume(link, IsPlanned, {}).error().message().find("symbolic link"),
            std::string::npos);
  const std::string result = ResultText();
  Write(result_, "API name,Forward Test Success,Message\r\nTorch.op.0,pass,\r\n");
  EXPECT_NE(Resume().error().message().find("misses Backward Test Success"), std::string::npos);
  Write(result_, "");
  EXPECT_NE(Resume().error().message().find("holds no header"), std::string::npos);
  Write(result_, result + "Torch.op.2,maybe, \r\n");
  EXPECT_EQ(Resume().error().code(), ErrorCode::kCorrupt);
  Write(result_, result);
  fs::remove(details_);
  EXPECT_EQ(Resume().error().code(), ErrorCode::kNotFound);
}

// Reading alone changes nothing: what is refused later has not been touched.
TEST_F(ResultFilesTest, AResumeChangesNothingBeforeItBegins) {
  { Make(3); }
  const std::string result = ResultText() + "Torch.op.9,pa",
                    details = DetailsText() + "Torch.op.9.";
  Write(result_, result);
  Write(details_, details);
  auto files = ResultFiles::Resume(result_, IsPlanned, {});
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_EQ(ResultText(), result);
  EXPECT_EQ(DetailsText(), details);
  ASSERT_TRUE(files->Begin());
  EXPECT_LT(ResultText().size(), result.size());
  EXPECT_LT(DetailsText().size(), details.size());
}

TEST(RunFacts, AreReadAsTheyAreWritten) {
  const RunFacts facts = SomeFacts();
  const auto read = ParseRunFacts(RunFactsJson(facts));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(DifferenceOf(facts, *read), "");
  EXPECT_EQ(RunFactsJson(*read), RunFactsJson(facts));
  EXPECT_EQ(read->dump_json, facts.dump_json);
  for (const char* text : {"", "[]", "{}", R"({"format": "other", "version": 1})"}) {
    EXPECT_EQ(ParseRunFacts(text).error().code(), ErrorCode::kCorrupt) << text;
  }
  std::string newer = RunFactsJson(facts);
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 2");
  EXPECT_EQ(ParseRunFacts(newer).error().code(), ErrorCode::kUnsupported);
}

TEST(RunFacts, EveryDifferenceIsToldWithAWayOut) {
  const RunFacts earlier = SomeFacts();
  const auto told = [&](auto change) {
    RunFacts now = earlier;
    change(now);
    return DifferenceOf(earlier, now);
  };
  EXPECT_EQ(told([](RunFacts& now) { now.dump_json = "/moved/dump.json"; }), "");
  EXPECT_EQ(told([](RunFacts& now) { now.device_name = ""; }), "");  // not known yet
  EXPECT_EQ(told([](RunFacts& now) { now.digest[0] = 'f'; }),
            "of another recording (expected dump_json_xxh3 00112233445566778899aabbccddeeff of "
            "/runs/a b/dump.json, got f0112233445566778899aabbccddeeff of /runs/a b/dump.json). "
            "Name the dump.json of that run, or start anew without the result file");
  EXPECT_EQ(told([](RunFacts& now) { now.device = "cpu"; }),
            "of another device (expected device npu, got cpu). Go on with --device_type npu, or "
            "start anew without the result file");
  EXPECT_NE(told([](RunFacts& now) { now.seed = 7; }).find("--seed 18446744073709551615"),
            std::string::npos);
  EXPECT_NE(told([](RunFacts& now) { now.framework = "mindspore"; }), "");
  EXPECT_NE(told([](RunFacts& now) { now.framework_version = "2.1.0"; }), "");
  EXPECT_NE(told([](RunFacts& now) { now.device_name = "Ascend310"; }), "");
  EXPECT_NE(told([](RunFacts& now) { now.worker_threads = 2; }), "");
  EXPECT_NE(told([](RunFacts& now) { now.dedupe = true; }), "");
  EXPECT_NE(told([](RunFacts& now) { now.precision = 3; }), "");
  EXPECT_NE(told([](RunFacts& now) { now.max_abs_error = 1e-3; }), "");
}

class RunFactsOfFiles : public ResultFilesTest {
 protected:
  void SetUp() override {
    RunFacts facts = SomeFacts();
    facts.device = facts.device_name = facts.framework_version = "";
    auto files = ResultFiles::Create(out_, kStamp, {.facts = facts});
    ASSERT_TRUE(files) << files.error().message();
    ASSERT_TRUE(files->Append(OutcomeOf(1)));
  }
  std::string facts_ = out_ + "/accuracy_checking_run_20250226101112.json";
};

TEST_F(RunFactsOfFiles, ARunOfOtherFactsIsRefusedUntouched) {
  const std::string torn = ResultText() + "torn";
  Write(result_, torn);
  RunFacts other = SomeFacts();
  other.seed = 1;
  const auto refused = ResultFiles::Resume(result_, IsPlanned, {.facts = other});
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().message().find(result_ + ": holds results of inputs drawn otherwise"),
            0U)
      << refused.error().message();
  EXPECT_EQ(ResultText(), torn);
  Write(facts_, "{\"format\"");
  EXPECT_EQ(ResultFiles::Resume(result_, IsPlanned, {.facts = other}).error().code(),
            ErrorCode::kCorrupt);
}

TEST_F(RunFactsOfFiles, WhatBecomesKnownLaterIsHeldAgainstIt) {
  const RunFacts facts = SomeFacts();
  {
    auto first = ResultFiles::Resume(result_, IsPlanned, {.facts = facts});
    ASSERT_TRUE(first) << first.error().message();
    ASSERT_TRUE(first->Begin(facts));  // its device is the one of the run from here on
  }
  auto second = ResultFiles::Resume(result_, IsPlanned, {.facts = facts});
  ASSERT_TRUE(second && second->earlier_facts());
  EXPECT_EQ(second->earlier_facts()->device, "npu");
  EXPECT_TRUE(second->warnings().empty());
  RunFacts other = facts;
  other.device_name = "Ascend310";
  const auto begun = second->Begin(other);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(begun.error().message().find("Ascend910B3"), std::string::npos);
}

// The rows of a file but for those that begin with `start`.
std::string Without(const std::string& text, std::string_view start) {
  std::string left;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find("\r\n", at) + 2;
    const std::string row = text.substr(at, end - at);
    if (!row.starts_with(start)) left += row;
    at = end;
  }
  return left;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Calls 1 to 9 of a run of this program: 3, 6 and 9 have two outputs and a backward, 7 is skipped.
class EditedFiles : public RunFactsOfFiles {
 protected:
  void SetUp() override {
    RunFactsOfFiles::SetUp();
    auto files = ResultFiles::Resume(result_, IsPlanned, {.facts = SomeFacts()});
    ASSERT_TRUE(files && files->Begin());
    for (size_t i = 2; i < 10; ++i) ASSERT_TRUE(files->Append(OutcomeOf(i)));
    whole_result_ = ResultText();
    whole_details_ = DetailsText();
  }

  // Files with these texts: the calls `again` are done again, one warning holds `told`, and then
  // the files are whole.
  void Expect(const std::string& result, const std::string& details,
              const std::vector<size_t>& again, const std::string& told) {
    SCOPED_TRACE(told);
    Write(result_, result);
    Write(details_, details);
    auto files = ResultFiles::Resume(result_, IsPlanned, {.facts = SomeFacts()});
    ASSERT_TRUE(files) << files.error().message();
    std::vector<size_t> left;
    for (size_t i = 1; i < 10; ++i) {
      if (!files->done().contains(NameOf(i))) left.push_back(i);
    }
    EXPECT_EQ(left, again);
    ASSERT_EQ(files->warnings().size(), told.empty() ? 0U : 1U);
    if (!told.empty()) {
      EXPECT_NE(files->warnings()[0].find(told), std::string::npos) << files->warnings()[0];
    }
    ASSERT_TRUE(files->Begin());
    for (const size_t i : left) ASSERT_TRUE(files->Append(OutcomeOf(i)));
    ASSERT_TRUE(files->Sort(PlaceOf));
    EXPECT_EQ(ResultText(), whole_result_);
    EXPECT_EQ(DetailsText(), whole_details_);
  }

  std::string whole_result_, whole_details_;
};

TEST_F(EditedFiles, CallsWhoseDetailsWereCutAreToldAndDoneAgain) {
  const std::string& result = whole_result_;
  const std::string& details = whole_details_;
  Expect(result, details, {}, "");
  Expect(result, Without(details, "Torch.op.4."), {3, 4},
         "does not hold what accuracy_checking_result_20250226101112.csv says of 1 call, such as "
         "Torch.op.4 (rows are missing or were changed). It is run again, with 1 call before");
  Expect(result, Without(details, "Torch.op.3.backward"), {2, 3}, "Torch.op.3 (");
  Expect(result, Without(details, "Torch.op.3.forward.output.0"), {2, 3}, "Torch.op.3 (");
  Expect(result, Without(details, "Torch.op.7."), {6, 7}, "Torch.op.7 (");
  Expect(result, Without(details, "Torch.op.1."), {1}, "Torch.op.1 (");
  // What the end of the file is cut in may be whole or not.
  Expect(result, details.substr(0, details.find("Torch.op.6.backward")), {5, 6, 7, 8, 9},
         "of 4 calls, such as Torch.op.6 (rows are missing or were changed). They are run again, "
         "with 1 call before, whose last rows may be missing");
}

TEST_F(EditedFiles, CallsOfWhichTheFilesSayDifferentThingsAreDoneAgain) {
  const std::string& result = whole_result_;
  const std::string& details = whole_details_;
  Expect(Replaced(result, "Torch.op.2,pass", "Torch.op.2,error"), details, {1, 2}, "Torch.op.2 (");
  Expect(Replaced(result, "Torch.op.7,SKIP", "Torch.op.7,pass"), details, {6, 7}, "Torch.op.7 (");
  Expect(result, Replaced(details, ",pass,", ",error,"), {1}, "Torch.op.1 (");
  Expect(result, Replaced(details, ",pass,", ",fine,"), {1}, "Torch.op.1 (");
}

TEST_F(EditedFiles, DetailsOfCallsThatTheResultDoesNotNameAreTold) {
  Expect(Without(whole_result_, "Torch.op.4,"), whole_details_, {4},
         "has no row of 1 call in accuracy_checking_details_20250226101112.csv, such as "
         "Torch.op.4.forward.output.0. Those of the recording are run again");
  Expect(Without(Without(whole_result_, "Torch.op.3,"), "Torch.op.7,"), whole_details_, {3, 7},
         "has no row of 2 calls");
  // Those that are asked for again are no news.
  const auto retried =
      ResultFiles::Resume(result_, IsPlanned, {.retry_skipped = true, .facts = SomeFacts()});
  ASSERT_TRUE(retried) << retried.error().message();
  EXPECT_TRUE(retried->warnings().empty());
  EXPECT_EQ(retried->done().size(), 8U);
}

TEST_F(RunFactsOfFiles, FilesOfAnotherToolAreTakenWithAWarning) {
  fs::remove(facts_);
  auto files = ResultFiles::Resume(result_, IsPlanned, {.facts = SomeFacts()});
  ASSERT_TRUE(files) << files.error().message();
  ASSERT_EQ(files->warnings().size(), 1U);
  EXPECT_NE(files->warnings()[0].find("nobody can check"), std::string::npos);
  ASSERT_TRUE(files->Begin(SomeFacts()));
  EXPECT_FALSE(fs::exists(facts_));
  files->RemoveAll();
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(ResultFilesTest, TheDigestIsOfAllBytes) {
  const std::string path = directory_.Path("large");
  std::string text(3 << 20, 'x');
  Write(path, text);
  const std::string before = DigestOfFile(path).value();
  text[(2 << 20) + 5] = 'y';
  Write(path, text);
  EXPECT_NE(DigestOfFile(path).value(), before);
  // XXH3-128 of nothing, as its authors give it.
  Write(path, "");
  EXPECT_EQ(DigestOfFile(path).value(), "99aa06d3014798d86001c324468d497f");
}

TEST_F(ResultFilesTest, TwoWritersAreRefused) {
  const ResultFiles files = Make(2);
  const auto other = Resume();
  EXPECT_EQ(other.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(other.error().message().find("another process writes it"), std::string::npos);
}

TEST_F(ResultFilesTest, SortedFilesAreThoseOfOneWorker) {
  { Make(50); }
  const std::string result = ResultText(), details = DetailsText();
  fs::remove(result_);
  fs::remove(details_);
  auto files = ResultFiles::Create(out_, kStamp, {});
  std::vector<size_t> order(50);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (const size_t i : order) ASSERT_TRUE(files->Append(OutcomeOf(i)));
  EXPECT_NE(ResultText(), result);
  ASSERT_TRUE(files->Sort(PlaceOf));
  EXPECT_EQ(ResultText(), result);
  EXPECT_EQ(DetailsText(), details);
  // It goes on behind them.
  ASSERT_TRUE(files->Append(OutcomeOf(50)));
  ASSERT_TRUE(files->Close());
  EXPECT_EQ(Resume()->done().size(), 51U);
}

// Any call of the file system that fails is an error with nothing lost; going on gives the files of
// a run without a failure.
void GoOnAfterFailure(int fail_at, bool sticky, bool& fired) {
  const testing::TestDirectory directory;
  std::optional<ResultFiles> files;
  const std::string path =
      directory.Path("accuracy_checking_result_") + std::string(kStamp) + ".csv";
  plumbline::Status status;
  {
    const testing::FailingCalls failing(fail_at, ENOSPC, sticky);
    auto made = ResultFiles::Create(directory.path(), kStamp, {});
    status = made ? plumbline::Status() : made.error();
    if (made) files = *std::move(made);
    for (size_t i = kFew; status && i-- > 0;) status = files->Append(OutcomeOf(i));
    if (status) status = files->Sort(PlaceOf);
    if (status) status = files->Close();
    fired = testing::FailingCalls::fired();
  }
  if (!status) {
    EXPECT_EQ(status.error().code(), ErrorCode::kIo) << status.error().message();
  }
  // Directories that are there need not be made.
  const auto directories = std::count(path.begin(), path.end(), '/') - 1;
  ASSERT_EQ(status.has_value(), !fired || (!sticky && fail_at < directories)) << fail_at;
  files.reset();
  if (KindOf(path) == PathKind::kMissing) return;  // a run that starts anew loses nothing
  auto resumed = Begun(ResultFiles::Resume(path, IsPlanned, {}));
  ASSERT_TRUE(resumed) << fail_at << resumed.error().message();
  for (size_t i = 0; i < kFew; ++i) {
    if (resumed->done().contains(NameOf(i))) continue;
    ASSERT_TRUE(resumed->Append(OutcomeOf(i)));
  }
  ASSERT_TRUE(resumed->Sort(PlaceOf));
  std::string details = HeaderText(DetailsHeader(ResultForm::kPyTorch));
  std::string result = HeaderText(ResultHeader(ResultForm::kPyTorch));
  for (size_t i = 0; i < kFew; ++i) {
    const CallRows rows = RowsOf(OutcomeOf(i), ResultForm::kPyTorch, 14);
    details += rows.details;
    result += rows.result;
  }
  EXPECT_EQ(ReadFile(path).value(), result) << fail_at;
  EXPECT_EQ(ReadFile(resumed->details_path()).value(), details) << fail_at;
}

TEST_F(ResultFilesTest, EveryFailureIsToldAndRepaired) {
  for (const bool sticky : {false, true}) {
    bool fired = true;
    int failures = 0;
    for (; fired; ++failures) GoOnAfterFailure(failures, sticky, fired);
    EXPECT_GT(failures, 25);  // writes of eight calls, and what comes before and behind
  }
}

// A write that does half and then fails, as on a disk that fills up.
int writes_until_full = 0;
TEST_F(ResultFilesTest, HalfAWriteIsTakenOutAgain) {
  ResultFiles files = Make(3);
  const std::string result = ResultText(), details = DetailsText();
  for (const int full_at : {0, 1}) {
    const SyscallTable real = Syscalls();
    writes_until_full = full_at;
    Syscalls().write = [](int fd, const void* bytes, size_t size) {
      if (writes_until_full-- > 0) return ::write(fd, bytes, size);
      if (writes_until_full == -1) return ::write(fd, bytes, size / 2);
      errno = ENOSPC;
      return ssize_t{-1};
    };
    const plumbline::Status status = files.Append(OutcomeOf(3));
    Syscalls() = real;
    EXPECT_EQ(status.error().code(), ErrorCode::kIo);
    EXPECT_EQ(ResultText(), result) << full_at;
    EXPECT_EQ(DetailsText(), details) << full_at;
  }
  ASSERT_TRUE(files.Append(OutcomeOf(3)));
  EXPECT_TRUE(ResultText().starts_with(result) && DetailsText().starts_with(details));
}

// What the process does that is killed: continue, append what is missing, sort.
int RunToTheEnd(const std::string& directory, const std::string& result, unsigned seed) {
  Result<ResultFiles> files = KindOf(result) == PathKind::kMissing
                                  ? Error(ErrorCode::kNotFound, "")
                                  : Begun(ResultFiles::Resume(result, IsPlanned, {}));
  if (!files && files.error().code() == ErrorCode::kNotFound) {
    std::error_code ignored;  // details whose result file was not made
    fs::remove(JoinPath(directory, fmt::format("accuracy_checking_details_{}.csv", kStamp)),
               ignored);
    files = ResultFiles::Create(directory, kStamp, {});
  }
  if (!files) return 2;
  std::vector<size_t> order(kCalls);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (const size_t i : order) {
    if (files->done().contains(NameOf(i))) continue;
    if (!files->Append(OutcomeOf(i))) return 3;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return files->Sort(PlaceOf) && files->Close() ? 0 : 4;
}

// False once the process came to its end by itself.
bool KilledAfter(std::chrono::microseconds delay, const std::string& directory,
                 const std::string& result, unsigned seed) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(RunToTheEnd(directory, result, seed));
  std::this_thread::sleep_for(delay);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
  return WIFSIGNALED(status);
}

TEST(ResultFilesKilled, AHundredTimesTheSortedFilesAreThoseOfAWholeRun) {
  const testing::TestDirectory whole;
  const std::string name = fmt::format("/accuracy_checking_result_{}.csv", kStamp);
  const std::string details = fmt::format("/accuracy_checking_details_{}.csv", kStamp);
  ASSERT_EQ(RunToTheEnd(whole.path(), whole.path() + name, 0), 0);
  const std::string expected = ReadFile(whole.path() + name).value();
  const std::string expected_details = ReadFile(whole.path() + details).value();
  std::mt19937 random(24);
  int kills = 0, runs = 0;
  for (; kills < 100; ++runs) {
    const testing::TestDirectory directory;
    const std::string result = directory.path() + name;
    // Later kills leave more time, so that a run comes to its end on a slow machine, too.
    for (unsigned limit_us = 2000;; limit_us += 2000, ++kills) {
      const std::chrono::microseconds delay(random() % limit_us);
      if (!KilledAfter(delay, directory.path(), result, static_cast<unsigned>(random()))) break;
    }
    ASSERT_EQ(ReadFile(result).value(), expected) << "after " << kills << " kills";
    ASSERT_EQ(ReadFile(directory.path() + details).value(), expected_details);
  }
  std::printf("%d kills in %d runs\n", kills, runs);
}

}  // namespace
}  // namespace plumbline::precheck::result_files_test

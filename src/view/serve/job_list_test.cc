#include "view/serve/job_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "view/serve/dataset_list.h"
#include "view/serve/event_stream.h"

namespace plumbline::view {
namespace {

using Made = Result<std::optional<JobFile>>;

JobFacts Ended(const JobList& jobs, const std::string& id) {
  for (;;) {
    for (const JobFacts& facts : jobs.Facts()) {
      if (facts.id == id && facts.state != JobState::kRunning) return facts;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Runs until it is cancelled.
Made Endless(JobControl& job) {
  while (!job.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return Error(ErrorCode::kInvalidArgument, "cancelled");
}

TEST(JobList, TellsHowJobsEnded) {
  ChangeSignal signal;
  JobList jobs(1, signal);
  const auto good =
      jobs.Start("good", [](JobControl&) -> Made { return std::optional<JobFile>(); });
  const auto bad =
      jobs.Start("bad", [](JobControl&) -> Made { return Error(ErrorCode::kIo, "no space"); });
  const auto endless = jobs.Start("endless", Endless);
  ASSERT_TRUE(good && bad && endless);
  EXPECT_EQ(Ended(jobs, *good).state, JobState::kDone);
  EXPECT_EQ(Ended(jobs, *bad).error, "no space");
  ASSERT_TRUE(jobs.Cancel(*endless));
  EXPECT_EQ(Ended(jobs, *endless).state, JobState::kCancelled);
  EXPECT_FALSE(jobs.Cancel("none"));
  EXPECT_FALSE(jobs.FileOf(*good));
}

TEST(JobList, TheEndCancelsWhatRunsAndWaits) {
  ChangeSignal signal;
  const auto start = std::chrono::steady_clock::now();
  {
    JobList jobs(2, signal);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(jobs.Start("endless", Endless));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(JobList, HasAnEnd) {
  ChangeSignal signal;
  JobList jobs(1, signal);
  for (size_t i = 0; i < JobList::kMostWaiting; ++i) ASSERT_TRUE(jobs.Start("endless", Endless));
  const auto refused = jobs.Start("one more", Endless);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
}

// A dataset that answers with its own name.
class NamedDataset : public Dataset {
 public:
  explicit NamedDataset(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string_view kind() const override { return "table"; }
  [[nodiscard]] std::string_view etag() const override { return name_; }
  [[nodiscard]] Result<std::string> Answer(std::string_view, const Parameters&,
                                           const Dataset*) const override {
    return name_;
  }

 private:
  std::string name_;
};

TEST(DatasetList, OnePairOfPathsIsOneDataset) {
  ChangeSignal signal;
  std::atomic<int> opened = 0;
  const OpenDataset open = [&](const std::string& target, const std::string&,
                               JobControl&) -> Result<std::shared_ptr<const Dataset>> {
    ++opened;
    if (target == "bad") return Error(ErrorCode::kCorrupt, "bad: is cut");
    return std::shared_ptr<const Dataset>(std::make_shared<NamedDataset>(target));
  };
  JobList jobs(1, signal);
  DatasetList list(open, jobs, signal);
  const std::string id = *list.Open("a", "b");
  Ended(jobs, "1");
  EXPECT_EQ(*list.Open("a", "b"), id);
  EXPECT_NE(*list.Open("b", "a"), id);
  Ended(jobs, "2");
  EXPECT_EQ(opened, 2);
  EXPECT_EQ(list.Find(id)->kind, "table");
  const std::string bad = *list.Open("bad", "");
  Ended(jobs, "3");
  EXPECT_EQ(list.Find(bad).error().message(), "bad: is cut");
  EXPECT_EQ(*list.Open("bad", ""), bad);  // tried again
  Ended(jobs, "4");
  EXPECT_EQ(opened, 4);
}

TEST(DatasetList, TitlesTellTheSidesApart) {
  EXPECT_EQ(DatasetTitle("/r/new/step0/rank0", "/r/good/step0/rank0"), "new against good");
  EXPECT_EQ(DatasetTitle("/r/new", "/s/good"), "new against good");
  EXPECT_EQ(DatasetTitle("/r/new", ""), "new");
  EXPECT_EQ(DatasetTitle("/r", "/r"), "r against r");
}

TEST(EventStreams, SendWhatChangedAndCountTheirReaders) {
  ChangeSignal signal;
  std::string text = "1";
  EventStreams streams({{"jobs", [&] { return text; }}}, signal);
  {
    const HttpResponse response = streams.Open();
    std::string piece;
    ASSERT_TRUE(response.stream(piece));
    EXPECT_EQ(piece, "event: jobs\ndata: 1\n\n");
    signal.Raise();
    ASSERT_TRUE(response.stream(piece));
    EXPECT_EQ(piece, "");
    text = "2";
    signal.Raise();
    ASSERT_TRUE(response.stream(piece));
    EXPECT_EQ(piece, "event: jobs\ndata: 2\n\n");
  }
  std::vector<HttpResponse> open;
  for (size_t i = 0; i < EventStreams::kMost; ++i) open.push_back(streams.Open());
  EXPECT_EQ(open.back().status, 200);
  EXPECT_EQ(streams.Open().status, 503);
  open.pop_back();
  EXPECT_EQ(streams.Open().status, 200);
}

}  // namespace
}  // namespace plumbline::view

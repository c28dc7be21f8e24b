#include "precheck/online/operator_check.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/csv.h"

namespace plumbline::precheck::operator_check_test {
namespace {

HeldArray Held(std::vector<float> elements) {
  const auto owner = std::make_shared<const std::vector<float>>(std::move(elements));
  return {DType::kFloat32, {static_cast<int64_t>(owner->size())},
          reinterpret_cast<const std::byte*>(owner->data()), owner};
}

OperatorCall Call(std::string op, float device, float bench) {
  OperatorCall call;
  call.op = std::move(op);
  call.device = {{"", Held({device, 1})}};
  call.bench = {{"", Held({bench, 1})}};
  return call;
}

std::vector<csv::Row> Rows(const std::string& path) { return *csv::ReadRows(path); }

TEST(OperatorCheck, WorkersWriteInTheOrderOfTheCalls) {
  const testing::TestDirectory directory;
  OperatorCheckOptions options;
  options.directory = directory.path();
  options.tag = "t";
  options.rank = 3;
  options.workers = 3;
  options.dump = ArrayDump::kFailing;
  auto check = *OperatorCheck::Start(options);
  for (int i = 1; i <= 100; ++i) check->Add(Call("mm", 2, i % 10 == 0 ? 3 : 2));
  OperatorCall unchecked;
  unchecked.op = "rand";
  unchecked.not_checked = "random numbers";
  check->Add(std::move(unchecked));
  const OperatorReport report = check->Finish();
  EXPECT_EQ(report.passed, 90U);
  EXPECT_EQ(report.failed, 10U);
  EXPECT_EQ(report.not_checked, 1U);
  EXPECT_EQ(report.failures.front().name, "mm_10");
  EXPECT_EQ(report.reasons, std::vector<std::string>{"random numbers"});
  EXPECT_EQ(AnswerText(report, 2).rfind("wrong: mm_10: max_rel_diff 0.3333 > ", 0), 0U);
  const std::vector<csv::Row> rows = Rows(report.files.front());
  ASSERT_EQ(rows.size(), 102U);
  for (size_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(rows[i][0], "mm_" + std::to_string(i) + "_output");
    EXPECT_EQ(rows[i][1], i % 10 == 0 ? "False" : "True");
  }
  EXPECT_EQ(rows.back()[1], "SKIP");
  EXPECT_EQ(ListDirectory(report.directory + "/npu")->size(), 10U);
}

// The disk is full from the header on.
ssize_t NoSpace(int /*fd*/, const void* /*buffer*/, size_t /*size*/) {
  errno = ENOSPC;
  return -1;
}

TEST(OperatorCheck, AFullDiskCostsRowsAndNoVerdict) {
  const testing::TestDirectory directory;
  OperatorCheckOptions options;
  options.directory = directory.path();
  auto check = *OperatorCheck::Start(options);
  check->Add(Call("mm", 2, 2));
  const SyscallTable before = Syscalls();
  Syscalls().write = NoSpace;
  check->Add(Call("mm", 2, 3));
  Syscalls() = before;
  check->Add(Call("mm", 2, 2));
  const OperatorReport report = check->Finish();
  EXPECT_EQ(report.failed, 1U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems.front().find("No space left"), std::string::npos);
  const std::vector<csv::Row> rows = Rows(report.files.front());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2][0], "mm_3_output");
}

TEST(OperatorCheck, AnswersOfNothingChecked) {
  auto check = *OperatorCheck::Start({});
  EXPECT_EQ(AnswerText(check->Finish(), 4),
            "nothing checked: no operator of the device ran (4 left alone)");
  EXPECT_FALSE(ParseArrayDump("some").has_value());
}

}  // namespace
}  // namespace plumbline::precheck::operator_check_test

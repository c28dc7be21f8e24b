// Tests that compare two small dumps.

#ifndef PLUMBLINE_PIPELINE_TWO_DUMPS_FOR_TEST_H_
#define PLUMBLINE_PIPELINE_TWO_DUMPS_FOR_TEST_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/test_directory.h"
#include "pipeline/dump_for_test.h"
#include "plumbline/compare.h"

namespace plumbline {

class TwoDumpsTest : public ::testing::Test {
 protected:
  TwoDumpsTest() : target_(directory_.Path("target")), golden_(directory_.Path("golden")) {}

  Result<Comparison> Try(const CompareOptions& options = {}) {
    return CompareRuns(target_.Write(), golden_.Write(), options);
  }
  Comparison Compare() {
    Result<Comparison> result = Try();
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : Comparison();
  }
  // The first wrong call; empty where there is none.
  std::string Named() {
    const Comparison comparison = Compare();
    return comparison.first_wrong_call ? comparison.first_wrong_call->name : "";
  }

  testing::TestDirectory directory_;
  DumpForTest target_, golden_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_TWO_DUMPS_FOR_TEST_H_

#include "precheck/reference/user_references.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "precheck/reference/gradient_for_test.h"

namespace plumbline::precheck::reference::user_references_test {
namespace {

class UserFile : public ::testing::Test {
 protected:
  std::string Written(const std::string& text) {
    const std::string path = ::testing::TempDir() + "references_" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                             ".yaml";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(UserFile, OperatorsAreRead) {
  const auto entries = Must(ReadUserReferences(
      Written("operators:\n  npu_a: {forward: 'ops.py:a', backward: a_grad, description: x}\n"
              "  npu_b:\n    forward: lib.so\n")));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "npu_a");
  EXPECT_EQ(entries[0].forward, "ops.py:a");
  EXPECT_EQ(entries[0].backward, "a_grad");
  EXPECT_EQ(entries[1].forward, "lib.so");
  EXPECT_EQ(entries[1].backward, "");
}

TEST_F(UserFile, EmptyFileHasNoOperators) {
  EXPECT_TRUE(Must(ReadUserReferences(Written(""))).empty());
  EXPECT_TRUE(Must(ReadUserReferences(Written("operators:\n"))).empty());
}

TEST_F(UserFile, WhatIsWrongIsNamed) {
  const auto problem = [&](const std::string& text) {
    return ErrorOf(ReadUserReferences(Written(text)));
  };
  EXPECT_NE(problem("operator: {}").find("expected one key, operators"), std::string::npos);
  EXPECT_NE(problem("operators: {a: {foward: f}}").find("\"foward\" is no key"), std::string::npos);
  EXPECT_NE(problem("operators: {a: {backward: f}}").find("a has no forward"), std::string::npos);
  EXPECT_NE(problem("operators: {a: f}").find("a has no map"), std::string::npos);
  EXPECT_NE(problem("operators: [a, b]").find("no map of names"), std::string::npos);
  EXPECT_NE(problem("operators: {a: {forward: [f]}}").find("forward is no text"),
            std::string::npos);
  EXPECT_NE(problem("operators: {").find("line"), std::string::npos);
}

TEST(UserLibrary, ForwardAndBackwardRun) {
  const UserLibrary library = Must(UserLibrary::Open(SAMPLE_REFERENCES));
  EXPECT_EQ(library.names(), (std::vector<std::string>{"npu_scale", "npu_fail"}));
  EXPECT_TRUE(library.has_backward("npu_scale"));
  EXPECT_FALSE(library.has_backward("npu_fail"));
  const Doubles x{{3}, {1, 2, 3}};
  const auto results = Must(library.Run("npu_scale", false, {{"", x.operand()}, {"factor", 0.5}}));
  ASSERT_EQ(results.size(), 1u);
  ExpectNear(ValuesIn(*results[0]), {0.5, 1, 1.5}, 0);
  const auto grads = Must(library.Run("npu_scale", true, {{"", x.operand()}}));
  ExpectNear(ValuesIn(*grads[0]), {2, 4, 6}, 0);
}

TEST(UserLibrary, FailureSaysWhatTheFunctionSays) {
  const UserLibrary library = Must(UserLibrary::Open(SAMPLE_REFERENCES));
  Doubles x{{1}, {1}};
  Operand narrow = x.operand();
  narrow.dtype = DType::kFloat32;
  EXPECT_EQ(ErrorOf(library.Run("npu_scale", false, {{"", narrow}})),
            "npu_scale: x: only float64 is known");
  EXPECT_NE(ErrorOf(library.Run("npu_fail", false, {})).find("failed with 7"), std::string::npos);
  EXPECT_NE(ErrorOf(library.Run("npu_fail", true, {})).find("no backward"), std::string::npos);
  narrow.dtype = DType::kComplex64;
  EXPECT_NE(ErrorOf(library.Run("npu_scale", false, {{"", UserValue::List{{"", narrow}}}}))
                .find("complex64"),
            std::string::npos);
}

TEST(UserLibrary, OtherFilesAreNone) {
  EXPECT_NE(ErrorOf(UserLibrary::Open("/nonexistent.so")).find("cannot be loaded"),
            std::string::npos);
  EXPECT_NE(ErrorOf(UserLibrary::Open("libm.so.6")).find("cannot be loaded"), std::string::npos);
  // A library without the function.
  EXPECT_FALSE(UserLibrary::Open("/lib/x86_64-linux-gnu/libm.so.6"));
}

}  // namespace
}  // namespace plumbline::precheck::reference::user_references_test

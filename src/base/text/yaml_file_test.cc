#include "base/text/yaml_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace plumbline {
namespace {

class YamlFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/yaml_file_test.yaml";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(YamlFileTest, ErrorsNameFileAndLine) {
  const std::string path = Write("a: 1\nb:\n  - x\n");
  const Result<YamlFile> file = YamlFile::Read(path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->root()["a"].Scalar(), "1");
  EXPECT_EQ(file->Bad(file->root()["b"][0], "is odd").message(), path + ": line 3: is odd");
  EXPECT_EQ(file->Bad(file->root()["c"], "is missing").message(), path + ": is missing");
  EXPECT_EQ(file->Bad("is empty").code(), ErrorCode::kInvalidArgument);
}

TEST_F(YamlFileTest, BytesOfNoTextAreNotAnEmptyFile) {
  for (const std::string text : {"\xff\xfe", "\xfe\xff"}) {
    const Result<YamlFile> file = YamlFile::Read(Write(text));
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().message().find("not UTF-8 text"), std::string::npos);
  }
  EXPECT_TRUE(YamlFile::Read(Write("")));
}

TEST_F(YamlFileTest, WhatIsNotYamlIsAnErrorOfTheAskedKind) {
  const std::string path = Write("a: 1\nb: [1, 2\nc: {");
  const Result<YamlFile> file = YamlFile::Read(path);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(file.error().message().starts_with(path + ": line ")) << file.error().message();
  EXPECT_EQ(YamlFile::Read(path, ErrorCode::kInvalidArgument).error().code(),
            ErrorCode::kInvalidArgument);
}

TEST_F(YamlFileTest, AliasesThatRepeatWithoutEndAreRefused) {
  std::string doubled = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) doubled += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  for (const std::string& text :
       {doubled, std::string("a: &a [*a, *a]"), std::string("&a {k: *a}")}) {
    const Result<YamlFile> file = YamlFile::Parse(text, "x.yaml");
    ASSERT_FALSE(file) << text;
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
    EXPECT_TRUE(file.error().message().starts_with("x.yaml: aliases that repeat without end"));
  }
}

TEST_F(YamlFileTest, AliasesOfSharedValuesAreRead) {
  const Result<YamlFile> file =
      YamlFile::Parse("base: &base {lr: 0.1, steps: [1, 2]}\na: *base\nb: *base\n", "x.yaml");
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->root()["b"]["steps"][1].Scalar(), "2");
}

TEST_F(YamlFileTest, EmptyFileIsNoNode) {
  const Result<YamlFile> file = YamlFile::Read(Write(""));
  ASSERT_TRUE(file);
  EXPECT_TRUE(!file->root().IsDefined() || file->root().IsNull());
  EXPECT_FALSE(YamlFile::Read("/nowhere/x.yaml"));
}

}  // namespace
}  // namespace plumbline

#include "load/operator_dumps.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::load {

namespace {

using testing::TestDirectory;

TEST(OperatorDumps, NamesOfDeviceDumps) {
  const auto dump = ParseOperatorDumpName("Conv2D.net_conv-1.2.7.1612439563338020");
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->op_type, "Conv2D");
  EXPECT_EQ(dump->op_name, "net_conv-1");
  EXPECT_EQ(dump->timestamp, 1612439563338020U);
  EXPECT_EQ(dump->output, std::nullopt);
  EXPECT_EQ(dump->thread_id, std::nullopt);
  const auto slice = ParseOperatorDumpName("Add.a.2.7.1612439563338020.4.9.3.0");
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->thread_id, 3);
}

TEST(OperatorDumps, NamesOfArrays) {
  const auto dump = ParseOperatorDumpName("net.conv1.2.1612439563338020.npy");
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->op_name, "net_conv1");
  EXPECT_EQ(dump->output, 2);
  EXPECT_EQ(dump->timestamp, 1612439563338020U);
}

TEST(OperatorDumps, NamesOfDumpsOfArrays) {
  for (const char* suffix : {".pb", ".quant"}) {
    const auto dump = ParseOperatorDumpName(std::string("net.conv1.2.1612439563338020") + suffix);
    ASSERT_TRUE(dump) << suffix;
    EXPECT_EQ(dump->op_name, "net_conv1");
    EXPECT_EQ(dump->output, 2);
    EXPECT_EQ(dump->suffix, suffix);
    EXPECT_FALSE(ParseOperatorDumpName(std::string("conv") + suffix));
  }
}

TEST(OperatorDumps, OtherNames) {
  for (const char* name : {"", "a", "a.b", "a.b.c.d", "mapping.csv", "conv.npy", "a.b.1.npy.bak",
                           "a.x.npy", "result_20260101.csv"}) {
    EXPECT_FALSE(ParseOperatorDumpName(name)) << name;
  }
}

TEST(OperatorDumps, ADirectoryInTheOrderOfTime) {
  const TestDirectory directory;
  for (const char* name :
       {"B.late.1.1.1612439563338022", "A.early.1.1.1612439563338021", "notes.txt", "123"}) {
    ASSERT_TRUE(WriteFileAtomically(directory.Path(name), "", false));
  }
  ASSERT_TRUE(WriteFileAtomically(directory.Path("mapping.csv"),
                                  "123,C.long.1.1.1612439563338023\n", false));
  const auto dumps = ReadOperatorDumps(directory.path());
  ASSERT_TRUE(dumps) << dumps.error().message();
  ASSERT_EQ(dumps->files.size(), 3U);
  EXPECT_EQ(dumps->files[0].op_name, "early");
  EXPECT_EQ(dumps->files[2].op_name, "long");
  EXPECT_EQ(dumps->files[2].path, directory.Path("123"));
  EXPECT_EQ(dumps->files[2].file_name, "C.long.1.1.1612439563338023");
  ASSERT_EQ(dumps->notes.size(), 1U);
  EXPECT_NE(dumps->notes[0].find("notes.txt"), std::string::npos);
  EXPECT_EQ(dumps->kind, OperatorDumpKind::kOffline);
}

TEST(OperatorDumps, WhatIsNoRegularFileIsTold) {
  const TestDirectory directory;
  const std::string nowhere = directory.Path("Add.a.1.1.1612439563338021");
  ASSERT_EQ(::symlink("nowhere", nowhere.c_str()), 0);
  ASSERT_EQ(::mkfifo(directory.Path("Add.b.1.1.1612439563338022").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(directory.Path("other").c_str(), 0600), 0);
  const auto dumps = ReadOperatorDumps(directory.path());
  ASSERT_TRUE(dumps);
  ASSERT_EQ(dumps->files.size(), 1U);
  EXPECT_EQ(dumps->files[0].path, nowhere);
  ASSERT_EQ(dumps->notes.size(), 1U);
  EXPECT_NE(dumps->notes[0].find("Add.b.1.1.1612439563338022: no regular file"), std::string::npos);
}

// mapping.csv is as every other reader takes it: not quoted, with commas in names, for arrays too.
TEST(OperatorDumps, NamesBehindNumbers) {
  const TestDirectory devices, arrays;
  const auto write = [](const TestDirectory& directory, const char* name, std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(directory.Path(name), text, false));
  };
  write(devices, "1", "");
  write(devices, "2", "");
  write(devices, "12345678901234567890", "");
  write(devices, "Mul.my mul.1.1.1612439563338023", "");
  write(devices, "mapping.csv", "1,A.a.1.1.1612439563338023\n2,B.\"b\n");
  const auto dumps = ReadOperatorDumps(devices.path());
  ASSERT_TRUE(dumps) << dumps.error().message();
  ASSERT_EQ(dumps->files.size(), 1U);
  EXPECT_EQ(dumps->files[0].op_name, "a");
  ASSERT_EQ(dumps->notes.size(), 3U);
  EXPECT_EQ(dumps->unnamed, 2U);  // the long number and the blank
  EXPECT_NE(dumps->notes[0].find("7890: a dump without a name"), std::string::npos);
  EXPECT_NE(dumps->notes[1].find("2: not the name of a dump"), std::string::npos);
  EXPECT_NE(dumps->notes[2].find("my mul.1.1.1612439563338023: a dump"), std::string::npos);
  // As convert names them.
  write(arrays, "0123456789abcdef0123456789abcdef.npy", "");
  write(arrays, "mapping.csv",
        "0123456789abcdef0123456789abcdef.npy,conv1.0.1612439563338020.npy\n");
  const auto long_names = ReadOperatorDumps(arrays.path());
  ASSERT_TRUE(long_names) << long_names.error().message();
  EXPECT_EQ(long_names->files[0].op_name, "conv1");
}

TEST(OperatorDumps, ATableOfNamesMakesFilesDumps) {
  const TestDirectory directory;
  const auto write = [&](const char* name, std::string_view text) {
    ASSERT_TRUE(WriteFileAtomically(directory.Path(name), text, false));
  };
  const auto holds = [&] {
    return HoldsDeviceDumps(directory.path(), ListEntries(directory.path()).value());
  };
  write("12345678901234567890123456789012", "");
  EXPECT_FALSE(holds());
  write("mapping.csv", "7,Add.a.1.1.1612439563338023\n");  // of a file that is not there
  EXPECT_FALSE(holds());
  write("mapping.csv", "12345678901234567890123456789012,conv1.0.1612439563338020.npy\n");
  EXPECT_FALSE(holds());
  write("mapping.csv", "12345678901234567890123456789012,Add.a.1.1.1612439563338023\n");
  EXPECT_TRUE(holds());
}

TEST(OperatorDumps, KindsOfDirectories) {
  const TestDirectory standard, quant, mixed, empty;
  const auto touch = [](const TestDirectory& directory, const char* name) {
    ASSERT_TRUE(WriteFileAtomically(directory.Path(name), "", false));
  };
  touch(standard, "conv1.0.1612439563338020.npy");
  touch(quant, "conv1_quant.0.1612439563338020.npy");
  touch(mixed, "conv1.0.1612439563338020.npy");
  touch(mixed, "Conv2D.conv1.2.7.1612439563338020");
  EXPECT_EQ(ReadOperatorDumps(standard.path())->kind, OperatorDumpKind::kStandard);
  EXPECT_EQ(ReadOperatorDumps(quant.path())->kind, OperatorDumpKind::kQuant);
  const auto both = ReadOperatorDumps(mixed.path());
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code(), ErrorCode::kInvalidArgument);
  const auto none = ReadOperatorDumps(empty.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kNotFound);
}

void AddDump(const TestDirectory& directory, const std::string& below) {
  ASSERT_TRUE(MakeDirectories(directory.Path(below)));
  ASSERT_TRUE(
      WriteFileAtomically(directory.Path(below + "/Add.a.1.1.1612439563338021"), "", false));
}

TEST(OperatorTrees, PairsByPathsWithoutTimes) {
  const TestDirectory target, golden;
  for (const char* below : {"20260101000000/0/m", "20260101000000/1"}) AddDump(target, below);
  for (const char* below : {"20260202000000/0/m", "20260202000000/2"}) AddDump(golden, below);
  const auto trees = FindOperatorTrees(target.path(), golden.path());
  ASSERT_TRUE(trees) << trees.error().message();
  ASSERT_EQ(trees->pairs.size(), 3U);
  EXPECT_EQ(trees->pairs[0].name, "0/m");
  EXPECT_EQ(trees->pairs[0].target, target.Path("20260101000000/0/m"));
  EXPECT_EQ(trees->pairs[0].golden, golden.Path("20260202000000/0/m"));
  EXPECT_EQ(trees->pairs[1].name, "1");
  EXPECT_EQ(trees->pairs[1].golden, "");
  EXPECT_EQ(trees->pairs[2].name, "2");
  EXPECT_EQ(trees->pairs[2].target, "");
}

TEST(OperatorTrees, OneDirectoryOnEachSideIsAPair) {
  const TestDirectory target, golden;
  AddDump(target, "a/b");
  AddDump(golden, "c");
  const auto trees = FindOperatorTrees(target.path(), golden.path());
  ASSERT_TRUE(trees);
  ASSERT_EQ(trees->pairs.size(), 1U);
  EXPECT_EQ(trees->pairs[0].target, target.Path("a/b"));
  EXPECT_EQ(trees->pairs[0].golden, golden.Path("c"));
}

TEST(OperatorTrees, LinksThatLeadBackAreNotFollowed) {
  const TestDirectory target, golden;
  for (const TestDirectory* one : {&target, &golden}) {
    AddDump(*one, "0");
    AddDump(*one, "1");
    for (const char* link : {"0/up", "1/up", "1/also_up"}) {
      ASSERT_EQ(::symlink("..", one->Path(link).c_str()), 0);
    }
  }
  const auto trees = FindOperatorTrees(target.path(), golden.path());
  ASSERT_TRUE(trees) << trees.error().message();
  ASSERT_EQ(trees->pairs.size(), 2U);
  EXPECT_EQ(trees->pairs[0].name, "0");
  EXPECT_EQ(trees->pairs[1].name, "1");
}

// Whatever else the other side is: it is compared as that, if it can be.
TEST(OperatorTrees, WithoutDumpsOnASideThereAreNone) {
  const TestDirectory target, golden, recording;
  AddDump(target, "a");
  ASSERT_TRUE(WriteFileAtomically(recording.Path("dump.json"), "{}", false));
  AddDump(recording, "below");  // files of a framework's recording are none of these
  for (const std::string& other :
       {golden.path(), recording.path(), golden.Path("missing"), recording.Path("dump.json")}) {
    const auto one = FindOperatorTrees(target.path(), other);
    const auto two = FindOperatorTrees(other, target.path());
    ASSERT_TRUE(one && two) << other;
    EXPECT_TRUE(one->pairs.empty() && two->pairs.empty()) << other;
    EXPECT_EQ(one->one_sided, target.path());
    EXPECT_EQ(two->one_sided, target.path());
    EXPECT_EQ(FindOperatorTrees(other, other)->one_sided, "");
  }
}

}  // namespace

}  // namespace plumbline::load

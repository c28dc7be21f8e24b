#include "graphs/finish_dump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/array/npy.h"
#include "record/run_files.h"

namespace plumbline::graphs {
namespace {

constexpr const char* kPlace = "rank_0/Net/0/0";
constexpr const char* kHeader =
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min "
    "Value,Avg Value,L2Norm Value\n";

class FinishDump : public ::testing::Test {
 protected:
  FinishDump() { std::filesystem::create_directories(root_.Path(kPlace)); }

  std::string At(const std::string& name) const {
    return root_.Path(std::string(kPlace) + "/" + name);
  }
  void Write(const std::string& name, std::string_view text) {
    std::ofstream(At(name), std::ios::binary) << text;
  }
  // A tensor of one float32, written a minute ago.
  std::string AddTensor(int time, float value) {
    const std::string name =
        "Add.Default_Add-op0.0.0." + std::to_string(time) + ".output.0.DefaultFormat.Float32.npy";
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &value, 4);
    Write(name, *npy::MakeHeader(DType::kFloat32, Shape{1}) + bytes);
    MakeOld(name);
    return name;
  }
  void MakeOld(const std::string& name) {
    std::filesystem::last_write_time(
        At(name), std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  }
  std::string Table() const {
    std::ifstream file(At("statistic.csv"));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  FinishReport Finish(const FinishOptions& options, bool is_live = false) {
    const Result<FinishReport> report = DumpFinisher(root_.path(), options).Pass(is_live);
    EXPECT_TRUE(report) << report.error().message();
    return report ? *report : FinishReport();
  }
  ErrorCode CodeOf(const FinishOptions& options) {
    const Result<FinishReport> report = DumpFinisher(root_.path(), options).Pass(false);
    return report ? ErrorCode::kInternal : report.error().code();
  }
  bool Has(const std::string& name) const { return std::filesystem::exists(At(name)); }

  plumbline::testing::TestDirectory root_;
  FinishOptions drop_;
};

std::string RowOf(int time, const char* value) {
  return "Add,Default_Add-op0,0,0," + std::to_string(time) + ",output,0,4,float32,\"(1)\"," +
         value + "," + value + "," + value + "," + value + ",\n";
}

TEST_F(FinishDump, RowsStandInTheOrderOfTime) {
  const std::string late = AddTensor(20, 2), early = AddTensor(3, 1);
  const FinishReport report = Finish({});
  EXPECT_EQ(report.rows, 2U);
  EXPECT_EQ(Table(), kHeader + RowOf(3, "1") + RowOf(20, "2"));
  EXPECT_TRUE(Has(late) && Has(early));
  EXPECT_EQ(Finish({}).rows, 0U);
  EXPECT_EQ(Table(), kHeader + RowOf(3, "1") + RowOf(20, "2"));
}

TEST_F(FinishDump, RowsOfOneTimeStandInTheOrderOfNames) {
  std::string expected = kHeader;
  for (const char* op : {"a", "b", "c", "d", "e", "f"}) {
    const std::string file = AddTensor(7, 1);
    std::filesystem::rename(At(file), At(std::string("Add.") + op + file.substr(file.find(".0."))));
    expected += std::string("Add,") + op + RowOf(7, "1").substr(std::strlen("Add,Default_Add-op0"));
  }
  EXPECT_EQ(Finish({}).rows, 6U);
  EXPECT_EQ(Table(), expected);
}

// More files than are listed, read and written at a time.
TEST_F(FinishDump, ManyFilesHaveARowEach) {
  constexpr int kFiles = 2000;
  std::string expected = kHeader;
  for (int i = 0; i < kFiles; ++i) {
    AddTensor(i, 1);
    expected += RowOf(i, "1");
  }
  FinishOptions options;
  for (const int threads : {1, 2, 8}) {
    options.threads = threads;
    EXPECT_EQ(Finish(options).rows, static_cast<uint64_t>(kFiles));
    EXPECT_TRUE(Table() == expected);
    std::filesystem::remove(At("statistic.csv"));
  }
}

TEST_F(FinishDump, WhatIsNoFileIsUnreadable) {
  const std::string file = AddTensor(7, 1), pipe = "Add.pipe.0.0.8.output.0.DefaultFormat.npy";
  ASSERT_EQ(::mkfifo(At(pipe).c_str(), 0600), 0);
  const FinishReport report = Finish({});
  EXPECT_EQ(report.rows, 1U);
  EXPECT_EQ(report.unreadable, 1U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find(pipe), std::string::npos);
}

TEST_F(FinishDump, AKilledPassGoesOn) {
  // As a pass leaves them that was killed while it removed tensors: all rows, some files.
  drop_.drops_tensors = true;
  Write("statistic.csv", kHeader + RowOf(3, "1") + RowOf(20, "2"));
  const std::string left = AddTensor(20, 2), late = AddTensor(21, 4);
  Write(".statistic.csv.1-1.tmp", "Op Type");
  const FinishReport report = Finish(drop_);
  EXPECT_EQ(Table(), kHeader + RowOf(3, "1") + RowOf(20, "2") + RowOf(21, "4"));
  EXPECT_EQ(report.rows, 1U);
  EXPECT_EQ(report.dropped, 2U);
  EXPECT_FALSE(Has(left) || Has(late));
}

TEST_F(FinishDump, ARowOfOtherValuesKeepsTheFile) {
  drop_.drops_tensors = true;
  Write("statistic.csv", kHeader + RowOf(3, "1") + RowOf(20, "2"));
  const std::string other = AddTensor(3, 1.5), same = AddTensor(20, 2);
  const FinishReport report = Finish(drop_);
  EXPECT_EQ(report.contradicted, 1U);
  EXPECT_EQ(report.dropped, 1U);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_NE(report.problems[0].find(other), std::string::npos);
  EXPECT_TRUE(Has(other) && !Has(same));
  EXPECT_EQ(Table(), kHeader + RowOf(3, "1") + RowOf(20, "2"));
  // A damaged file is not what its row says either.
  Write(other, "damaged");
  EXPECT_EQ(Finish(drop_).unreadable, 1U);
  EXPECT_TRUE(Has(other));
}

TEST_F(FinishDump, ADamagedTableWithoutTensorsIsSaid) {
  const std::string whole = kHeader + RowOf(3, "1");
  Write("statistic.csv", whole);
  EXPECT_EQ(Finish({}).rows, 0U);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() - 2), kHeader + RowOf(3, "1#5"),
        std::string("no table\n"), std::string(kHeader) + "Add,n,0\n"}) {
    Write("statistic.csv", damaged);
    EXPECT_EQ(CodeOf({}), ErrorCode::kCorrupt) << damaged;
    EXPECT_EQ(Table(), damaged);
  }
}

TEST_F(FinishDump, NothingButTheTableIsLeftBehind) {
  drop_.drops_tensors = true;
  AddTensor(3, 1);
  const std::string lock(run_files::kFinishLock);
  Write(lock, "");  // of a killed pass
  Finish(drop_);
  EXPECT_FALSE(Has(lock));
  EXPECT_TRUE(Has("statistic.csv"));
}

TEST_F(FinishDump, TensorsStayWhenTheTableCannotBeWritten) {
  drop_.drops_tensors = true;
  const std::string name = AddTensor(3, 1);
  static SyscallTable real;
  real = Syscalls();
  Syscalls().renameat = [](int, const char*, int, const char*) {
    errno = ENOSPC;
    return -1;
  };
  EXPECT_EQ(CodeOf(drop_), ErrorCode::kIo);
  Syscalls() = real;
  EXPECT_TRUE(Has(name));
  EXPECT_EQ(Table(), "");
}

// Dies as by SIGKILL at the n-th call that changes the disk.
int g_calls_left = 0;
SyscallTable g_real;
void Count() {
  if (--g_calls_left == 0) ::kill(::getpid(), SIGKILL);
}

// Runs a pass in a process that dies so. Returns whether it was killed.
bool KillPass(const std::string& root, const FinishOptions& options, int call) {
  const pid_t child = ::fork();
  if (child == 0) {
    g_calls_left = call;
    g_real = Syscalls();
    Syscalls().openat = [](int directory, const char* path, int flags, mode_t mode) {
      if ((flags & O_CREAT) != 0) Count();
      return g_real.openat(directory, path, flags, mode);
    };
    Syscalls().write = [](int fd, const void* bytes, size_t size) {
      Count();
      // Half of it is on the disk when the kill comes in between.
      const ssize_t half = g_real.write(fd, bytes, (size + 1) / 2);
      if (half < 0) return half;
      Count();
      return half;
    };
    Syscalls().fsync = [](int fd) {
      Count();
      return g_real.fsync(fd);
    };
    Syscalls().renameat = [](int from, const char* old_name, int to, const char* new_name) {
      Count();
      return g_real.renameat(from, old_name, to, new_name);
    };
    Syscalls().unlinkat = [](int directory, const char* path, int flags) {
      Count();
      return g_real.unlinkat(directory, path, flags);
    };
    ::_exit(DumpFinisher(root, options).Pass(false) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << call;
  return WIFSIGNALED(status);
}

TEST_F(FinishDump, AKillAtAnyCallLosesNothing) {
  constexpr int kTensors = 6;
  drop_.drops_tensors = true;
  drop_.threads = 1;  // none of a pool is in a forked process
  std::string rows = kHeader;
  for (int i = 1; i <= kTensors; ++i) rows += RowOf(i, std::to_string(i).c_str());
  int kills = 0;
  for (bool is_killed = true; is_killed; kills += is_killed ? 1 : 0) {
    std::filesystem::remove_all(root_.Path(kPlace));
    std::filesystem::create_directories(root_.Path(kPlace));
    // Half of it was done by an earlier pass.
    for (int i = 1; i <= kTensors / 2; ++i) AddTensor(i, static_cast<float>(i));
    Finish({});
    for (int i = kTensors / 2 + 1; i <= kTensors; ++i) AddTensor(i, static_cast<float>(i));
    const std::string before = Table();
    is_killed = KillPass(root_.path(), drop_, kills + 1);
    // The table is the old one or the new one, and what has no row in it has its file.
    const std::string table = Table();
    ASSERT_TRUE(table == before || table == rows) << kills << table;
    for (int i = 1; i <= kTensors; ++i) {
      const std::string name =
          "Add.Default_Add-op0.0.0." + std::to_string(i) + ".output.0.DefaultFormat.Float32.npy";
      const auto file = npy::NpyFile::Open(At(name));
      ASSERT_TRUE(file || (table == rows && !Has(name))) << kills << name;
    }
    const FinishReport after = Finish(drop_);
    EXPECT_EQ(after.unreadable + after.contradicted, 0U) << kills;
    EXPECT_EQ(Table(), rows) << kills;
    EXPECT_FALSE(Has(std::string(run_files::kFinishLock)));
    for (const auto& entry : std::filesystem::directory_iterator(root_.Path(kPlace))) {
      EXPECT_NE(entry.path().extension(), ".npy") << kills << entry.path();
    }
  }
  // The lock, the temporary, its bytes, two syncs, the rename, and each tensor.
  EXPECT_GT(kills, 5 + kTensors);
}

TEST_F(FinishDump, WhatIsStillWrittenWaits) {
  drop_.drops_tensors = true;
  const std::string whole = AddTensor(3, 1);
  const std::string cut = "Add.a-op0.0.0.4.output.0.DefaultFormat.npy";
  Write(cut, *npy::MakeHeader(DType::kFloat32, Shape{1}));
  MakeOld(cut);
  const std::string young = "Add.b-op0.0.0.5.output.0.DefaultFormat.npy";
  Write(young, *npy::MakeHeader(DType::kFloat32, Shape{1}) + "abcd");
  const FinishReport live = Finish(drop_, /*is_live=*/true);
  EXPECT_EQ(live.unfinished, 2U);
  EXPECT_EQ(live.rows, 1U);
  EXPECT_TRUE(Has(cut) && Has(young) && !Has(whole));
  const FinishReport last = Finish(drop_);
  EXPECT_EQ(last.rows, 1U);
  EXPECT_EQ(last.unreadable, 1U);
  EXPECT_TRUE(Has(cut) && !Has(young));
}

TEST_F(FinishDump, LongNamesAndOtherFiles) {
  AddTensor(3, 1);
  std::filesystem::rename(At("Add.Default_Add-op0.0.0.3.output.0.DefaultFormat.Float32.npy"),
                          At("4711.npy"));
  Write("mapping.csv", "4711.npy,Add.Default_Add-op0.0.0.3.output.0.DefaultFormat.Float32.npy\n");
  Write("notes.npy", "");
  const FinishReport report = Finish({});
  EXPECT_EQ(Table(), kHeader + RowOf(3, "1"));
  EXPECT_EQ(report.left_out, 1U);
  EXPECT_EQ(report.problems.size(), 1U);
}

TEST_F(FinishDump, TypesOfTheNameCount) {
  const std::string name = "Add.a-op0.0.0.4.output.0.DefaultFormat.BFloat16.npy";
  Write(name, *npy::MakeHeader(DType::kFloat32, Shape{2, 1}) + std::string(8, '\0'));
  Finish({.items = {"count"}});
  EXPECT_NE(Table().find(",output,0,4,bfloat16,\"(2,1)\",2,\n"), std::string::npos);
}

TEST_F(FinishDump, LargeTensorsBecomeSamples) {
  std::string bytes;
  for (int i = 0; i < 250; ++i) {
    const auto value = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), 4);
  }
  const std::string name = "Add.a-op0.0.0.4.output.0.DefaultFormat.npy";
  Write(name, *npy::MakeHeader(DType::kFloat32, Shape{25, 10}) + bytes);
  const std::string small = "Add.b-op0.0.0.5.output.0.DefaultFormat.npy";
  Write(small, *npy::MakeHeader(DType::kFloat32, Shape{10, 10}) + bytes.substr(0, 400));
  FinishOptions options;
  options.sample_num = 100;
  EXPECT_EQ(Finish(options).sampled, 1U);
  const auto cut = npy::NpyFile::Open(At(name)), whole = npy::NpyFile::Open(At(small));
  ASSERT_TRUE(cut && whole);
  EXPECT_EQ(Shape(cut->view().sizes.begin(), cut->view().sizes.end()), Shape{100});
  EXPECT_EQ(std::memcmp(cut->view().data, bytes.data(), 400), 0);
  EXPECT_EQ(whole->view().sizes.size(), 2U);
  EXPECT_NE(Table().find(",output,0,400,float32,\"(100)\",99,0,"), std::string::npos);
  const auto samples = ReadFile(At("sample.json"));
  ASSERT_TRUE(samples);
  EXPECT_NE(samples->find("\"" + name + "\": [\n"), std::string::npos) << *samples;
  EXPECT_EQ(samples->find(small), std::string::npos);
  EXPECT_EQ(Finish(options).sampled, 0U);
  EXPECT_EQ(*ReadFile(At("sample.json")), *samples);
}

TEST_F(FinishDump, AGivenTableIsNeverLost) {
  AddTensor(3, 1);
  Write("statistic.csv", "Op Type,Op Name,Task ID,Other\n");
  EXPECT_EQ(CodeOf({}), ErrorCode::kInvalidArgument);
  Write("statistic.csv", std::string(kHeader) + "Add,n,0\n");
  EXPECT_EQ(CodeOf({}), ErrorCode::kCorrupt);
  EXPECT_EQ(Table(), std::string(kHeader) + "Add,n,0\n");
}

TEST_F(FinishDump, WrongUse) {
  AddTensor(3, 1);
  EXPECT_EQ(CodeOf({.items = {"sum"}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf({.items = {}}), ErrorCode::kInvalidArgument);
  auto lock = File::OpenAppend(At(std::string(run_files::kFinishLock)));
  ASSERT_TRUE(lock && *lock->TryLock());
  EXPECT_EQ(CodeOf({}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(DumpFinisher(root_.Path("missing"), {}).Pass(false).error().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::graphs

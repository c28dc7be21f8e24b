// Recording processes killed at random instants: what `plumb recover` must give back.
//
// PLUMBLINE_KILLS=10000 crash_test: as many kills instead of 500 (docs/design/crash_safety.md).

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>
#include <random>
#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/process/log.h"
#include "formats/json/dump_json.h"
#include "formats/pytorch/torch_pt.h"
#include "record/value.h"
#include "store/recover.h"
#include "store/run_writer.h"

namespace plumbline {
namespace {

using testing::TestDirectory;

constexpr int kUsualKills = 500;
constexpr int kMinKillsPerPhase = 5;  // of 1000
constexpr int kAimedEvery = 5;        // kills
constexpr int kAimedDelayUs = 200;
constexpr int kSteps = 40;
constexpr int kCallsPerStep = 200;
constexpr int kPublishEvery = 70;  // calls between two stop()s
constexpr size_t kTensorBytes = 20000;

// What the child tells the parent, in memory both share: it survives the kill.
enum class Phase : int { kOpening, kRecording, kPublishing, kFinishing, kPhases };
struct Progress {
  std::atomic<Phase> phase{Phase::kOpening};
  std::atomic<int> step{-1};               // being recorded
  std::atomic<int> begun[kSteps] = {};     // calls handed to AddEntry, per step
  std::atomic<int> returned[kSteps] = {};  // calls whose AddEntry came back
};

Progress* SharedProgress() {
  void* memory =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Progress;
}

std::string CallName(int i) { return "Torch.op." + std::to_string(i) + ".forward"; }

// The element bytes of call `i`; every third is equal to another's.
std::byte Fill(int i) { return static_cast<std::byte>(i % 3 == 0 ? 0 : i); }

void SaveTensor(RunWriter& writer, const std::string& file, int i) {
  const int64_t sizes[] = {static_cast<int64_t>(kTensorBytes)};
  const ContentKey key = MakeContentKey({static_cast<uint64_t>(Fill(i)), 0}, DType::kUInt8, sizes);
  if (writer.LinkIfKnown(key, file)) return;
  TensorBuffer buffer = writer.AcquireBuffer(kTensorBytes);
  if (!buffer.is_valid()) return;
  std::fill(buffer.bytes().begin(), buffer.bytes().end(), Fill(i));
  const uint32_t crc = Crc32(buffer.bytes());
  writer.SaveTensor({file, DType::kUInt8, sizes, crc, key}, std::move(buffer));
}

void AddCall(RunWriter& writer, int i, bool tensors) {
  const std::string name = CallName(i);
  EntryPacker packer;
  packer.Begin(name, nullptr, 1);
  packer.Key("output");
  packer.BeginList();
  PackedTensor tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.uint8";
  tensor.max = static_cast<int64_t>(i);
  std::string file;
  if (tensors) {
    file = writer.ReserveTensorName(name + ".output.0");
    SaveTensor(writer, file, i);
    tensor.data_name = file;
  }
  packer.Tensor(tensor);
  packer.EndList();
  writer.AddEntry(packer.Finish());
}

void RecordUntilKilled(const std::string& dump_path, bool tensors, Progress& progress) {
  StoreThreads threads;
  const std::vector<std::string> frames = {"File a.py, line 1, in f, \n x = f(y)"};
  for (int step = 0; step < kSteps; ++step) {
    progress.phase = Phase::kOpening;
    RunOptions options;
    options.header = {tensors ? "tensor" : "statistics", "L1", "pytorch", ""};
    options.dump_path = dump_path;
    options.step = step;
    options.has_tensors = tensors;
    auto writer = RunWriter::Open(options, threads);
    if (!writer) ::_exit(3);
    (*writer)->AddStack(1, frames);
    progress.step = step;
    progress.phase = Phase::kRecording;
    for (int i = 0; i < kCallsPerStep; ++i) {
      progress.begun[step] = i + 1;
      AddCall(**writer, i, tensors);
      progress.returned[step] = i + 1;
      if (i % kPublishEvery != kPublishEvery - 1) continue;
      progress.phase = Phase::kPublishing;
      if (!(*writer)->Publish()) ::_exit(4);
      progress.phase = Phase::kRecording;
    }
    progress.phase = Phase::kFinishing;
    if (!(*writer)->Finish()) ::_exit(5);
  }
}

// The calls in dump.json, checked to be calls 0, 1, 2, ... with their values and tensor files.
int CheckedCalls(const std::string& directory) {
  const auto dump = dump_json::ReadDump(directory + "/dump.json", false);
  EXPECT_TRUE(dump) << dump.error().message();
  if (!dump) return -1;
  int i = 0;
  for (const Call& call : dump->calls) {
    EXPECT_EQ(call.name, CallName(i));
    const auto& list = *call.members.at(0).second.As<ValueList>();
    const auto& tensor = *list.at(0).As<TensorRecord>();
    EXPECT_EQ(tensor.max, Statistic(static_cast<int64_t>(i)));
    if (tensor.data_name) {
      const auto file =
          torch_pt::PtFile::Open(directory + "/dump_tensor_data/" + *tensor.data_name);
      EXPECT_TRUE(file) << file.error().message();
      if (file) {
        EXPECT_EQ(file->view().size_bytes(), kTensorBytes);
        EXPECT_EQ(file->view().data[kTensorBytes - 1], Fill(i));
      }
    }
    ++i;
  }
  return i;
}

// Memory is faster to sync than a disk, and all that matters to a kill is in the kernel.
std::filesystem::path FastDirectory() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

// Tensor files of the first calls as an earlier run would have left them, all of zeros but whole.
void LeaveOldFiles(const std::string& dump_path) {
  const std::string tensors =
      run_layout::RankDirectory(dump_path, 0, std::nullopt) + "/dump_tensor_data";
  ASSERT_TRUE(MakeDirectories(tensors));
  const std::string zeros(kTensorBytes, '\0');
  const int64_t sizes[] = {static_cast<int64_t>(kTensorBytes)};
  const uint32_t crc = Crc32(std::as_bytes(std::span(zeros)));
  const torch_pt::Frame frame = torch_pt::MakeFrame(DType::kUInt8, sizes, kTensorBytes, crc);
  for (int i = 0; i < kCallsPerStep; ++i) {
    const std::string name = run_layout::TensorFileName(CallName(i) + ".output.0");
    ASSERT_TRUE(
        WriteFileAtomically(JoinPath(tensors, name), frame.head + zeros + frame.tail, false));
  }
}

// When a recording is killed: `delay_us` after its start, or after it is first seen in `phase`.
struct Instant {
  useconds_t delay_us = 0;
  std::optional<Phase> phase;
};

// Returns early when the recording ends first.
void WaitFor(const Instant& instant, pid_t child, const Progress& progress) {
  siginfo_t ended{};
  while (instant.phase && progress.phase != *instant.phase) {
    if (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != 0) {
      return;
    }
  }
  ::usleep(instant.delay_us);
}

// Kills one recording and checks everything that is left.
// With `again`, an earlier run has left files of other contents under the same names.
void KillOnce(bool tensors, bool again, const Instant& instant, Progress& progress) {
  const TestDirectory dir(FastDirectory());
  if (again) LeaveOldFiles(dir.path());
  new (&progress) Progress;
  const pid_t child = ::fork();
  if (child == 0) {
    SetLogLevel(LogLevel::kSilent);
    RecordUntilKilled(dir.path(), tensors, progress);
    ::_exit(0);
  }
  WaitFor(instant, child, progress);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << status;

  // Before recovery: every final file that exists is whole.
  const int last = progress.step;
  for (int step = 0; step <= last; ++step) {
    CheckedCalls(run_layout::RankDirectory(dir.path(), step, std::nullopt));
  }
  const auto report = RecoverAll(dir.path());
  ASSERT_TRUE(report);
  ASSERT_TRUE(report->failures.empty()) << report->failures.front().message();
  for (const Recovery& recovery : report->directories) EXPECT_FALSE(recovery.journal_damaged);
  for (int step = 0; step < last; ++step) {
    EXPECT_EQ(CheckedCalls(run_layout::RankDirectory(dir.path(), step, std::nullopt)),
              kCallsPerStep);
  }
  if (last < 0) return;
  const int calls = CheckedCalls(run_layout::RankDirectory(dir.path(), last, std::nullopt));
  EXPECT_GE(calls, progress.returned[last]);
  EXPECT_LE(calls, progress.begun[last]);
  EXPECT_TRUE(RecoverAll(dir.path())->directories.empty());
}

int Kills() {
  const char* text = std::getenv("PLUMBLINE_KILLS");
  return text == nullptr ? kUsualKills : std::atoi(text);
}

void KillMany(bool tensors, int kills, useconds_t longest_us) {
  Progress* progress = SharedProgress();
  ASSERT_NE(progress, nullptr);
  std::mt19937 random(tensors ? 1 : 2);
  int kills_in[static_cast<size_t>(Phase::kPhases)] = {};
  for (int i = 0; i < kills && !::testing::Test::HasFailure(); ++i) {
    const bool again = tensors && i % 2 == 1;
    Instant instant{.delay_us = static_cast<useconds_t>(random() % longest_us), .phase = {}};
    // How long a phase takes depends on the machine and the build: some kills look for one.
    if (i % kAimedEvery == 0) {
      instant.phase = static_cast<Phase>(i / kAimedEvery % static_cast<int>(Phase::kPhases));
      instant.delay_us = static_cast<useconds_t>(random() % kAimedDelayUs);
    }
    KillOnce(tensors, again, instant, *progress);
    ++kills_in[static_cast<size_t>(progress->phase.load())];
  }
  // The instants were spread over everything a recorder does.
  for (const int in_phase : kills_in) EXPECT_GE(in_phase, kills * kMinKillsPerPhase / 1000);
  std::printf("%d kills: %d opening, %d recording, %d publishing, %d finishing\n", kills,
              kills_in[0], kills_in[1], kills_in[2], kills_in[3]);
  ::munmap(progress, sizeof(Progress));
}

TEST(Kill, StatisticsLoseAtMostTheCallInFlight) { KillMany(false, Kills() / 2, 20'000); }

TEST(Kill, NamedTensorsAreComplete) { KillMany(true, Kills() / 2, 20'000); }

}  // namespace
}  // namespace plumbline

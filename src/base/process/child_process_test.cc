#include "base/process/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A shell that runs `script`; it talks through descriptor 3.
Result<ChildProcess> Shell(const std::string& script,
                           std::span<const SharedBytes* const> memory = {}) {
  return ChildProcess::Start({FindProgram("sh"), "-c", script}, memory);
}

// Whether a process is a zombie.
bool IsEnded(int process) {
  const auto text = ReadFile("/proc/" + std::to_string(process) + "/stat");
  return text && text->find(") Z ") != std::string::npos;
}

// Starts more programs than a table of fixed size would hold, each with one of its own that it
// leaves behind, and is terminated.
void StartManyAndEnd(const std::string& list) {
  std::vector<ChildProcess> children;
  std::string processes;
  for (int i = 0; i < 40; ++i) {
    auto child = Shell("read -r line <&3; sleep 300 3>&- & echo $! >&3; read -r line <&3");
    if (!child) return;
    processes += child->Ask("go").value_or("") + "\n";
    children.push_back(*std::move(child));
  }
  if (!WriteFileAtomically(list, processes, false)) return;
  (void)::raise(SIGTERM);
}

TEST(ChildProcess, AllGroupsEndWithTheProcess) {
  GTEST_FLAG_SET(death_test_style, "fast");  // in the same directory
  const testing::TestDirectory dir;
  const std::string list = dir.Path("processes");
  EXPECT_EXIT(StartManyAndEnd(list), ::testing::KilledBySignal(SIGTERM), "");
  const Result<std::string> text = ReadFile(list);
  ASSERT_TRUE(text);
  std::istringstream lines(*text);
  int count = 0;
  for (int process = 0; lines >> process; ++count) {
    const auto is_there = [&] { return ::kill(process, 0) == 0 && !IsEnded(process); };
    for (int i = 0; i < 100 && is_there(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_FALSE(is_there()) << process;
  }
  EXPECT_EQ(count, 40);
}

TEST(ChildProcess, AnswersLineByLine) {
  auto child = Shell("while read -r line <&3; do echo \"got $line\" >&3; done");
  ASSERT_TRUE(child) << child.error().message();
  EXPECT_EQ(*child->Ask("one"), "got one");
  EXPECT_EQ(*child->Ask("two  words"), "got two  words");
  const std::string large(1 << 16, 'x');
  EXPECT_EQ(child->Ask(large)->size(), large.size() + 4);
}

TEST(ChildProcess, SeesTheMemoryAndChangesIt) {
  auto in = SharedBytes::Create(), out = SharedBytes::Create();
  ASSERT_TRUE(in && out);
  const std::array<const SharedBytes*, 2> memory = {&*in, &*out};
  auto child = Shell("read -r line <&3; cat /dev/fd/4 > /dev/fd/5; echo done >&3", memory);
  ASSERT_TRUE(child) << child.error().message();
  ASSERT_TRUE(in->Reset(6));
  ASSERT_TRUE(in->WriteAt(BytesOf("tens"), 0));
  ASSERT_TRUE(in->WriteAt(BytesOf("or"), 4));
  EXPECT_EQ(*child->Ask("go"), "done");
  const auto bytes = out->Read();
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), 6U);
  EXPECT_EQ(std::memcmp(bytes->data(), "tensor", 6), 0);
}

TEST(ChildProcess, SaysHowTheProgramEnded) {
  for (const auto& [script, text] :
       {std::pair{"exit 3", "exit status 3"}, std::pair{"kill -9 $$", "signal 9 (Killed)"},
        std::pair{"read -r line <&3; exit 4", "exit status 4"}}) {
    auto child = Shell(script);
    ASSERT_TRUE(child);
    const auto answer = child->Ask("hello");
    ASSERT_FALSE(answer) << script;
    EXPECT_EQ(answer.error().message(), text);
    EXPECT_FALSE(child->is_running());
  }
}

TEST(ChildProcess, IsWaitedForWhenItIsNoLongerNeeded) {
  auto child = Shell("read -r line <&3");
  ASSERT_TRUE(child);
  *child = ChildProcess();  // ends: the socket is closed
}

// The lines ended with the last copy of the socket, not with the program.
TEST(ChildProcess, DoesNotWaitForWhatTheProgramLeftBehind) {
  auto child = Shell("sleep 60 & exit 3");
  ASSERT_TRUE(child);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(child->Ask("hello").error().message(), "exit status 3");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(ChildProcess, EndsTheProgramsOfTheProgram) {
  auto child = Shell("sleep 60 & echo $! >&3; read -r line <&3");
  ASSERT_TRUE(child);
  const int process = std::stoi(*child->ReadLine());
  ASSERT_EQ(::kill(process, 0), 0);
  *child = ChildProcess();
  // Ended, or not yet taken by whoever inherited it.
  for (int i = 0; i < 1000 && ::kill(process, 0) == 0 && !IsEnded(process); ++i) ::usleep(10000);
  EXPECT_TRUE(::kill(process, 0) != 0 || IsEnded(process));
}

TEST(ChildProcess, OneThatOnlyClosesTheSocketIsKilled) {
  auto child = Shell("exec 3<&-; sleep 60");
  ASSERT_TRUE(child);
  EXPECT_EQ(child->Ask("hello").error().message(), "a closed channel");
  EXPECT_FALSE(child->is_running());
}

// The kernel ends a child with the thread that made it, which must not be the caller's.
TEST(ChildProcess, OutlivesTheThreadThatStartedIt) {
  ChildProcess child;
  std::jthread([&] { child = *Shell("while read -r line <&3; do echo ok >&3; done"); }).join();
  EXPECT_EQ(*child.Ask("still there?"), "ok");
}

TEST(ChildProcess, LinesAreTakenWhenTheyAreThere) {
  auto child = Shell("read -r x <&3; echo one >&3; echo two >&3; read -r x <&3");
  ASSERT_TRUE(child);
  EXPECT_EQ(child->TakeLine().value(), std::nullopt);
  ASSERT_TRUE(child->Send("go"));
  std::vector<std::string> lines;
  while (lines.size() < 2) {
    pollfd waited{child->socket(), POLLIN, 0};
    ASSERT_EQ(::poll(&waited, 1, 30000), 1);
    for (auto line = child->TakeLine(); line && *line; line = child->TakeLine()) {
      lines.push_back(**line);
    }
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  EXPECT_GT(child->group(), 1);
  ASSERT_TRUE(child->Send("end"));
  for (auto line = child->TakeLine(); line; line = child->TakeLine()) ::usleep(1000);
  EXPECT_FALSE(child->is_running());
}

// Their numbers in the child are also numbers that descriptors have here.
TEST(ChildProcess, ManyMemoriesKeepTheirOrder) {
  std::vector<SharedBytes> memories;
  std::vector<const SharedBytes*> given;
  for (int i = 0; i < 150; ++i) {
    memories.push_back(*SharedBytes::Create());
    ASSERT_TRUE(memories.back().WriteAt(BytesOf(std::to_string(i)), 0));
  }
  for (const SharedBytes& memory : memories) given.push_back(&memory);
  auto child = Shell("while read -r n <&3; do cat /proc/self/fd/$n >&3; echo >&3; done", given);
  ASSERT_TRUE(child);
  for (const int i : {0, 1, 59, 60, 61, 62, 100, 149}) {
    EXPECT_EQ(child->Ask(std::to_string(4 + i)).value_or(""), std::to_string(i));
  }
}

TEST(ChildProcess, ProgramsThatAreNotThere) {
  EXPECT_EQ(FindProgram("no-such-program-anywhere"), "");
  EXPECT_EQ(FindProgram("/no/such/program"), "");
  EXPECT_EQ(FindProgram(""), "");
  EXPECT_FALSE(ChildProcess::Start({"/no/such/program"}, {}));
}

}  // namespace
}  // namespace plumbline

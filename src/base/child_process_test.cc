#include "base/child_process.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

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
       {std::pair{"exit 3", "exit status 3"}, std::pair{"kill -9 $$", "signal 9"},
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

TEST(ChildProcess, ProgramsThatAreNotThere) {
  EXPECT_EQ(FindProgram("no-such-program-anywhere"), "");
  EXPECT_EQ(FindProgram("/no/such/program"), "");
  EXPECT_EQ(FindProgram(""), "");
  EXPECT_FALSE(ChildProcess::Start({"/no/such/program"}, {}));
}

}  // namespace
}  // namespace plumbline

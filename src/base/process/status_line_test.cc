#include "base/process/status_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/process/log.h"

namespace plumbline {
namespace {

// A terminal of 20 columns.
class StatusLineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    main_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    ASSERT_GE(main_, 0);
    ASSERT_EQ(::grantpt(main_), 0);
    ASSERT_EQ(::unlockpt(main_), 0);
    terminal_ = std::fopen(::ptsname(main_), "w");
    ASSERT_NE(terminal_, nullptr);
    const winsize size{24, 20, 0, 0};
    ASSERT_EQ(::ioctl(::fileno(terminal_), TIOCSWINSZ, &size), 0);
  }
  void TearDown() override {
    std::fclose(terminal_);
    ::close(main_);
  }
  // What came since the last call.
  [[nodiscard]] std::string Written() const {
    char text[256];
    const ssize_t size = ::read(main_, text, sizeof(text));
    return {text, size < 0 ? 0 : static_cast<size_t>(size)};
  }

  int main_ = -1;
  std::FILE* terminal_ = nullptr;
};

TEST_F(StatusLineTest, IsWrittenOverAndCutToTheTerminal) {
  const StatusLine line(terminal_);
  ASSERT_TRUE(line.is_on());
  line.Show("a longer line", false);
  EXPECT_EQ(Written(), "\ra longer line");
  line.Show("short", false);
  EXPECT_EQ(Written(), "\rshort        ");
  line.Show("0123456789012345678901234567", false);
  EXPECT_EQ(Written(), "\r0123456789012345678");
  line.Show("01234567890123456\xC3\xA4\xC3\xA4", true);  // a letter is not cut
  EXPECT_EQ(Written(), "\r01234567890123456\xC3\xA4\r\n");
  line.Show("next", true);
  EXPECT_EQ(Written(), "\rnext\r\n");
}

TEST_F(StatusLineTest, MakesRoomForLinesOfTheLog) {
  const StatusLine line(terminal_);
  line.Show("working", false);
  EXPECT_EQ(Written(), "\rworking");
  ::testing::internal::CaptureStdout();
  LogError("told");
  EXPECT_EQ(Written(), "\r       \r");
  LogError("told");
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("told"), std::string::npos);
  EXPECT_EQ(Written(), "");
  line.Show("on", true);
  EXPECT_EQ(Written(), "\ron\r\n");
}

TEST(StatusLine, IsOffWhereNobodyLooks) {
  std::FILE* file = std::tmpfile();
  const StatusLine line(file);
  line.Show("nothing", true);
  EXPECT_FALSE(line.is_on());
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace plumbline

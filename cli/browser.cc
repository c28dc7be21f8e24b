#include "browser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/process/child_process.h"
#include "base/text/text_parts.h"

namespace plumbline::cli {
namespace {

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// Of $BROWSER, a list with colons, the first one that is there.
std::string BrowserProgram() {
  for (const std::string_view name : SplitAt(Variable("BROWSER"), ':')) {
    std::string program = name.empty() ? std::string() : FindProgram(name);
    if (!program.empty()) return program;
  }
  return FindProgram("xdg-open");
}

}  // namespace

Status OpenBrowser(const std::string& address) {
  std::string program = BrowserProgram();
  if (program.empty()) {
    return Error(ErrorCode::kNotFound,
                 "--open: no browser (neither $BROWSER nor xdg-open). Open the address yourself");
  }
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);  // no interrupt of this terminal
  ::posix_spawn_file_actions_init(&files);
  for (const int descriptor : {0, 1, 2}) {
    ::posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
  }
  std::string word = address;
  char* const words[] = {program.data(), word.data(), nullptr};
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, program.c_str(), &files, &attributes, words, environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (problem == 0) return {};
  return Error(ErrorCode::kIo,
               fmt::format("{}: cannot be started ({})", program, std::strerror(problem)));
}

std::string SshLine(int port) {
  // "client address, its port, address of this machine, port of sshd".
  const std::vector<std::string_view> parts = SplitAt(Variable("SSH_CONNECTION"), ' ');
  if (parts.size() != 4) return {};
  const std::string_view user = Variable("USER");
  const std::string login = user.empty() ? std::string() : fmt::format("{}@", user);
  const std::string at_port = parts[3] == "22" ? std::string() : fmt::format("-p {} ", parts[3]);
  return fmt::format("ssh {}-L {}:127.0.0.1:{} {}{}", at_port, port, port, login, parts[2]);
}

}  // namespace plumbline::cli

#include "base/file/object_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/file/directory.h"
#include "base/file/file.h"

namespace plumbline::object_store {

namespace {

// As fsspec names them.
constexpr std::array<std::string_view, 16> kSchemes = {
    "abfs", "abfss", "adl", "az",  "gcs",  "gs",    "hdfs", "oci",
    "oss",  "s3",    "s3a", "smb", "sftp", "swift", "tos",  "webhdfs"};
constexpr std::string_view kMark = "://";

const std::string& Root() {
  static const std::string root = [] {
    const char* const named = std::getenv(kDirectory);
    return std::string(named == nullptr ? "" : named);
  }();
  return root;
}

// Length of the scheme in front of a path; 0: it has none.
size_t SchemeOf(std::string_view path) {
  const size_t size = path.find(kMark);
  if (size == std::string_view::npos) return 0;
  return std::ranges::find(kSchemes, path.substr(0, size)) == kSchemes.end() ? 0 : size;
}

class Connection {
 public:
  Connection() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (fd_ >= 0) ::close(fd_);
  }

  // The answer of the program beside this one to a path. Empty: none.
  std::string Ask(const std::string& path) {
    if (!Connect() || !Send(path) || ::shutdown(fd_, SHUT_WR) != 0) return {};
    std::string answer;
    std::array<char, 4096> piece{};
    for (;;) {
      const ssize_t count = ::read(fd_, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return answer;
      answer.append(piece.data(), static_cast<size_t>(count));
    }
  }

 private:
  bool Connect() {
    // Through a descriptor: addresses of sockets are short, and temporary directories need not be.
    const int root = ::open(Root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd_ < 0 || root < 0) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("/proc/self/fd/{}/.fetch", root);
    std::memcpy(address.sun_path, name.data(), name.size());
    int result = 0;
    do {
      result = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    } while (result != 0 && errno == EINTR);
    ::close(root);
    return result == 0;
  }

  bool Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  int fd_;
};

bool IsHollow(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_size > 0 && info.st_blocks == 0;
}

// Whether it is below the directory of objects.
bool IsHere(const LocalPath& path) { return IsOpen() && path.text().starts_with(Root()); }

}  // namespace

std::string_view NamedBy(std::string_view word) {
  if (word.starts_with('-')) {
    const size_t value = word.find('=');
    const bool is_glued =
        !word.starts_with("--") && SchemeOf(word.substr(std::min<size_t>(2, word.size()))) > 0;
    word.remove_prefix(is_glued ? 2 : value == std::string_view::npos ? word.size() : value + 1);
  }
  return SchemeOf(word) > 0 ? word : std::string_view();
}

bool IsOpen() { return !Root().empty(); }

bool IsListed(std::string_view path) {
  const char* const listed = std::getenv(kListed);
  if (!IsOpen() || listed == nullptr) return false;
  for (std::string_view rest = listed; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const bool is_below = path.size() <= line.size() || path.substr(line.size()).starts_with('/');
    if (!line.empty() && path.starts_with(line) && is_below) return true;
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return false;
}

LocalPath::LocalPath(const std::string& path) : path_(path) {
  const size_t scheme = IsOpen() ? SchemeOf(path) : 0;
  if (scheme == 0) return;
  is_stored_ = true;
  const std::string_view place = std::string_view(path).substr(scheme + kMark.size());
  stored_ = fmt::format("{}/{}/{}", Root(), std::string_view(path).substr(0, scheme), place);
}

bool LacksBytes(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !IsHollow(info)) return false;
  // Some file systems keep the bytes of small files beside their names, in no block.
  const bool has_data = ::lseek(fd, 0, SEEK_DATA) >= 0;
  static_cast<void>(::lseek(fd, 0, SEEK_SET));
  return !has_data;
}

Result<bool> Fetch(const LocalPath& path) {
  struct stat info {};
  if (!IsHere(path) || ::stat(path.c_str(), &info) != 0) return false;
  if (!IsHollow(info)) return true;
  const std::string answer = Connection().Ask(path.text());
  if (answer == "ok" || answer == "own") return answer == "ok";
  return Error(ErrorCode::kIo,
               answer.empty() ? path.text() + ": what fetches objects is gone" : answer);
}

Result<bool> FetchInside(const Directory& directory, std::string_view name) {
  if (!IsOpen()) return false;
  const std::string path = JoinPath(directory.path(), name);
  return Fetch(LocalPath(path));
}

}  // namespace plumbline::object_store

#include "base/file/object_store.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::object_store {
namespace {

using testing::TestDirectory;

TEST(ObjectStore, KnowsPathsOfStores) {
  for (const char* word :
       {"s3://runs/new", "--output=s3://runs/new", "-o=s3://runs/new", "-os3://runs/new"}) {
    EXPECT_EQ(NamedBy(word), "s3://runs/new") << word;
  }
  EXPECT_EQ(NamedBy("gs://a"), "gs://a");
  for (const char* word : {"runs/new", "s3:/runs", "ray://host:10001", "http://a/b", "://a", "s3",
                           "--address=ray://a", "--s3://a", "", "-", "file:///a", "runs/s3://a"}) {
    EXPECT_EQ(NamedBy(word), "") << word;
  }
}

TEST(ObjectStore, WithoutTheDirectoryNoPathIsOneOfAStore) {
  ASSERT_FALSE(IsOpen());
  const std::string path = "s3://runs/new";
  EXPECT_EQ(LocalPath(path).text(), path);
  EXPECT_FALSE(Fetch(LocalPath(path)).value_or(true));
  EXPECT_EQ(KindOf(path), PathKind::kMissing);
}

// Answers questions one after the other, as the program beside would.
void Answer(const TestDirectory& root, int listener, const std::string& bytes) {
  for (;;) {
    const int asked = ::accept(listener, nullptr, nullptr);
    std::array<char, 4096> piece{};
    std::string path;
    ssize_t size = 0;
    while ((size = ::read(asked, piece.data(), piece.size())) > 0) {
      path.append(piece.data(), static_cast<size_t>(size));
    }
    std::string answer = "s3://runs/lost: cannot be read: gone";
    if (path == root.Path("s3/runs/dump.json")) {
      static_cast<void>(WriteFileAtomically(path, bytes, false));
      answer = "ok";
    } else if (path == root.Path("s3/runs/dropped")) {
      answer = "ok";
    } else if (path == root.Path("s3/runs/own")) {
      answer = "own";
    }
    static_cast<void>(!::write(asked, answer.data(), answer.size()));
    ::close(asked);
  }
}

int Listen(const std::string& path) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener, 8) != 0) {
    std::abort();
  }
  return listener;
}

// A file of `size` bytes without any.
void MakeHollow(const std::string& path, size_t size) {
  File file = *File::Create(path);
  static_cast<void>(file.Resize(size));
}

// In a process of its own: the environment is looked at once. The exit status says what failed.
int ReadThroughAStore() {
  const TestDirectory root;
  ::setenv(kDirectory, root.path().c_str(), 1);
  if (!MakeDirectories("s3://runs/out") || KindOf(root.Path("s3/runs/out")) != PathKind::kDirectory)
    return 2;
  const std::string bytes(5000, 'x');
  for (const char* name : {"dump.json", "lost", "dropped", "own"}) {
    MakeHollow(root.Path(std::string("s3/runs/") + name), bytes.size());
  }
  std::thread(Answer, std::cref(root), Listen(root.Path(".fetch")), std::cref(bytes)).detach();
  if (ReadFile("s3://runs/dump.json").value_or("") != bytes) return 3;
  const auto lost = ReadFile("s3://runs/lost");
  if (lost || lost.error().message() != "s3://runs/lost: cannot be read: gone") return 4;
  // By the real path, and from its directory.
  if (ReadFile(root.Path("s3/runs/lost"))) return 5;
  const auto directory = Directory::Open("s3://runs");
  if (!directory || File::OpenRead(*directory, "lost")) return 6;
  if (ListDirectory("s3://runs").value_or(std::vector<std::string>{}) !=
      std::vector<std::string>{"dropped", "dump.json", "lost", "out", "own"}) {
    return 7;
  }
  if (AbsolutePath("s3://runs/out/").value_or("") != "s3://runs/out") return 11;
  // Never the zeros of a file without bytes, but for one with a hole that the program made.
  const auto dropped = ReadFile("s3://runs/dropped");
  if (dropped || dropped.error().code() != ErrorCode::kIo) return 12;
  if (ReadFile("s3://runs/own").value_or("") != std::string(bytes.size(), '\0')) return 13;
  const auto missing = ReadFile("s3://runs/none");
  if (missing || !missing.error().message().starts_with("s3://runs/none: ")) return 8;
  ::setenv(kListed, "s3://runs/new\ns3://runs/good/step0", 1);
  for (const char* path : {"s3://runs/new", "s3://runs/new/", "s3://runs/good/step0/rank0"}) {
    if (!IsListed(path)) return 14;
  }
  for (const char* path : {"s3://runs", "s3://runs/newer", "s3://runs/good", ""}) {
    if (IsListed(path)) return 15;
  }
  if (!WriteFileAtomically(std::string("s3://runs/out/a"), "text", true)) return 9;
  return ReadFile(root.Path("s3/runs/out/a")).value_or("") == "text" ? 0 : 10;
}

TEST(ObjectStoreDeathTest, BytesComeWhenAFileIsOpened) {
  EXPECT_EXIT(::_exit(ReadThroughAStore()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace plumbline::object_store

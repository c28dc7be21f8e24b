#include "view/serve/store_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/memory/digest.h"
#include "plumbline/c_api.h"
#include "record/run_files.h"
#include "view/finished_ranks.h"

namespace plumbline::view {
namespace {

// Of the stores' format and of what is put into them: others are made anew.
constexpr std::string_view kStoreMaker = PLUMBLINE_VERSION " 1";
constexpr std::string_view kStoreEnding = ".store";
// Below a dump: steps, ranks, tensors.
constexpr int kDeepest = 5;
constexpr int64_t kDayNanoseconds = int64_t{86'400} * 1'000'000'000;

std::string VariableText(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

void AppendFacts(const std::string& path, std::string& facts) {
  facts +=
      fmt::format("{}\t{}\t{}\n", path, FileSize(path).value_or(0), ModifiedAt(path).value_or(0));
}

void AppendTree(const std::string& directory, int depth, std::string& facts) {
  facts += directory;
  facts += '\n';
  const auto entries = ListEntries(directory);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(directory, entry.name);
    const bool is_directory = entry.kind == PathKind::kDirectory;
    if (is_directory && entry.name != run_files::kTensorDirectory && depth < kDeepest) {
      AppendTree(path, depth + 1, facts);
    } else {
      AppendFacts(path, facts);
    }
  }
}

std::string KeyOf(std::string_view facts) {
  const Digest128 digest = Xxh3Of(std::as_bytes(std::span(facts)));
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

int64_t NowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void TouchFile(const std::string& path) {
  Result<File> file = File::OpenUpdate(path);
  if (file) (void)file->Touch();
}

Result<FoundStore> OpenAt(const std::string& path, bool was_there) {
  PL_TRY_ASSIGN(std::shared_ptr<const ResultStore> store, ResultStore::Open(path));
  return FoundStore{std::move(store), path, FileSize(path).value_or(0), was_there};
}

// In the directory for temporary files; nothing is left of it once it is open.
Result<FoundStore> BuildTemporary(const std::string& key, const StoreCache::Build& build) {
  std::string directory = VariableText("TMPDIR");
  if (directory.empty()) directory = "/tmp";
  const std::string path = JoinPath(directory, fmt::format("plumb-view-{}-{}{}", key.substr(0, 12),
                                                           NowNanoseconds(), kStoreEnding));
  PL_TRY(build(path));
  Result<FoundStore> found = OpenAt(path, /*was_there=*/false);
  (void)RemoveFile(path);
  return found;
}

// What killed processes were writing in the place of the store that the user named.
void RemoveUnfinished(const std::string& path, const std::string& key_path) {
  const std::string directory(DirectoryOf(path));
  for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>())) {
    const auto meant = NameOfAbandoned(name);
    if (meant == BaseName(path) || meant == BaseName(key_path)) {
      (void)RemoveFile(JoinPath(directory, name));
    }
  }
}

}  // namespace

std::string DefaultCacheDirectory() {
  const std::string cache = VariableText("XDG_CACHE_HOME"), home = VariableText("HOME");
  if (cache.starts_with('/')) return JoinPath(cache, "plumbline/view");
  return home.starts_with('/') ? JoinPath(home, ".cache/plumbline/view") : std::string();
}

Result<std::string> InputsKey(const std::vector<std::string>& paths, std::string_view options) {
  std::string facts(kStoreMaker);
  facts += fmt::format("\n{}\n", options);
  for (const std::string& path : paths) {
    if (path.empty()) {
      facts += "none\n";
      continue;
    }
    PL_TRY_ASSIGN(const std::string real, RealPath(path));
    if (KindOf(real) == PathKind::kDirectory) {
      AppendTree(real, 0, facts);
    } else {
      AppendFacts(real, facts);
    }
  }
  return KeyOf(facts);
}

StoreCache::StoreCache(StoreCacheOptions options) : options_(std::move(options)) {}

Result<FoundStore> StoreCache::Obtain(const std::string& key, const Build& build) const {
  const bool is_kept = !options_.directory.empty() && MakeDirectories(options_.directory);
  if (!is_kept) return BuildTemporary(key, build);
  const std::string path = JoinPath(options_.directory, key + std::string(kStoreEnding));
  if (KindOf(path) == PathKind::kFile) {
    Result<FoundStore> found = OpenAt(path, /*was_there=*/true);
    if (found) {
      TouchFile(path);
      return found;
    }
  }
  const Status built = build(path);
  // A cache on a full disk, or that somebody made read-only, is no reason to show nothing.
  if (!built && built.error().code() == ErrorCode::kIo) return BuildTemporary(key, build);
  PL_TRY(built);
  RemoveOld(path);
  return OpenAt(path, /*was_there=*/false);
}

Result<FoundStore> StoreCache::ObtainAt(const std::string& path, const std::string& key,
                                        const Build& build) {
  const std::string key_path = path + ".key";
  const bool is_new = KindOf(path) == PathKind::kMissing;
  if (!is_new) {
    const Result<std::string> known = ReadFile(key_path);
    if (!known) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("--store {}: is there already, and no store that plumb view made "
                               "(no {}). Name another file",
                               path, BaseName(key_path)));
    }
    RemoveUnfinished(path, key_path);
    if (*known == key + "\n") {
      Result<FoundStore> found = OpenAt(path, /*was_there=*/true);
      if (found) return found;
    }
  }
  RemoveUnfinished(path, key_path);
  // Killed at any time, no store is left without a key, and none with that of another.
  const auto write_key = [&] {
    return WriteFileAtomically(key_path, key + "\n", /*durable=*/false);
  };
  if (is_new) PL_TRY(write_key());
  const Status built = build(path);
  if (!built && is_new) (void)RemoveFile(key_path);
  PL_TRY(built);
  if (!is_new) PL_TRY(write_key());
  return OpenAt(path, /*was_there=*/false);
}

void StoreCache::RemoveOld(const std::string& kept) const {
  struct Old {
    int64_t time;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Old> stores;
  uint64_t all = 0;
  const auto names = ListDirectory(options_.directory);
  if (!names) return;
  const int64_t now = NowNanoseconds();
  for (const std::string& name : *names) {
    const std::string path = JoinPath(options_.directory, name);
    const Result<int64_t> time = ModifiedAt(path);
    if (!time) continue;
    // What a killed process was writing.
    if (name.starts_with('.') && name.ends_with(".tmp") && *time < now - kDayNanoseconds) {
      (void)RemoveFile(path);
    }
    if (!name.ends_with(kStoreEnding) || name.starts_with('.')) continue;
    stores.push_back({*time, FileSize(path).value_or(0), path});
    all += stores.back().bytes;
  }
  std::ranges::sort(stores, {}, &Old::time);
  for (const Old& old : stores) {
    if (all <= options_.most_bytes) return;
    if (old.path == kept) continue;
    (void)RemoveFile(old.path);
    all -= old.bytes;
  }
}

}  // namespace plumbline::view

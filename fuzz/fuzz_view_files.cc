// Files for viewers of graphs: any bytes are refused or shown, and what is shown is a sound store.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "small_store.h"
#include "view/describe_vis.h"
#include "view/store/import_vis.h"

namespace {

// A directory of this process, which a run leaves behind as long as nothing ends it.
const std::string& Directory() {
  static const std::string path = [] {
    std::string made = std::filesystem::temp_directory_path() / "fuzz_view_files_XXXXXX";
    if (mkdtemp(made.data()) == nullptr) std::abort();
    std::atexit([] { std::filesystem::remove_all(Directory()); });
    return made;
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool is_database = bytes.starts_with("SQLite format 3");
  const std::string path = plumbline::JoinPath(Directory(), is_database ? "a.vis.db" : "a.vis");
  const std::string store_path = plumbline::JoinPath(Directory(), "store");
  if (!plumbline::WriteFileAtomically(path, bytes, false)) std::abort();
  (void)plumbline::view::DescribeVis(path);
  if (!plumbline::view::ImportVis(path, store_path, {})) return 0;
  const auto store = plumbline::view::ResultStore::Open(store_path);
  if (!store) std::abort();
  plumbline::fuzz::AskAll(**store);
  return 0;
}

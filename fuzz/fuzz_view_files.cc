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

// A directory that goes with the process, as long as nothing ends that early.
struct Scratch {
  std::string path = std::filesystem::temp_directory_path() / "fuzz_view_files_XXXXXX";
  Scratch() {
    if (mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Scratch scratch;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool is_database = bytes.starts_with("SQLite format 3");
  const std::string path = plumbline::JoinPath(scratch.path, is_database ? "a.vis.db" : "a.vis");
  const std::string store_path = plumbline::JoinPath(scratch.path, "store");
  if (!plumbline::WriteFileAtomically(path, bytes, false)) std::abort();
  (void)plumbline::view::DescribeVis(path);
  if (!plumbline::view::ImportVis(path, store_path, {})) return 0;
  const auto store = plumbline::view::ResultStore::Open(store_path);
  if (!store) std::abort();
  plumbline::fuzz::AskAll(**store);
  return 0;
}

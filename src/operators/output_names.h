// Files that a conversion writes: their names, and tensors in them.

#ifndef PLUMBLINE_OPERATORS_OUTPUT_NAMES_H_
#define PLUMBLINE_OPERATORS_OUTPUT_NAMES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "load/name_mapping.h"
#include "operators/host_tensor.h"

namespace plumbline::operators {

// Writing one tensor of a device dump as an array of another program.

enum class OutputKind : uint8_t {
  kNpy,
  kMsNpy,     // the same bytes under MindSpore's names
  kGraphNpy,  // under those of static-graph dumps; a tensor without the layout keeps its own
  kBin,       // the stored bytes
  kPt,
  kTxt,  // a value a line, as numpy.savetxt writes a flattened array
};

// Writes the whole file; the caller commits it. bfloat16, float8 and HiFloat8 become float32 in
// arrays. Returns its bytes. kInvalidDataType (types that only kBin can keep), kInvalidDumpData
// (fewer bytes than the shape needs), kWriteError.
DumpResult<uint64_t> WriteTensor(const HostTensor& tensor, OutputKind kind, AtomicFile& file);

// Names of the files that `convert` writes, as upstream's program gives them.

// What stands in front of ".input.0": the name of the dump's file; for MindSpore's names the part
// behind its first point becomes the last part of the operator's full name, if there is one.
std::string OutputStem(std::string_view file_name, std::string_view op_name, OutputKind kind);

// The name behind the stem's tensor ("....input.0"): `is_converted` means that a layout was asked
// for.
std::string OutputName(std::string_view stem, const HostTensor& tensor, OutputKind kind,
                       bool is_converted);

// The end of these names, with its point.
std::string_view OutputSuffix(OutputKind kind);

// 32 hexadecimal digits that stand for a name: uuid3 in the namespace of DNS. Errors of Md5Hex().
Result<std::string> HashedName(std::string_view name);

// A finished file.
struct PlacedFile {
  std::string path;
  uint64_t bytes = 0;
};

// What becomes of a file of that name that is there with other contents.
enum class IfThere : uint8_t { kReplace, kKeep };

// A directory that files are written to. Thread-safe.
class OutputDirectory {
 public:
  // Writes the contents into the file it is given; returns their bytes.
  using Fill = std::function<DumpResult<uint64_t>(AtomicFile&)>;

  // Makes it if it is missing.
  static DumpResult<OutputDirectory> Open(const std::string& path,
                                          IfThere if_there = IfThere::kReplace);
  OutputDirectory(OutputDirectory&& other) noexcept
      : directory_(std::move(other.directory_)),
        mapping_(std::move(other.mapping_)),
        added_(std::move(other.added_)),
        placed_(std::move(other.placed_)),
        if_there_(other.if_there_) {}

  // Writes a file, which appears when it is complete. A name of 255 bytes and more becomes a hash,
  // which gets a line in mapping.csv. Each name can be written once: files that two threads write
  // must not be the same. `is_read_only`: nobody may write the finished file, as MindSpore leaves
  // its own; a file system without modes keeps it all the same. kWriteError (also for a file that
  // is kept), and what `fill` returns.
  DumpResult<PlacedFile> Write(const std::string& name, const Fill& fill,
                               bool is_read_only = false);
  // How many files were not written because others of their names are kept.
  [[nodiscard]] size_t kept() const { return kept_; }

 private:
  // The name under which a file of that name can stand.
  DumpResult<std::string> Place(const std::string& name);
  [[nodiscard]] DumpResult<AtomicFile> Create(const std::string& placed_name) const;

  OutputDirectory(Directory directory, load::NameMapping mapping, IfThere if_there)
      : directory_(std::move(directory)), mapping_(std::move(mapping)), if_there_(if_there) {}

  Directory directory_;
  std::mutex mutex_;
  load::NameMapping mapping_;                 // what mapping.csv held
  std::map<std::string, std::string> added_;  // and was given since
  std::set<std::string> placed_;              // names in full
  IfThere if_there_;
  std::atomic<size_t> kept_ = 0;
};

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_OUTPUT_NAMES_H_

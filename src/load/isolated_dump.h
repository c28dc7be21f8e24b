// The recorded arguments of an operator dump, read where a crash of the HDF5 library does no harm:
// in forks of this process, which is a user's training.

#ifndef PLUMBLINE_LOAD_ISOLATED_DUMP_H_
#define PLUMBLINE_LOAD_ISOLATED_DUMP_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/hdf5/hdf5_reader.h"
#include "plumbline/result.h"

namespace plumbline::load {

// What DumpReader gives, for input sides. One fork reads all but the elements of tensors; each
// Load() is another one, which opens the file anew. Movable. Thread-compatible. Requires of each
// call: no other thread is in the HDF5 library.
class IsolatedDump {
 public:
  // Errors of DumpReader::Open(). kCorrupt: the library crashed.
  static Result<IsolatedDump> Open(const std::string& path);

  [[nodiscard]] const std::map<std::string, std::vector<int64_t>>& calls() const { return calls_; }
  // Errors of DumpReader::Values(). Requires: a call of calls().
  [[nodiscard]] const Result<std::vector<hdf5::StoredValue>>& Values(
      const std::pair<std::string, int64_t>& call) const {
    return values_.at(call);
  }
  // Errors of DumpReader::Load(); the elements are row-major. kCorrupt: the library crashed.
  [[nodiscard]] Result<hdf5::StoredTensor> Load(const hdf5::CallPlace& place,
                                                const hdf5::StoredValue& value) const;

 private:
  explicit IsolatedDump(std::string path) : path_(std::move(path)) {}
  Status Take(std::span<const std::byte> index);

  std::string path_;
  std::map<std::string, std::vector<int64_t>> calls_;
  std::map<std::pair<std::string, int64_t>, Result<std::vector<hdf5::StoredValue>>> values_;
};

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_ISOLATED_DUMP_H_

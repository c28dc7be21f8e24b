// Which recorded call stands for a call that runs now: replay of an operator dump.

#ifndef PLUMBLINE_LOAD_OPERATOR_REPLAY_H_
#define PLUMBLINE_LOAD_OPERATOR_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/hdf5/hdf5_reader.h"
#include "load/isolated_dump.h"
#include "plumbline/result.h"

namespace plumbline::load {

// A tensor to copy into an argument of the running call.
struct ReplayTensor {
  size_t argument = 0;           // index into the arguments given
  std::optional<size_t> member;  // of a tensor list
  hdf5::StoredValue stored;
};

struct ReplayMatch {
  hdf5::CallPlace place;  // in the file; input side
  std::vector<ReplayTensor> tensors;
  // Scalars that take the recorded value: index of the argument, and the number.
  std::vector<std::pair<size_t, std::variant<int64_t, double, bool>>> scalars;
};

// Every recorded call stands for at most one running call. The file is read in forks of this
// process, which a crash of the HDF5 library does not reach. Movable. Thread-compatible.
class OperatorReplay {
 public:
  // Errors of IsolatedDump::Open().
  static Result<OperatorReplay> Open(const std::string& path);

  // The first unused call of `operation`, or of what it is called on other devices, whose tensors
  // have the shapes and types of `arguments` (int32 counts as int64) and whose numbers have the
  // same values, scalars the same type; by sequence id. The tensors of `arguments` need no data.
  // Nothing when there is none. kCorrupt, kUnsupported: a recorded call that cannot be read.
  Result<std::optional<ReplayMatch>> Match(const std::string& operation,
                                           std::span<const hdf5::Argument> arguments);
  Result<hdf5::StoredTensor> Load(const ReplayMatch& match, size_t tensor) const;

 private:
  explicit OperatorReplay(IsolatedDump dump) : dump_(std::move(dump)) {}
  Result<std::optional<ReplayMatch>> MatchCall(const hdf5::CallPlace& place,
                                               const std::string& operation,
                                               std::span<const hdf5::Argument> arguments);

  IsolatedDump dump_;
  std::set<std::pair<std::string, int64_t>> used_;
};

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_OPERATOR_REPLAY_H_

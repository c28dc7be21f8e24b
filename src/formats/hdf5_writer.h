// Writes an operator dump (docs/formats/hdf5_dump.md).

#ifndef PLUMBLINE_FORMATS_HDF5_WRITER_H_
#define PLUMBLINE_FORMATS_HDF5_WRITER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/hdf5_dump.h"
#include "plumbline/result.h"

namespace plumbline::hdf5 {

// Where the values of one operator call belong: /{operation}/{call}/{input or output}.
struct CallPlace {
  std::string operation;
  int64_t call = 0;  // sequence id, from 1
  Side side = Side::kInput;
};

// One file. What was committed survives the process being killed (base/commit_file.h); the file
// appears, and replaces an earlier one, at the first commit. After an error of kIo the file stays
// as committed and every later call fails. Movable. Thread-compatible.
class DumpWriter {
 public:
  // Errors of CommitFile::Create().
  static Result<DumpWriter> Create(const std::string& path);
  DumpWriter(DumpWriter&&) noexcept;
  DumpWriter& operator=(DumpWriter&&) = delete;
  ~DumpWriter();  // what was not committed is not in the file

  // kInvalidArgument: a name that is empty or holds a slash, a value that is there already.
  // float16, bfloat16 and float8 become float32, which holds their values.
  Status Write(const CallPlace& place, std::span<const Argument> arguments);
  Status Commit();

 private:
  struct State;
  explicit DumpWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plumbline::hdf5

#endif  // PLUMBLINE_FORMATS_HDF5_WRITER_H_

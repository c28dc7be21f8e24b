// `plumb inspect`: what a recording, or one of its files, holds. Nothing is changed.

#ifndef PLUMBLINE_INSPECT_INVENTORY_H_
#define PLUMBLINE_INSPECT_INVENTORY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/run.h"
#include "store/journal.h"

namespace plumbline {

// The tensor files beside a dump.json or debug.json.
struct TensorFilesFacts {
  uint64_t files = 0, bytes = 0;
  uint64_t named = 0;    // by tensors of the dump
  uint64_t missing = 0;  // named, but not there
  uint64_t stale = 0;    // there, but not named: of an earlier run, or of lost calls
  std::vector<std::string> stale_names, missing_names;  // the first few of each
};

// A journal: what a running or killed process has left.
struct JournalFacts {
  std::string path;
  RunHeader run;
  uint64_t records = 0, entries = 0, bytes_dropped = 0;
  bool sealed = false;   // everything is in the final files
  bool damaged = false;  // not only cut at its end
  bool in_use = false;   // a process is recording
  std::vector<Loss> losses;
};

// One dump.json or debug.json with what lies beside it.
struct DumpFacts {
  std::string path;  // of the JSON file; of the directory when there is only a journal
  RunHeader header;
  std::string dialect;  // who wrote it: "plumbline", "1.2.2", "26.x", "unknown"
  uint64_t entries = 0;
  std::array<uint64_t, 4> kinds{};    // by CallKind
  uint64_t tensors = 0, digests = 0;  // recorded tensors; those with a checksum
  uint64_t bad_entries = 0;           // with NaN or Inf
  uint64_t stacks = 0, parents = 0;   // rows of stack.json and construct.json
  RunLoss loss;
  std::vector<std::string> missing_files;  // of stack.json and construct.json
  TensorFilesFacts tensor_files;
  std::optional<JournalFacts> journal;
};

// A .pt or .npy file.
struct TensorFacts {
  std::string path, dtype;
  Shape shape;
  uint64_t bytes = 0;                                           // of the elements
  std::vector<std::pair<std::string, std::string>> statistics;  // name and value
  uint64_t nans = 0, infs = 0, zeros = 0;
  std::vector<std::string> values;  // the first few, in row-major order
};

// A stack.json or construct.json, or the dump of a graph engine.
struct SideFileFacts {
  std::string path, kind;  // "stack, flat", "construct", "ATB dump, tensors"
  std::vector<std::pair<std::string, uint64_t>> counts;
};

// One input or output in the dump of a device.
struct DumpedTensorFacts {
  std::string place, dtype, format;   // "output 0", "float16", "NC1HWC0"
  std::optional<Shape> shape;         // on the device; nothing: not known
  std::optional<Shape> shape_before;  // as the user knows it, where it is another
  uint64_t bytes = 0;
  bool is_cut = false;
};

// The dump of one operator on a device.
struct DeviceDumpFacts {
  std::string path, op_name, op_type;
  std::string container;                              // "version 2"
  std::string timestamp;                              // as the name of the file has it
  std::string time;                                   // the same, to be read; empty: it is no time
  std::vector<DumpedTensorFacts> tensors;             // inputs first
  uint64_t buffers = 0, spaces = 0, other_bytes = 0;  // other_bytes: of these
  uint64_t surplus_bytes = 0;                         // behind the last part
  std::string problem;                                // why it cannot be read, or not whole
};

// What `path` is; exactly one of the lists has something in it.
struct Inventory {
  std::vector<DumpFacts> dumps;
  std::vector<TensorFacts> tensors;
  std::vector<SideFileFacts> side_files;
  std::vector<JournalFacts> journals;
  std::vector<DeviceDumpFacts> device_dumps;
};

// `path` is a dump, step or rank directory, a static-graph dump or one of ATB, a directory with
// dumps of devices, or a file of a recording or of a device. Truncated dumps are read up to their
// last complete entry (DumpFacts::loss says so); damaged dumps of devices are facts, too.
// kNotFound, kIo, kCorrupt; kUnsupported for files of other kinds; kInvalidArgument for a symbolic
// link.
Result<Inventory> TakeInventory(const std::string& path);

// One tensor file, described.

// `path` ends with .npy, or is read as .pt. Errors as PtFile::Open and NpyFile::Open.
Result<TensorFacts> ReadTensorFacts(const std::string& path);

// TakeInventory() of dump files of devices.

// The file at `path`, whose recorder called it `name`. One that cannot be read has a problem.
DeviceDumpFacts ReadDeviceDump(const std::string& path, const std::string& name);

// Those in and below `directory` that have names of dumps; none: there is no such file. kIo,
// kNotFound: of the directory itself.
Result<std::vector<DeviceDumpFacts>> ReadDeviceDumps(const std::string& directory);

// TakeInventory() of dumps that graph engines write: MindSpore's static graphs and ATB.

// One entry per rank and step of a static-graph dump, one of an ATB dump; none if `directory` is
// neither. Errors of ReadGraphDump() and ReadAtbDump().
Result<std::vector<SideFileFacts>> ReadGraphFacts(const std::string& directory);

}  // namespace plumbline

#endif  // PLUMBLINE_INSPECT_INVENTORY_H_

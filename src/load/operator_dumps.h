// Directories of device dumps: one file per operator and execution, or one array per output
// (docs/formats/acl_dump.md, "Names").

#ifndef PLUMBLINE_LOAD_OPERATOR_DUMPS_H_
#define PLUMBLINE_LOAD_OPERATOR_DUMPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/directory.h"
#include "plumbline/result.h"

namespace plumbline::load {

// The file of one of the tasks of an operator that FFTS+ cut.
struct OperatorSlice {
  std::string path;
  int64_t number = 0;      // of the thread, or of the slice that was cut by hand
  uint64_t timestamp = 0;  // as of the dump
};

// Where the tensors of such an operator are. No files: it was not cut.
struct OperatorSlices {
  std::vector<OperatorSlice> files;  // by number
  bool are_joined = false;           // the whole operator; else one task's part of it
  // Numbers of all parts of the execution that were dumped, ascending; null: not looked for.
  std::shared_ptr<const std::vector<int64_t>> numbers;
};

enum class OperatorDumpKind : uint8_t {
  kOffline,   // dumps of a device
  kStandard,  // outputs of a framework
  kQuant,     // outputs of a quantised model
};
std::string_view OperatorDumpKindName(OperatorDumpKind kind);  // "Offline", ...

// One file, or those of one operator (operator_slices.h).
struct OperatorDump {
  std::string path;
  std::string file_name;             // that its recorder gave it; mapping.csv has it for digits
  std::string suffix;                // ".npy", ".pb" or ".quant" of one output of a framework
  std::string op_type;               // empty for arrays
  std::string op_name;               // with '/' and '.' as '_'
  uint64_t timestamp = 0;            // microseconds; 0 if the name has none of 16 digits
  std::optional<int64_t> output;     // of an array: which output of the operator it is
  std::optional<int64_t> thread_id;  // of an operator split into several tasks
  OperatorSlices slices;
};

struct OperatorDumps {
  OperatorDumpKind kind = OperatorDumpKind::kOffline;
  bool is_quantised = false;        // some operator quantises
  std::vector<OperatorDump> files;  // by timestamp, then by path
  std::vector<std::string> notes;   // files that were left out, one sentence each
  uint64_t unnamed = 0;             // of those, dumps by their names whose operator has none
};

// What a file name says: {type}.{name}.{task}[.{stream}].{time}[...] or
// {name}.{output}.{time} with .npy, or with .pb or .quant, dumps of an array
// (operators/array_dumps.h). Nothing for other names.
std::optional<OperatorDump> ParseOperatorDumpName(std::string_view file_name);

// Whether a directory with these entries holds dumps of a device, by the names of its files or,
// where none of these is one, by what mapping.csv says for them. A table that cannot be read: no.
bool HoldsDeviceDumps(const std::string& directory, const std::vector<DirectoryEntry>& entries);

// Whether the name of an operator marks it as one that quantises or takes that back.
bool IsQuantisedName(std::string_view op_name);

// The files of a directory (its top level), by their names or what mapping.csv says for them.
// A link to nothing is one of them, which cannot be opened. kNotFound: no directory, or no file in
// it is a dump. kInvalidArgument: several suffixes mixed.
Result<OperatorDumps> ReadOperatorDumps(const std::string& directory);

// Finds the directories of device dumps in trees whose depth depends on who recorded.

// Two directories whose files are compared. One of them is empty where a side has no counterpart.
struct OperatorTree {
  std::string name;  // path below the tree without times; empty: the tree itself
  std::string target, golden;
};

struct OperatorTrees {
  std::vector<OperatorTree> pairs;
  // Without pairs: the side that has dumps where the other has none; empty: neither has any.
  std::string one_sided;
};

// Directories with dumps, paired by their paths below the two trees; times (14 digits) do not
// count, the newest wins where they leave two of a name. Where each side has one directory, these
// two are a pair whatever their paths are. No pairs: a side has no device dumps, and may be
// anything. kIo: both have some, and a directory between them cannot be read.
Result<OperatorTrees> FindOperatorTrees(const std::string& target, const std::string& golden);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_OPERATOR_DUMPS_H_

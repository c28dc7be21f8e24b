// Names of device dump files: {op_type}.{op_name}.{task_id}[.{stream_id}].{timestamp}, of operators
// that are cut into threads followed by .{task_type}.{context_id}.{thread_id}[.{n}]; and of the
// arrays that stand for them on a framework's side: {op_name}.{output}.{timestamp}.npy.

#ifndef PLUMBLINE_FORMATS_ACL_ACL_FILE_NAME_H_
#define PLUMBLINE_FORMATS_ACL_ACL_FILE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline::acl {

// The task type of operators that FFTS+ cut.
inline constexpr uint64_t kFftsTask = 4;

// One thread's part of an operator (FFTS+).
struct DumpedThread {
  uint64_t task_type = 0;  // 0 AI core, 1 AI CPU, 2 debug, 3 HCCL, 4 FFTS+
  uint64_t context_id = 0;
  uint64_t thread_id = 0;
};

struct DumpFileName {
  std::string op_type;
  std::string op_name;
  uint64_t task_id = 0;
  std::optional<uint64_t> stream_id;  // very old names lack it
  std::string timestamp;              // as it stands in the name
  std::optional<DumpedThread> thread;

  [[nodiscard]] uint64_t sort_time() const;  // SortTime() of the timestamp
};

struct ArrayFileName {
  std::string op_name;  // the points in it as '_'
  int64_t output = 0;   // of the operator
  std::string timestamp;

  [[nodiscard]] uint64_t sort_time() const;
};

// Microseconds, for sorting; 0 unless the text is 16 digits, as upstream counts it.
uint64_t SortTime(std::string_view timestamp);

// Nothing for a name of another form.
std::optional<DumpFileName> ParseDumpFileName(std::string_view name);
std::optional<ArrayFileName> ParseArrayFileName(std::string_view name);

// Whether the text is the name of an operator, or of its type, in a file name: letters, digits, '_'
// and '-'.
bool IsOperatorName(std::string_view text);

// Whether the outputs of the file are records of an overflow (formats/acl/acl_overflow.h).
bool IsOverflowFileName(std::string_view name);

}  // namespace plumbline::acl

#endif  // PLUMBLINE_FORMATS_ACL_ACL_FILE_NAME_H_

// dump.json, stack.json and construct.json: keys, writer and reader (docs/formats/dump_json.md).
//
// The writer produces release 1.2.2's text form byte for byte (one space per level, Python's number
// spelling, ASCII with \u escapes). The reader accepts every dialect: flat and grouped stack files,
// NaN and Infinity tokens, [parent, micro_step] values, unknown keys, truncated files.

#ifndef PLUMBLINE_FORMATS_JSON_DUMP_JSON_H_
#define PLUMBLINE_FORMATS_JSON_DUMP_JSON_H_

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/run.h"

namespace plumbline::dump_json {

// Key texts. Header.
inline constexpr std::string_view kTask = "task";
inline constexpr std::string_view kLevel = "level";
inline constexpr std::string_view kFramework = "framework";
inline constexpr std::string_view kDumpDataDir = "dump_data_dir";
inline constexpr std::string_view kIsMerged = "is_merged";
inline constexpr std::string_view kData = "data";
// Of an entry of merged ranks: which and how, a line each. No value of the call.
inline constexpr std::string_view kMergeLines = "parallel_merge_info";
// Tensor object.
inline constexpr std::string_view kType = "type";
inline constexpr std::string_view kDType = "dtype";
inline constexpr std::string_view kShape = "shape";
inline constexpr std::string_view kMax = "Max";
inline constexpr std::string_view kMin = "Min";
inline constexpr std::string_view kMean = "Mean";
inline constexpr std::string_view kNorm = "Norm";
inline constexpr std::string_view kRequiresGrad = "requires_grad";
inline constexpr std::string_view kMaxFinite = "Max_except_inf_nan";
inline constexpr std::string_view kMinFinite = "Min_except_inf_nan";
inline constexpr std::string_view kDigest = "md5";
inline constexpr std::string_view kDataName = "data_name";
inline constexpr std::string_view kNanCount = "nan_count";
inline constexpr std::string_view kInfCount = "inf_count";
inline constexpr std::string_view kZeroCount = "zero_count";

// Members of a call entry.
inline constexpr std::string_view kInputArgs = "input_args";
inline constexpr std::string_view kInputKwargs = "input_kwargs";
inline constexpr std::string_view kOutput = "output";
inline constexpr std::string_view kInput = "input";
inline constexpr std::string_view kParameters = "parameters";
inline constexpr std::string_view kBuffers = "buffers";  // of a module, those that the call changed
inline constexpr std::string_view kIsRecompute = "is_recompute";

// Builds the text of dump.json piece by piece. `out` must outlive the writer; it may be drained
// (written to a file and cleared) between calls. Single-threaded.
class DumpWriter {
 public:
  explicit DumpWriter(std::string& out) : out_(out) {}
  void Begin(const RunHeader& header);
  // In a debug.json, a call whose only member has an empty name is written as that member's value.
  void Add(const Call& call);
  void End();

 private:
  std::string& out_;
  bool first_ = true;
  bool holds_saves_ = false;
};

// call name -> frames (innermost first), in order of recording.
using StackTable = std::vector<std::pair<Text, Shared<std::vector<std::string>>>>;

// construct.json with what Megatron training adds to it.
struct CallTree {
  struct Row {
    Text name, parent;       // an empty parent is null; equal ones share one text
    int64_t micro_step = 0;  // -1: what stands there is no count
    friend bool operator==(const Row&, const Row&) = default;
  };
  std::vector<Row> rows;         // in order of recording
  bool has_micro_steps = false;  // the file counts them; otherwise all are 0
  int64_t last_micro_step = 0;   // the file's counter; -1 as above

  [[nodiscard]] bool has_parents() const {
    return std::ranges::any_of(rows, [](const Row& row) { return !row.parent.empty(); });
  }
};

std::string FormatStack(const StackTable& stack);  // flat form of 1.2.2
// The same from frame lists formatted before: many calls share one, and most of the text is frames.
std::string FormatFrames(std::span<const std::string> frames);
using StackTexts = std::vector<std::pair<std::string_view, std::string_view>>;
std::string FormatStackTexts(const StackTexts& stack);
// The same text in pieces of about 1 MiB: that of a long step is hundreds of megabytes.
using TextSink = std::function<Status(std::string_view piece)>;
Status WriteStackTexts(const StackTexts& stack, const TextSink& sink);
// The grouped form of 26.x: calls that have the same frames, which are a JSON list.
struct StackGroup {
  std::vector<std::string_view> names;
  std::string_view frames;
};
Status WriteStackGroups(std::span<const StackGroup> groups, const TextSink& sink);
std::string FormatConstruct(const CallTree& calls);

struct DumpFile {
  RunHeader header;
  std::vector<Call> calls;
  RunLoss loss;
};

// Asked about every entry as it is read; false: not kept. May take the entry's contents.
using KeepEntry = std::function<bool(Call& call, const RunHeader& header)>;
// What the message about a cut file ends in; a command without that option says something else.
inline constexpr std::string_view kSalvageAdvice = "Read these alone with --salvage";

// kNotFound, kIo, kCorrupt (message holds the byte offset of the damage). With `salvage` a
// truncated file yields its complete entries and loss.truncated. `keep` may be empty: all are kept.
// The text is given back while it is read. Of entries that occur again `keep` sees every one, and
// loss.duplicate_names counts only kept ones.
Result<DumpFile> ReadDump(const std::string& path, bool salvage, const KeepEntry& keep = {});
Result<StackTable> ReadStack(const std::string& path);
Result<CallTree> ReadCallTree(const std::string& path);
// Whether a stack.json has the grouped form of 26.x. kNotFound, kIo.
Result<bool> IsGroupedStack(const std::string& path);

// One entry as VisitDump meets it; the text of its value is text.substr(begin, end - begin).
struct VisitedCall {
  Call call;
  size_t begin = 0;
  size_t end = 0;
  // Why its value is none of an entry; then `call` has a name alone. Of VisitDumpFile() only.
  std::string problem = {};
};
// Like ParseDump, but hands every entry to `visit` instead of keeping it: memory for one entry at a
// time. The result has no calls; names that occur again are visited again and not counted, and
// header fields that the file lacks stay empty.
Result<DumpFile> VisitDump(std::string_view text, bool salvage,
                           const std::function<void(VisitedCall&&)>& visit);

// The same of a file, which is loaded and given back as it is read. An entry whose value is of a
// wrong type is no error: it is visited with its `problem`. Errors else as ReadDump.
Result<DumpFile> VisitDumpFile(const std::string& path, bool salvage,
                               const std::function<void(VisitedCall&&)>& visit);
// The entry `name` again from the text of its value. kCorrupt, kUnsupported as ParseDump.
Result<Call> ParseEntry(std::string name, std::string_view text);

// For texts in memory.
Result<DumpFile> ParseDump(std::string_view text, bool salvage);
Result<StackTable> ParseStack(std::string_view text);
Result<CallTree> ParseCallTree(std::string_view text);
// The names of the entries of a dump.json alone, in file order. Errors as ParseDump.
Result<std::vector<std::string>> ParseNames(std::string_view text);

}  // namespace plumbline::dump_json

#endif  // PLUMBLINE_FORMATS_JSON_DUMP_JSON_H_

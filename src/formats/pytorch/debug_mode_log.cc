#include "formats/pytorch/debug_mode_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/hash_blocks.h"
#include "formats/pytorch/log_lines.h"
#include "formats/pytorch/logged_calls.h"
#include "formats/pytorch/printed_value.h"

namespace plumbline::debug_mode {

namespace {

constexpr std::string_view kJsonFormat = "torch.utils._debug_mode.DebugMode.logs";
constexpr std::string_view kTriton = "[triton] ", kModule = "[nn.Mod";
constexpr std::string_view kOfLog = "a log of DebugMode", kOfHashes = "a DebugMode dump of hashes",
                           kOfActivations = "a torchtitan dump of numerics";
constexpr size_t kFirstBytes = 512, kBeginning = size_t{1} << 16;

// Whether the end of the text is why something cannot be read.
Error CutAt(size_t line, std::string_view what) {
  return At(line, fmt::format("{}; the log ends there and may be cut", what));
}

// "[aten::mm](" is none.
bool IsOperatorName(std::string_view text) {
  const size_t colons = text.find("::");
  const auto is_part = [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
    });
  };
  return colons != std::string_view::npos && is_part(text.substr(0, colons)) &&
         is_part(text.substr(colons + 2));
}

// "File x.py, line 8, in forward, \n code", as a recording has its frames.
std::string FrameText(std::string_view file, std::string_view line, std::string_view function,
                      std::string_view code) {
  return fmt::format("File {}, line {}, in {}, \n {}", file, line, function, code);
}

Frames OneFrame(std::string frame) { return Frames(std::vector<std::string>{std::move(frame)}); }

// --- debug_string() ---------------------------------------------------------------------------

class TextReader {
 public:
  TextReader(LoggedCalls& calls, RunLoss& loss, bool salvage)
      : calls_(calls), loss_(loss), salvage_(salvage) {}

  Status Read(std::string_view text) {
    for (Lines lines(text); lines.Next();) {
      const std::string_view line = lines.line();
      if (Trimmed(line).empty()) {
        PL_TRY(Flush());
      } else if (line.starts_with("  ")) {
        PL_TRY(Flush());
        number_ = lines.number();
        begin_ = lines.begin();
        pending_ = line;
        open_ = OpenIn(line);
      } else if (!pending_.empty() && open_ > 0) {
        (pending_ += '\n') += line;  // a value that was printed on several lines
        open_ += OpenIn(line);
      } else {
        return At(lines.number(), fmt::format("no line of {} (expected two blanks and a call, as "
                                              "debug_string() returns them, and nothing else in "
                                              "the file)",
                                              kOfLog));
      }
    }
    is_end_ = true;
    Status last = Flush();
    if (!last && salvage_ && last.error().code() == ErrorCode::kCorrupt) {
      loss_.truncated = true;
      loss_.byte_offset = begin_;
      last = {};
    }
    PL_TRY(std::move(last));
    return FlushKernel();
  }

 private:
  [[nodiscard]] Error Bad(std::string_view what) const {
    return is_end_ ? CutAt(number_, what) : At(number_, what);
  }

  // How many brackets more are opened than closed.
  static int64_t OpenIn(std::string_view line) {
    const auto count = [&](std::string_view brackets) {
      return std::ranges::count_if(line, [&](char c) { return brackets.find(c) < 3; });
    };
    return count("([{") - count(")]}");
  }

  Status FlushKernel() {
    if (kernel_) calls_.Add(kernel_depth_, *kernel_);
    kernel_.reset();
    return {};
  }

  Status Flush() {
    if (pending_.empty()) return {};
    const std::string whole = std::exchange(pending_, {});
    const size_t indent = std::min(whole.find_first_not_of(' '), whole.size());
    const auto depth = static_cast<int64_t>(indent / 2) - 1;
    const std::string_view text = std::string_view(whole).substr(indent);
    if (text.starts_with("# ")) return Comment(text.substr(2));
    PL_TRY(FlushKernel());
    if (text.starts_with(kTriton)) return Kernel(depth, text.substr(kTriton.size()));
    if (text.starts_with('[')) return Annotation(depth, text);
    if (text.starts_with("redistribute_input") || text.starts_with("-> output: ")) {
      if (text.front() == 'r') calls_.SkipRedistribution();
      return {};
    }
    return CallOf(depth, text);
  }

  // "File: x.py:8 in forward, code: y = x", hashes of a kernel.
  Status Comment(std::string_view text) {
    constexpr std::string_view kFile = "File: ", kIn = " in ", kCode = ", code: ",
                               kBefore = "pre-kernel hashes: ", kBehind = "post-kernel hashes: ";
    const bool is_before = text.starts_with(kBefore);
    if (is_before || text.starts_with(kBehind)) {
      if (!kernel_) return Bad("hashes of a kernel without a kernel before them");
      text.remove_prefix(is_before ? kBefore.size() : kBehind.size());
      Result<Printed> hashes = ParsePrinted(text);
      if (!hashes) return Bad(hashes.error().message());
      (is_before ? kernel_->input_hash : kernel_->hash) = *std::move(hashes);
      return {};
    }
    const size_t code = text.find(kCode);
    const size_t in = text.substr(0, code).rfind(kIn);
    const size_t colon = text.substr(0, in).rfind(':');
    if (!text.starts_with(kFile) || code == std::string_view::npos ||
        in == std::string_view::npos || colon < kFile.size()) {
      return Bad("a comment that DebugMode does not write");
    }
    stack_ = OneFrame(FrameText(
        text.substr(kFile.size(), colon - kFile.size()), text.substr(colon + 1, in - colon - 1),
        text.substr(in + kIn.size(), code - in - kIn.size()), text.substr(code + kCode.size())));
    return {};
  }

  // "[nn.Mod] Net.fc", "[nn.Mod (compile)] Net.fc", "[annotate] x", "[record function] x"
  Status Annotation(int64_t depth, std::string_view text) {
    const size_t end = text.find("] ");
    if (end == std::string_view::npos) return Bad("a header without its end");
    if (text.starts_with(kModule)) calls_.EnterModule(depth, text.substr(end + 2));
    return {};
  }

  Status Kernel(int64_t depth, std::string_view text) {
    const size_t open = text.find('(');
    if (open == std::string_view::npos || !text.ends_with(')')) return Bad("a kernel without end");
    Entry entry{.name = {}, .is_kernel = true};
    Result<std::vector<Argument>> arguments =
        ParseArguments(text.substr(open + 1, text.size() - open - 2));
    if (!arguments) return Bad(arguments.error().message());
    entry.arguments = *std::move(arguments);
    kernel_name_ = text.substr(0, open);
    entry.name = kernel_name_;
    kernel_ = std::move(entry);
    kernel_depth_ = depth;
    return {};
  }

  // "aten::mm(t: f32[2, 2], t: f32[2, 2])  ->  t: f32[2, 2]  # {'hash': 1.5}"
  Status CallOf(int64_t depth, std::string_view text) {
    constexpr std::string_view kLog = "  # {'", kReturns = "  ->  ";
    Entry entry{.name = text.substr(0, text.find('('))};
    const size_t log = text.rfind(kLog);
    const bool is_operator = IsOperatorName(entry.name);
    if (!is_operator && log == std::string_view::npos) {
      calls_.SkipFunction();
      return {};
    }
    if (log != std::string_view::npos) {
      Result<Printed> hashes = ParsePrinted(text.substr(log + kLog.size() - 2));
      if (!hashes) return Bad(hashes.error().message());
      if (const Printed* found = hashes->Find("hash")) entry.hash = *found;
      if (const Printed* found = hashes->Find("input_hash")) entry.input_hash = *found;
      text = text.substr(0, log);
    }
    if (const size_t returns = text.rfind(kReturns); returns != std::string_view::npos) {
      Result<Printed> output = ParsePrinted(text.substr(returns + kReturns.size()));
      if (!output) return Bad(output.error().message());
      entry.output = *std::move(output);
      text = text.substr(0, returns);
    }
    const size_t open = entry.name.size();
    if (!text.ends_with(')') || open >= text.size()) return Bad("a call without its end");
    const std::string_view list = text.substr(open + 1, text.size() - open - 2);
    Result<std::vector<Argument>> arguments = ParseArguments(list);
    // A text among the arguments is not quoted and may hold brackets.
    entry.arguments = arguments
                          ? *std::move(arguments)
                          : std::vector<Argument>{{{}, {Printed::Kind::kText, std::string(list)}}};
    entry.stack = stack_;
    calls_.Add(depth, entry);
    return {};
  }

  LoggedCalls& calls_;
  RunLoss& loss_;
  bool salvage_;
  std::string pending_;  // an entry whose next line is not known yet
  int64_t open_ = 0;     // brackets in it
  size_t number_ = 0, begin_ = 0;
  bool is_end_ = false;
  std::optional<Entry> kernel_;  // its hashes follow
  std::string kernel_name_;
  int64_t kernel_depth_ = 0;
  Frames stack_;
};

// --- save_logs() ------------------------------------------------------------------------------

class JsonReader {
 public:
  JsonReader(LoggedCalls& calls, RunLoss& loss, bool salvage)
      : calls_(calls), loss_(loss), salvage_(salvage) {}

  Status Read(std::string_view text) {
    text_ = text;
    json::Reader in(text);
    const Status status = ReadDocument(in);
    if (status && !in.failed()) return {};
    const bool is_cut = in.failure() == json::Reader::Failure::kTruncated;
    if (is_cut && salvage_) {
      loss_.truncated = true;
      loss_.byte_offset = complete_;
      return {};
    }
    const size_t at = std::min(in.offset(), text.size());
    const auto line = static_cast<size_t>(std::ranges::count(text.substr(0, at), '\n')) + 1;
    const Error error = in.failed() ? in.error() : status.error();
    return Error(error.code(), fmt::format("line {}: {}{}", line, error.message(),
                                           is_cut ? "; the log may be cut" : ""));
  }

 private:
  // A call as it stands in the file.
  struct Record {
    std::string type, name, arguments, keywords, output, tag, header;
    std::string stack, forward_stack;
    int64_t depth = 0;
    std::optional<Printed> log, before, behind;
  };

  static Error Bad(std::string_view what) { return Error(ErrorCode::kCorrupt, std::string(what)); }

  Status ReadDocument(json::Reader& in) {
    if (!in.EnterObject()) return {};
    std::string_view key;
    while (in.NextMember(key)) {
      if (key == "version") {
        PL_TRY(ReadVersion(in));
      } else if (key == "logs") {
        PL_TRY(ReadRecords(in));
      } else {
        in.SkipValue();
      }
    }
    if (!in.failed()) in.ReadEnd();
    return {};
  }

  static Status ReadVersion(json::Reader& in) {
    json::Number version;
    if (!in.ReadNumber(version)) return {};
    const auto* number = std::get_if<int64_t>(&version);
    if (number != nullptr && *number == 1) return {};
    return Error(ErrorCode::kUnsupported,
                 "a version of save_logs() that is not known (expected 1)");
  }

  Status ReadRecords(json::Reader& in) {
    if (!in.EnterArray()) return {};
    while (in.NextElement()) {
      Record record;
      PL_TRY(ReadRecord(in, record));
      if (in.failed()) break;
      PL_TRY(Add(record));
      complete_ = in.offset();
    }
    return {};
  }

  // Texts that are null are empty.
  static void ReadOptional(json::Reader& in, std::string& out) {
    std::string_view text;
    if (in.Peek() == json::Kind::kNull) {
      in.ReadNull();
    } else if (in.ReadString(text)) {
      out = text;
    }
  }

  Status ReadRecord(json::Reader& in, Record& record) {
    const std::pair<std::string_view, std::string*> texts[] = {
        {"type", &record.type},
        {"op_name", &record.name},
        {"kernel_name", &record.name},
        {"args_str", &record.arguments},
        {"kwargs_str", &record.keywords},
        {"output_str", &record.output},
        {"tag", &record.tag},
        {"header", &record.header},
        {"stack_trace", &record.stack},
        {"fwd_stack_trace", &record.forward_stack}};
    const std::pair<std::string_view, std::optional<Printed>*> trees[] = {
        {"log", &record.log}, {"pre_hashes", &record.before}, {"post_hashes", &record.behind}};
    if (!in.EnterObject()) return {};
    std::string_view key;
    while (in.NextMember(key)) {
      const auto is_key = [&](const auto& each) { return each.first == key; };
      const auto* text = std::ranges::find_if(texts, is_key);
      const auto* tree = std::ranges::find_if(trees, is_key);
      if (text != std::end(texts)) {
        ReadOptional(in, *text->second);
      } else if (tree != std::end(trees)) {
        PL_TRY_ASSIGN(Printed value, ReadTree(in, 0));
        if (!value.is_none()) *tree->second = std::move(value);
      } else if (key == "call_depth") {
        json::Number number;
        if (!in.ReadNumber(number)) return {};
        const auto* depth = std::get_if<int64_t>(&number);
        if (depth == nullptr) return Bad("call_depth is no integer");
        record.depth = *depth;
      } else {
        in.SkipValue();
      }
    }
    return {};
  }

  // {"type": "tuple", "items": [...]}, {"type": "dict", "items": [[key, value], ...]},
  // {"type": "scalar", "value": 1.5}, {"type": "nonfinite_float", "value": "nan"}, null.
  Result<Printed> ReadTree(json::Reader& in, int depth) {
    Printed value{Printed::Kind::kWord, "None"};
    if (depth > kMostNested) return Error(ErrorCode::kUnsupported, "hashes nest too deep");
    if (in.Peek() == json::Kind::kNull) {
      in.ReadNull();
      return value;
    }
    std::string type;
    std::string_view key;
    if (!in.EnterObject()) return value;
    while (in.NextMember(key)) {
      if (key == "type") {
        ReadOptional(in, type);
      } else if (key == "value") {
        ReadScalar(in, value);
      } else if (key == "items") {
        PL_TRY(ReadItems(in, depth, value));
      } else {
        in.SkipValue();
      }
    }
    using Kind = Printed::Kind;
    if (type == "tuple") value.kind = Kind::kTuple;
    if (type == "list") value.kind = Kind::kList;
    if (type == "dict") value.kind = Kind::kDict;
    if (type == "nonfinite_float") value.kind = Kind::kWord;
    if (value.kind == Kind::kDict && value.keys.size() != value.items.size()) {
      return Bad("a dict of hashes without keys");
    }
    return value;
  }

  void ReadScalar(json::Reader& in, Printed& value) {
    if (in.Peek() == json::Kind::kString) {
      std::string_view text;
      if (!in.ReadString(text)) return;
      value.kind = Printed::Kind::kText;
      value.text = text;
      return;
    }
    const size_t begin = in.offset();
    if (!in.SkipValue()) return;
    value.text = Trimmed(text_.substr(begin, in.offset() - begin));
    if (value.text == "null") value.text = "None";
  }

  Status ReadItems(json::Reader& in, int depth, Printed& value) {
    value.text.clear();
    if (!in.EnterArray()) return {};
    while (in.NextElement()) {
      if (in.Peek() != json::Kind::kArray) {
        PL_TRY_ASSIGN(Printed item, ReadTree(in, depth + 1));
        value.items.push_back(std::move(item));
        continue;
      }
      in.EnterArray();
      std::string_view key;
      if (!in.NextElement() || !in.ReadString(key)) return {};
      value.keys.emplace_back(key);
      if (!in.NextElement()) return Bad("a key of a dict without a value");
      PL_TRY_ASSIGN(Printed item, ReadTree(in, depth + 1));
      value.items.push_back(std::move(item));
      if (in.NextElement()) return Bad("more than a key and a value in a dict");
    }
    return {};
  }

  // Frames of a printed traceback, innermost first, without those of torch.
  static Frames StackOf(const Record& record) {
    const std::string& text = record.forward_stack.empty() ? record.stack : record.forward_stack;
    std::vector<std::string> frames;
    const std::vector<std::string> lines = LinesIn(text);
    for (size_t i = 0; i < lines.size(); ++i) {
      constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = ", in ";
      const std::string_view line = lines[i];
      const size_t at = line.find(kLine), in = line.find(kIn, at);
      if (!line.starts_with(kFile) || in == std::string_view::npos) continue;
      const std::string_view file = line.substr(kFile.size(), at - kFile.size());
      if (file.find("/torch/") != std::string_view::npos) continue;
      const bool has_code = i + 1 < lines.size() && !lines[i + 1].starts_with(kFile);
      frames.push_back(FrameText(file, line.substr(at + kLine.size(), in - at - kLine.size()),
                                 line.substr(in + kIn.size()),
                                 has_code ? Trimmed(lines[i + 1]) : std::string_view()));
    }
    std::ranges::reverse(frames);
    return Frames(std::move(frames));
  }

  Status Add(const Record& record) {
    if (record.type == "annotate") {
      if (record.header.starts_with(kModule.substr(1))) {
        calls_.EnterModule(record.depth, record.tag);
      }
      return {};
    }
    if (record.type == "redistribute") calls_.SkipRedistribution();
    const bool is_kernel = record.type == "triton_kernel";
    if (record.type != "op" && !is_kernel) return {};
    const bool is_operator = IsOperatorName(record.name);
    if (!is_kernel && !is_operator && !record.log) {
      calls_.SkipFunction();
      return {};
    }
    Entry entry{.name = record.name, .is_kernel = is_kernel};
    std::string_view keywords = record.keywords;
    if (record.arguments.empty() && keywords.starts_with(", ")) keywords.remove_prefix(2);
    const std::string list = record.arguments + std::string(keywords);
    Result<std::vector<Argument>> arguments = ParseArguments(list);
    entry.arguments = arguments ? *std::move(arguments)
                                : std::vector<Argument>{{{}, {Printed::Kind::kText, list}}};
    constexpr std::string_view kReturns = "  ->  ";
    if (record.output.starts_with(kReturns)) {
      PL_TRY_ASSIGN(entry.output, ParsePrinted(record.output.substr(kReturns.size())));
    }
    if (is_kernel) {
      entry.input_hash = record.before;
      entry.hash = record.behind;
    } else if (record.log) {
      if (const Printed* found = record.log->Find("hash")) entry.hash = *found;
      if (const Printed* found = record.log->Find("input_hash")) entry.input_hash = *found;
    }
    entry.stack = StackOf(record);
    calls_.Add(record.depth, entry);
    return {};
  }

  LoggedCalls& calls_;
  RunLoss& loss_;
  bool salvage_;
  std::string_view text_;
  size_t complete_ = 0;  // end of the last whole call
};

bool IsTextLine(std::string_view line) {
  if (!line.starts_with("  ")) return false;
  line = Trimmed(line);
  return IsOperatorName(line.substr(0, line.find('('))) || line.starts_with(kTriton) ||
         line.starts_with("[nn.Mod] ");
}

}  // namespace

std::optional<LogForm> FormOfText(std::string_view beginning) {
  if (beginning.starts_with(kHashCount)) return LogForm::kHashes;
  if (beginning.starts_with(kActivationCount)) return LogForm::kActivations;
  constexpr size_t kHead = 256;
  if (Trimmed(beginning).starts_with('{')) {
    const bool is_json = beginning.substr(0, kHead).find(kJsonFormat) != std::string_view::npos;
    return is_json ? std::optional(LogForm::kJson) : std::nullopt;
  }
  for (Lines lines(beginning); lines.Next();) {
    if (IsTextLine(lines.line())) return LogForm::kText;
  }
  return std::nullopt;
}

std::optional<LogForm> FormOfLog(const std::string& path) {
  if (KindOf(path) != PathKind::kFile) return std::nullopt;
  // Many files are asked that are none: of arrays the first bytes say so.
  const Result<std::string> start = ReadStart(path, kFirstBytes);
  if (!start || start->find('\0') != std::string::npos) return std::nullopt;
  const Result<std::string> beginning = ReadStart(path, kBeginning);
  return beginning ? FormOfText(*beginning) : std::nullopt;
}

Result<LogFile> ParseLog(std::string_view text, LogForm form, bool salvage,
                         const dump_json::KeepEntry& keep) {
  LogFile log;
  LoggedCalls calls(keep, log);
  switch (form) {
    case LogForm::kText:
      PL_TRY(TextReader(calls, log.loss, salvage).Read(text));
      calls.Finish(kOfLog, "");
      break;
    case LogForm::kJson:
      PL_TRY(JsonReader(calls, log.loss, salvage).Read(text));
      calls.Finish(kOfLog, "");
      break;
    case LogForm::kHashes:
      PL_TRY(ReadBlocks(text, salvage, calls, log.loss));
      calls.Finish(kOfHashes, "");
      break;
    case LogForm::kActivations:
      PL_TRY(ReadBlocks(text, salvage, calls, log.loss));
      calls.Finish(kOfActivations, " of seven digits");
      break;
  }
  return log;
}

Result<LogFile> ReadLog(const std::string& path, bool salvage, const dump_json::KeepEntry& keep) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
  if (facts.is_link) {
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: a symbolic link (expected a file). Name the file it points to.", path));
  }
  const std::optional<LogForm> form = FormOfLog(path);
  if (!form) return Error(ErrorCode::kInvalidArgument, fmt::format("{}: no {}", path, kOfLog));
  PL_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  Result<LogFile> log = ParseLog(text, *form, salvage, keep);
  if (!log) return log.error().In(path);
  return log;
}

}  // namespace plumbline::debug_mode

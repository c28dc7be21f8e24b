#include "precheck/op_script.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/file_bytes.h"
#include "base/text/json.h"
#include "formats/json/dump_json.h"
#include "precheck/extract.h"
#include "precheck/standards.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kTensorDirectory = "dump_tensor_data";

// ---- Configuration ----

Error Wrong(const std::string& path, std::string_view key, std::string_view expected) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: \"{}\": expected {}", path, key, expected));
}

plumbline::Status TakeText(const json::Value& root, std::string_view key, const std::string& path,
                           std::string& out) {
  const json::Value* value = root.Find(key);
  if (value == nullptr || value->is_null()) return {};
  if (value->AsText() == nullptr) return Wrong(path, key, "a text");
  out = *value->AsText();
  return {};
}

// One of two words; `is_second` says which.
plumbline::Status TakeChoice(const json::Value& root, std::string_view key, const std::string& path,
                             std::pair<std::string_view, std::string_view> words, bool& is_second) {
  std::string text(words.first);
  PL_TRY(TakeText(root, key, path, text));
  if (text != words.first && text != words.second) {
    return Wrong(path, key, fmt::format("\"{}\" or \"{}\"", words.first, words.second));
  }
  is_second = text == words.second;
  return {};
}

// ---- The record of the call ----

// One entry of a dump.json: its name and its text.
using Entry = std::pair<std::string, std::string>;

// What begins with `directory` in front of every name of a tensor file that is not a path yet.
// `"data_name":` is no part of a text in JSON, where a quote would have a backslash before it.
std::string WithDirectory(std::string_view text, const std::string& directory) {
  constexpr std::string_view kKey = "\"data_name\"";
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t key = text.find(kKey, at);
    const size_t value =
        key == std::string_view::npos ? key : text.find_first_not_of(" \t\r\n:", key + kKey.size());
    if (value == std::string_view::npos) break;
    out += text.substr(at, value - at);
    at = value;
    if (text[value] != '"') continue;
    out += '"';
    at = value + 1;
    if (text.substr(at, 1) == "/") continue;
    std::string quoted;
    json::AppendString(directory + "/", quoted);
    out += std::string_view(quoted).substr(1, quoted.size() - 2);
  }
  return out.append(text.substr(at));
}

Result<std::vector<Entry>> EntriesOf(const OpScriptConfig& config) {
  PL_TRY_ASSIGN(const FileBytes file, FileBytes::Open(config.dump_json));
  const std::span<const std::byte> bytes = file.bytes();
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  std::vector<Entry> entries;
  auto read = dump_json::VisitDump(text, false, [&](dump_json::VisitedCall&& visited) {
    if (!visited.call.name.starts_with(config.api + ".")) return;
    entries.emplace_back(visited.call.name,
                         std::string(text.substr(visited.begin, visited.end - visited.begin)));
  });
  if (!read) return read.error().In(config.dump_json);
  if (entries.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: has no call {}", config.dump_json, config.api));
  }
  if (read->header.dump_data_dir.empty()) return entries;
  // A recording that was copied has its tensors beside it; what it says is where they were.
  PL_TRY_ASSIGN(const std::string dump, AbsolutePath(config.dump_json));
  std::string directory = dump.substr(0, dump.rfind('/') + 1) + std::string(kTensorDirectory);
  const Result<PathFacts> beside = Inspect(directory);
  if (!beside || beside->kind != PathKind::kDirectory) {
    PL_TRY_ASSIGN(directory, AbsolutePath(read->header.dump_data_dir));
  }
  for (auto& [name, entry] : entries) entry = WithDirectory(entry, directory);
  return entries;
}

std::string ObjectText(const std::vector<Entry>& entries) {
  std::string text = "{";
  for (const auto& [name, entry] : entries) {
    text += text.size() > 1 ? ",\n    " : "\n    ";
    json::AppendString(name, text);
    text += ": " + entry;
  }
  return text + "\n}\n";
}

// The entries of a file with the record of one call.
Result<std::vector<Entry>> ReadRecord(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  json::Reader in(text);
  std::vector<Entry> entries;
  std::string_view key;
  in.EnterObject();
  while (in.NextMember(key)) {
    std::string name(key);
    const bool is_object = in.Peek() == json::Kind::kObject;
    const size_t begin = in.offset();
    in.SkipValue();
    if (in.failed()) break;
    if (!is_object) return Wrong(path, name, "an object, as dump.json has it");
    entries.emplace_back(std::move(name), text.substr(begin, in.offset() - begin));
  }
  if (in.failed()) return in.error().In(path);
  if (entries.empty() || entries.size() > 2) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: holds {} entries (expected those of one call: its forward, and "
                             "its backward if there is one)",
                             path, entries.size()));
  }
  return entries;
}

// The call that the entries are of, and whether they are what `config` asks for.
Result<std::string> CallOf(const std::vector<Entry>& entries, const OpScriptConfig& config) {
  constexpr std::string_view kForward = ".forward", kBackward = ".backward";
  const std::string& path = config.extract_path;
  const std::string& first = entries.front().first;
  if (!first.ends_with(kForward)) {
    return Wrong(path, first, "the forward of a call as the first entry");
  }
  const std::string call = first.substr(0, first.size() - kForward.size());
  if (entries.size() == 2 && entries[1].first != call + std::string(kBackward)) {
    return Wrong(path, entries[1].first,
                 fmt::format("{}{} (one file holds one call)", call, kBackward));
  }
  if (config.is_backward && entries.size() < 2) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: {} has no backward (expected one, as \"propagation\" is "
                             "\"backward\")",
                             path, call));
  }
  const bool is_known =
      std::ranges::any_of(std::array<std::string_view, 3>{"Functional.", "Tensor.", "Torch."},
                          [&](std::string_view type) { return call.starts_with(type); });
  if (!is_known) {
    return Error(ErrorCode::kUnsupported,
                 call + ": is no call of the types Functional, Tensor or Torch");
  }
  return call;
}

// A dump of the one call, in a directory of its own that goes with this object.
class OneCallDump {
 public:
  static Result<OneCallDump> Make(const std::vector<Entry>& entries, bool has_real_data,
                                  const std::string& output_dir) {
    OneCallDump dump;
    dump.directory_ = fmt::format("{}/.op_generate.{}", output_dir, ::getpid());
    PL_TRY(MakeDirectories(dump.directory_));
    std::string texts = ObjectText(entries);
    if (has_real_data) PL_TRY(dump.LinkTensors(texts));
    const std::string text = fmt::format(
        "{{\"task\": \"{}\", \"level\": \"L1\", \"framework\": \"pytorch\", "
        "\"dump_data_dir\": {}, \"data\": {}}}",
        has_real_data ? "tensor" : "statistics", has_real_data ? "\"dump_tensor_data\"" : "null",
        texts);
    PL_TRY(WriteFileAtomically(dump.path(), text, false));
    return dump;
  }
  OneCallDump(OneCallDump&& other) noexcept : directory_(std::exchange(other.directory_, {})) {}
  OneCallDump& operator=(OneCallDump&&) = delete;
  ~OneCallDump() {
    if (directory_.empty()) return;
    ::unlink(path().c_str());
    ::unlink(link().c_str());
    ::rmdir(directory_.c_str());
  }
  [[nodiscard]] std::string path() const { return directory_ + "/dump.json"; }

 private:
  OneCallDump() = default;
  [[nodiscard]] std::string link() const {
    return directory_ + "/" + std::string(kTensorDirectory);
  }

  // Names of tensors are paths here; all lie in one directory, which a link stands for.
  plumbline::Status LinkTensors(std::string& text) const {
    constexpr std::string_view kKey = "\"data_name\": \"/";  // of a path; others are null
    const size_t key = text.find(kKey);
    if (key == std::string::npos) {
      return Error(ErrorCode::kInvalidArgument,
                   "\"data_mode\": \"real_data\": the call was recorded without tensors (expected "
                   "a recording of the task tensor)");
    }
    const size_t begin = key + kKey.size() - 1;
    const size_t end = text.find('"', begin);
    const size_t slash = text.rfind('/', end);
    if (slash == std::string::npos || slash <= begin) {
      return Error(ErrorCode::kInvalidArgument,
                   text.substr(begin, end - begin) + ": is no path of a tensor file");
    }
    const std::string directory = text.substr(begin, slash - begin);
    if (::symlink(directory.c_str(), link().c_str()) != 0) {
      return ErrnoError(errno, link(), "link the tensors");
    }
    for (size_t at = text.find(directory + "/"); at != std::string::npos;
         at = text.find(directory + "/", at)) {
      text.erase(at, directory.size() + 1);
    }
    return {};
  }

  std::string directory_;
};

std::string_view StandardWord(Standard standard) {
  switch (standard) {
    case Standard::kBinary:
      return "binary_consistency";
    case Standard::kAbsolute:
    case Standard::kAccumulative:
      return "absolute_threshold";
    case Standard::kUlp:
      return "ulp_compare";
    case Standard::kThousandth:
      return "thousandth_threshold";
    case Standard::kBenchmark:
      return "benchmark";
  }
  return "benchmark";
}

}  // namespace

Result<OpScriptConfig> ReadOpScriptConfig(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const Result<json::Value> parsed = json::Value::Parse(text);
  if (!parsed) return parsed.error().In(path);
  const json::Value& root = *parsed;
  if (!root.is_object()) {
    return Error(ErrorCode::kInvalidArgument, path + ": holds no object (expected {...})");
  }
  OpScriptConfig config;
  PL_TRY(TakeText(root, "dump_json_path", path, config.dump_json));
  PL_TRY(TakeText(root, "api_name", path, config.api));
  PL_TRY(TakeText(root, "extract_api_path", path, config.extract_path));
  if (config.extract_path.empty()) return Wrong(path, "extract_api_path", "a path");
  if (!config.dump_json.empty() && config.api.empty()) {
    return Wrong(path, "api_name", "the call to take out of \"dump_json_path\"");
  }
  PL_TRY(TakeChoice(root, "propagation", path, {"forward", "backward"}, config.is_backward));
  PL_TRY(TakeChoice(root, "data_mode", path, {"random_data", "real_data"}, config.has_real_data));
  const json::Value* seed = root.Find("random_seed");
  if (seed == nullptr || !seed->AsNatural()) {
    return Wrong(path, "random_seed", "a natural number, such as 1234");
  }
  config.seed = *seed->AsNatural();
  if (const json::Value* repeats = root.Find("iter_times"); repeats != nullptr) {
    config.repeats = repeats->AsInteger().value_or(0);
    if (config.repeats < 1) return Wrong(path, "iter_times", "a number above 0");
  }
  if (config.has_real_data) config.repeats = 1;
  return config;
}

Result<std::string> WriteOpScript(const OpScriptConfig& config, const std::string& output_dir,
                                  const std::string& python) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(output_dir));
  if (facts.kind != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound, output_dir + ": is no directory");
  }
  if (!config.dump_json.empty()) {
    PL_TRY_ASSIGN(const std::vector<Entry> found, EntriesOf(config));
    PL_TRY(WriteFileAtomically(config.extract_path, ObjectText(found), true));
  }
  PL_TRY_ASSIGN(const std::vector<Entry> entries, ReadRecord(config.extract_path));
  PL_TRY_ASSIGN(const std::string call, CallOf(entries, config));
  PL_TRY_ASSIGN(const OneCallDump dump,
                OneCallDump::Make(entries, config.has_real_data, output_dir));
  PL_TRY_ASSIGN(const LoadedCall loaded, LoadCall({dump.path(), call, config.seed}));
  std::string line = "{\"directory\":";
  json::AppendString(output_dir, line);
  line += ",\"file\":";
  json::AppendString(call + (config.is_backward ? ".backward" : ".forward"), line);
  const Standard standard = StandardOfApi(loaded.api);
  line += fmt::format(
      ",\"standard\":\"{}\",\"is_backward\":{},\"repeats\":{},\"seed\":{},\"bytes\":[{}],"
      "\"target\":{},\"backward_skip\":",
      StandardWord(standard), config.is_backward, config.repeats, config.seed, loaded.bytes,
      loaded.request);
  json::AppendString(loaded.backward_skip, line);
  line += '}';
  const std::array<const SharedBytes*, 1> memory{&loaded.memory};
  PL_TRY_ASSIGN(const json::Value answer,
                AskWriter({python, "plumbline.precheck_run.op_script"}, memory, line));
  const json::Value* script = answer.Find("script");
  if (script == nullptr || script->AsText() == nullptr) {
    return Error(ErrorCode::kInternal, call + ": the program that writes scripts gave no answer");
  }
  return *script->AsText();
}

}  // namespace plumbline::precheck

#include "precheck/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/process/child_process.h"
#include "base/text/text_parts.h"
#include "load/detect.h"
#include "precheck/api_inventory.h"
#include "precheck/call_flow.h"
#include "precheck/call_plan.h"
#include "precheck/executor_server.h"
#include "precheck/input_data.h"

namespace plumbline::precheck {
namespace {

constexpr std::string_view kOfPair = "plumbline compare";
constexpr size_t kStampDigits = 14;
constexpr std::string_view kOfRanks = "plumbline compare ranks";

// What a comparison says about the call that it names.
struct NamedCall {
  std::string target, golden;  // recordings
  std::string name;            // empty: it names none
  std::optional<int64_t> step, rank;
};

// One pair of recordings in the result of many.
struct RankPair {
  std::optional<int64_t> step, rank;
  std::string target, golden;
};

void ReadText(json::Reader& in, std::string& out) {
  std::string_view text;
  if (in.Peek() != json::Kind::kString) {
    in.SkipValue();
  } else if (in.ReadString(text)) {
    out = text;
  }
}

void ReadInteger(json::Reader& in, std::optional<int64_t>& out) {
  json::Number number;
  if (in.Peek() != json::Kind::kNumber) {
    in.SkipValue();
  } else if (in.ReadNumber(number)) {
    if (const auto* integer = std::get_if<int64_t>(&number)) out = *integer;
  }
}

void ReadNamed(json::Reader& in, NamedCall& found) {
  if (in.Peek() != json::Kind::kObject) {
    in.SkipValue();
    return;
  }
  std::string_view key;
  in.EnterObject();
  while (in.NextMember(key)) {
    if (key == "name") {
      ReadText(in, found.name);
    } else if (key == "step") {
      ReadInteger(in, found.step);
    } else if (key == "rank") {
      ReadInteger(in, found.rank);
    } else {
      in.SkipValue();
    }
  }
}

void ReadPairs(json::Reader& in, std::vector<RankPair>& pairs) {
  std::string_view key;
  if (!in.EnterArray()) return;
  while (in.NextElement()) {
    RankPair& pair = pairs.emplace_back();
    if (!in.EnterObject()) return;
    while (in.NextMember(key)) {
      if (key == "step") {
        ReadInteger(in, pair.step);
      } else if (key == "rank") {
        ReadInteger(in, pair.rank);
      } else if (key == "target") {
        ReadText(in, pair.target);
      } else if (key == "golden") {
        ReadText(in, pair.golden);
      } else {
        in.SkipValue();
      }
    }
  }
}

// What a .json file is.
enum class Document { kComparison, kRecording, kOther };

// The rows of a comparison and the calls of a recording may be gigabytes; all that is looked for
// stands in front of them.
Result<Document> ReadDocument(const std::string& path, NamedCall& found) {
  PL_TRY_ASSIGN(const FileBytes file, FileBytes::Open(path));
  const std::span<const std::byte> bytes = file.bytes();
  json::Reader in(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  Document document = Document::kOther;
  std::string format;
  std::vector<RankPair> pairs;
  std::string_view key;
  in.EnterObject();
  while (in.NextMember(key) && key != "rows") {
    if (key == "data") {
      document = Document::kRecording;
      break;
    }
    if (key == "format") {
      ReadText(in, format);
      if (format == kOfPair || format == kOfRanks) document = Document::kComparison;
    } else if (key == "target") {
      ReadText(in, found.target);
    } else if (key == "golden") {
      ReadText(in, found.golden);
    } else if (key == "first_wrong_call") {
      ReadNamed(in, found);
    } else if (key == "ranks") {
      ReadPairs(in, pairs);
    } else {
      in.SkipValue();
    }
  }
  if (in.failed()) return in.error().In(path);
  for (const RankPair& pair : pairs) {
    if (pair.step != found.step && found.step) continue;
    if (pair.rank != found.rank && found.rank) continue;
    found.target = pair.target;
    found.golden = pair.golden;
    break;
  }
  return document;
}

// When a result was written, by its name: "..._20240131120000.json", "..._20240131120000_2.json".
std::pair<std::string, int64_t> StampOf(std::string_view name) {
  name.remove_suffix(std::string_view(".json").size());
  std::vector<std::string_view> parts = SplitAt(name, '_');
  int64_t repeat = 0;
  if (parts.size() > 1 && parts.back().size() < kStampDigits) {
    repeat = ParseNatural(parts.back()).value_or(0);
    parts.pop_back();
  }
  return {std::string(parts.back()), repeat};
}

// The newest result of a comparison in a directory; empty: there is none.
Result<std::string> NewestResult(const std::string& directory) {
  PL_TRY_ASSIGN(const std::vector<DirectoryEntry> entries, ListEntries(directory));
  std::string newest;
  for (const DirectoryEntry& entry : entries) {
    const std::string& name = entry.name;
    const bool is_result =
        name.starts_with("compare_result_") || name.starts_with("compare_ranks_");
    if (!is_result || !name.ends_with(".json")) continue;
    if (newest.empty() || StampOf(newest) <= StampOf(name)) newest = name;
  }
  return newest.empty() ? newest : directory + "/" + newest;
}

// A recording that a comparison names, by a path that may be relative to where the comparison was
// made: that is here, or a directory above its result.
Result<std::string> FoundFromResult(const std::string& path, const std::string& result) {
  if (path.empty() || path.starts_with('/')) return path;
  PL_TRY_ASSIGN(std::string directory, AbsolutePath(result));
  std::vector<std::string> places{path};
  while (directory.size() > 1) {
    directory = std::string(DirectoryOf(directory));
    places.push_back(JoinPath(directory, path));
  }
  std::string found, found_real;
  for (const std::string& place : places) {
    const Result<std::string> real = RealPath(place);
    if (!real || *real == found_real) continue;
    if (!found.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: names {}, which may be {} or {}. Say which: RUN CALL --golden "
                               "RUN",
                               result, path, found_real, *real));
    }
    found = place;
    found_real = *real;
  }
  if (found.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: {}: no such file or directory, neither here nor in a directory "
                             "above the result. Run this where the comparison was made",
                             result, path));
  }
  return found;
}

// What a comparison brings.
plumbline::Status TakeComparison(const std::string& result, NamedCall named,
                                 ExtractOptions& options) {
  if (options.call.empty()) options.call = std::move(named.name);
  if (options.call.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 result + ": names no wrong call. Say which call to extract");
  }
  PL_TRY_ASSIGN(options.run, FoundFromResult(named.target, result));
  if (options.golden.empty()) {
    PL_TRY_ASSIGN(options.golden, FoundFromResult(named.golden, result));
  }
  return {};
}

// The options with what a comparison brings.
Result<ExtractOptions> Resolved(ExtractOptions options) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(options.run));
  if (facts.kind == PathKind::kMissing) {
    return Error(ErrorCode::kNotFound, options.run + ": no such file or directory");
  }
  std::string file = options.run;
  if (facts.kind == PathKind::kDirectory) {
    PL_TRY_ASSIGN(file, NewestResult(options.run));
  }
  if (!file.empty()) {
    NamedCall named;
    PL_TRY_ASSIGN(const Document document, ReadDocument(file, named));
    if (document == Document::kComparison) {
      PL_TRY(TakeComparison(file, std::move(named), options));
    } else if (document == Document::kOther) {
      return Error(ErrorCode::kInvalidArgument,
                   file +
                       ": is neither a recording nor the result of a comparison (expected a "
                       "dump.json or a compare_result_*.json)");
    }
  }
  if (options.call.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 options.run +
                     ": say which call to extract (expected a name such as "
                     "Functional.softmax.0, or the result of a comparison)");
  }
  for (std::string* path : {&options.run, &options.golden}) {
    if (path->empty() || path->ends_with(".json")) continue;
    PL_TRY_ASSIGN(*path, load::ResolveDumpJson(*path));
  }
  return options;
}

// "Tensor.__add__.22" of "Tensor.__add__.22.forward".
std::string WithoutDirection(std::string_view name) {
  for (const std::string_view end : {".forward", ".backward"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  return std::string(name);
}

Result<size_t> FindCall(const CallPlan& plan, const std::string& call) {
  std::vector<std::string> names;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan.call(i).name == call) return i;
    names.push_back(plan.call(i).name);
  }
  if (call.starts_with("Module.") || call.starts_with("Cell.")) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: is a module, which is made of many calls (expected the call of "
                             "an API, such as Functional.softmax.0; record at level L1 or mix)",
                             call));
  }
  const std::string near = NearestText(call, names);
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: has no call {} that can be run again{}", plan.path(), call,
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

// What draws random numbers only with some arguments (dropout) is found out when it runs.
plumbline::Status RefuseRandom(const std::string& call) {
  const std::optional<ApiName> name = ParseApiName(call);
  if (!name || !IsRandom(name->api)) return {};
  return Error(ErrorCode::kUnsupported,
               call + ": draws random numbers: no two runs agree, so a test has nothing to expect");
}

std::string RequestLine(const ExtractOptions& options, const LoadedCall& target,
                        const LoadedCall& golden) {
  const std::string call = WithoutDirection(options.call);
  std::string line = "{\"name\":";
  json::AppendString(call, line);
  const std::pair<std::string_view, std::string> texts[] = {
      {"directory", options.output_dir + "/" + call},
      {"run", options.run},
      {"golden_run", options.golden},
      {"device", options.device}};
  for (const auto& [key, text] : texts) {
    line += fmt::format(",\"{}\":", key);
    json::AppendString(text, line);
  }
  line += fmt::format(",\"reduce\":{},\"seconds\":{},\"call_seconds\":{},\"bytes\":[{},{}]",
                      options.reduce, options.seconds, options.call_seconds, target.bytes,
                      golden.bytes);
  return line + ",\"target\":" + target.request + ",\"golden\":" + golden.request + "}";
}

Result<ExtractedTest> ReadAnswer(const json::Value& answer, const std::string& call) {
  const json::Value* test = answer.Find("test");
  const json::Value* fails = answer.Find("fails");
  const json::Value* lines = answer.Find("lines");
  if (test == nullptr || !test->AsText() || fails == nullptr || !fails->AsBool() ||
      lines == nullptr || !lines->AsList()) {
    return Error(ErrorCode::kInternal, call + ": the program that writes tests gave no answer");
  }
  ExtractedTest extracted{call, *test->AsText(), *fails->AsBool(), false, {}};
  for (const json::Value& one : *lines->AsList()) {
    if (one.AsText()) extracted.lines.push_back(*one.AsText());
  }
  return extracted;
}

}  // namespace

Result<LoadedCall> LoadCall(const CallSource& source) {
  PlanOptions plan_options;
  plan_options.seed = source.seed;
  plan_options.keep_random = true;
  PL_TRY_ASSIGN(const CallPlan plan, CallPlan::Open(source.dump_json, plan_options));
  if (plan.framework() != "pytorch") {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: was recorded with {} (expected a recording of PyTorch)",
                             source.dump_json, plan.framework()));
  }
  PL_TRY_ASSIGN(const size_t index, FindCall(plan, source.call));
  const auto prepared = plan.Prepare(index);
  if (!prepared) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: {}: cannot be run again ({})", source.dump_json, source.call,
                             prepared.error().Text()));
  }
  LoadedCall loaded;
  loaded.api = prepared->api;
  loaded.has_recorded_data = plan.uses_recorded_data();
  loaded.request = "{" + RequestText(*prepared);
  loaded.bytes = prepared->input_bytes;
  if (prepared->backward_skip) loaded.backward_skip = prepared->backward_skip->Text();
  std::vector<std::byte> inputs(loaded.bytes);
  if (const auto filled = FillInputs(*prepared, inputs); !filled) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: {}: {}", source.dump_json, source.call, filled.error().Text()));
  }
  PL_TRY_ASSIGN(loaded.memory, SharedBytes::Create());
  PL_TRY(loaded.memory.Reset(std::max<size_t>(loaded.bytes, 1)));
  PL_TRY(loaded.memory.WriteAt(inputs, 0));
  return loaded;
}

Result<json::Value> AskWriter(const WriterProgram& program,
                              std::span<const SharedBytes* const> memory, const std::string& line) {
  PL_TRY_ASSIGN(const std::string python, FindPython(program.python));
  std::vector<std::string> words = ModuleWords(program.module);
  words.insert(words.begin(), python);
  PL_TRY_ASSIGN(ChildProcess child, ChildProcess::Start(words, memory));
  Result<std::string> text = child.Ask(line);
  while (text) {
    PL_TRY_ASSIGN(json::Value answer, json::Value::Parse(*text));
    if (const json::Value* note = answer.Find("note"); note != nullptr && note->AsText()) {
      if (program.on_note) program.on_note(*note->AsText());
      text = child.ReadLine();
      continue;
    }
    if (const json::Value* error = answer.Find("error"); error != nullptr && error->AsText()) {
      const bool is_io = answer.Find("is_io") != nullptr;
      return Error(is_io ? ErrorCode::kIo : ErrorCode::kUnsupported, *error->AsText());
    }
    return answer;
  }
  return Error(ErrorCode::kIo,
               fmt::format("{} -m {}: {}", python, program.module, text.error().message()));
}

Result<ExtractedTest> ExtractCall(const ExtractOptions& given) {
  PL_TRY_ASSIGN(const ExtractOptions options, Resolved(given));
  const std::string call = WithoutDirection(options.call);
  PL_TRY(RefuseRandom(call));
  PL_TRY_ASSIGN(const LoadedCall target, LoadCall({options.run, call, options.seed}));
  LoadedCall golden;
  if (options.golden.empty()) {
    PL_TRY_ASSIGN(golden.memory, SharedBytes::Create());
    PL_TRY(golden.memory.Reset(1));
  } else {
    PL_TRY_ASSIGN(golden, LoadCall({options.golden, call, options.seed}));
  }
  const std::array<const SharedBytes*, 2> memory{&target.memory, &golden.memory};
  const Result<json::Value> answer =
      AskWriter({options.python, "plumbline.precheck_run.extract", options.on_note}, memory,
                RequestLine(options, target, golden));
  if (!answer) return answer.error().In(call);
  PL_TRY_ASSIGN(ExtractedTest extracted, ReadAnswer(*answer, call));
  extracted.has_recorded_data = target.has_recorded_data;
  if (!target.backward_skip.empty()) {
    extracted.lines.push_back("the backward is not tested: " + target.backward_skip);
  }
  return extracted;
}

}  // namespace plumbline::precheck

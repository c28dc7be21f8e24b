#include "commands/msaccucmp_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/text_parts.h"
#include "commands/msaccucmp.h"
#include "operators/operator_csv.h"
#include "operators/user_code.h"
#include "terminal.h"

namespace plumbline::cli {
namespace {

constexpr WordOption kCompareOptions[] = {
    {"-m", "--my_dump_path", TakesWords::kOne, "recording under test: a directory or a .npy file"},
    {"-g", "--golden_dump_path", TakesWords::kOne, "reference: a directory or a .npy file"},
    {"-f", "--fusion_rule_file", TakesWords::kOne, "fusion rule of the compiled model"},
    {"-q", "--quant_fusion_rule_file", TakesWords::kOne, "fusion rule of the quantised model"},
    {"-cf", "--close_fusion_rule_file", TakesWords::kOne, "rule of the model built without fusion"},
    {"-out", "--output", TakesWords::kOne, "directory of the result (default: .)"},
    {"-c", "--custom_script_path", TakesWords::kOne,
     "directory with algorithm/ and format_convert/ of your own"},
    {"-alg", "--algorithm", TakesWords::kOneOrMore,
     "names or numbers 0 to 9, your own by name (default: all)"},
    {"-a", "--algorithm_options", TakesWords::kOne,
     "parameters: name:key=value,key=value;name:..."},
    {"-map", "--mapping", TakesWords::kNone, "write only which file belongs to which"},
    {"-overflow_detection", "--overflow_detection", TakesWords::kNone, "add column OverFlow"},
    {"-r", "--range", TakesWords::kOne, "start,end,step of the operators; needs -f"},
    {"-s", "--select", TakesWords::kOne, "numbers of operators; needs -f"},
    {"-p", "--post_process", TakesWords::kOne, "0 or 1; for .h5 files only"},
    {"-max", "--max_cmp_size", TakesWords::kOne, "compare only the first elements (default: all)"},
    {"-advisor", "--advisor", TakesWords::kNone, "write advisor_summary.txt"},
    {"-ffts", "--ffts", TakesWords::kNone,
     "compare the parts of operators that FFTS+ cut one by one"},
    {"-op", "--op_name", TakesWords::kOne, "one operator in detail"},
    {"-o", "--output_index", TakesWords::kOne, "its output (default: 0)"},
    {"-i", "--input_index", TakesWords::kOne, "its input"},
    {"-n", "--topn", TakesWords::kOne, "largest differences listed (1 to 10000, default: 20)"},
    {"-ml", "--max_line", TakesWords::kOne, "rows of one file (10000 to 1000000)"},
    {"", "--ignore_single_op_result", TakesWords::kNone, "with -op: no files of all elements"},
    {"-v", "--version", TakesWords::kOne, "accepted; dumps say what they are"},
    {"-h", "--help", TakesWords::kNone, "this text"},
};

DumpFailure Refusal(std::string text, DumpCode code = DumpCode::kInvalidParameter) {
  return {code, std::move(text)};
}

struct Algorithms {
  std::vector<measure::DumpAlgorithm> built_in;
  std::vector<std::string> own;
};

// Built-in ones that the user has no algorithm of the same name for.
std::vector<measure::DumpAlgorithm> NotReplaced(std::vector<measure::DumpAlgorithm> algorithms,
                                                const std::vector<std::string>& own) {
  std::erase_if(algorithms, [&](measure::DumpAlgorithm algorithm) {
    return std::ranges::find(own, measure::DumpAlgorithmName(algorithm)) != own.end();
  });
  return algorithms;
}

// `own`: what the user's directory has.
DumpResult<Algorithms> AlgorithmsOf(const OptionWords& words, const std::vector<std::string>& own) {
  // Between commas or blanks, also where the blanks are in quotes.
  std::vector<std::string> names;
  for (std::string word : words.All("--algorithm")) {
    std::ranges::replace(word, ' ', ',');
    for (const std::string_view name : SplitAt(word, ',')) {
      if (!name.empty()) names.emplace_back(name);
    }
  }
  if (!words.Has("--algorithm") || std::ranges::count(names, "all") > 0) {
    return Algorithms{NotReplaced(measure::AllDumpAlgorithms(), own), own};
  }
  Algorithms chosen;
  std::vector<measure::DumpAlgorithm>& algorithms = chosen.built_in;
  for (const std::string& name : names) {
    const auto algorithm = measure::ParseDumpAlgorithm(name);
    const std::string full = algorithm ? std::string(measure::DumpAlgorithmName(*algorithm)) : name;
    if (std::ranges::find(own, full) != own.end()) {
      if (std::ranges::find(chosen.own, full) == chosen.own.end()) chosen.own.push_back(full);
    } else if (!algorithm) {
      PrintError(
          fmt::format("msaccucmp compare: warning: unknown algorithm \"{}\" is left out\n", name));
    } else if (std::find(algorithms.begin(), algorithms.end(), *algorithm) == algorithms.end()) {
      algorithms.push_back(*algorithm);
    }
  }
  if (algorithms.empty() && chosen.own.empty()) {
    return Refusal("-alg: no known algorithm (expected names or numbers 0 to 9)",
                   DumpCode::kInvalidAlgorithm);
  }
  return chosen;
}

// "name:key=value,key=value;name:...", names as those of -alg.
DumpResult<std::map<std::string, std::vector<std::pair<std::string, std::string>>>> ParametersOf(
    const std::string& text) {
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> parameters;
  const auto invalid = [&] {
    return Refusal(
        fmt::format("-a {}: invalid (expected algorithm:name=value,name=value;...)", text));
  };
  for (const std::string_view one : SplitAt(text, ';')) {
    if (one.empty()) continue;
    const size_t colon = one.find(':');
    if (colon == 0 || colon == std::string_view::npos) return invalid();
    const std::string name(one.substr(0, colon));
    const auto built_in = measure::ParseDumpAlgorithm(name);
    auto& of_one = parameters[built_in ? std::string(measure::DumpAlgorithmName(*built_in)) : name];
    for (const std::string_view part : SplitAt(one.substr(colon + 1), ',')) {
      if (part.empty()) continue;
      const std::vector<std::string_view> sides = SplitAt(part, '=');
      if (sides.size() != 2 || sides[0].empty() || sides[1].empty()) return invalid();
      of_one.emplace_back(sides[0], sides[1]);
    }
  }
  return parameters;
}

// The user's own functions; none without -c.
DumpResult<std::shared_ptr<operators::UserCode>> UserCodeOf(const OptionWords& words) {
  auto parameters = ParametersOf(words.Get("--algorithm_options"));
  if (!parameters) return parameters.error();
  if (!words.Has("--custom_script_path")) {
    if (parameters->empty()) return std::shared_ptr<operators::UserCode>();
    return Refusal("-a: the built-in algorithms take no parameters (expected with -c)");
  }
  auto code = operators::UserCode::Load(
      {words.Get("--custom_script_path"), /*with_algorithms=*/true, *std::move(parameters)});
  if (!code) return code.error();
  for (const std::string& name : (*code)->algorithms()) {
    if (!operators::IsResultColumn(name)) continue;
    return Refusal(fmt::format("alg_{}.py: the result has another column of this name", name),
                   DumpCode::kInvalidAlgorithm);
  }
  for (const std::string& warning : (*code)->warnings()) {
    PrintError(fmt::format("msaccucmp compare: warning: {}\n", OneLine(warning)));
  }
  return *std::move(code);
}

// "start,end,step", fields may be empty.
DumpResult<std::array<int64_t, 3>> SpanOf(const std::string& text) {
  std::array<int64_t, 3> span = {1, -1, 1};
  const std::vector<std::string_view> parts = SplitAt(text, ',');
  if (parts.size() != span.size()) {
    return Refusal(fmt::format("-r {}: expected start,end,step", text));
  }
  for (size_t i = 0; i < span.size(); ++i) {
    if (parts[i].empty()) continue;
    const auto number = ParseInteger(parts[i]);
    if (!number) return Refusal(fmt::format("-r {}: expected three integers", text));
    span[i] = *number;
  }
  return span;
}

DumpResult<operators::OperatorRange> RangeOf(const OptionWords& words) {
  operators::OperatorRange range;
  if (words.Has("--range") && words.Has("--select")) return Refusal("-r and -s exclude each other");
  if (words.Has("--range")) {
    const auto span = SpanOf(words.Get("--range"));
    if (!span) return span.error();
    range.span = *span;
  }
  for (const std::string_view part : SplitAt(words.Get("--select"), ',')) {
    if (!words.Has("--select")) break;
    const auto number = ParseNatural(part);
    if (!number) return Refusal("-s: expected numbers of operators between commas");
    range.chosen.push_back(*number);
  }
  return range;
}

}  // namespace

std::span<const WordOption> CompareOptions() { return kCompareOptions; }

DumpStatus CheckOptions(const OptionWords& words) {
  const bool has_rule = words.Has("--fusion_rule_file");
  const auto needs = [](const char* option, const char* other) {
    return Refusal(fmt::format("The argument \"{}\" takes effect only when the \"{}\" exists.",
                               option, other));
  };
  if (words.Has("--post_process")) return Refusal("param -p only used in pytorch session.");
  if (words.Has("--mapping") && !has_rule && !words.Has("--quant_fusion_rule_file")) {
    return needs("-map", "-f or -q");
  }
  const bool has_index = words.Has("--output_index") || words.Has("--input_index");
  if (has_index && !words.Has("--op_name")) return needs("-o or -i", "-op");
  if (words.Has("--output_index") && words.Has("--input_index")) {
    return Refusal("-o and -i exclude each other");
  }
  const bool has_range = words.Has("--range") || words.Has("--select");
  if (words.Has("--op_name") && (has_range || words.Has("--mapping"))) {
    return Refusal("-op: not with -r, -s and -map");
  }
  if (has_range && !has_rule) return needs("-r or -s", "-f");
  return {};
}

DumpResult<operators::OperatorRequest> CompareRequestOf(const OptionWords& words) {
  operators::OperatorRequest request;
  request.target = words.Get("--my_dump_path");
  request.golden = words.Get("--golden_dump_path");
  request.fusion_rule = words.Get("--fusion_rule_file");
  request.quant_rule = words.Get("--quant_fusion_rule_file");
  request.unfused_rule = words.Get("--close_fusion_rule_file");
  auto range = RangeOf(words);
  if (!range) return range.error();
  request.range = *std::move(range);
  if (words.Has("--max_cmp_size")) {
    const auto most = ParseNatural(words.Get("--max_cmp_size"));
    if (!most) return Refusal("-max: expected a natural number");
    request.most_elements = static_cast<uint64_t>(*most);
  }
  request.slice_by_slice = words.Has("--ffts");
  for (const std::string& path : {request.target, request.golden, request.fusion_rule,
                                  request.quant_rule, request.unfused_rule}) {
    if (!path.empty() && KindOf(path) == PathKind::kMissing) {
      return Refusal(path + ": there is no such path", DumpCode::kInvalidPath);
    }
  }
  auto code = UserCodeOf(words);
  if (!code) return code.error();
  request.own.code = *std::move(code);
  auto algorithms = AlgorithmsOf(
      words, request.own.code ? request.own.code->algorithms() : std::vector<std::string>());
  if (!algorithms) return algorithms.error();
  request.algorithms = std::move(algorithms->built_in);
  request.own.algorithms = std::move(algorithms->own);
  return request;
}

DumpCode CodeOf(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return DumpCode::kInvalidParameter;
    case ErrorCode::kNotFound:
      return DumpCode::kNoDumpFile;
    case ErrorCode::kUnsupported:
      return DumpCode::kNotSupported;
    case ErrorCode::kCorrupt:
      return DumpCode::kInvalidJson;
    case ErrorCode::kIo:
      return DumpCode::kWriteError;
    case ErrorCode::kInternal:
      return DumpCode::kUnknown;
  }
  return DumpCode::kUnknown;
}

}  // namespace plumbline::cli

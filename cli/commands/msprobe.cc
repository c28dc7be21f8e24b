#include "commands/msprobe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "help_page.h"
#include "usage.h"

namespace plumbline::cli {
namespace {

// kValues: one or more, which plumb takes with commas between them.
enum class Takes { kNothing, kValue, kValues, kOptionalValue };
enum class Effect { kPass, kRefuse };

// One option of an upstream command.
struct OptionRule {
  std::string_view short_name;  // "" if there is none
  std::string_view long_name;
  Takes takes;
  Effect effect;
  std::string_view plumb_name;     // kPass: how plumb spells it; "" adds the value alone
  std::string_view default_value;  // kPass: of an option given without its optional value
};

constexpr std::string_view kOutput = "./output";

constexpr OptionRule kCompare122[] = {
    {"-i", "--input_path", Takes::kValue, Effect::kPass, "-i", ""},
    {"-o", "--output_path", Takes::kOptionalValue, Effect::kPass, "-o", kOutput},
    {"-s", "--stack_mode", Takes::kNothing, Effect::kPass, "-s", ""},
    {"-c", "--compare_only", Takes::kNothing, Effect::kPass, "-c", ""},
    {"-f", "--fuzzy_match", Takes::kNothing, Effect::kPass, "-f", ""},
    {"-cm", "--cell_mapping", Takes::kOptionalValue, Effect::kPass, "--cell_mapping", ""},
    {"-am", "--api_mapping", Takes::kOptionalValue, Effect::kPass, "--api_mapping", ""},
    {"-dm", "--data_mapping", Takes::kValue, Effect::kPass, "--data_mapping", ""},
    {"-lm", "--layer_mapping", Takes::kOptionalValue, Effect::kPass, "--layer_mapping", ""},
};

constexpr OptionRule kCompareNew[] = {
    {"-tp", "--target_path", Takes::kValue, Effect::kPass, "--target_path", ""},
    {"-gp", "--golden_path", Takes::kValue, Effect::kPass, "--golden_path", ""},
    {"-o", "--output_path", Takes::kOptionalValue, Effect::kPass, "-o", kOutput},
    {"-fm", "--fuzzy_match", Takes::kNothing, Effect::kPass, "-f", ""},
    {"-tensor_log", "--is_print_compare_log", Takes::kNothing, Effect::kPass,
     "--is_print_compare_log", ""},
    {"-da", "--diff_analyze", Takes::kNothing, Effect::kPass, "--diff_analyze", ""},
    {"-cm", "--cell_mapping", Takes::kOptionalValue, Effect::kPass, "--cell_mapping", ""},
    {"-am", "--api_mapping", Takes::kOptionalValue, Effect::kPass, "--api_mapping", ""},
    {"-dm", "--data_mapping", Takes::kValue, Effect::kPass, "--data_mapping", ""},
    {"-lm", "--layer_mapping", Takes::kOptionalValue, Effect::kPass, "--layer_mapping", ""},
    {"-fr", "--fusion_rule_file", Takes::kValue, Effect::kRefuse, "", ""},
    {"-qfr", "--quant_fusion_rule_file", Takes::kValue, Effect::kRefuse, "", ""},
    {"-cfr", "--close_fusion_rule_file", Takes::kValue, Effect::kRefuse, "", ""},
    {"", "--rank", Takes::kValue, Effect::kPass, "--rank", ""},
    {"", "--step", Takes::kValue, Effect::kPass, "--step", ""},
    {"", "--input_data", Takes::kValue, Effect::kRefuse, "", ""},
    {"", "--input_shape", Takes::kValue, Effect::kRefuse, "", ""},
    {"", "--output_size", Takes::kValue, Effect::kRefuse, "", ""},
    {"", "--dym_shape_range", Takes::kValue, Effect::kRefuse, "", ""},
    {"-ofs", "--onnx_fusion_switch", Takes::kValue, Effect::kRefuse, "", ""},
    {"", "--consistent_check", Takes::kNothing, Effect::kPass, "--consistent_check", ""},
    {"", "--backend", Takes::kValue, Effect::kPass, "--backend", ""},
    {"", "--config", Takes::kValue, Effect::kPass, "--postprocess", ""},
};

constexpr OptionRule kCompareDumps[] = {
    {"-tp", "--target_path", Takes::kValue, Effect::kPass, "--target_path", ""},
    {"-gp", "--golden_path", Takes::kValue, Effect::kPass, "--golden_path", ""},
    {"-o", "--output_path", Takes::kOptionalValue, Effect::kPass, "-o", kOutput},
};

// Of mode offline_data, which is msaccucmp compare.
constexpr OptionRule kCompareOffline[] = {
    {"-tp", "--target_path", Takes::kValue, Effect::kPass, "-m", ""},
    {"-gp", "--golden_path", Takes::kValue, Effect::kPass, "-g", ""},
    {"-fr", "--fusion_rule_file", Takes::kValue, Effect::kPass, "-f", ""},
    {"-qfr", "--quant_fusion_rule_file", Takes::kValue, Effect::kPass, "-q", ""},
    {"-cfr", "--close_fusion_rule_file", Takes::kValue, Effect::kPass, "-cf", ""},
    {"-o", "--output_path", Takes::kOptionalValue, Effect::kPass, "-out", kOutput},
};

constexpr OptionRule kGraph122[] = {
    {"-i", "--input_path", Takes::kValue, Effect::kPass, "-i", ""},
    {"-o", "--output_path", Takes::kValue, Effect::kPass, "-o", ""},
    {"-lm", "--layer_mapping", Takes::kOptionalValue, Effect::kPass, "--layer_mapping", ""},
    {"-oc", "--overflow_check", Takes::kNothing, Effect::kPass, "--overflow_check", ""},
    {"-f", "--fuzzy_match", Takes::kNothing, Effect::kPass, "-f", ""},
    {"-cs", "--complete_stack", Takes::kNothing, Effect::kPass, "--complete_stack", ""},
};

constexpr OptionRule kGraphNew[] = {
    {"-tp", "--target_path", Takes::kValue, Effect::kPass, "--target_path", ""},
    {"-gp", "--golden_path", Takes::kValue, Effect::kPass, "--golden_path", ""},
    {"-o", "--output_path", Takes::kValue, Effect::kPass, "-o", ""},
    {"-lm", "--layer_mapping", Takes::kOptionalValue, Effect::kPass, "--layer_mapping", ""},
    {"-oc", "--overflow_check", Takes::kNothing, Effect::kPass, "--overflow_check", ""},
    {"-fm", "--fuzzy_match", Takes::kNothing, Effect::kPass, "-f", ""},
    {"-tensor_log", "--is_print_compare_log", Takes::kNothing, Effect::kPass,
     "--is_print_compare_log", ""},
    {"-progress_log", "--is_print_progress_log", Takes::kNothing, Effect::kPass,
     "--is_print_progress_log", ""},
    {"", "--rank_size", Takes::kValues, Effect::kPass, "--rank_size", ""},
    {"", "--tp", Takes::kValues, Effect::kPass, "--tp", ""},
    {"", "--pp", Takes::kValues, Effect::kPass, "--pp", ""},
    {"", "--vpp", Takes::kValues, Effect::kPass, "--vpp", ""},
    {"", "--order", Takes::kValues, Effect::kPass, "--order", ""},
    {"", "--file_type", Takes::kValue, Effect::kPass, "--file_type", ""},
};

constexpr OptionRule kOverflow[] = {
    {"-i", "--input_path", Takes::kValue, Effect::kPass, "", ""},
    {"-o", "--output_path", Takes::kValue, Effect::kPass, "-o", ""},
};

constexpr OptionRule kMerge[] = {
    {"-i", "--input_dir", Takes::kValue, Effect::kPass, "-i", ""},
    {"-o", "--output_dir", Takes::kValue, Effect::kPass, "-o", ""},
    {"-config", "--config-path", Takes::kValue, Effect::kPass, "--config", ""},
};

constexpr OptionRule kData2db[] = {
    {"", "--db", Takes::kValue, Effect::kPass, "--db", ""},
    {"", "--data", Takes::kValue, Effect::kPass, "--data", ""},
    {"", "--format", Takes::kValue, Effect::kPass, "--format", ""},
    {"", "--mapping", Takes::kValue, Effect::kPass, "--mapping", ""},
    {"", "--micro_step", Takes::kValue, Effect::kPass, "--micro_step", ""},
    {"", "--process_num", Takes::kValue, Effect::kPass, "--process_num", ""},
};

constexpr OptionRule kCodeMapping[] = {
    {"", "--ir", Takes::kValue, Effect::kPass, "--ir", ""},
    {"", "--dump_data", Takes::kValue, Effect::kPass, "--dump_data", ""},
    {"", "--output", Takes::kValue, Effect::kPass, "--output", ""},
};

// run_ut, acc_check and their forms with several processes. Our own options pass as they are.
constexpr OptionRule kPrecheck[] = {
    {"-api_info", "--api_info_file", Takes::kValue, Effect::kPass, "--api_info", ""},
    {"-o", "--out_path", Takes::kValue, Effect::kPass, "-o", ""},
    {"-save_error_data", "", Takes::kNothing, Effect::kPass, "--save_error_data", ""},
    {"-j", "--jit_compile", Takes::kNothing, Effect::kPass, "--jit_compile", ""},
    {"-d", "--device", Takes::kValue, Effect::kPass, "-d", ""},
    {"-n", "--num_splits", Takes::kValue, Effect::kPass, "-n", ""},
    {"-csv_path", "--result_csv_path", Takes::kValue, Effect::kPass, "--csv_path", ""},
    {"-f", "--filter_api", Takes::kNothing, Effect::kPass, "--dedup", ""},
    {"-config", "--config_path", Takes::kValue, Effect::kPass, "--config", ""},
};

// Upstream takes any word behind -j for true.
constexpr OptionRule kRunOverflowCheck[] = {
    {"-api_info", "--api_info_file", Takes::kValue, Effect::kPass, "--api_info", ""},
    {"-j", "--jit_compile", Takes::kOptionalValue, Effect::kPass, "--jit_compile", "true"},
    {"-d", "--device", Takes::kValue, Effect::kPass, "-d", ""},
};

constexpr OptionRule kOpGenerate[] = {
    {"-i", "--config_input", Takes::kValue, Effect::kPass, "-i", ""},
    {"-o", "--api_output_path", Takes::kValue, Effect::kPass, "-o", ""},
};

constexpr OptionRule kApiPrecisionCompare[] = {
    {"-npu", "--npu_csv_path", Takes::kValue, Effect::kPass, "--npu_csv_path", ""},
    {"-gpu", "--gpu_csv_path", Takes::kValue, Effect::kPass, "--gpu_csv_path", ""},
    {"-o", "--out_path", Takes::kValue, Effect::kPass, "-o", ""},
};

struct Instead {
  std::string_view command;
  std::string_view does;  // what upstream's command is for
  std::string_view advice;
};

// Upstream's other commands, of either release.
constexpr std::string_view kNoConfigCheck =
    "called `config_check` in newer releases, which plumb runs";
constexpr Instead kNotBuilt[] = {
    {"config_checking", "differences between two training environments", kNoConfigCheck},
    {"offline_dump", "runs an offline model and dumps its tensors",
     "running offline models is not built yet"},
    {"install_deps", "installs optional packages",
     "nothing to install: plumb needs no optional packages"},
};

bool BeginsWithDash(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// The rule for `name`; like upstream's parser, the unique beginning of a long name will do.
template <size_t kCount>
const OptionRule* FindRule(const OptionRule (&rules)[kCount], std::string_view name) {
  const OptionRule* found = nullptr;
  for (const OptionRule& rule : rules) {
    if (name == rule.short_name || name == rule.long_name) return &rule;
    if (name.size() < 4 || rule.long_name.substr(0, name.size()) != name) continue;
    if (found != nullptr) return nullptr;
    found = &rule;
  }
  return found;
}

Error Refused(std::string_view command, std::string_view option) {
  const std::string_view page = command.starts_with("graph") ? "graph"
                                : command == "compare"       ? "compare"
                                                             : "overflow";
  return Error(ErrorCode::kUnsupported,
               fmt::format("{} {}: not built yet. Leave it out, or see `plumb {} --help`", command,
                           option, page));
}

// A word taken apart: `--name=value` is two.
struct Word {
  std::string name;
  bool has_value = false;
  std::string value;
};

Word Split(const std::string& text) {
  const size_t equals = text.find('=');
  if (!BeginsWithDash(text) || equals == std::string::npos) return {text, false, ""};
  return {text.substr(0, equals), true, text.substr(equals + 1)};
}

// Takes the value of `rule` from `word` or from the words behind `index`.
Result<std::string> TakeValue(const OptionRule& rule, const std::vector<std::string>& words,
                              size_t& index) {
  const Word word = Split(words[index]);
  if (word.has_value) return word.value;
  if (index + 1 < words.size() && !BeginsWithDash(words[index + 1])) {
    std::string value = words[++index];
    while (rule.takes == Takes::kValues && index + 1 < words.size() &&
           !BeginsWithDash(words[index + 1])) {
      value.append(",").append(words[++index]);
    }
    return value;
  }
  if (rule.takes == Takes::kOptionalValue) return std::string(rule.default_value);
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: a value is missing", word.name));
}

void AddPassed(const OptionRule& rule, std::string value, MsprobeCommand& out) {
  if (!rule.plumb_name.empty()) out.words.emplace_back(rule.plumb_name);
  if (rule.takes == Takes::kNothing) return;
  // An empty value stands for the option without its value.
  if (!value.empty() || rule.takes == Takes::kValue) out.words.push_back(std::move(value));
}

template <size_t kCount>
Status TranslateOptions(const OptionRule (&rules)[kCount], const std::vector<std::string>& words,
                        MsprobeCommand& out) {
  const std::string command = words[0];
  for (size_t i = 1; i < words.size(); ++i) {
    const OptionRule* rule = FindRule(rules, Split(words[i]).name);
    if (rule == nullptr) {
      out.words.push_back(words[i]);
      continue;
    }
    if (rule->effect == Effect::kRefuse) return Refused(command, rule->long_name);
    std::string value;
    if (rule->takes != Takes::kNothing) {
      PL_TRY_ASSIGN(value, TakeValue(*rule, words, i));
    }
    AddPassed(*rule, std::move(value), out);
  }
  return {};
}

void AddDefaultOutput(MsprobeCommand& out) {
  const char* const option = out.words[0] == "msaccucmp" ? "-out" : "-o";
  if (std::find(out.words.begin(), out.words.end(), option) != out.words.end()) return;
  out.words.insert(out.words.end(), {option, std::string(kOutput)});
}

// The newest release writes CSV unless --xlsx is given and chooses among several tools by --mode.
Result<MsprobeCommand> TranslateNewCompare(const std::vector<std::string>& words) {
  std::vector<std::string> rest;
  std::string mode = "auto", format = "csv";
  for (size_t i = 0; i < words.size(); ++i) {
    const Word word = Split(words[i]);
    if (word.name == "--xlsx") {
      format = "xlsx";
    } else if (word.name == "-m" || word.name == "--mode") {
      constexpr OptionRule kMode{"-m", "--mode", Takes::kValue, Effect::kPass, "", ""};
      PL_TRY_ASSIGN(mode, TakeValue(kMode, words, i));
    } else {
      rest.push_back(words[i]);
    }
  }
  const bool known =
      mode == "offline_data" || mode == "torchair" || mode == "offline_model" || mode == "atb";
  if (mode != "auto" && !known) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("compare --mode {}: unknown (expected auto, atb or torchair)", mode));
  }
  if (mode == "atb" || mode == "torchair") {
    // Every option that upstream does not list for this mode is an error there.
    MsprobeCommand out{{"compare", "--mode", mode}};
    PL_TRY(TranslateOptions(kCompareDumps, rest, out));
    return out;
  }
  if (mode == "offline_data") {
    MsprobeCommand out{{"msaccucmp", "compare"}};
    PL_TRY(TranslateOptions(kCompareOffline, rest, out));
    return out;
  }
  if (mode != "auto") {
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("compare --mode {}: not built yet (expected auto, atb or torchair)", mode));
  }
  MsprobeCommand out{{"compare", "--schema", "newest", "--format", format}};
  PL_TRY(TranslateOptions(kCompareNew, rest, out));
  return out;
}

// 1.2.2 has these for MindSpore only.
Status CheckFramework(std::string_view framework, const MsprobeCommand& command) {
  if (framework != "pytorch") return {};
  for (const std::string_view option : {"--api_mapping", "--cell_mapping", "--layer_mapping"}) {
    if (std::find(command.words.begin(), command.words.end(), option) == command.words.end()) {
      continue;
    }
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("compare {}: not for -f pytorch (expected -f mindspore). Compare two "
                             "PyTorch recordings with `plumb compare TARGET GOLDEN {} FILE`",
                             option, option));
  }
  return {};
}

// Whether the two sides are named in a file, as 1.2.2 has it.
bool NamesRequest(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    const std::string name = Split(word).name;
    return name == "-i" ||
           (name.size() > 4 && std::string_view("--input_path").substr(0, name.size()) == name);
  });
}

Result<MsprobeCommand> TranslateCompare(const std::vector<std::string>& words,
                                        std::string_view framework) {
  MsprobeCommand out;
  if (NamesRequest(words)) {
    out.words = {"compare", "--format", "xlsx"};
    PL_TRY(TranslateOptions(kCompare122, words, out));
    PL_TRY(CheckFramework(framework, out));
  } else {
    PL_TRY_ASSIGN(out, TranslateNewCompare(words));
  }
  AddDefaultOutput(out);
  return out;
}

// 1.2.2 writes .vis files, and reads a file that names the two sides.
Result<MsprobeCommand> TranslateGraph(const std::vector<std::string>& words) {
  MsprobeCommand out{{"graph"}};
  if (!NamesRequest(words)) {
    PL_TRY(TranslateOptions(kGraphNew, words, out));
    return out;
  }
  out.words.insert(out.words.end(), {"--file_type", "vis"});
  PL_TRY(TranslateOptions(kGraph122, words, out));
  return out;
}

Result<MsprobeCommand> TranslateOverflow(const std::vector<std::string>& words) {
  MsprobeCommand out{{"overflow"}};
  PL_TRY(TranslateOptions(kOverflow, words, out));
  const bool asks_for_help = std::find(words.begin(), words.end(), "-h") != words.end() ||
                             std::find(words.begin(), words.end(), "--help") != words.end();
  if (!asks_for_help) AddDefaultOutput(out);
  return out;
}

Result<MsprobeCommand> TranslateMerge(const std::vector<std::string>& words) {
  MsprobeCommand out{{"merge"}};
  PL_TRY(TranslateOptions(kMerge, words, out));
  return out;
}

Result<MsprobeCommand> TranslateData2db(const std::vector<std::string>& words) {
  MsprobeCommand out{{"data2db"}};
  PL_TRY(TranslateOptions(kData2db, words, out));
  return out;
}

Result<MsprobeCommand> TranslateCodeMapping(const std::vector<std::string>& words) {
  MsprobeCommand out{{"code_mapping"}};
  PL_TRY(TranslateOptions(kCodeMapping, words, out));
  return out;
}

Result<MsprobeCommand> TranslateApiPrecisionCompare(const std::vector<std::string>& words,
                                                    std::string_view framework) {
  if (framework == "mindspore") {
    return Error(ErrorCode::kInvalidArgument,
                 "api_precision_compare: not for -f mindspore, whose pre-check has one side only "
                 "(expected -f pytorch)");
  }
  MsprobeCommand out{{"api_precision_compare"}};
  PL_TRY(TranslateOptions(kApiPrecisionCompare, words, out));
  return out;
}

// The action of config_check that a word names; empty: none.
std::string_view ActionOf(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kActions[] = {
      {"-d", "-d"},
      {"--dump", "-d"},
      {"-c", "-c"},
      {"--compare", "-c"},
      {"-vc", "--verl-compare"},
      {"--verl-compare", "--verl-compare"},
      {"-vv", "--verl-verify"},
      {"--verl-verify", "--verl-verify"}};
  for (const auto& [word, action] : kActions) {
    if (word == name) return action;
  }
  return {};
}

// config_check -d [FILES], -c of two packs or two checkpoints, -vc and -vv of logs.
Result<MsprobeCommand> TranslateConfigCheck(const std::vector<std::string>& words) {
  std::vector<std::string> files;
  std::string action, output;
  for (size_t i = 1; i < words.size(); ++i) {
    const Word word = Split(words[i]);
    if (word.name == "-h" || word.name == "--help") return MsprobeCommand{{words[0], "--help"}};
    if (const std::string_view known = ActionOf(word.name); !known.empty() && action.empty()) {
      action = known;
      if (word.has_value) files.push_back(word.value);
      while (i + 1 < words.size() && !BeginsWithDash(words[i + 1])) files.push_back(words[++i]);
    } else if (word.name == "-o" || word.name == "--output") {
      constexpr OptionRule kOut{"-o", "--output", Takes::kValue, Effect::kPass, "", ""};
      PL_TRY_ASSIGN(output, TakeValue(kOut, words, i));
    } else {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("config_check {}: not built yet (expected one of -d [FILES], -c "
                               "A B, -vc A B and -vv [A] B)",
                               words[i]));
    }
  }
  if (action.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "config_check: expected one of -d [FILES], -c A B, -vc A B and -vv [A] B");
  }
  MsprobeCommand out{{words[0], action}};
  if (action == "-c" && files.size() != 2) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("config_check -c: {} paths (expected two packs or two checkpoints)",
                             files.size()));
  }
  if (action == "-c" && !files[0].ends_with(".zip")) {
    if (output.empty()) output = "./ckpt_similarity.json";
    if (!output.ends_with(".json")) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("config_check -o {}: no .json file (expected one)", output));
    }
    return MsprobeCommand{{"compare", files[0], files[1], "-o", output}};
  }
  out.words.insert(out.words.end(), files.begin(), files.end());
  if (!output.empty()) out.words.insert(out.words.end(), {"-o", output});
  return out;
}

// Of a command that checks single APIs; empty: it is none.
std::string_view PrecheckForm(std::string_view command) {
  if (command == "run_ut" || command == "acc_check") return "run_ut";
  if (command == "multi_run_ut" || command == "multi_acc_check") return "multi_run_ut";
  return {};
}

Result<MsprobeCommand> TranslatePrecheck(const std::vector<std::string>& words,
                                         std::string_view framework) {
  MsprobeCommand out{{"precheck", "--as", std::string(PrecheckForm(words[0]))}};
  if (!framework.empty()) {
    out.words.insert(out.words.end(), {"--recorded-with", std::string(framework)});
  }
  PL_TRY(TranslateOptions(kPrecheck, words, out));
  return out;
}

Result<MsprobeCommand> TranslateRunOverflowCheck(const std::vector<std::string>& words,
                                                 std::string_view framework) {
  if (framework == "mindspore") {
    return Error(ErrorCode::kInvalidArgument,
                 "run_overflow_check: not for -f mindspore (expected -f pytorch)");
  }
  MsprobeCommand out{{"run_overflow_check"}};
  PL_TRY(TranslateOptions(kRunOverflowCheck, words, out));
  return out;
}

Result<MsprobeCommand> TranslateOpGenerate(const std::vector<std::string>& words) {
  MsprobeCommand out{{"op_generate"}};
  PL_TRY(TranslateOptions(kOpGenerate, words, out));
  return out;
}

// Takes `-f FRAMEWORK` off the front and returns it; empty if it is not there.
Result<std::string> TakeFramework(std::vector<std::string>& words) {
  if (words.empty()) return std::string();
  const Word first = Split(words[0]);
  if (first.name != "-f" && first.name != "--framework") return std::string();
  if (!first.has_value && words.size() < 2) {
    return Error(ErrorCode::kInvalidArgument,
                 "-f: a value is missing (expected pytorch or mindspore)");
  }
  const std::string framework = first.has_value ? first.value : words[1];
  if (framework != "pytorch" && framework != "mindspore") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("-f {}: unknown (expected pytorch or mindspore)", framework));
  }
  words.erase(words.begin(), words.begin() + (first.has_value ? 1 : 2));
  return framework;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const TreeCommand& command : MsprobeTree().commands) names.push_back(command.name);
  return names;
}

}  // namespace

Result<MsprobeCommand> TranslateMsprobe(const std::vector<std::string>& words) {
  std::vector<std::string> rest = words;
  PL_TRY_ASSIGN(const std::string framework, TakeFramework(rest));
  if (rest.empty() || rest[0] == "-h" || rest[0] == "--help") return MsprobeCommand{};
  const std::string& command = rest[0];
  if (command == "-V" || command == "--version") return MsprobeCommand{{"--version"}};
  if (command == "compare") return TranslateCompare(rest, framework);
  if (command == "graph" || command == "graph_visualize") return TranslateGraph(rest);
  if (command == "overflow_check" || command == "nan_analyze") return TranslateOverflow(rest);
  if (command == "data2db") return TranslateData2db(rest);
  if (command == "code_mapping") return TranslateCodeMapping(rest);
  if (command == "merge_result") return TranslateMerge(rest);
  if (command == "config_check") return TranslateConfigCheck(rest);
  if (command == "parse") return MsprobeCommand{rest};
  if (!PrecheckForm(command).empty()) return TranslatePrecheck(rest, framework);
  if (command == "op_generate") return TranslateOpGenerate(rest);
  if (command == "run_overflow_check") return TranslateRunOverflowCheck(rest, framework);
  if (command == "api_precision_compare") return TranslateApiPrecisionCompare(rest, framework);
  for (const Instead& other : kNotBuilt) {
    if (command == other.command) {
      return Error(ErrorCode::kUnsupported, fmt::format("{}: {}", command, other.advice));
    }
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: unknown command. See `plumb msprobe --help`.{}", command,
                           MeantHint(command, CommandNames())));
}

TreeCommand MsprobeTree() {
  constexpr std::pair<const char*, const char*> kRun[] = {
      {"acc_check", "Runs plumb precheck: each recorded API alone on the device and on the CPU."},
      {"api_precision_compare", "Runs plumb api_precision_compare."},
      {"code_mapping", "Runs plumb code_mapping."},
      {"compare", "Runs plumb compare; both forms: -i compare.json, or -tp and -gp."},
      {"config_check", "Runs plumb config_check; with -c on two checkpoints, plumb compare."},
      {"data2db", "Runs plumb data2db."},
      {"graph", "Runs plumb graph: .vis files, with -i of one or two recordings."},
      {"graph_visualize", "Runs plumb graph: one .vis.db, with -tp and -gp."},
      {"merge_result", "Runs plumb merge."},
      {"multi_acc_check", "Runs plumb precheck in several processes."},
      {"multi_run_ut", "The same."},
      {"nan_analyze", "Runs plumb overflow."},
      {"op_generate", "Runs plumb op_generate: a program that runs one recorded API."},
      {"overflow_check", "Runs plumb overflow."},
      {"parse", "Runs plumb parse: a shell, or -d of one file."},
      {"run_overflow_check", "Runs plumb run_overflow_check: is an overflow the device's own?"},
      {"run_ut", "The same as acc_check."}};
  std::string notes = "Not in plumb yet; each says what to use instead:";
  for (const Instead& other : kNotBuilt) {
    notes += fmt::format("\n  {}: {}", other.command, other.does);
  }
  TreeCommand tree = TreeOf(WordCommand{
      "msprobe",
      "Run a command line written for upstream's program msprobe (mindstudio-probe 1.2.2 or 26.x).",
      {},
      FooterWithOwnStatuses(notes,
                            {"plumb msprobe -f pytorch compare -i compare.json -o out",
                             "plumb msprobe compare -tp new/step0 -gp good/step0 -o out"},
                            {{0, "done; others as of the plumb command that runs"}})});
  tree.usage = "[-f {pytorch,mindspore}] COMMAND [OPTIONS]";
  for (const auto& [name, summary] : kRun) {
    TreeCommand& below = tree.commands.emplace_back();
    below.name = name;
    below.summary = summary;
  }
  return tree;
}

}  // namespace plumbline::cli

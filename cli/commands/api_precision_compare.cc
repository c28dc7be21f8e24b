// plumb api_precision_compare: the pre-checks of one recording on two devices, side by side.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/log.h"
#include "base/text/json.h"
#include "commands.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "precheck/two_sided.h"
#include "terminal.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

using precheck::StatusCounts;
using precheck::TwoSidedCounts;
using precheck::TwoSidedResult;

struct ApiPrecisionCompareArguments {
  precheck::TwoSidedOptions options;
  std::vector<std::string> fail_on;
  bool machine = false;
};

size_t CountOf(const StatusCounts& counts, precheck::CheckStatus status) {
  return counts[static_cast<size_t>(status)];
}

// "7 pass, 1 error, 2 skipped".
std::string CountsText(const StatusCounts& counts) {
  return fmt::format("{} pass, {} error, {} skipped", CountOf(counts, precheck::CheckStatus::kPass),
                     CountOf(counts, precheck::CheckStatus::kError),
                     CountOf(counts, precheck::CheckStatus::kSkip));
}

void PrintResult(const TwoSidedResult& result) {
  const TwoSidedCounts& counts = result.counts;
  Print(OneLine(precheck::TwoSidedAnswer(result)) + "\n");
  Print(fmt::format("  calls: {}; forward: {}; backward: {}\n", counts.calls,
                    CountsText(counts.forward), CountsText(counts.backward)));
  Print(fmt::format("  outputs: {}\n", CountsText(counts.outputs)));
  if (counts.only_target + counts.only_golden > 0) {
    Print(fmt::format("  without a counterpart: {} on the target, {} on the reference\n",
                      counts.only_target, counts.only_golden));
  }
  for (const std::string& path : {result.result_path, result.details_path}) {
    Print(fmt::format("  written: {}\n", OneLine(path)));
  }
}

json::Value CountsValue(const StatusCounts& counts) {
  json::Value value = json::Value::Object();
  const auto put = [&](const char* key, precheck::CheckStatus status) {
    value.Put(key, json::Value(static_cast<int64_t>(CountOf(counts, status))));
  };
  put("pass", precheck::CheckStatus::kPass);
  put("error", precheck::CheckStatus::kError);
  put("skip", precheck::CheckStatus::kSkip);
  return value;
}

void PrintJson(const TwoSidedResult& result) {
  json::Value worst;
  if (result.worst) {
    worst = json::Value::Object();
    worst.Put("name", json::Value(std::string_view(result.worst->name)));
    worst.Put("reason", json::Value(std::string_view(result.worst->reason)));
    worst.Put("message", json::Value(std::string_view(result.worst->message)));
  }
  const TwoSidedCounts& counts = result.counts;
  json::Value value = json::Value::Object();
  value.Put("answer", json::Value(std::string_view(precheck::TwoSidedAnswer(result))));
  value.Put("worst", std::move(worst));
  value.Put("calls", json::Value(static_cast<int64_t>(counts.calls)));
  value.Put("forward", CountsValue(counts.forward));
  value.Put("backward", CountsValue(counts.backward));
  value.Put("outputs", CountsValue(counts.outputs));
  value.Put("only_target", json::Value(static_cast<int64_t>(counts.only_target)));
  value.Put("only_golden", json::Value(static_cast<int64_t>(counts.only_golden)));
  value.Put("files",
            json::Value(std::vector<std::string>{result.result_path, result.details_path}));
  Print(value.Text() + "\n");
}

// Whether a condition of --fail-on holds. Nothing compared is never the absence of errors.
bool FailsOn(const StatusCounts& outputs, const std::vector<std::string>& conditions) {
  const bool any_judged = CountOf(outputs, precheck::CheckStatus::kPass) > 0;
  const bool has_error = CountOf(outputs, precheck::CheckStatus::kError) > 0;
  const bool has_skip = CountOf(outputs, precheck::CheckStatus::kSkip) > 0;
  return std::any_of(conditions.begin(), conditions.end(), [&](const std::string& condition) {
    const bool on_error = condition != "skip", on_skip = condition == "skip" || condition == "any";
    return (on_error && (has_error || !any_judged)) || (on_skip && has_skip);
  });
}

Result<int> RunApiPrecisionCompare(const ApiPrecisionCompareArguments& arguments) {
  PL_TRY_ASSIGN(const TwoSidedResult result, precheck::CompareTwoSided(arguments.options));
  if (arguments.machine) {
    PrintJson(result);
  } else {
    PrintResult(result);
  }
  return FailsOn(result.counts.outputs, arguments.fail_on) ? kDifferencesFound : 0;
}

}  // namespace

void AddApiPrecisionCompareCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<ApiPrecisionCompareArguments>();
  CLI::App* command = app.add_subcommand(
      "api_precision_compare",
      "Divide the errors of a device by those of a reference device, API by API.");
  command
      ->add_option("--npu_csv_path", arguments->options.target_details,
                   "details file of the pre-check on the device under test (also -npu)")
      ->required()
      ->check(PathValue())
      ->type_name("FILE");
  command
      ->add_option("--gpu_csv_path", arguments->options.golden_details,
                   "details file of the same recording on the reference device (also -gpu)")
      ->required()
      ->check(PathValue())
      ->type_name("FILE");
  AddOutput(*command, arguments->options.output_directory,
            "directory of the result and the details file, made if it is not there", "--out_path")
      ->check(PathValue())
      ->capture_default_str();
  command
      ->add_option(
          "--fail-on", arguments->fail_on,
          "end with status 1 if there is any of these; error: also if nothing was compared")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"error", "warning", "skip", "any"}));
  AddJson(*command, arguments->machine, "the summary");
  command->footer(FooterText(
      "The first line names the output whose errors are furthest over what the reference device "
      "allows, or says that there is none.",
      {"plumb api_precision_compare -npu npu/accuracy_checking_details_20250226101112.csv -gpu "
       "gpu/accuracy_checking_details_20250226111213.csv -o out",
       "plumb api_precision_compare -npu npu.csv -gpu gpu.csv --fail-on error && echo fine"},
      {{1, "--fail-on found something"},
       {2, "wrong usage, or a file that is no details file of a pre-check"}}));
  command->callback([arguments, command, &exit_status] {
    const std::string empty = EmptyOption(*command);
    const Result<int> status = empty.empty()
                                   ? RunApiPrecisionCompare(*arguments)
                                   : Result<int>(Error(ErrorCode::kInvalidArgument, empty));
    exit_status = status ? *status : ReportError("api_precision_compare", status.error());
  });
}

}  // namespace plumbline::cli

// plumb precheck DUMP: every recorded call again, on the device and raised on the CPU.

#include "precheck/precheck.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "commands.h"
#include "commands/natural_number.h"
#include "commands/recording_file.h"
#include "commands/shared_work.h"
#include "commands/value_checks.h"
#include "help_page.h"
#include "precheck/mindspore_calls.h"
#include "precheck/online/online_check.h"
#include "precheck/precheck_files.h"
#include "precheck/settings.h"
#include "progress.h"
#include "terminal.h"
#include "usage.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

using precheck::PrecheckOptions;
using precheck::PrecheckReport;

// Exit statuses of upstream's commands.
constexpr int kUpstreamFailed = 1, kUpstreamFound = 3;
constexpr int kMostWorkers = 64;
constexpr int kUsualWorkersOfDevice = 8;
// Options that are no matter of the result, for WordsOf(): by their first long name.
constexpr std::string_view kNotOfPrecheck[] = {"shard", "jobs", "engine", "address"};
// Each part has to load the framework.
constexpr const char* kPartsPerCpu = "2";

struct PrecheckArguments {
  std::string path, api_info;
  std::string as;  // the command of upstream's that this one stands for; empty: none
  double api_timeout = 600;
  std::vector<std::string> fail_on;
  std::vector<std::string> formats;  // empty: the page, but of upstream's commands the csv files
  std::optional<uint64_t> seed;
  bool machine = false;
  bool jit_compile = false;
  PrecheckOptions options;
  // Of the check while a model trains; what is not given comes from the configuration.
  bool is_online = false;
  bool has_device_type = false;  // it was given: calls run on a device of this machine, too
  std::optional<std::string> nfs_path, host, tls_path;
  std::optional<int> port;
  std::vector<int64_t> rank_list;
  double idle_timeout = 600;
  precheck::PrecheckSettings settings;
  ShareArguments share;
  std::vector<std::string> words;  // of the command line, but kNotOfPrecheck

  [[nodiscard]] bool is_upstream() const { return !as.empty(); }
};

// Of a pre-check that several processes share.
std::string ShareProblemOf(const PrecheckArguments& arguments, const CLI::App& command) {
  if (const plumbline::Status fits = CheckShare(arguments.share); !fits) {
    return fits.error().message();
  }
  if (!arguments.share.is_shared()) return {};
  const auto refuse = [&](std::string_view what) {
    return fmt::format("{}: {}", arguments.share.option(), what);
  };
  if (arguments.is_online) return refuse("takes a recording (expected no --online)");
  if (!arguments.options.resume_path.empty()) {
    return refuse("not with --csv_path. A part that was interrupted is run again");
  }
  if (!arguments.share.engine.empty() && command.get_option("-d")->count() > 0) {
    return refuse("not with -d. Ray gives each part a device; --device_type says of which kind");
  }
  return {};
}

// What the parser does not see; empty: all is well.
std::string UsageProblemOf(const PrecheckArguments& arguments, const CLI::App& command) {
  std::string empty = EmptyOption(command);
  const bool is_plain = empty.starts_with("--tls_path");  // which says something
  if (!empty.empty() && !is_plain) return empty;
  const bool has_recording = !arguments.path.empty() || !arguments.api_info.empty();
  if (arguments.is_online && has_recording) {
    return "--online: takes no recording (the calls come from a training)";
  }
  if (std::string shared = ShareProblemOf(arguments, command); !shared.empty()) return shared;
  for (const char* const name : {"--format", "--csv_path", "--retry_skip", "--sorted", "-d"}) {
    const bool has_device = std::string_view(name) == "-d" && arguments.has_device_type;
    if (arguments.is_online && !has_device && command.get_option(name)->count() > 0) {
      return fmt::format("{}: has no effect with --online{}. Leave it out", name,
                         std::string_view(name) == "-d" ? " without --device_type" : "");
    }
  }
  const std::vector<int>& devices = arguments.options.devices;
  if (std::set<int>(devices.begin(), devices.end()).size() != devices.size()) {
    return "-d: names a device twice (expected different numbers)";
  }
  if (arguments.options.device_type == "cpu" && devices != std::vector<int>{0}) {
    return fmt::format(
        "-d: {} with --device_type cpu (expected 0: the CPU is one device). Leave -d out; -n gives "
        "the number of processes",
        fmt::join(devices, " "));
  }
  // Upstream's configuration says it where its command line does not.
  const bool may_be_online = arguments.is_online || !arguments.options.config_path.empty();
  if (may_be_online && !has_recording) return {};
  if (arguments.path.empty() == arguments.api_info.empty()) {
    return arguments.is_upstream() ? "-api_info: is missing (expected a dump.json)"
                                   : "name one recording: DUMP";
  }
  return {};
}

// What upstream's commands have otherwise than ours, for a recording of `framework`.
void ApplyUpstream(PrecheckArguments& arguments, std::string_view framework) {
  PrecheckOptions& options = arguments.options;
  const bool is_mindspore = framework == "mindspore" || framework == "mindtorch";
  if (arguments.as == "run_ut") {
    options.devices.resize(1);
    options.workers = 1;
  } else if (arguments.is_upstream() && options.workers == 0 && !is_mindspore) {
    // Of MindSpore it has one process per device.
    options.workers = kUsualWorkersOfDevice;
  }
}

plumbline::Status ApplySettings(PrecheckArguments& arguments) {
  PrecheckOptions& options = arguments.options;
  const char* const defaults = std::getenv(precheck::kDefaultsVariable);
  PL_TRY_ASSIGN(
      arguments.settings,
      precheck::LoadPrecheckSettings({options.config_path, defaults == nullptr ? "" : defaults}));
  const precheck::PrecheckSettings& settings = arguments.settings;
  options.plan.white_list = settings.white_list;
  options.plan.black_list = settings.black_list;
  options.error_data_path = settings.error_data_path;
  options.precision = settings.precision;
  options.plan.seed = settings.seed.value_or(options.plan.seed);
  for (const std::string& warning : settings.warnings) PrintNote("precheck", warning);
  // The command line wins.
  options.plan.seed = arguments.seed.value_or(options.plan.seed);
  return {};
}

void TellWorkers(const PrecheckOptions& options) {
  const auto devices = static_cast<int>(options.devices.size());
  if (options.workers <= kUsualWorkersOfDevice * devices) return;
  PrintNote(
      "precheck",
      fmt::format("{} workers for {} device{} (more than {} of a device slow each other down)",
                  options.workers, devices, devices == 1 ? "" : "s", kUsualWorkersOfDevice));
}

void PrintReport(const PrecheckReport& report, const PrecheckArguments& arguments) {
  for (const std::string& warning : report.warnings) PrintNote("precheck", warning);
  Print(arguments.machine ? AnswerJson(report) : AnswerText(report));
  if (report.was_interrupted) {
    PrintError(fmt::format("plumb precheck: interrupted after {} calls. Go on with: {}\n",
                           report.all_calls(), OneLine(ResumeCommand(report))));
  }
}

// Where trainings are to be found: the command line wins.
Result<online::ReceiverOptions> ReceiverOf(const PrecheckArguments& arguments) {
  const precheck::PrecheckSettings& settings = arguments.settings;
  online::ReceiverOptions receiver;
  receiver.directory = arguments.nfs_path.value_or(settings.nfs_path);
  receiver.host = arguments.host.value_or(settings.host);
  receiver.port = arguments.port.value_or(settings.port);
  receiver.tls_directory = arguments.tls_path.value_or(settings.tls_path);
  receiver.ranks = arguments.rank_list.empty() ? settings.rank_list : arguments.rank_list;
  receiver.idle_limit = Milliseconds(arguments.idle_timeout);
  if (!receiver.directory.empty()) return receiver;
  if (!online::IsIpv4(receiver.host)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("host: is \"{}\" (expected the IPv4 address to listen at, such as "
                             "0.0.0.0 for every one of this machine, or nfs_path)",
                             receiver.host));
  }
  if (receiver.port < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 "port: is missing (expected an integer from 1 to 65535)");
  }
  return receiver;
}

bool FailsOnline(const precheck::OnlineReport& report, const std::vector<std::string>& conditions) {
  uint64_t errors = 0, warnings = 0, skips = 0;
  for (const precheck::RankReport& rank : report.ranks) {
    errors += rank.counts[static_cast<size_t>(precheck::CheckStatus::kError)];
    warnings += rank.counts[static_cast<size_t>(precheck::CheckStatus::kWarning)];
    skips += rank.counts[static_cast<size_t>(precheck::CheckStatus::kSkip)];
  }
  return std::ranges::any_of(conditions, [&](const std::string& condition) {
    if (condition == "skip") return skips > 0;
    return errors > 0 || (condition == "warning" && warnings > 0);
  });
}

Result<int> RunOnlineCommand(PrecheckArguments& arguments) {
  precheck::OnlineOptions options;
  PL_TRY_ASSIGN(options.receiver, ReceiverOf(arguments));
  options.check = arguments.options;
  options.check.api_timeout = Milliseconds(arguments.api_timeout);
  options.check.is_stopped = WasInterrupted;
  options.runs_device = arguments.has_device_type;
  AwaitInterrupts();
  const std::string place = options.receiver.directory.empty()
                                ? options.receiver.host
                                : "files in " + options.receiver.directory;
  options.on_listening = [&](int port) {
    PrintNote("precheck", port == 0 ? "waiting for " + place
                                    : fmt::format("waiting for trainings at {}:{}", place, port));
  };
  options.on_step = [](const std::string& line) { PrintNote("precheck", line); };
  PL_TRY_ASSIGN(const precheck::OnlineReport report, precheck::RunOnlineCheck(options));
  Print(OnlineAnswer(report));
  if (report.was_interrupted) {
    PrintError("plumb precheck: interrupted. The same command goes on\n");
    return kInterrupted;
  }
  if (FailsOnline(report, arguments.fail_on)) {
    return arguments.is_upstream() ? kUpstreamFound : kDifferencesFound;
  }
  return report.is_complete() ? 0 : kDifferencesFound;
}

// Shards stand where the result files go.
SharedWork SharedWorkOf(const PrecheckArguments& arguments) {
  const PrecheckOptions& options = arguments.options;
  return {"precheck",
          arguments.words,
          JoinPath(options.output_dir, "precheck"),
          options.bench_workers,
          {"--device", options.device_type, "--parts-per-cpu", kPartsPerCpu}};
}

const std::string& PathOf(const PrecheckArguments& arguments) {
  return arguments.path.empty() ? arguments.api_info : arguments.path;
}

Error RunPrecheckOnCluster(const PrecheckArguments& arguments) {
  PL_TRY_ASSIGN(const std::string dump, RecordingFile(PathOf(arguments), true));
  PL_TRY(precheck::FrameworkOf(dump));
  return RunOnCluster(SharedWorkOf(arguments), arguments.share);
}

// The files, the answer and the status of a pre-check that is done.
Result<int> TellDone(const PrecheckArguments& arguments,
                     const std::vector<precheck::PrecheckFormat>& formats, PrecheckReport report) {
  // What was found is told, whatever becomes of the files.
  const plumbline::Status written = WritePrecheckFiles(formats, report);
  PrintReport(report, arguments);
  PL_TRY(written);
  if (report.was_interrupted) return kInterrupted;
  const int found = arguments.is_upstream() ? kUpstreamFound : kDifferencesFound;
  return FailsOn(report, arguments.fail_on) ? found : 0;
}

// This part of the calls, for others.
Result<int> RunPrecheckShard(const PrecheckArguments& arguments) {
  const SharedWork work = SharedWorkOf(arguments);
  PL_TRY_ASSIGN(const ShardPlace place, ParseShardPlace(arguments.share.shard));
  PL_TRY(MakeDirectories(arguments.options.output_dir));
  // One of an earlier run says nothing of the device as it is now, should this run be killed.
  PL_TRY(RemoveFile(ShardPath(work.stem, place)));
  PL_TRY_ASSIGN(ShardPart part, precheck::RunPrecheckPart(arguments.options, place));
  PL_TRY(LeaveShard(work, arguments.share, std::move(part), "calls"));
  return 0;
}

// `parts`: as others have run them; null: this process runs the calls, or its part of them.
Result<int> RunPrecheckCommand(PrecheckArguments& arguments, const ShardedItems* parts = nullptr) {
  PrecheckOptions& options = arguments.options;
  if (!arguments.share.engine.empty()) return RunPrecheckOnCluster(arguments);
  PL_TRY(ApplySettings(arguments));
  if (arguments.path.empty() && arguments.api_info.empty()) {
    if (arguments.is_online || arguments.settings.is_online) return RunOnlineCommand(arguments);
    return Error(ErrorCode::kInvalidArgument, arguments.is_upstream()
                                                  ? "-api_info: is missing (expected a dump.json)"
                                                  : "name one recording: DUMP");
  }
  // Who calls upstream's commands looks for their files alone.
  if (arguments.formats.empty() && !arguments.is_upstream()) arguments.formats = {"html"};
  PL_TRY_ASSIGN(const std::vector<precheck::PrecheckFormat> formats,
                precheck::PrecheckFormatsOf(arguments.formats));
  PL_TRY_ASSIGN(options.dump_json, RecordingFile(PathOf(arguments), !arguments.is_upstream()));
  PL_TRY_ASSIGN(const std::string framework, precheck::FrameworkOf(options.dump_json));
  ApplyUpstream(arguments, framework.empty() ? options.framework : framework);
  if (arguments.jit_compile && options.device_type == "cpu") {
    PrintNote("precheck", "-j: has an effect on an NPU only");
  }
  TellWorkers(options);
  options.api_timeout = Milliseconds(arguments.api_timeout);
  if (parts != nullptr) {
    PL_TRY_ASSIGN(PrecheckReport report, precheck::MergePrecheck(options, *parts));
    return TellDone(arguments, formats, std::move(report));
  }
  Progress progress("Processing", "call");
  if (progress.is_on()) {
    options.on_progress = [&](uint64_t done, uint64_t all) { progress.Show(PartsDone(done, all)); };
  }
  options.is_stopped = WasInterrupted;
  AwaitInterrupts();
  if (!arguments.share.shard.empty()) {
    return RunPrecheckShard(arguments);
  }
  PL_TRY_ASSIGN(PrecheckReport report, RunPrecheck(options));
  return TellDone(arguments, formats, std::move(report));
}

void AddDeviceOptions(CLI::App& command, PrecheckArguments& arguments) {
  PrecheckOptions& options = arguments.options;
  command
      .add_option("--device_type,--device-type", options.device_type,
                  "device under test: auto (an NPU, else CUDA, else the CPU), npu, cuda, cpu, or "
                  "what PyTorch calls it")
      ->capture_default_str();
  command.add_option("-d,--device", options.devices, "numbers of the devices")
      ->expected(1, kMostWorkers)
      ->check(CLI::Range(0, 4095))
      ->capture_default_str();
  command
      .add_option("-n,--workers,--num_splits", options.workers,
                  "processes over all devices (default: one per device)")
      ->check(CLI::Range(1, kMostWorkers));
  command
      .add_option("-j,--jobs,--threads", options.bench_workers,
                  "processes that compute the benchmark on the CPU; 0: one per core")
      ->check(CLI::Range(0, kMostWorkers));
  command
      .add_option("--worker_threads,--worker-threads", options.worker_threads,
                  "threads of each process; others than 1 may round sums differently")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option("--api_timeout,--api-timeout", arguments.api_timeout,
                  "seconds after which a call is given up")
      ->check(Seconds())
      ->capture_default_str();
  command.add_flag("--jit_compile", arguments.jit_compile, "compile operators of an NPU")
      ->group("");
}

void AddOnlineOptions(CLI::App& command, PrecheckArguments& arguments) {
  command.add_flag("--online", arguments.is_online,
                   "take the calls of trainings while they run, in place of a recording");
  command.add_option("--host", arguments.host, "with --online: IPv4 address to listen at");
  command.add_option("--port", arguments.port, "with --online: port, 1 to 65535; 0: a free one")
      ->check(CLI::Range(0, 65535));
  command
      .add_option(
          "--tls_path,--tls-path", arguments.tls_path,
          "with --online: directory with server.key, server.crt and ca.crt; \"\": plain TCP")
      ->type_name("DIR");
  command
      .add_option("--nfs_path,--nfs-path", arguments.nfs_path,
                  "with --online: a directory that the trainings have too, in place of a port")
      ->type_name("DIR");
  command
      .add_option("--rank_list,--rank-list", arguments.rank_list,
                  "with --online: ranks to wait for, with commas; none: any")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(NaturalNumber());
  command
      .add_option("--idle_timeout,--idle-timeout", arguments.idle_timeout,
                  "with --online: seconds without anything from a training after which it ends")
      ->check(Seconds())
      ->capture_default_str();
}

void AddOptions(CLI::App& command, PrecheckArguments& arguments) {
  PrecheckOptions& options = arguments.options;
  command.add_option("dump", arguments.path, "dump.json, or a rank or step directory");
  command.add_option("--api_info,--api_info_file", arguments.api_info, "the same")->group("");
  AddOutput(command, options.output_dir, "directory of the result files", "--out_path")
      ->capture_default_str();
  AddDeviceOptions(command, arguments);
  command.add_option("--seed", arguments.seed, "of drawn inputs (default: 1234)");
  command
      .add_option("--csv_path,--csv-path,--result_csv_path", options.resume_path,
                  "result file of an interrupted run to go on with (also -csv_path)")
      ->type_name("FILE");
  command.add_flag("--retry_skip,--retry-skip", options.retry_skipped,
                   "with --csv_path: run calls again that were skipped");
  command.add_flag("-f,--dedup,--filter_api", options.plan.dedupe,
                   "of calls that differ in values alone run the first one");
  command
      .add_option("--config,--config_path", options.config_path,
                  "config.json with white and black lists (also -config)")
      ->type_name("FILE");
  command.add_flag("--save_error_data,--save-error-data", options.save_error_data,
                   "keep inputs and results of calls that do not pass (also -save_error_data)");
  command
      .add_option("--max_abs_err,--max-abs-err", options.max_abs_error,
                  "of a MindSpore recording: the largest absolute error that is none")
      ->check(PositiveNumber())
      ->capture_default_str();
  command.add_flag("--sorted", options.sorted, "rows in the order of the recording at the end");
  command.add_option("--python", options.python, "the interpreter that has the framework")
      ->type_name("FILE");
  command
      .add_option("--fail-on,--fail_on", arguments.fail_on,
                  "end with status 1 if there is any of these")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"error", "warning", "skip"}));
  command
      .add_option("--format", arguments.formats,
                  "files beside the csv files, several with commas: xlsx, html, junit; csv: none "
                  "(default: html)")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddJson(command, arguments.machine, "the summary");
  AddShareOptions(command, arguments.share, "many calls", "run them as tasks of Ray");
  AddOnlineOptions(command, arguments);
  command.add_option("--as", arguments.as, "upstream's command")
      ->check(CLI::IsMember({"run_ut", "multi_run_ut"}))
      ->group("");
  command.add_option("--recorded-with", options.framework, "what upstream's -f said")->group("");
}

int TellFailure(const PrecheckArguments& arguments, const Error& error) {
  const int status = ReportError("precheck", error);
  return arguments.is_upstream() ? kUpstreamFailed : status;
}

}  // namespace

Result<int> MergePrecheckShards(const ShardRequest& request,
                                const std::vector<std::string>& files) {
  CLI::App command;
  PrecheckArguments arguments;
  AddOptions(command, arguments);
  PL_TRY(ParseShardWords(command, request.words, request.directory, files.front()));
  PL_TRY_ASSIGN(const ShardedItems shards, ReadShardedItems(files));
  SetLogStream(LogStream::kStderr);
  const Result<int> status = RunPrecheckCommand(arguments, &shards);
  return status ? *status : TellFailure(arguments, status.error());
}

void AddPrecheckCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<PrecheckArguments>();
  CLI::App* command = app.add_subcommand(
      "precheck", "Run every recorded call again and say which ones a device computes wrong.");
  AddOptions(*command, *arguments);
  command->footer(FooterText(
      "Each call of the recording is run on the device and, in raised precision, on the CPU, with "
      "the recorded tensors or with inputs drawn from their statistics. The Python interpreter is "
      "--python, PLUMBLINE_PYTHON, or the one beside plumb or of PATH.",
      {"plumb precheck runs/new/step0/rank0",
       "plumb precheck dump.json --device_type npu -d 0 1 -n 8",
       "plumb precheck dump.json --csv_path accuracy_checking_result_20250226101112.csv",
       "plumb precheck dump.json -o out --shard 0/2",
       "plumb precheck dump.json -o out --shard 1/2 && plumb merge out"},
      {{1, "--fail-on found something"},
       {kInterrupted,
        "interrupted; what was judged is in the files, from which --csv_path goes on. A part "
        "leaves none: run it again"}}));
  command->callback([arguments, command, &exit_status] {
    SetLogStream(LogStream::kStderr);
    const CLI::Option* const device = command->get_option_no_throw("--device_type");
    arguments->has_device_type = device != nullptr && device->count() > 0;
    if (const std::string problem = UsageProblemOf(*arguments, *command); !problem.empty()) {
      exit_status = ReportError("precheck", Error(ErrorCode::kInvalidArgument, problem));
      return;
    }
    arguments->words = WordsOf(*command, kNotOfPrecheck);
    const Result<int> status = RunPrecheckCommand(*arguments);
    if (!status && WasInterrupted()) {
      PrintError("plumb precheck: interrupted\n");
      exit_status = kInterrupted;
      return;
    }
    exit_status = status ? *status : TellFailure(*arguments, status.error());
  });
}

}  // namespace plumbline::cli

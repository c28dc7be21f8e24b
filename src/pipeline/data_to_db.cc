#include "pipeline/data_to_db.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "formats/dump_json.h"
#include "formats/keep_last.h"
#include "formats/trend_db.h"
#include "load/detect.h"
#include "load/rank_directories.h"
#include "pipeline/ranks/micro_steps.h"
#include "pipeline/trend_rows.h"
#include "record/run_files.h"

namespace plumbline {
namespace {

constexpr std::string_view kDatabase = "dump_data.trend.db";
constexpr std::string_view kProcess = "proc";

struct RankFiles {
  int64_t rank = 0;
  std::string dump_path, construct_path;
};

struct StepFiles {
  int64_t step = 0;
  std::vector<RankFiles> ranks;
};

Result<NameMapping> ReadMapping(const std::string& path) {
  NameMapping mapping;
  if (path.empty()) return mapping;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const auto wrong = [&](std::string_view problem) {
    return Error(
        ErrorCode::kCorrupt,
        fmt::format("{}: {} (expected {{\"old text\": \"new text\", ...}})", path, problem));
  };
  json::Reader in(text);
  if (in.Peek() != json::Kind::kObject) return wrong("no JSON object");
  std::string_view key, value;
  in.EnterObject();
  while (in.NextMember(key)) {
    std::string old_text(key);
    if (old_text.empty()) return wrong("an old text is empty");
    if (in.Peek() != json::Kind::kString) {
      return wrong(fmt::format("the new text of \"{}\" is no text", old_text));
    }
    if (!in.ReadString(value)) break;
    mapping.emplace_back(std::move(old_text), value);
  }
  if (in.failed() || !in.ReadEnd()) return in.error().In(path);
  KeepLastOfEach(mapping, [](const auto& row) -> const std::string& { return row.first; });
  return mapping;
}

// Directories of the training monitor: {time}-rank{R}-{words}.
bool IsMonitorName(std::string_view name) {
  constexpr std::string_view kMark = "-rank";
  const size_t at = name.find(kMark);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = name.substr(at + kMark.size());
  const size_t digits = rest.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && rest[digits] == '-';
}

uint64_t ProcessId(std::string_view name) {
  uint64_t pid = 0;
  std::from_chars(name.data() + kProcess.size(), name.data() + name.size(), pid);
  return pid;
}

// Finds the files, before anything is written.
class Scanner {
 public:
  explicit Scanner(DataToDbReport& report) : report_(report) {}

  Result<std::vector<StepFiles>> Run(const std::string& data) {
    if (KindOf(data) != PathKind::kDirectory) {
      return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", data));
    }
    PL_TRY_ASSIGN(const auto directories, load::ListStepDirectories(data));
    if (directories.empty()) return NoSteps(data);
    std::vector<StepFiles> steps;
    for (const load::StepDirectory& directory : directories) {
      PL_TRY_ASSIGN(StepFiles step, ScanStep(directory));
      if (!step.ranks.empty()) steps.push_back(std::move(step));
    }
    if (steps.empty()) {
      for (std::string& warning : report_.warnings) why_ += " " + std::move(warning) + ".";
      return Error(ErrorCode::kNotFound,
                   fmt::format("{}: no step directory holds a dump.json.{}", data, why_));
    }
    return steps;
  }

 private:
  static Error NoSteps(const std::string& data) {
    const auto names = ListDirectory(data);
    if (names && std::any_of(names->begin(), names->end(), IsMonitorName)) {
      return Error(ErrorCode::kUnsupported,
                   fmt::format("{}: data of the training monitor, which cannot be imported yet "
                               "(expected step directories of a dump)",
                               data));
    }
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no step directory (expected names such as step0). Name the "
                             "directory that holds them.",
                             data));
  }

  Result<StepFiles> ScanStep(const load::StepDirectory& directory) {
    StepFiles step{directory.step, {}};
    PL_TRY_ASSIGN(const auto found, load::ListRankDirectories(directory.path));
    std::vector<load::RankDirectory> processes;
    for (const load::RankDirectory& rank : found) {
      if (!HasDump(rank.path)) continue;
      if (rank.name.starts_with(kProcess)) {
        processes.push_back(rank);
      } else if (rank.rank) {
        Add(step, *rank.rank, rank.path);
      } else {
        report_.warnings.push_back(
            fmt::format("{}: left out, another process has its rank", rank.path));
      }
    }
    if (found.empty()) NoteNoRanks(directory.path);
    std::sort(processes.begin(), processes.end(),
              [](const auto& a, const auto& b) { return ProcessId(a.name) < ProcessId(b.name); });
    for (const load::RankDirectory& process : processes) {
      const int64_t rank = step.ranks.empty() ? 0 : step.ranks.back().rank + 1;
      report_.notes.push_back(fmt::format("step {}: {} is rank {}", step.step, process.name, rank));
      Add(step, rank, process.path);
    }
    return step;
  }

  bool HasDump(const std::string& path) {
    const bool unfinished = load::StateOf(path).unfinished;
    const bool there = KindOf(JoinPath(path, run_files::kDumpJson)) == PathKind::kFile;
    if (!there) report_.warnings.push_back(fmt::format("{}: no dump.json", path));
    if (unfinished) {
      report_.warnings.push_back(fmt::format(
          "{}: unfinished, calls are missing; `plumb recover` completes a killed run", path));
    }
    return there;
  }

  static void Add(StepFiles& step, int64_t rank, const std::string& path) {
    step.ranks.push_back(
        {rank, JoinPath(path, run_files::kDumpJson), JoinPath(path, run_files::kConstructJson)});
  }

  void NoteNoRanks(const std::string& path) {
    const auto names = ListDirectory(path);
    const std::string others = names ? fmt::format("{}", fmt::join(*names, ", ")) : "";
    report_.warnings.push_back(fmt::format("{}: no rank directory (there is: {})", path,
                                           others.empty() ? "nothing" : others));
  }

  DataToDbReport& report_;
  std::string why_;
};

Result<dump_json::CallTree> ReadTree(const std::string& path) {
  auto tree = dump_json::ReadCallTree(path);
  if (!tree && tree.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: missing, and it tells the micro steps. Import whole steps with "
                             "--micro_step false.",
                             path));
  }
  return tree;
}

// Whether the modules of every file have one root, or Megatron counted.
Result<bool> CanTellMicroSteps(const std::vector<StepFiles>& steps, DataToDbReport& report) {
  for (const StepFiles& step : steps) {
    for (const RankFiles& rank : step.ranks) {
      PL_TRY_ASSIGN(const dump_json::CallTree tree, ReadTree(rank.construct_path));
      if (tree.has_micro_steps) continue;
      const std::vector<std::string> roots = RootNames(tree);
      if (roots.size() < 2) continue;
      report.notes.push_back(fmt::format(
          "{}: {} outermost modules ({}, {}{}), so micro steps are not told apart; --micro_step "
          "true starts one at each call of the first",
          rank.construct_path, roots.size(), roots[0], roots[1], roots.size() > 2 ? ", ..." : ""));
      return false;
    }
  }
  return true;
}

// `text` is that of dump.json.
Result<std::unique_ptr<const MicroSteps>> DeriveMicroSteps(const RankFiles& files,
                                                           std::string_view text) {
  PL_TRY_ASSIGN(const dump_json::CallTree tree, ReadTree(files.construct_path));
  const auto names = dump_json::ParseNames(text);
  if (!names) return names.error().In(files.dump_path);
  auto steps = MicroSteps::Derive(tree, *names);
  if (!steps) return steps.error().In(files.construct_path);
  return std::make_unique<const MicroSteps>(*std::move(steps));
}

// Writes the rows of all files.
class Importer {
 public:
  Importer(trend_db::Writer& writer, const NameMapping& mapping, DataToDbReport& report)
      : writer_(writer), mapping_(mapping), report_(report) {}

  // `start`: row step of the file's first micro step. The result is the number of micro steps.
  Result<int64_t> Import(const RankFiles& files, int64_t start) {
    PL_TRY_ASSIGN(const auto mapped, MappedFile::Open(files.dump_path));
    const auto bytes = mapped->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::unique_ptr<const MicroSteps> micro_steps;
    if (report_.micro_steps) {
      PL_TRY_ASSIGN(micro_steps, DeriveMicroSteps(files, text));
    }
    PL_TRY(writer_.Begin());
    Status status;
    const auto visited =
        dump_json::VisitDump(text, /*salvage=*/false, [&](dump_json::VisitedCall&& visit) {
          if (!status) return;
          int64_t step = start;
          if (micro_steps) {
            MicroSteps::Place place = micro_steps->Of(visit.call.name);
            visit.call.name = std::move(place.name);
            step += place.micro_step;
          }
          status = Add(visit.call, files.rank, step);
        });
    PL_TRY(status);
    if (!visited) return visited.error().In(files.dump_path);
    PL_TRY(writer_.Commit());
    return micro_steps ? micro_steps->count() : 1;
  }

 private:
  Status Add(Call& call, int64_t rank, int64_t step) {
    call.name = MapName(std::move(call.name), mapping_);
    for (trend_db::Row& row : TrendRows(call)) {
      row.rank = rank;
      row.step = step;
      PL_TRY_ASSIGN(const bool added, writer_.Add(row));
      ++(added ? report_.rows[static_cast<size_t>(row.metric)] : report_.left_out);
    }
    return {};
  }

  trend_db::Writer& writer_;
  const NameMapping& mapping_;
  DataToDbReport& report_;
};

Status ImportAll(const std::vector<StepFiles>& steps, Importer& importer,
                 const DataToDbOptions& options, DataToDbReport& report) {
  uint64_t all = 0, done = 0;
  for (const StepFiles& step : steps) all += step.ranks.size();
  int64_t start = 0;
  for (const StepFiles& step : steps) {
    int64_t longest = 0;
    for (const RankFiles& rank : step.ranks) {
      if (options.progress) options.progress(done++, all);
      PL_TRY_ASSIGN(const int64_t count,
                    importer.Import(rank, report.micro_steps ? start : step.step));
      longest = std::max(longest, count);
      report.max_rank = std::max(report.max_rank, rank.rank);
    }
    start += longest;
  }
  if (options.progress) options.progress(all, all);
  report.steps = steps.size();
  report.min_step = report.micro_steps ? 0 : steps.front().step;
  report.max_step = report.micro_steps ? start - 1 : steps.back().step;
  return {};
}

}  // namespace

Result<DataToDbReport> DataToDb(const std::string& data, const std::string& output,
                                const DataToDbOptions& options) {
  DataToDbReport report;
  PL_TRY_ASSIGN(const NameMapping mapping, ReadMapping(options.mapping_path));
  PL_TRY_ASSIGN(const std::vector<StepFiles> steps, Scanner(report).Run(data));
  if (options.micro_steps) {
    report.micro_steps = *options.micro_steps;
  } else {
    PL_TRY_ASSIGN(report.micro_steps, CanTellMicroSteps(steps, report));
  }
  PL_TRY(MakeDirectories(output));
  report.path = JoinPath(output, kDatabase);
  const PathKind old = KindOf(report.path);
  if (old == PathKind::kDirectory) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: a directory (expected a file or nothing)", report.path));
  }
  PL_TRY_ASSIGN(trend_db::Writer writer, trend_db::Writer::Create(report.path, &TrendTags));
  Importer importer(writer, mapping, report);
  PL_TRY(ImportAll(steps, importer, options, report));
  report.targets = writer.target_count();
  if (report.targets == 0) {
    return Error(
        ErrorCode::kNotFound,
        fmt::format("{}: no recorded tensor in any dump.json, so there is no trend", data));
  }
  PL_TRY(writer.Finish({report.max_rank, report.min_step, report.max_step}));
  if (old != PathKind::kMissing) {
    report.warnings.push_back(fmt::format("{}: the existing database was replaced", report.path));
  }
  return report;
}

}  // namespace plumbline

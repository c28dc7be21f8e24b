#include "operators/convert_dumps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/input_files.h"
#include "base/process/parallel.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/acl/acl_file_name.h"
#include "load/dump_files.h"
#include "operators/convert_file.h"
#include "record/call_name.h"
#include "record/run_files.h"

namespace plumbline::operators {

namespace {

constexpr std::string_view kName = ".plumb_convert_journal";
constexpr size_t kFixedCells = 3;  // path, size, time; path and size of each output follow

using Done = std::map<std::string, ConvertedFile>;

bool ReadOutputs(const csv::Row& row, ConvertedFile& file) {
  for (size_t i = kFixedCells; i + 1 < row.size(); i += 2) {
    const auto size = ParseNatural(row[i + 1]);
    if (!size) return false;
    file.outputs.push_back({row[i], static_cast<uint64_t>(*size)});
  }
  return (row.size() - kFixedCells) % 2 == 0;
}

// Rows of a journal for the same request; nothing of another one or of damaged text. The last line
// may be cut.
Done ReadDone(const std::string& text, const std::string& wanted) {
  Done done;
  const size_t end = text.rfind('\n');
  if (end == std::string::npos) return done;
  const Result<std::vector<csv::Row>> rows = csv::Parse(std::string_view(text).substr(0, end + 1));
  if (!rows || rows->empty() || rows->front() != csv::Row{wanted}) return done;
  for (size_t i = 1; i < rows->size(); ++i) {
    const csv::Row& row = (*rows)[i];
    if (row.size() < kFixedCells) continue;
    const auto size = ParseNatural(row[1]);
    const auto time = ParseInteger(row[2]);
    if (!size || !time) continue;
    ConvertedFile file{row[0], static_cast<uint64_t>(*size), *time, {}};
    if (ReadOutputs(row, file)) done[row[0]] = std::move(file);
  }
  return done;
}

DumpFailure CannotWrite(const Error& error) { return Failed(DumpCode::kWriteError, error); }

}  // namespace

DumpResult<ConvertJournal> ConvertJournal::Open(const std::string& directory,
                                                const std::string& wanted) {
  const std::string path = JoinPath(directory, kName);
  Done done;
  if (const Result<std::string> text = ReadFile(path)) done = ReadDone(*text, wanted);
  // Written anew: what a killed run left may end inside a line.
  std::string text;
  csv::AppendRow(csv::Row{wanted}, text);
  Result<File> file = File::Create(path);
  if (!file) return CannotWrite(file.error());
  ConvertJournal journal(path, *std::move(file), {});
  const Status begun = journal.file_.Write(text);
  if (!begun) return CannotWrite(begun.error());
  for (const auto& [name, converted] : done) PL_TRY(journal.Add(converted));
  journal.done_ = std::move(done);
  return journal;
}

bool ConvertJournal::IsDone(const std::string& path) const {
  const auto found = done_.find(path);
  if (found == done_.end()) return false;
  const Result<uint64_t> size = FileSize(path);
  const Result<int64_t> time = ModifiedAt(path);
  const ConvertedFile& file = found->second;
  if (!size || !time || *size != file.size_bytes || *time != file.modified_at) return false;
  return std::ranges::all_of(file.outputs, [](const PlacedFile& output) {
    const Result<uint64_t> left = FileSize(output.path);
    return KindOf(output.path) == PathKind::kFile && left && *left == output.bytes;
  });
}

DumpStatus ConvertJournal::Add(const ConvertedFile& file) {
  csv::Row row{file.path, std::to_string(file.size_bytes), std::to_string(file.modified_at)};
  for (const PlacedFile& output : file.outputs) {
    row.push_back(output.path);
    row.push_back(std::to_string(output.bytes));
  }
  std::string line;
  csv::AppendRow(row, line);
  const std::lock_guard lock(mutex_);
  const Status written = file_.Write(line);
  if (!written) return CannotWrite(written.error());
  return {};
}

DumpStatus ConvertJournal::Finish() {
  const Status closed = file_.Close();
  if (!closed) return CannotWrite(closed.error());
  const Status removed = RemoveFile(path_);
  if (!removed) return CannotWrite(removed.error());
  return {};
}

Result<std::vector<std::string>> ConvertTreeToHost(const std::string& root) {
  PL_TRY_ASSIGN(load::DumpFiles found, load::FindDumpFiles(root, {.recursive = true}));
  const auto is_array = [](const std::string& path) { return path.ends_with(".npy"); };
  if (found.files.empty() && std::ranges::any_of(found.left_out, is_array)) {
    return std::vector<std::string>();  // the dump was written so (file_format npy)
  }
  if (found.files.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no file of a device among {} files (expected names as "
                             "type.name.task.stream.time)",
                             root, found.left_out.size()));
  }
  ConvertRequest request;
  request.dump_path = request.output_directory = root;
  request.format = "NCHW";
  request.recursive = true;
  request.kind = OutputKind::kGraphNpy;
  request.failure_list = run_files::kConvertTreeFailures;
  DumpResult<ConvertReport> report = ConvertFound(request, std::move(found));
  if (!report) return Error(ErrorCode::kIo, report.error().text);
  return std::move(report->failed_files);
}

namespace {

struct Inputs {
  std::vector<load::DumpPath> files;
  size_t left_out = 0;
  bool is_single = false;
  std::vector<std::string> notes;
};

// What was found in the directory of a request.
DumpResult<Inputs> InputsOf(const ConvertRequest& request, load::DumpFiles found) {
  if (!found.unreadable.empty()) return Failed(DumpCode::kInvalidPath, found.unreadable.front());
  if (found.files.empty() && found.left_out.empty()) {
    return DumpFailure{DumpCode::kInvalidParameter,
                       fmt::format("{}: The dump path is empty.", request.dump_path)};
  }
  if (found.files.empty()) {
    return DumpFailure{DumpCode::kInvalidParameter,
                       fmt::format("{}: no dump file among {} files (expected names as "
                                   "type.name.task.stream.time). Name the file itself",
                                   request.dump_path, found.left_out.size())};
  }
  Inputs inputs;
  inputs.files = std::move(found.files);
  inputs.left_out = found.left_out.size();
  inputs.notes = std::move(found.notes);
  return inputs;
}

// A path that exists is taken as it is, also with commas in it.
DumpResult<Inputs> FindInputs(const ConvertRequest& request) {
  if (KindOf(request.dump_path) == PathKind::kDirectory) {
    load::DumpSearch search{request.recursive || request.by_operator, request.takes_atb};
    Result<load::DumpFiles> found = load::FindDumpFiles(request.dump_path, search);
    if (found && found->files.empty() && !search.recursive) {
      // The directory of a run holds its dumps some levels below.
      search.recursive = true;
      found = load::FindDumpFiles(request.dump_path, search);
    }
    if (!found) return Failed(DumpCode::kInvalidPath, found.error());
    return InputsOf(request, *std::move(found));
  }
  Inputs inputs;
  const bool is_whole = KindOf(request.dump_path) != PathKind::kMissing;
  const std::vector<std::string_view> paths =
      is_whole ? std::vector<std::string_view>{request.dump_path} : SplitAt(request.dump_path, ',');
  std::set<std::string_view> known;
  for (const std::string_view path : paths) {
    if (path.empty()) {
      return DumpFailure{DumpCode::kInvalidParameter,
                         fmt::format("\"{}\": an empty name (expected a path, or paths between "
                                     "single commas)",
                                     request.dump_path)};
    }
    if (known.insert(path).second) {
      inputs.files.push_back({std::string(path), std::string(BaseName(path)), ""});
    } else {
      inputs.notes.push_back(fmt::format("{}: named more than once; converted once", path));
    }
  }
  inputs.is_single = inputs.files.size() == 1;
  if (paths.size() == 1 && !is_whole) {
    return DumpFailure{DumpCode::kInvalidPath,
                       fmt::format("{}: no such file or directory", request.dump_path)};
  }
  return inputs;
}

// Where the outputs of each dump belong: a directory of its operator and time. Other names, of
// files that were given one by one, have none.
void PlaceByOperator(std::vector<load::DumpPath>& files) {
  for (load::DumpPath& file : files) {
    const std::optional<acl::DumpFileName> name = acl::ParseDumpFileName(file.name);
    file.directory = name ? JoinPath(MangledKernel(name->op_name), name->timestamp) : "";
  }
}

// Everything that decides what the outputs hold and where they are.
std::string WantedText(const ConvertRequest& request) {
  return fmt::format("plumb convert {} type={} format={} shape={} output={} input={} own={}{}",
                     request.dump_path, static_cast<int>(request.kind), request.format,
                     request.shape, request.output_index, request.input_index,
                     request.custom_script_path, request.by_operator ? " by operator" : "");
}

class Run {
 public:
  Run(const ConvertRequest& request, ConvertOptions options, Inputs inputs)
      : request_(request), options_(std::move(options)), inputs_(std::move(inputs)) {}

  DumpResult<ConvertReport> Convert() {
    const std::string list = JoinPath(request_.output_directory, request_.failure_list);
    PL_TRY(CheckSpares(list));
    PL_TRY(OpenOutputs());
    const Status removed = RemoveFile(list);
    if (!removed) return Failed(DumpCode::kWriteError, removed.error());
    PL_TRY_ASSIGN(ConvertJournal journal,
                  ConvertJournal::Open(request_.output_directory, WantedText(request_)));
    ConvertAll(journal);
    PL_TRY(WriteFailures(list));
    PL_TRY(journal.Finish());
    return Report();
  }

 private:
  struct Outcome {
    bool done_before = false;
    bool has_same_name = false;  // of an earlier dump; not converted
    uint64_t size_bytes = 0;
    FileConversion conversion;
  };

  // Outputs take the place of links, not of what those lead to; the list of failures may be a name
  // of any input.
  [[nodiscard]] DumpStatus CheckSpares(const std::string& list) const {
    std::vector<std::string> paths;
    for (const load::DumpPath& file : inputs_.files) paths.push_back(file.path);
    const Status spared = InputFiles(std::move(paths)).CheckSpares(list);
    if (!spared) return Failed(DumpCode::kInvalidParameter, spared.error());
    return CheckSparesInputs(inputs_.files, request_.output_directory, options_);
  }

  // One below the output directory that cannot be made (a name too long) fails its dumps alone.
  DumpStatus OpenOutputs() {
    const Status made = MakeDirectories(request_.output_directory);
    if (!made) return Failed(DumpCode::kInvalidPath, made.error());
    for (const load::DumpPath& file : inputs_.files) {
      if (directories_.contains(file.directory)) continue;
      const std::string path = file.directory.empty()
                                   ? request_.output_directory
                                   : JoinPath(request_.output_directory, file.directory);
      directories_.emplace(file.directory, OutputDirectory::Open(path));
    }
    return {};
  }

  // Outputs have the name of their dump: of several in one directory none may mix with another.
  void FindSameNamed() {
    std::map<std::pair<std::string, std::string>, size_t> first;
    for (size_t i = 0; i < inputs_.files.size(); ++i) {
      const load::DumpPath& file = inputs_.files[i];
      const auto [entry, is_first] = first.try_emplace({file.directory, file.name}, i);
      if (is_first) continue;
      outcomes_[i].has_same_name = true;
      outcomes_[i].conversion.failures.push_back(
          {"",
           {DumpCode::kWriteError,
            fmt::format("{}: another dump has an output of this name ({}). Convert them into "
                        "different directories",
                        file.path, inputs_.files[entry->second].path)}});
    }
  }

  void ConvertAll(ConvertJournal& journal) {
    outcomes_.resize(inputs_.files.size());
    FindSameNamed();
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      outcomes_[i].size_bytes = FileSize(inputs_.files[i].path).value_or(0);
      progress_.all_bytes += outcomes_[i].size_bytes;
    }
    progress_.all_files = outcomes_.size();
    // The largest first, so that no thread begins with one when the others are done.
    std::vector<size_t> order(outcomes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(),
                             [&](size_t i) { return outcomes_[i].size_bytes; });
    RunWithThreads(request_.threads, [&] {
      ParallelFor(order.size(), [&](size_t i) {
        // A thread that waits for parts of a tensor must not begin with another file.
        RunIsolated([&] { ConvertOne(order[i], journal); });
      });
    });
  }

  void ConvertOne(size_t i, ConvertJournal& journal) {
    const load::DumpPath& file = inputs_.files[i];
    Outcome& outcome = outcomes_[i];
    DumpResult<OutputDirectory>& directory = directories_.at(file.directory);
    outcome.done_before = !outcome.has_same_name && journal.IsDone(file.path);
    if (!directory) {
      outcome.conversion.failures.push_back({"", directory.error()});
    } else if (!outcome.done_before && !outcome.has_same_name) {
      const int64_t modified_at = ModifiedAt(file.path).value_or(0);
      outcome.conversion = ConvertFile(file.path, file.name, options_, *directory);
      if (outcome.conversion.failures.empty()) {
        const DumpStatus noted =
            journal.Add({file.path, outcome.size_bytes, modified_at, outcome.conversion.outputs});
        if (!noted) outcome.conversion.failures.push_back({"", noted.error()});
      }
    }
    const std::lock_guard lock(mutex_);
    ++progress_.files;
    progress_.bytes += outcome.size_bytes;
    if (request_.on_progress) request_.on_progress(progress_);
  }

  // One line a file: path, parts that failed, and behind a tab the first reason.
  DumpStatus WriteFailures(const std::string& list) {
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      const std::vector<ConvertFailure>& failures = outcomes_[i].conversion.failures;
      if (failures.empty()) continue;
      std::string& line = report_.failed_files.emplace_back(inputs_.files[i].path);
      for (const ConvertFailure& one : failures) {
        if (!one.part.empty()) line += "," + one.part;
      }
      line += "\t" + failures.front().failure.text;
    }
    if (report_.failed_files.empty()) return {};
    const Status written = WriteFileAtomically(
        list, fmt::format("{}\n", fmt::join(report_.failed_files, "\n")), /*durable=*/false);
    if (!written) return Failed(DumpCode::kWriteError, written.error());
    report_.failure_list = list;
    return {};
  }

  ConvertReport Report() {
    report_.files = outcomes_.size();
    report_.left_out = inputs_.left_out;
    report_.notes = std::move(inputs_.notes);
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      FileConversion& one = outcomes_[i].conversion;
      const std::string& path = inputs_.files[i].path;
      report_.done_before += outcomes_[i].done_before ? 1 : 0;
      report_.failed += one.failures.empty() ? 0 : 1;
      for (PlacedFile& output : one.outputs) {
        report_.outputs.push_back(std::move(output.path));
        report_.output_bytes += output.bytes;
      }
      for (const std::string& note : one.notes) report_.notes.push_back(path + ": " + note);
      for (const ConvertFailure& failure : one.failures) AddFailure(path, failure);
    }
    return std::move(report_);
  }

  void AddFailure(const std::string& path, const ConvertFailure& failure) {
    if (!report_.code) report_.code = failure.failure.code;
    std::string where;
    if (!failure.part.empty()) where = fmt::format("{}: {}: ", path, failure.part);
    report_.lines.push_back(fmt::format("{}{} (error {})", where, failure.failure.text,
                                        static_cast<int>(failure.failure.code)));
  }

  const ConvertRequest& request_;
  ConvertOptions options_;
  Inputs inputs_;
  std::map<std::string, DumpResult<OutputDirectory>> directories_;  // by that below the output
  std::vector<Outcome> outcomes_;
  std::mutex mutex_;
  ConvertRequest::Progress progress_;
  ConvertReport report_;
};

DumpResult<ConvertReport> ConvertInputs(const ConvertRequest& request, ConvertOptions options,
                                        Inputs inputs) {
  if (request.by_operator) PlaceByOperator(inputs.files);
  std::vector<std::string> notes;
  if (options.own) notes = options.own->warnings();
  if (!inputs.is_single &&
      (options.only_input || options.only_output || (options.layout && options.layout->sizes))) {
    notes.emplace_back("-o, -i and -s are for a single file and were left out");
    options.only_input.reset();
    options.only_output.reset();
    options.layout->sizes.reset();
  }
  PL_TRY_ASSIGN(ConvertReport report,
                Run(request, std::move(options), std::move(inputs)).Convert());
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  return report;
}

}  // namespace

DumpResult<ConvertReport> ConvertDumps(const ConvertRequest& request) {
  PL_TRY_ASSIGN(ConvertOptions options, CheckConvert(request));
  PL_TRY_ASSIGN(Inputs inputs, FindInputs(request));
  return ConvertInputs(request, std::move(options), std::move(inputs));
}

DumpResult<ConvertReport> ConvertFound(const ConvertRequest& request, load::DumpFiles found) {
  PL_TRY_ASSIGN(ConvertOptions options, CheckConvert(request));
  PL_TRY_ASSIGN(Inputs inputs, InputsOf(request, std::move(found)));
  return ConvertInputs(request, std::move(options), std::move(inputs));
}

}  // namespace plumbline::operators

#include "inspect/export_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "formats/array/npy.h"
#include "formats/json/dump_json.h"
#include "formats/json/json_feed.h"
#include "formats/pytorch/tensor_convert.h"
#include "record/run_files.h"
#include "store/recover.h"
#include "store/run_layout.h"

namespace plumbline {
namespace {

constexpr size_t kMaxDepth = 16;  // directory levels
constexpr std::string_view kPt = ".pt";

// One tensor file and what becomes of it.
struct TensorCopy {
  std::string source, target;  // paths
  bool convert = false;        // `target` has the other extension
};

// One directory of the source that holds a recording.
struct DumpCopy {
  std::string source, target;
  bool has_journal = false;
  std::unordered_set<std::string> converted;  // names, with the extension of the source
};

struct Plan {
  std::vector<std::string> directories;                     // to create
  std::vector<std::pair<std::string, std::string>> others;  // files to copy: source, target
  std::vector<DumpCopy> dumps;
  std::vector<std::vector<TensorCopy>> tensors;  // by dump
};

bool IsRewritten(std::string_view name) {
  return name == run_files::kDumpJson || name == run_files::kDebugJson;
}

// The name in the wanted format; nothing when it has that already, or is no tensor file.
std::optional<std::string> ConvertedName(std::string_view name, TensorFormat format) {
  const std::string_view from = format == TensorFormat::kNpy ? kPt : npy::kEnding;
  const std::string_view to = format == TensorFormat::kNpy ? npy::kEnding : kPt;
  if (format == TensorFormat::kAsIs || !name.ends_with(from)) return std::nullopt;
  return std::string(name.substr(0, name.size() - from.size())) + std::string(to);
}

Error LinkRefused(const std::string& path) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: a symbolic link (expected files and directories only). Replace it "
                           "by what it points to.",
                           path));
}

// Lists the source, before anything is written.
class Planner {
 public:
  Planner(const ExportOptions& options, ExportReport& report)
      : options_(options), report_(report) {}

  Result<Plan> Run(const std::string& source, const std::string& target) {
    PL_TRY(Walk(source, target, 0));
    return std::move(plan_);
  }

 private:
  Status Walk(const std::string& source, const std::string& target, size_t depth) {
    if (depth > kMaxDepth) {
      return Error(ErrorCode::kUnsupported, fmt::format("{}: nested too deeply", source));
    }
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(source));
    const auto has = [&](std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    plan_.directories.push_back(target);
    const bool journal = has(run_files::kJournal);
    const bool is_dump = journal || has(run_files::kDumpJson) || has(run_files::kDebugJson);
    if (is_dump) {
      plan_.dumps.push_back({source, target, journal, {}});
      plan_.tensors.emplace_back();
    }
    const size_t dump = plan_.dumps.size();  // one behind it
    for (const std::string& name : names) {
      const std::string from = JoinPath(source, name), to = JoinPath(target, name);
      PL_TRY_ASSIGN(const PathFacts facts, Inspect(from));
      if (facts.is_link) return LinkRefused(from);
      if (facts.kind == PathKind::kFile) {
        AddFile(name, from, to);
      } else if (facts.kind == PathKind::kDirectory && is_dump &&
                 name == run_files::kTensorDirectory) {
        PL_TRY(AddTensors(from, to, dump - 1));
      } else if (facts.kind == PathKind::kDirectory && !name.starts_with('.')) {
        PL_TRY(Walk(from, to, depth + 1));
      } else {
        report_.notes.push_back(fmt::format("{}: not copied", from));
      }
    }
    return {};
  }

  void AddFile(const std::string& name, const std::string& from, const std::string& to) {
    // Journals of earlier runs hold nothing of this one.
    if (run_layout::IsStaleJournal(name) || run_layout::IsTemporary(name)) {
      report_.notes.push_back(fmt::format("{}: not copied", from));
    } else {
      plan_.others.emplace_back(from, to);
    }
  }

  Status AddTensors(const std::string& from, const std::string& to, size_t dump) {
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(from));
    const std::unordered_set<std::string> there(names.begin(), names.end());
    plan_.directories.push_back(to);
    for (const std::string& name : names) {
      const std::string path = JoinPath(from, name);
      PL_TRY_ASSIGN(const PathFacts facts, Inspect(path));
      if (facts.is_link) return LinkRefused(path);
      if (facts.kind != PathKind::kFile || run_layout::IsTemporary(name)) {
        report_.notes.push_back(fmt::format("{}: not copied", path));
        continue;
      }
      TensorCopy copy{path, JoinPath(to, name)};
      const std::optional<std::string> other = ConvertedName(name, options_.format);
      // Two tensors must not become one file.
      if (other && !there.contains(*other)) {
        copy.convert = true;
        copy.target = JoinPath(to, *other);
        plan_.dumps[dump].converted.insert(name);
      }
      plan_.tensors[dump].push_back(std::move(copy));
    }
    return {};
  }

  const ExportOptions& options_;
  ExportReport& report_;
  Plan plan_;
};

// Carries a plan out.
class Exporter {
 public:
  Exporter(Plan plan, const ExportOptions& options, ExportReport& report)
      : plan_(std::move(plan)), options_(options), report_(report) {
    for (const auto& tensors : plan_.tensors) all_ += tensors.size();
  }

  Status Run() {
    for (const std::string& directory : plan_.directories) PL_TRY(MakeDirectories(directory));
    for (const auto& [from, to] : plan_.others) {
      // Not mapped: a journal may be growing.
      PL_TRY_ASSIGN(const std::string text, ReadFile(from));
      PL_TRY(WriteFileAtomically(to, text, /*durable=*/false));
      report_.bytes += text.size();
      if (!IsRewritten(BaseName(to))) ++report_.other_files;
    }
    for (size_t i = 0; i < plan_.dumps.size(); ++i) PL_TRY(ExportOne(i));
    return {};
  }

 private:
  struct Outcome {
    Status status;
    ConvertedTensor tensor;
    bool unsupported = false;  // cannot be converted, copied instead
  };

  Status ExportOne(size_t index) {
    DumpCopy& dump = plan_.dumps[index];
    // What a journal holds is kept only where the tensor files have the names it knows.
    if (dump.has_journal) PL_TRY(RecoverCopy(index));
    PL_TRY(WriteTensors(index));
    for (const std::string_view name : {run_files::kDumpJson, run_files::kDebugJson}) {
      const std::string path = JoinPath(dump.target, name);
      if (KindOf(path) == PathKind::kFile) PL_TRY(RewriteJson(path, dump));
    }
    return {};
  }

  // Empty stand-ins tell the recovery which tensor files exist.
  Status RecoverCopy(size_t index) {
    const DumpCopy& dump = plan_.dumps[index];
    const std::string tensors = JoinPath(dump.target, run_files::kTensorDirectory);
    std::vector<std::string> stand_ins;
    for (const TensorCopy& copy : plan_.tensors[index]) {
      stand_ins.push_back(JoinPath(tensors, BaseName(copy.source)));
      PL_TRY(WriteFileAtomically(stand_ins.back(), {}, /*durable=*/false));
    }
    PL_TRY_ASSIGN(const Recovery recovery, RecoverDirectory(dump.target));
    for (const std::string& path : stand_ins) PL_TRY(RemoveFile(path));
    report_.recovered_calls += recovery.calls;
    if (recovery.tensors_missing > 0) {
      report_.notes.push_back(
          fmt::format("{}: {} tensors have no file", dump.source, recovery.tensors_missing));
    }
    if (recovery.journal_damaged) {
      report_.notes.push_back(fmt::format(
          "{}: the journal was damaged; what could be read is in the copy", dump.source));
    }
    return {};
  }

  Status WriteTensors(size_t index) {
    const std::vector<TensorCopy>& tensors = plan_.tensors[index];
    std::vector<Outcome> outcomes(tensors.size());
    RunWithThreads(options_.threads, [&] {
      ParallelFor(tensors.size(), [&](size_t i) {
        outcomes[i] = WriteTensor(tensors[i]);
        const uint64_t done = ++done_;
        if (options_.progress) options_.progress(done, all_);
      });
    });
    for (size_t i = 0; i < tensors.size(); ++i) {
      PL_TRY(outcomes[i].status);
      ++report_.tensor_files;
      report_.bytes += outcomes[i].tensor.bytes;
      if (outcomes[i].unsupported) {
        plan_.dumps[index].converted.erase(std::string(BaseName(tensors[i].source)));
        report_.notes.push_back(
            fmt::format("{}: not one plain tensor, copied as it is", tensors[i].source));
      } else if (tensors[i].convert) {
        ++report_.converted;
        report_.widened += outcomes[i].tensor.widened ? 1 : 0;
      }
    }
    return {};
  }

  [[nodiscard]] Outcome WriteTensor(const TensorCopy& copy) const {
    Outcome outcome;
    if (copy.convert) {
      const Result<ConvertedTensor> done = options_.format == TensorFormat::kNpy
                                               ? PtToNpy(copy.source, copy.target)
                                               : NpyToPt(copy.source, copy.target);
      if (done) {
        outcome.tensor = *done;
        return outcome;
      }
      outcome.unsupported = done.error().code() == ErrorCode::kUnsupported;
      if (!outcome.unsupported) {
        outcome.status = done.error();
        return outcome;
      }
    }
    const std::string directory(DirectoryOf(copy.target));
    const Result<uint64_t> bytes =
        CopyFileBytes(copy.source, JoinPath(directory, BaseName(copy.source)));
    if (bytes) {
      outcome.tensor.bytes = *bytes;
    } else {
      outcome.status = bytes.error();
    }
    return outcome;
  }

  // Names of files and the directory of tensors as they are in the copy.
  Status RewriteJson(const std::string& path, const DumpCopy& dump) {
    PL_TRY_ASSIGN(const std::string text, ReadFile(path));
    PL_TRY_ASSIGN(const std::string tensors,
                  AbsolutePath(JoinPath(dump.target, run_files::kTensorDirectory)));
    json::RewriteOptions rewrite{.indent = 1, .strict = options_.strict_json};
    rewrite.replace = [&](std::string_view key,
                          std::string_view value) -> std::optional<std::string> {
      if (key == dump_json::kDumpDataDir) return tensors;
      if (key != dump_json::kDataName) return std::nullopt;
      if (!dump.converted.contains(std::string(value))) return std::nullopt;
      return ConvertedName(value, options_.format);
    };
    std::string out;
    if (const Status status = json::Rewrite(text, rewrite, out); !status) {
      return status.error().In(JoinPath(dump.source, BaseName(path)));
    }
    PL_TRY(WriteFileAtomically(path, out, /*durable=*/false));
    ++report_.dumps;
    return {};
  }

  Plan plan_;
  const ExportOptions& options_;
  ExportReport& report_;
  uint64_t all_ = 0;
  std::atomic<uint64_t> done_ = 0;
};

Status CheckTarget(const std::string& source, const std::string& target) {
  PathFacts facts;
  if (const Result<PathFacts> found = Inspect(target)) {
    facts = *found;
  } else if (found.error().code() != ErrorCode::kNotFound) {
    return found.error();
  }
  if (facts.is_link) return LinkRefused(target);
  if (facts.kind == PathKind::kDirectory) {
    PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(target));
    if (!names.empty()) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: not empty (holds {}). Name a new directory.", target, names.front()));
    }
  } else if (facts.kind != PathKind::kMissing) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a directory", target));
  }
  PL_TRY_ASSIGN(const std::string real_source, RealPath(source));
  PL_TRY_ASSIGN(std::string absolute, AbsolutePath(target));
  if (facts.kind == PathKind::kDirectory) {
    PL_TRY_ASSIGN(absolute, RealPath(target));
  }
  if ((absolute + "/").starts_with(real_source + "/")) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: inside {}. Name a directory outside of it.", target, source));
  }
  return {};
}

}  // namespace

Result<ExportReport> ExportDump(const std::string& source, const std::string& target,
                                const ExportOptions& options) {
  PL_TRY_ASSIGN(const PathFacts facts, Inspect(source));
  if (facts.is_link) return LinkRefused(source);
  if (facts.kind != PathKind::kDirectory) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no such directory", source));
  }
  PL_TRY(CheckTarget(source, target));
  ExportReport report;
  PL_TRY_ASSIGN(Plan plan, Planner(options, report).Run(source, target));
  if (plan.dumps.empty()) {
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no dump.json, debug.json or journal here or below", source));
  }
  PL_TRY(Exporter(std::move(plan), options, report).Run());
  return report;
}

}  // namespace plumbline

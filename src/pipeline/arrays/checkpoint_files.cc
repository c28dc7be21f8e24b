#include "pipeline/arrays/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "pipeline/arrays/compare_arrays.h"
#include "pipeline/result_names.h"

namespace plumbline {
namespace {

constexpr const char* kStem = "ckpt_similarity";
constexpr const char* kFileName = "ckpt_similarity.json";

// Where the result goes; nothing is written over. In a directory a second result gets a name of its
// own, as those of runs do; a file that the user names must be new.
Result<pipeline::FreeName> OutputPath(const std::string& output) {
  const bool is_file = output.ends_with(".json");
  std::string path = is_file ? output : JoinPath(output, kFileName);
  if (KindOf(path) == PathKind::kMissing) return pipeline::FreeName{std::move(path), std::nullopt};
  if (!is_file) return pipeline::FreePath(output, kStem, ".json");
  return Error(ErrorCode::kIo, fmt::format("{}: exists already (expected a new file, or a "
                                           "directory). Choose another place with -o",
                                           path));
}

}  // namespace

Result<CheckpointReport> CompareCheckpointFiles(const std::string& target,
                                                const std::string& golden,
                                                const CompareOptions& options) {
  const std::string& output = options.output_dir;
  const auto wants = [&](ReportFormat format) {
    return !output.empty() && std::ranges::find(options.formats, format) != options.formats.end();
  };
  const bool one_file = KindOf(target) == PathKind::kFile && target.ends_with(".npy");
  std::optional<pipeline::FreeName> name;  // held until the file is there
  if (!one_file && wants(ReportFormat::kJson)) {
    PL_TRY_ASSIGN(pipeline::FreeName free, OutputPath(output));
    name.emplace(std::move(free));
  }
  CheckpointReport report;
  PL_TRY_ASSIGN(report.comparison, CompareCheckpoints(target, golden,
                                                      {.threads = options.threads,
                                                       .on_progress = options.on_progress}));
  const bool has_workbooks = !output.ends_with(".json") && wants(ReportFormat::kXlsx) &&
                             IsArrayTree(target) && IsArrayTree(golden);
  if (has_workbooks) {
    Result<ArrayTreeReport> written = CompareArrayTrees(target, golden, output, options.threads);
    // Nothing in common is no workbook; the rows say so.
    if (!written && written.error().code() != ErrorCode::kNotFound) return written.error();
    if (written) report.files = std::move(written->files);
  }
  // The metrics of one pair are in the answer.
  if (!name || report.comparison.of_arrays) return report;
  PL_TRY(MakeDirectories(std::string(DirectoryOf(name->text))));
  PL_TRY(WriteFileAtomically(name->text, SimilarityJson(report.comparison), /*durable=*/false));
  report.files.push_back(name->text);
  return report;
}

}  // namespace plumbline

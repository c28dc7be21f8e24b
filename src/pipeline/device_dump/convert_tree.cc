#include "pipeline/device_dump/convert_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline/device_dump/convert_dumps.h"
#include "pipeline/device_dump/dump_files.h"
#include "record/run_files.h"

namespace plumbline::pipeline {

Result<std::vector<std::string>> ConvertTreeToHost(const std::string& root) {
  PL_TRY_ASSIGN(DumpFiles found, FindDumpFiles(root, {.recursive = true}));
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

}  // namespace plumbline::pipeline

// WriteComparison(): the result files of a comparison.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/parallel.h"
#include "match/layer_mapping.h"
#include "pipeline/culprit/sample_evidence.h"
#include "pipeline/result_names.h"
#include "plumbline/compare.h"
#include "report/ci_report.h"
#include "report/findings.h"
#include "report/html_report.h"
#include "report/newest_table.h"
#include "report/result_database.h"
#include "report/result_json.h"
#include "report/table.h"

namespace plumbline {
namespace {

struct FormatInfo {
  std::string_view name;
  std::string_view extension;
};
// In the order of ReportFormat.
constexpr std::array<FormatInfo, kReportFormatCount> kFormats = {{
    {"xlsx", ".xlsx"},
    {"csv", ".csv"},
    {"json", ".json"},
    {"jsonl", ".jsonl"},
    {"html", ".html"},
    {"sqlite", ".db"},
    {"junit", ".junit.xml"},
    {"sarif", ".sarif"},
}};

const FormatInfo& InfoOf(ReportFormat format) { return kFormats[static_cast<size_t>(format)]; }

// The extensions of all formats: files of one comparison share a stem that no earlier result uses.
constexpr auto kExtensions = [] {
  std::array<std::string_view, kReportFormatCount + 1> extensions;
  for (size_t i = 0; i < kReportFormatCount; ++i) extensions[i] = kFormats[i].extension;
  extensions.back() = "_part_1.csv";
  return extensions;
}();

Status WriteFormat(const Comparison& comparison, ReportFormat format, bool newest_csv,
                   const std::string& path) {
  switch (format) {
    case ReportFormat::kXlsx:
      return report::WriteXlsx(comparison, path);
    case ReportFormat::kCsv:
      return newest_csv ? report::WriteNewestCsv(comparison, path)
                        : report::WriteCsv(comparison, path);
    case ReportFormat::kJson:
      return report::WriteResultJson(comparison, path);
    case ReportFormat::kHtml: {
      const std::optional<report::Evidence> evidence = pipeline::SampleEvidence(comparison);
      const report::HtmlPart part{"", &comparison, evidence ? &*evidence : nullptr};
      return report::WriteHtml({&part, 1}, path);
    }
    case ReportFormat::kJsonl:
      return report::WriteJsonLines(comparison, path);
    case ReportFormat::kSqlite:
      return report::WriteDatabase(comparison, path);
    case ReportFormat::kJunit:
      return report::WriteJunit(report::CiReportOf(comparison), path);
    case ReportFormat::kSarif:
      return report::WriteSarif(report::CiReportOf(comparison), path);
  }
  return {};
}

}  // namespace

std::string_view ReportFormatName(ReportFormat format) { return InfoOf(format).name; }

Result<std::vector<ReportFormat>> ReportFormatsOf(const std::vector<std::string>& names) {
  std::array<bool, kReportFormatCount> chosen{};
  for (const std::string& name : names) {
    const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                     [&](const FormatInfo& info) { return info.name == name; });
    if (found == kFormats.end()) {
      std::string known;
      for (const FormatInfo& info : kFormats) {
        if (!known.empty()) known += &info == &kFormats.back() ? " or " : ", ";
        known += info.name;
      }
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("formats: unknown \"{}\" (expected {})", name, known));
    }
    chosen[static_cast<size_t>(found - kFormats.begin())] = true;
  }
  std::vector<ReportFormat> formats;
  for (size_t i = 0; i < kReportFormatCount; ++i) {
    if (chosen[i]) formats.push_back(static_cast<ReportFormat>(i));
  }
  return formats;
}

Status WriteComparison(Comparison& comparison, const CompareOptions& options) {
  const std::string& directory = options.output_dir;
  PL_TRY(MakeDirectories(directory));
  const std::string prefix =
      (comparison.of_saves ? "debug_compare_result" : "compare_result") + options.suffix;
  const pipeline::FreeName name = pipeline::FreeStamp(directory, prefix, kExtensions);
  const std::string& stem = name.text;
  std::vector<std::string> paths;
  for (const ReportFormat format : options.formats) {
    paths.push_back(
        JoinPath(directory, fmt::format("{}_{}{}", prefix, stem, InfoOf(format).extension)));
  }
  const size_t reports = paths.size();
  if (options.write_advice) {
    paths.push_back(JoinPath(directory, fmt::format("advisor{}_{}.txt", options.suffix, stem)));
  }
  std::vector<Status> statuses(paths.size());
  RunWithThreads(options.threads, [&] {
    ParallelFor(paths.size(), [&](size_t k) {
      statuses[k] = k < reports
                        ? WriteFormat(comparison, options.formats[k], options.newest_csv, paths[k])
                        : WriteFileAtomically(paths[k], report::AdviceText(comparison),
                                              /*durable=*/false);
    });
  });
  for (Status& status : statuses) PL_TRY(std::move(status));
  if (!comparison.data_mapping.empty()) {
    paths.push_back(JoinPath(directory, fmt::format("data_mapping_{}.yaml", stem)));
    PL_TRY(WriteFileAtomically(paths.back(), match::DataMappingYaml(comparison.data_mapping),
                               /*durable=*/false));
  }
  for (size_t k = 0; k < paths.size(); ++k) {
    const bool in_parts =
        k < reports && options.formats[k] == ReportFormat::kCsv && options.newest_csv;
    if (!in_parts) {
      comparison.files.push_back(std::move(paths[k]));
      continue;
    }
    for (std::string& part : report::NewestCsvPaths(comparison, paths[k])) {
      comparison.files.push_back(std::move(part));
    }
  }
  return {};
}

}  // namespace plumbline

#include "pipeline/graphs/code_mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/csv.h"
#include "base/file.h"
#include "base/text_file.h"
#include "base/text_parts.h"
#include "formats/graph_ir.h"
#include "formats/statistic_csv.h"
#include "load/graph_dump.h"
#include "load/name_mapping.h"
#include "pipeline/graphs/source_lines.h"
#include "pipeline/result_names.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kNpy = ".npy";
constexpr std::string_view kCsv = ".csv";
constexpr std::string_view kPrefix = "code_mapping";
constexpr std::string_view kTableName = "statistic_code_mapping.csv";
constexpr std::string_view kFilePath = "File Path";
constexpr std::string_view kNewColumns[] = {"Code Stack", "Scope Name", "Match"};

struct Inputs {
  std::vector<std::string> arrays, tables;  // sorted by path
};

// Symbolic links to directories are not followed.
Status AddBelow(const std::string& directory, Inputs& inputs) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (name.ends_with(kNpy)) {
      inputs.arrays.push_back(path);
    } else if (name == run_files::kStatisticCsv) {
      inputs.tables.push_back(path);
    } else {
      const Result<PathFacts> facts = Inspect(path);
      if (facts && facts->kind == PathKind::kDirectory) PL_TRY(AddBelow(path, inputs));
    }
  }
  return {};
}

Result<Inputs> FindInputs(const std::string& data) {
  PL_TRY_ASSIGN(const std::string path, RealPath(data));
  Inputs inputs;
  if (KindOf(path) == PathKind::kDirectory) {
    PL_TRY(AddBelow(path, inputs));
  } else if (path.ends_with(kNpy)) {
    inputs.arrays.push_back(path);
  } else if (BaseName(path) == run_files::kStatisticCsv) {
    inputs.tables.push_back(path);
  }
  if (!inputs.arrays.empty() || !inputs.tables.empty()) return inputs;
  return Error(ErrorCode::kNotFound,
               fmt::format("{}: holds no tensors (expected .npy files or statistic.csv)", data));
}

class Mapper {
 public:
  Mapper(const SourceLines& lines, CodeMappingReport& report) : lines_(lines), report_(report) {}

  Status MapArrays(const std::vector<std::string>& paths, const std::string& directory) {
    PL_TRY(MakeDirectories(directory));
    const FreeName name = FreePath(directory, kPrefix, kCsv);
    PL_TRY_ASSIGN(TextFile file, TextFile::Create(name.text));
    csv::Row header{std::string(kFilePath)};
    header.insert(header.end(), std::begin(kNewColumns), std::end(kNewColumns));
    csv::AppendRow(header, file.text());
    for (const std::string& path : paths) {
      PL_TRY_ASSIGN(const std::string tensor, TensorName(path));
      const auto parts = load::ParseKernelFile(tensor);
      csv::Row row{path};
      Append(parts ? parts->op_name : std::string_view(), row);
      csv::AppendRow(row, file.text());
      PL_TRY(file.Flush());
    }
    report_.files.push_back(name.text);
    return file.Close();
  }

  Status MapTable(const std::string& path) {
    PL_TRY_ASSIGN(std::vector<csv::Row> rows, csv::ReadRows(path));
    const auto bad = [&](std::string_view problem) {
      return Error(ErrorCode::kCorrupt, fmt::format("{}: {}", path, problem));
    };
    const auto columns = statistic_csv::FixedColumns();
    const bool has_header = !rows.empty() && rows[0].size() > statistic_csv::kOpName &&
                            rows[0][statistic_csv::kOpName] == columns[statistic_csv::kOpName];
    if (!has_header) return bad("no header (expected Op Type,Op Name,Task ID,...)");
    std::string text;
    if (rows[0].back().empty()) rows[0].pop_back();
    const size_t width = rows[0].size();
    rows[0].insert(rows[0].end(), std::begin(kNewColumns), std::end(kNewColumns));
    csv::AppendRow(rows[0], text);
    for (size_t i = 1; i < rows.size(); ++i) {
      csv::Row& row = rows[i];
      if (row.empty()) continue;
      if (row.size() == width + 1 && row.back().empty()) row.pop_back();
      if (row.size() != width) {
        return bad(fmt::format("line {}: {} cells; the file may be cut (expected {})", i + 1,
                               row.size(), width));
      }
      const std::string name = row[statistic_csv::kOpName];
      Append(name, row);
      csv::AppendRow(row, text);
    }
    report_.files.push_back(JoinPath(DirectoryOf(path), kTableName));
    return WriteFileAtomically(report_.files.back(), text, /*durable=*/false);
  }

 private:
  // The name of a tensor's file, or the one that was too long for it.
  Result<std::string> TensorName(const std::string& path) {
    const std::string name(BaseName(path));
    const std::string directory(DirectoryOf(path));
    if (mapped_directory_ != directory) {
      PL_TRY_ASSIGN(mapping_, load::NameMapping::Read(directory));
      mapped_directory_ = directory;
    }
    std::string full = mapping_.NameOf(name);
    if (full != name || !IsDigits(name.substr(0, name.size() - kNpy.size()))) return full;
    report_.notes.push_back(fmt::format("{}: {} does not name this file", path,
                                        JoinPath(directory, run_files::kMappingCsv)));
    return name;
  }

  void Append(std::string_view name, csv::Row& row) {
    const SourceLines::Found found = lines_.Find(name);
    std::vector<std::string_view> sources, names;
    for (const SourceLines::Kernel* kernel : found.kernels) {
      names.push_back(kernel->full_name);
      const auto source = graph_ir::SourceLines(kernel->source);
      sources.insert(sources.end(), source.begin(), source.end());
    }
    row.push_back(fmt::format("{}", fmt::join(sources, "\n")));
    row.push_back(fmt::format("{}", fmt::join(names, "\n")));
    row.emplace_back(NameMatchName(found.match));
    ++report_.tensors;
    if (found.match != NameMatch::kNone) ++report_.mapped;
    if (found.match == NameMatch::kAmbiguous) ++report_.ambiguous;
  }

  const SourceLines& lines_;
  CodeMappingReport& report_;
  std::string mapped_directory_;  // whose mapping.csv is in mapping_
  load::NameMapping mapping_;
};

}  // namespace

Result<CodeMappingReport> MapCode(const CodeMappingOptions& options) {
  CodeMappingReport report;
  SourceLines lines;
  for (const std::string& path : options.graphs) {
    PL_TRY_ASSIGN(std::vector<std::string> notes, lines.AddFile(path));
    std::ranges::move(notes, std::back_inserter(report.notes));
  }
  if (lines.size() == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 report.notes.empty() ? "no graph was named" : report.notes.back());
  }
  PL_TRY_ASSIGN(const Inputs inputs, FindInputs(options.data));
  Mapper mapper(lines, report);
  if (!inputs.arrays.empty()) {
    PL_TRY(mapper.MapArrays(inputs.arrays, options.output));
    return report;
  }
  for (const std::string& path : inputs.tables) PL_TRY(mapper.MapTable(path));
  return report;
}

}  // namespace plumbline::pipeline

#include "view/serve/result_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/file/file.h"
#include "base/file/text_file.h"
#include "base/memory/bytes.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/zip.h"
#include "formats/table/xlsx.h"
#include "view/graph_files.h"
#include "view/one_file.h"
#include "view/query/answers.h"
#include "view/store_page.h"

namespace plumbline::view {
namespace {

constexpr int64_t kRowsAtOnce = 1000;
// Columns of a table, and the node's fields that fill them; the first three are found otherwise.
constexpr std::string_view kTableColumns[] = {
    "step",  "rank",        "counterpart", "name",     "type",      "level", "worst", "overflow",
    "error", "input_error", "errors",      "warnings", "unmatched", "ms",    "order"};
constexpr size_t kFirstField = 3;

using ExportCell = std::variant<std::string, double>;
using ExportRow = std::vector<ExportCell>;
using TakeRow = std::function<Status(const ExportRow&)>;

ExportCell CellOf(const json::Value& value) {
  if (value.AsText() != nullptr) return *value.AsText();
  if (const auto number = value.AsReal()) return *number;
  return std::string();
}

// Where in a row each field stands; -1: nowhere.
struct FieldPlaces {
  explicit FieldPlaces(const json::Value::List& fields) {
    for (const std::string_view column : kTableColumns) {
      const auto found = std::ranges::find_if(fields, [&](const json::Value& field) {
        return field.AsText() != nullptr && *field.AsText() == column;
      });
      at.push_back(found == fields.end() ? -1 : found - fields.begin());
    }
    const auto id = std::ranges::find_if(fields, [](const json::Value& field) {
      return field.AsText() != nullptr && *field.AsText() == "id";
    });
    id_at = id == fields.end() ? -1 : id - fields.begin();
  }
  std::vector<std::ptrdiff_t> at;
  std::ptrdiff_t id_at = -1;
};

ExportRow RowOf(const ResultStore& store, const json::Value::List& values,
                const FieldPlaces& places) {
  const auto value_at = [&](std::ptrdiff_t at) -> const json::Value* {
    const bool is_there = at >= 0 && static_cast<size_t>(at) < values.size();
    return is_there ? &values[static_cast<size_t>(at)] : nullptr;
  };
  ExportRow row(std::size(kTableColumns));
  const json::Value* id = value_at(places.id_at);
  const auto node = id == nullptr ? std::nullopt : id->AsNatural();
  if (node && *node < store.size()) {
    const auto number = static_cast<uint32_t>(*node);
    const StorePlace& place = store.places()[store.PlaceOf(number)];
    const uint32_t partner = store.nodes().partner[number];
    row[0] = static_cast<double>(place.step);
    row[1] = static_cast<double>(place.rank);
    row[2] = partner == kNoNode ? std::string() : store.Name(partner);
  }
  for (size_t i = kFirstField; i < row.size(); ++i) {
    const json::Value* value = value_at(places.at[i]);
    if (value != nullptr) row[i] = CellOf(*value);
  }
  return row;
}

struct FoundPage {
  json::Value::List fields, rows;
  std::string cursor;
  uint64_t total = 0;
};

Result<FoundPage> FindPage(const ResultStore& store, const Parameters& parameters) {
  PL_TRY_ASSIGN(const std::string text, Answer(store, "find", parameters));
  PL_TRY_ASSIGN(const json::Value value, json::Value::Parse(text));
  const json::Value *error = value.Find("error"), *rows = value.Find("rows"),
                    *cursor = value.Find("cursor"), *total = value.Find("total");
  if (error != nullptr && error->is_object()) {
    const json::Value* message = error->Find("message");
    const bool is_told = message != nullptr && message->AsText() != nullptr;
    return Error(ErrorCode::kInvalidArgument, is_told ? *message->AsText() : "q: is no query");
  }
  const json::Value* fields = rows == nullptr ? nullptr : rows->Find("fields");
  const json::Value* list = rows == nullptr ? nullptr : rows->Find("rows");
  if (fields == nullptr || fields->AsList() == nullptr || list == nullptr ||
      list->AsList() == nullptr) {
    return Error(ErrorCode::kInternal, "find: an answer without rows");
  }
  FoundPage page{*fields->AsList(), *list->AsList(), {}, 0};
  if (cursor != nullptr && cursor->AsText() != nullptr) page.cursor = *cursor->AsText();
  if (total != nullptr) page.total = total->AsNatural().value_or(0);
  return page;
}

Status VisitFound(const ResultStore& store, const json::Value& body, JobControl& job,
                  const TakeRow& take) {
  Parameters parameters;
  const json::Value *query = body.Find("q"), *place = body.Find("place");
  parameters.Set("limit", std::to_string(kRowsAtOnce));
  if (query != nullptr && query->AsText() != nullptr) parameters.Set("q", *query->AsText());
  if (place != nullptr && place->AsInteger()) {
    parameters.Set("place", std::to_string(*place->AsInteger()));
  }
  uint64_t done = 0;
  while (!job.cancelled()) {
    PL_TRY_ASSIGN(const FoundPage page, FindPage(store, parameters));
    const FieldPlaces places(page.fields);
    for (const json::Value& row : page.rows) {
      if (row.AsList() != nullptr) PL_TRY(take(RowOf(store, *row.AsList(), places)));
    }
    done += page.rows.size();
    if (page.total > 0)
      job.SetProgress(static_cast<double>(done) / static_cast<double>(page.total));
    if (page.cursor.empty() || page.rows.empty()) return {};
    parameters.Set("cursor", page.cursor);
  }
  return Error(ErrorCode::kInvalidArgument, "cancelled");
}

std::string CellText(const ExportCell& cell) {
  const double* number = std::get_if<double>(&cell);
  return number == nullptr ? std::get<std::string>(cell) : fmt::format("{}", *number);
}

Status WriteFoundCsv(const ResultStore& store, const json::Value& body, const std::string& path,
                     JobControl& job) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  csv::AppendRow(std::span<const std::string_view>(kTableColumns), file.text());
  PL_TRY(VisitFound(store, body, job, [&](const ExportRow& row) {
    std::vector<std::string> cells;
    for (const ExportCell& cell : row) cells.push_back(CellText(cell));
    csv::AppendRow(cells, file.text());
    return file.Flush();
  }));
  return file.Close();
}

Status WriteFoundXlsx(const ResultStore& store, const json::Value& body, const std::string& path,
                      JobControl& job) {
  PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
  PL_TRY(writer.BeginSheet("nodes", kTableColumns, xlsx::Look::kTable));
  const TakeRow take = [&](const ExportRow& row) -> Status {
    PL_TRY(writer.BeginRow(xlsx::Fill::kNone));
    for (const ExportCell& cell : row) {
      const double* number = std::get_if<double>(&cell);
      PL_TRY(number == nullptr ? writer.Text(std::get<std::string>(cell)) : writer.Number(*number));
    }
    return {};
  };
  PL_TRY(VisitFound(store, body, job, take));
  return writer.Close();
}

// The rows that the page shows: parameters as of the question "table".
Status WriteTableRows(const TableSet& tables, const json::Value& body, bool is_csv,
                      const std::string& path) {
  Parameters parameters;
  for (const std::string_view key : {"q", "sort", "part"}) {
    const json::Value* value = body.Find(key);
    if (value == nullptr) continue;
    if (value->AsText() != nullptr) parameters.Set(key, *value->AsText());
    if (value->AsInteger()) parameters.Set(key, std::to_string(*value->AsInteger()));
  }
  if (is_csv) {
    PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
    PL_TRY(tables.VisitRows(parameters, [&](std::span<const std::string_view> cells) {
      csv::AppendRow(cells, file.text());
      return file.Flush();
    }));
    return file.Close();
  }
  PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
  bool is_header = true;
  const auto take = [&](std::span<const std::string_view> cells) -> Status {
    if (std::exchange(is_header, false)) {
      return writer.BeginSheet("table", cells, xlsx::Look::kTable);
    }
    PL_TRY(writer.BeginRow(xlsx::Fill::kNone));
    for (const std::string_view cell : cells) {
      const std::optional<double> number = ParseReal(cell);
      PL_TRY(number && std::isfinite(*number) ? writer.Number(*number) : writer.Text(cell));
    }
    return {};
  };
  PL_TRY(tables.VisitRows(parameters, take));
  return writer.Close();
}

// Of a name without what other systems refuse in one.
std::string FileNameOf(const std::string& title, std::string_view ending) {
  std::string name;
  for (const char c : title) name += c == '/' || c == '\\' || c == ':' ? '_' : c;
  return name + std::string(ending);
}

// One archive, as a browser takes one file.
Status PackFiles(const std::vector<std::string>& files, const std::string& path, JobControl& job) {
  constexpr size_t kBlock = size_t{1} << 20;
  PL_TRY_ASSIGN(zip::StreamWriter writer, zip::StreamWriter::Create(path));
  for (const std::string& file : files) {
    PL_TRY_ASSIGN(const std::shared_ptr<const MappedFile> mapped, MappedFile::Open(file));
    PL_TRY(writer.Begin(BaseName(file)));
    std::string_view left = AsText(mapped->bytes());
    while (!left.empty()) {
      if (job.cancelled()) return Error(ErrorCode::kInvalidArgument, "cancelled");
      PL_TRY(writer.Write(left.substr(0, kBlock)));
      left.remove_prefix(std::min(kBlock, left.size()));
    }
  }
  return writer.Close();
}

// As plumb graph does it; .vis of several ranks in a .zip.
Result<std::string> WriteGraph(const DatasetFacts& dataset, GraphFileType type,
                               const std::string& directory, const CompareOptions& compare,
                               JobControl& job) {
  GraphFileOptions options;
  options.output_dir = directory;
  options.type = type;
  options.grades_overflow = true;
  options.compare = compare;
  options.progress = [&job](uint64_t done, uint64_t all) {
    job.SetProgress(all == 0 ? 0 : static_cast<double>(done) / static_cast<double>(all));
  };
  PL_TRY_ASSIGN(const GraphFileReport report,
                WriteGraphFiles(dataset.target, dataset.golden, options));
  if (report.files.size() == 1) return report.files.front();
  const std::string path = JoinPath(directory, FileNameOf(dataset.title, ".vis.zip"));
  const Status packed = PackFiles(report.files, path, job);
  for (const std::string& file : report.files) (void)RemoveFile(file);
  PL_TRY(packed);
  return path;
}

// Of two recordings made of them again, as the page has more than a store.
Status WritePage(const DatasetFacts& dataset, const std::string& path,
                 const CompareOptions& compare) {
  if (dataset.golden.empty()) {
    PL_TRY(WriteStorePage(*dataset.dataset->store(), path));
  } else {
    PL_TRY(WriteOneFile(dataset.target, dataset.golden, compare, path));
  }
  return {};
}

}  // namespace

Result<std::string> ExportFormatOf(const DatasetFacts& dataset, const json::Value& body) {
  const json::Value* member = body.Find("format");
  std::string format =
      member == nullptr || member->AsText() == nullptr ? std::string() : *member->AsText();
  const bool is_graph = dataset.dataset->store() != nullptr;
  if (!is_graph && dataset.dataset->tables() == nullptr) {
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("{}: is no graph and no table, which could be exported", dataset.title));
  }
  constexpr std::string_view kOfTables[] = {"csv", "xlsx"}, kOfGraphs[] = {"html", "vis", "vis.db"};
  const auto has = [&](const auto& names) {
    return std::ranges::find(names, format) != std::end(names);
  };
  if (has(kOfTables) || (is_graph && has(kOfGraphs))) return format;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("format: expected csv, xlsx{}, got '{}'",
                           is_graph ? ", html, vis or vis.db" : "", format.substr(0, 40)));
}

Result<JobFile> ExportResult(const DatasetFacts& dataset, const json::Value& body,
                             const std::string& directory, const CompareOptions& compare,
                             JobControl& job) {
  PL_TRY_ASSIGN(const std::string format, ExportFormatOf(dataset, body));
  const ResultStore* store = dataset.dataset->store();
  const TableSet* tables = dataset.dataset->tables();
  static std::atomic<uint64_t> exports = 0;
  const std::string path = JoinPath(directory, fmt::format("export-{}", ++exports));
  const bool is_csv = format == "csv";
  if (is_csv || format == "xlsx") {
    PL_TRY(tables != nullptr ? WriteTableRows(*tables, body, is_csv, path)
           : is_csv          ? WriteFoundCsv(*store, body, path, job)
                             : WriteFoundXlsx(*store, body, path, job));
    return JobFile{path, FileNameOf(dataset.title, is_csv ? ".csv" : ".xlsx"),
                   is_csv ? "text/csv; charset=utf-8"
                          : "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"};
  }
  if (format != "html") {
    const GraphFileType type = format == "vis" ? GraphFileType::kVis : GraphFileType::kDb;
    PL_TRY_ASSIGN(const std::string made, WriteGraph(dataset, type, path, compare, job));
    return JobFile{made, std::string(BaseName(made)), "application/octet-stream"};
  }
  PL_TRY(WritePage(dataset, path, compare));
  return JobFile{path, FileNameOf(dataset.title, ".html"), "text/html; charset=utf-8"};
}

}  // namespace plumbline::view

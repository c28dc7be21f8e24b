#include "report/result_json.h"

#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/file/text_file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "formats/sqlite/sqlite_table.h"
#include "report/certainty.h"
#include "report/findings.h"
#include "report/html_report.h"
#include "report/table.h"
#include "verdict/meeting_points.h"

namespace plumbline::report {

void AppendNumber(double value, std::string& out) {
  if (std::isfinite(value)) {
    AppendPythonFloat(value, out);
  } else {
    json::AppendString(PythonFloat(value), out);
  }
}

void AppendMetric(const Metric& metric, std::string& out) {
  if (const double* value = std::get_if<double>(&metric)) {
    AppendNumber(*value, out);
  } else {
    out += "null";
  }
}

void AppendRecorded(const Recorded& recorded, std::string& out) {
  if (const auto* truth = std::get_if<bool>(&recorded)) {
    out += *truth ? "true" : "false";
  } else if (const auto* integer = std::get_if<int64_t>(&recorded)) {
    out += std::to_string(*integer);
  } else if (const auto* real = std::get_if<double>(&recorded)) {
    AppendNumber(*real, out);
  } else if (const auto* text = std::get_if<Text>(&recorded)) {
    json::AppendString(*text, out);
  } else {
    out += "null";
  }
}

void AppendTexts(const std::vector<std::string>& values, std::string& out) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    json::AppendString(values[i], out);
  }
  out += ']';
}

std::string& ObjectWriter::Key(std::string_view key) {
  if (!first_) out_ += ", ";
  first_ = false;
  json::AppendString(key, out_);
  out_ += ": ";
  return out_;
}

void ObjectWriter::Text(std::string_view key, std::string_view value) {
  json::AppendString(value, Key(key));
}

}  // namespace plumbline::report

namespace plumbline::report {

std::string_view RoleName(ItemRole role) {
  switch (role) {
    case ItemRole::kInput:
      return "input";
    case ItemRole::kParameter:
      return "parameter";
    case ItemRole::kOutput:
      return "output";
    case ItemRole::kBuffer:
      return "buffer";
    case ItemRole::kParameterGrad:
      return "parameter_grad";
  }
  return "";
}

namespace {

constexpr int kFormatVersion = 1;

void AppendCounts(const CompareCounts& counts, std::string& out) {
  ObjectWriter object(out);
  for (size_t i = 0; i < kVerdictCount; ++i) {
    object.Integer(VerdictName(static_cast<Verdict>(i)), counts.rows[i]);
  }
  object.Integer("paired calls", counts.calls);
  object.Integer("unmatched target", counts.unmatched_target);
  object.Integer("unmatched golden", counts.unmatched_golden);
  object.Integer("unreadable files", counts.unreadable_files);
  object.Integer("missing values", counts.missing_values);
  object.End();
}

void AppendFirstWrongCall(const std::optional<FirstWrongCall>& answer, std::string& out) {
  if (!answer) {
    out += "null";
    return;
  }
  ObjectWriter object(out);
  VisitMembers(*answer, [&]<class T>(std::string_view key, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      object.Truth(key, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      object.Text(key, value);
    } else {
      object.Texts(key, value);
    }
  });
  object.End();
}

void AppendSide(const Slot<Item>& item, CompareMode mode, std::string& out) {
  if (!item) {
    out += "null";
    return;
  }
  static constexpr std::string_view kNames[] = {"max", "min", "mean", "norm"};
  ObjectWriter object(out);
  object.Text("name", item->name);
  if (item->dtype) object.Text("dtype", *item->dtype);
  if (item->shape_text) object.Text("shape", *item->shape_text);
  for (size_t i = 0; i < 4; ++i) object.Value(kNames[i], item->statistics[i]);
  if (mode == CompareMode::kDigest) object.Text("md5", item->digest);
  if (!item->data_name.empty()) object.Text("data_name", item->data_name);
  object.End();
}

void AppendTensorMetrics(const TensorMetrics& metrics, std::string& out) {
  ObjectWriter object(out);
  if (const Absent* absent = std::get_if<Absent>(&metrics.max_abs_error)) {
    object.Text("absent", AbsentName(*absent));
  }
  object.Value("cosine", metrics.cosine);
  object.Value("max_abs_error", metrics.max_abs_error);
  object.Value("max_relative_error", metrics.max_relative_error);
  object.Value("below_thousandth_ratio", metrics.below_thousandth_ratio);
  object.Value("below_five_thousandths_ratio", metrics.below_five_thousandths_ratio);
  object.Value("relative_l2", metrics.relative_l2);
  object.Value("max_ulp", metrics.max_ulp);
  object.Integer("element_count", metrics.element_count);
  object.Integer("mismatch_count", metrics.mismatch_count);
  object.Integer("golden_zero_mismatch_count", metrics.golden_zero_mismatch_count);
  object.End();
}

void AppendStatistics(const StatisticDifferences& statistics, ObjectWriter& object) {
  static constexpr std::string_view kDifference[] = {"max_diff", "min_diff", "mean_diff",
                                                     "norm_diff"};
  static constexpr std::string_view kPercent[] = {"max_percent", "min_percent", "mean_percent",
                                                  "norm_percent"};
  for (size_t i = 0; i < 4; ++i) object.Value(kDifference[i], statistics.difference[i]);
  for (size_t i = 0; i < 4; ++i) object.Value(kPercent[i], statistics.relative_percent[i]);
}

}  // namespace

void AppendRow(const Comparison& comparison, const ComparedRow& row, std::string& out) {
  ObjectWriter object(out);
  object.Text("call", comparison.calls[row.call].name());
  object.Text("role", RoleName(row.item().role));
  object.Text("verdict", VerdictName(row.verdict));
  object.Text("reason", row.reason);
  object.Number("error", row.error);
  object.Number("explained_error", row.expected);
  object.Text("result", row.result);
  std::string& notes = object.Key("notes");
  notes += '[';
  for (size_t i = 0; i < row.notes.size(); ++i) {
    if (i > 0) notes += ", ";
    ObjectWriter note(notes);
    note.Text("code", row.notes[i].code);
    note.Text("text", row.notes[i].text);
    note.End();
  }
  notes += ']';
  AppendSide(row.target, comparison.mode, object.Key("target"));
  AppendSide(row.golden, comparison.mode, object.Key("golden"));
  if (comparison.mode == CompareMode::kTensor) {
    AppendTensorMetrics(row.tensor, object.Key("metrics"));
  } else if (comparison.mode == CompareMode::kStatistics) {
    AppendStatistics(row.statistics(), object);
  }
  object.End();
}

void AppendHeader(const Comparison& comparison, ObjectWriter& object) {
  object.Text("format", "plumbline compare");
  object.Integer("version", kFormatVersion);
  object.Text("mode", CompareModeName(comparison.mode));
  object.Text("target", comparison.target_path);
  object.Text("golden", comparison.golden_path);
  AppendFirstWrongCall(comparison.first_wrong_call, object.Key("first_wrong_call"));
  const std::string command = ExtractCommand(comparison);
  if (!command.empty()) object.Text("as_test", command);
  object.Truth("complete", comparison.is_complete());
  object.Text("other_way", verdict::EquivalentCallsOf(comparison).text);
  object.Text("narrowed", verdict::NarrowedText(comparison));
  const Certainty certainty = CertaintyOf(comparison);
  ObjectWriter members(object.Key("certainty"));
  members.Text("level", certainty.level);
  members.Text("text", certainty.text);
  members.Text("limit", LimitText(comparison.limit));
  members.End();
  AppendCounts(comparison.counts, object.Key("counts"));
  object.Texts("warnings", comparison.warnings);
}

namespace {

// The whole document, in parts: `flush` may take what is in `text` and clear it.
template <class Flush>
Status AppendDocument(const Comparison& comparison, std::string& text, const Flush& flush) {
  ObjectWriter object(text);
  AppendHeader(comparison, object);
  object.Key("rows") += "[\n";
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    if (i > 0) text += ",\n";
    AppendRow(comparison, comparison.rows[i], text);
    PL_TRY(flush());
  }
  text += "\n]}\n";
  return {};
}

}  // namespace

void AddMembers(const FirstWrongCall& call, json::Document& out) {
  VisitMembers(call, [&]<class T>(std::string_view key, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      out.Truth(key, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out.Member(key, value);
    } else {
      out.Texts(key, value);
    }
  });
}

Status WriteResultJson(const Comparison& comparison, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  PL_TRY(AppendDocument(comparison, file.text(), [&] { return file.Flush(); }));
  return file.Close();
}

Status WriteJsonLines(const Comparison& comparison, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  std::string& text = file.text();
  ObjectWriter header(text);
  AppendHeader(comparison, header);
  header.End();
  text += '\n';
  for (const ComparedRow& row : comparison.rows) {
    AppendRow(comparison, row, text);
    text += '\n';
    PL_TRY(file.Flush());
  }
  return file.Close();
}

}  // namespace plumbline::report

namespace plumbline {

std::string SummaryJson(const Comparison& comparison) {
  std::string text;
  report::ObjectWriter object(text);
  report::AppendHeader(comparison, object);
  object.Texts("files", comparison.files);
  object.End();
  text += '\n';
  return text;
}

std::string ResultJson(const Comparison& comparison) {
  std::string text;
  // Nothing is written, so nothing can fail.
  (void)report::AppendDocument(comparison, text, [] { return Status(); });
  return text;
}

}  // namespace plumbline

namespace plumbline::report {

namespace {

// The first columns are declared in full; the rest are values, each of which keeps its own type.
constexpr std::string_view kRowsHead =
    "CREATE TABLE rows (row INTEGER PRIMARY KEY, call INTEGER NOT NULL REFERENCES calls(call), "
    "name TEXT NOT NULL, role TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL, "
    "error REAL, explained_error REAL, result TEXT NOT NULL, target_dtype TEXT, golden_dtype TEXT, "
    "target_shape TEXT, golden_shape TEXT";
constexpr size_t kDeclaredColumns = 13;

std::string Schema(const std::vector<CellColumn>& columns) {
  std::string rows(kRowsHead);
  for (size_t i = kDeclaredColumns; i < columns.size(); ++i) rows += ", " + columns[i].name;
  return "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
         "CREATE TABLE calls (call INTEGER PRIMARY KEY, target_name TEXT, golden_name TEXT, "
         "verdict TEXT NOT NULL, unmatched_reason TEXT, unmatched_detail TEXT, stack TEXT);" +
         rows +
         ");CREATE VIEW wrong AS SELECT * FROM rows WHERE verdict IN ('suspicious', 'broken');";
}

sqlite_table::Cell CallText(std::string_view text) {
  return text.empty() ? sqlite_table::Cell() : sqlite_table::Cell(text);
}

Status AddFacts(const Comparison& comparison, sqlite_table::Writer& writer) {
  PL_TRY(writer.Begin("facts", 2));
  const std::string answer = SummaryText(comparison);
  std::string summary = SummaryJson(comparison);
  summary.pop_back();
  const std::array<std::pair<std::string_view, std::string_view>, 7> facts = {{
      {"format", "plumbline compare"},
      {"version", "1"},
      {"mode", CompareModeName(comparison.mode)},
      {"target", comparison.target_path},
      {"golden", comparison.golden_path},
      {"answer", std::string_view(answer).substr(0, answer.find('\n'))},
      {"summary", summary},
  }};
  for (const auto& [name, value] : facts) {
    PL_TRY(writer.Add(std::array<sqlite_table::Cell, 2>{name, value}));
  }
  return {};
}

Status AddCalls(const Comparison& comparison, sqlite_table::Writer& writer) {
  const StackTexts stacks(comparison, [](const StackTexts::Frames& frames) {
    std::string text;
    AppendTexts(frames, text);
    return text;
  });
  const auto pack = [&](size_t begin, size_t end, sqlite_table::PackedRows& rows) {
    for (size_t i = begin; i < end; ++i) {
      const ComparedCall& call = comparison.calls[i];
      const std::string stack = stacks.Of(i);
      rows.Add(std::to_array<sqlite_table::Cell>(
          {static_cast<int64_t>(i), CallText(call.target_name), CallText(call.golden_name),
           VerdictName(call.verdict), CallText(call.unmatched_reason),
           CallText(call.unmatched_detail), CallText(stack)}));
    }
  };
  return writer.AddLong("calls", comparison.calls.size(), pack);
}

Status AddRows(const Comparison& comparison, sqlite_table::Writer& writer) {
  const auto pack = [&](size_t begin, size_t end, sqlite_table::PackedRows& rows) {
    RowCells cells(comparison);
    for (size_t i = begin; i < end; ++i) rows.Add(cells.Of(i));
  };
  return writer.AddLong("rows", comparison.rows.size(), pack);
}

}  // namespace

Status WriteDatabase(const Comparison& comparison, const std::string& path) {
  const std::vector<CellColumn> columns = CellColumnsOf(comparison.mode);
  PL_TRY_ASSIGN(sqlite_table::Writer writer, sqlite_table::Writer::Create(path, Schema(columns)));
  PL_TRY(AddFacts(comparison, writer));
  PL_TRY(AddCalls(comparison, writer));
  PL_TRY(AddRows(comparison, writer));
  return writer.Finish();
}

}  // namespace plumbline::report

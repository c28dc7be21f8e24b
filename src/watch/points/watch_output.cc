#include "watch/points/watch_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file/text_file.h"
#include "base/text/csv.h"
#include "base/text/number_text.h"
#include "formats/table/xlsx.h"
#include "report/result_json.h"

namespace plumbline::watch {
namespace {

using report::ObjectWriter;

constexpr std::array<std::string_view, 7> kEndings = {".csv",   ".xlsx", ".json", ".jsonl",
                                                      ".sarif", ".xml",  ".html"};
Status WriteWatchCsv(const WatchReport& report, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  csv::AppendRow(std::span<const std::string_view>(kWatchColumns), file.text());
  for (const WatchRow& row : report.rows) {
    const auto cells = WatchCells(report.rules[row.rule], row);
    csv::AppendRow(std::span<const std::string>(cells), file.text());
    PL_TRY(file.Flush());
  }
  return file.Close();
}

Status WriteWatchXlsx(const WatchReport& report, const std::string& path) {
  PL_TRY_ASSIGN(xlsx::Writer writer, xlsx::Writer::CreateEmpty(path));
  PL_TRY(writer.BeginSheet("watch", kWatchColumns, xlsx::Look::kTable));
  for (const WatchRow& row : report.rows) {
    const bool is_hit = row.verdict == Truth::kTrue;
    PL_TRY(writer.BeginRow(is_hit                             ? xlsx::Fill::kRed
                           : row.verdict == Truth::kUnknown ? xlsx::Fill::kGrey
                                                            : xlsx::Fill::kNone));
    const auto cells = WatchCells(report.rules[row.rule], row);
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_step = kWatchColumns[i] == "step";
      if (is_step || kWatchColumns[i] == "rank") {
        PL_TRY(writer.Number(static_cast<double>(is_step ? row.step : row.rank)));
      } else {
        PL_TRY(writer.Text(cells[i]));
      }
    }
  }
  return writer.Close();
}

void AppendCounts(const RuleCounts& counts, ObjectWriter& object) {
  object.Integer("selected", counts.selected);
  object.Integer("hit", counts.hits);
  object.Integer("no_hit", counts.passes);
  object.Integer("not_evaluated", counts.unjudged);
  ObjectWriter reasons(object.Key("reasons"));
  for (int i = 0; i < kReasonCount; ++i) {
    const uint64_t count = counts.reasons[static_cast<size_t>(i)];
    if (count > 0) reasons.Integer(ReasonWord(i), count);
  }
  reasons.End();
}

void AppendRules(const WatchReport& report, std::string& out) {
  out += '[';
  for (size_t i = 0; i < report.rules.size(); ++i) {
    if (i > 0) out += ", ";
    ObjectWriter object(out);
    object.Text("name", report.rules[i].name);
    object.Text("when", report.rules[i].text);
    object.Text("severity", SeverityName(report.rules[i].severity));
    AppendCounts(report.counts[i], object);
    object.End();
  }
  out += ']';
}

void AppendIntegerMember(std::string_view key, int64_t value, ObjectWriter& object) {
  object.Key(key) += std::to_string(value);
}

void AppendChecks(const WatchRow& row, std::string& out) {
  out += '[';
  bool is_first = true;
  for (const RowCheck& check : row.checks) {
    if (!is_first) out += ", ";
    is_first = false;
    ObjectWriter object(out);
    object.Text("parameter", check.parameter);
    object.Text("relation", RelationText(check.relation));
    if (HasNumber(check)) {
      object.Number("threshold", check.threshold);
    } else {
      object.Key("threshold") += "null";
    }
    if (check.truth == Truth::kUnknown) {
      object.Key("hit") += "null";
    } else {
      object.Truth("hit", check.truth == Truth::kTrue);
    }
    const bool is_known = check.actual.is_bounded();
    if (is_known && check.actual.is_point()) {
      object.Number("actual", static_cast<double>(check.actual.low));
    } else if (is_known) {
      std::string& list = object.Key("actual");
      list += '[';
      report::AppendNumber(static_cast<double>(check.actual.low), list);
      list += ", ";
      report::AppendNumber(static_cast<double>(check.actual.high), list);
      list += ']';
    } else {
      object.Key("actual") += "null";
    }
    object.Text("reason", ReasonText(check.truth == Truth::kUnknown ? check.reasons : Reasons{0}));
    object.End();
  }
  out += ']';
}

// The members in front of the rows; the object stays open.
void AppendHead(const WatchReport& report, ObjectWriter& object) {
  object.Text("path", report.path);
  object.Text("kind", report.kind);
  object.Text("answer", FirstHitText(report));
  object.Integer("steps", report.steps);
  object.Integer("ranks", report.ranks);
  object.Integer("tensors", report.tensors);
  object.Integer("unreadable_parts", report.unreadable_parts);
  object.Truth("stopped_at_first_hit", report.stopped);
  AppendCounts(report.Total(), object);
  AppendRules(report, object.Key("rules"));
  object.Texts("notes", report.notes);
  const WatchRow* first = report.first_hit();
  if (first == nullptr) {
    object.Key("first_hit") += "null";
  } else {
    AppendRowJson(report, *first, object.Key("first_hit"));
  }
}

Status WriteWatchJson(const WatchReport& report, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  ObjectWriter object(file.text());
  AppendHead(report, object);
  object.Key("rows") += '[';
  for (size_t i = 0; i < report.rows.size(); ++i) {
    file.text() += i == 0 ? "\n" : ",\n";
    AppendRowJson(report, report.rows[i], file.text());
    PL_TRY(file.Flush());
  }
  file.text() += ']';
  object.End();
  file.text() += '\n';
  return file.Close();
}

Status WriteWatchLines(const WatchReport& report, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  file.text() += WatchJson(report, false) + "\n";
  for (const WatchRow& row : report.rows) {
    AppendRowJson(report, row, file.text());
    file.text() += '\n';
    PL_TRY(file.Flush());
  }
  return file.Close();
}

}  // namespace

void AppendRowJson(const WatchReport& report, const WatchRow& row, std::string& out) {
  ObjectWriter object(out);
  object.Text("rule", report.rules[row.rule].name);
  object.Text("severity", SeverityName(report.rules[row.rule].severity));
  AppendIntegerMember("step", row.step, object);
  if (row.prev_step) {
    AppendIntegerMember("prev_step", *row.prev_step, object);
    AppendIntegerMember("gap", row.gap, object);
  } else {
    object.Key("prev_step") += "null";
  }
  AppendIntegerMember("rank", row.rank, object);
  object.Text("graph", row.graph);
  object.Text("name", row.name);
  object.Text("io", row.io);
  object.Text("slot", row.slot);
  object.Text("dtype", row.dtype);
  object.Text("shape", row.shape);
  object.Text("verdict", VerdictText(row.verdict));
  object.Text("reason", ReasonText(row.reasons));
  AppendIntegerMember("upstream_code",
                      row.verdict == Truth::kUnknown ? UpstreamCode(row.reasons) : 0, object);
  AppendChecks(row, object.Key("checks"));
  object.Text("source_line", row.source_line);
  object.Text("file", row.file);
  object.End();
}

std::string WatchJson(const WatchReport& report, bool with_rows) {
  std::string text;
  ObjectWriter object(text);
  AppendHead(report, object);
  if (with_rows) {
    object.Key("rows") += '[';
    for (size_t i = 0; i < report.rows.size(); ++i) {
      if (i > 0) text += ", ";
      AppendRowJson(report, report.rows[i], text);
    }
    text += ']';
  }
  object.End();
  return text;
}

Status CheckOutputName(const std::string& path) {
  const bool is_known = std::ranges::any_of(
      kEndings, [&](std::string_view ending) { return path.ends_with(ending); });
  if (is_known) return {};
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("-o {}: no known ending (expected one of {})", path,
                           fmt::join(kEndings, ", ")));
}

Status WriteWatch(const WatchReport& report, const std::string& path) {
  if (path.ends_with(".csv")) return WriteWatchCsv(report, path);
  if (path.ends_with(".xlsx")) return WriteWatchXlsx(report, path);
  if (path.ends_with(".jsonl")) return WriteWatchLines(report, path);
  if (path.ends_with(".sarif")) return WriteWatchSarif(report, path);
  if (path.ends_with(".xml")) return WriteWatchJunit(report, path);
  if (path.ends_with(".html")) return WriteWatchHtml(report, path);
  return WriteWatchJson(report, path);
}

}  // namespace plumbline::watch

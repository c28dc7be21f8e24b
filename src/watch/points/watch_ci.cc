// The answer of `plumb watch` for continuous integration, JUnit XML and SARIF, and as a page.

#include <fmt/format.h>

#include <algorithm>

#include "base/file/text_file.h"
#include "report/ci_report.h"
#include "report/findings.h"
#include "report/html_report.h"
#include "watch/points/watch_output.h"

namespace plumbline::watch {
namespace {

void AppendXmlMember(std::string_view name, std::string_view value, std::string& out) {
  out += fmt::format(" {}=\"", name);
  report::AppendXmlText(value, out);
  out += '"';
}

// "abs_mean_lt 1e-10 (threshold 1e-09)" of every check of a row.
std::string ChecksText(const WatchRow& row) {
  std::string text;
  for (const RowCheck& check : row.checks) {
    if (row.verdict == Truth::kTrue && check.truth != Truth::kTrue) continue;
    if (!text.empty()) text += ", ";
    const bool is_plain = check.parameter.empty();
    text += is_plain ? fmt::format("{} NaN or Inf", IntervalText(check.actual))
                     : fmt::format("{} {} ({} {})", check.parameter.view(),
                                   IntervalText(check.actual), RelationText(check.relation),
                                   check.threshold);
  }
  return text;
}

std::string RowText(const WatchRow& row) {
  std::string text = fmt::format("step {} rank {} {} {} {}: {}", row.step, row.rank,
                                 row.name.view(), row.io.view(), row.slot.view(), ChecksText(row));
  if (row.reasons != 0) text += fmt::format(" not evaluated: {}", ReasonText(row.reasons));
  return text;
}

constexpr size_t kMostLines = 20;  // of one case

// The rows of one rule, step and rank as lines.
std::string CaseLines(const WatchReport& report, const CaseCounts& one, Truth verdict) {
  std::string text;
  size_t lines = 0, more = 0;
  const auto from = std::ranges::lower_bound(report.rows, one.step, {}, &WatchRow::step);
  for (auto row = from; row != report.rows.end() && row->step == one.step; ++row) {
    if (row->rule != one.rule || row->rank != one.rank || row->verdict != verdict) continue;
    if (++lines <= kMostLines) {
      text += RowText(*row) + "\n";
    } else {
      ++more;
    }
  }
  if (more > 0) text += fmt::format("and {} more\n", more);
  return text;
}

void AppendCase(const WatchReport& report, const CaseCounts& one, std::string& out) {
  const Rule& rule = report.rules[one.rule];
  out += "  <testcase";
  AppendXmlMember("classname", rule.name, out);
  AppendXmlMember("name", fmt::format("step {} rank {}", one.step, one.rank), out);
  out += " time=\"0\"";
  const bool fails = one.counts.hits > 0;
  if (!fails && one.counts.unjudged == 0) {
    out += "/>\n";
    return;
  }
  const bool is_skipped = !fails;
  out += fmt::format(">\n    <{}", is_skipped ? "skipped" : "failure");
  AppendXmlMember("message",
                  fails ? fmt::format("{} of {} tensors hit", one.counts.hits, one.counts.selected)
                        : fmt::format("{} of {} tensors not evaluated", one.counts.unjudged,
                                      one.counts.selected),
                  out);
  if (fails) AppendXmlMember("type", SeverityName(rule.severity), out);
  out += '>';
  report::AppendXmlText(CaseLines(report, one, fails ? Truth::kTrue : Truth::kUnknown), out);
  out += fmt::format("</{}>\n  </testcase>\n", is_skipped ? "skipped" : "failure");
}

void AppendSuite(const WatchReport& report, size_t rule, std::string& out) {
  const auto of_rule = [&](const CaseCounts& one) { return one.rule == rule; };
  const auto all = std::ranges::count_if(report.cases, of_rule);
  const auto failures = std::ranges::count_if(
      report.cases, [&](const CaseCounts& one) { return of_rule(one) && one.counts.hits > 0; });
  const auto skipped = std::ranges::count_if(report.cases, [&](const CaseCounts& one) {
    return of_rule(one) && one.counts.hits == 0 && one.counts.unjudged > 0;
  });
  // A rule that selected nothing has proved nothing.
  const bool is_empty = all == 0;
  out += "<testsuite";
  AppendXmlMember("name", report.rules[rule].name, out);
  out += fmt::format(" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"0\">\n",
                     is_empty ? 1 : all, failures, is_empty ? 1 : skipped);
  out += "  <properties>\n    <property";
  AppendXmlMember("name", "when", out);
  AppendXmlMember("value", report.rules[rule].text, out);
  out += "/>\n  </properties>\n";
  if (is_empty) {
    out += "  <testcase";
    AppendXmlMember("classname", report.rules[rule].name, out);
    out += " name=\"selection\" time=\"0\">\n    <skipped message=\"the rule selected "
           "nothing\"/>\n  </testcase>\n";
  }
  for (const CaseCounts& one : report.cases) {
    if (of_rule(one)) AppendCase(report, one, out);
  }
  out += "</testsuite>\n";
}

}  // namespace

Status WriteWatchJunit(const WatchReport& report, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  std::string& out = file.text();
  out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (size_t i = 0; i < report.rules.size(); ++i) {
    AppendSuite(report, i, out);
    PL_TRY(file.Flush());
  }
  out += "</testsuites>\n";
  return file.Close();
}

Status WriteWatchSarif(const WatchReport& report, const std::string& path) {
  report::CiReport ci;
  ci.suite = "plumb watch";
  ci.properties = {{"path", report.path}, {"kind", report.kind}};
  for (const WatchRow& row : report.rows) {
    if (row.verdict != Truth::kTrue) continue;
    const Rule& rule = report.rules[row.rule];
    report::CiCase one;
    one.name = fmt::format("{} {} {}", row.name.view(), row.io.view(), row.slot.view());
    one.outcome = report::CiOutcome::kFail;
    one.rule = rule.name;
    one.message = fmt::format("step {} rank {}: {}", row.step, row.rank, ChecksText(row));
    one.frame = row.source_line;
    one.is_warning = rule.severity == Severity::kWarning;
    one.is_note = rule.severity == Severity::kNote;
    ci.cases.push_back(std::move(one));
  }
  return report::WriteSarif(ci, path);
}

namespace {

constexpr size_t kMostPageRows = 5000;

void AppendCells(const std::vector<std::string>& cells, std::string_view tag, std::string& out) {
  out += "<tr>";
  for (const std::string& cell : cells) {
    out += fmt::format("<{}>", tag);
    report::AppendHtmlText(cell, out);
    out += fmt::format("</{}>", tag);
  }
  out += "</tr>\n";
}

void AppendRuleTable(const WatchReport& report, std::string& out) {
  out += "<section><h2>Rules</h2>\n<table class=\"small\"><thead>";
  AppendCells({"rule", "when", "hit", "no hit", "not evaluated", "selected"}, "th", out);
  out += "</thead><tbody>\n";
  for (size_t i = 0; i < report.rules.size(); ++i) {
    const RuleCounts& counts = report.counts[i];
    AppendCells({report.rules[i].name, report.rules[i].text, std::to_string(counts.hits),
                 std::to_string(counts.passes), std::to_string(counts.unjudged),
                 std::to_string(counts.selected)},
                "td", out);
  }
  out += "</tbody></table></section>\n";
}

void AppendRowTable(const WatchReport& report, std::string& out) {
  out += "<section><h2>Hits, and what was not evaluated</h2>\n<table class=\"small\"><thead>";
  AppendCells({"verdict", "rule", "step", "rank", "tensor", "dtype", "shape", "values", "reason",
               "called from"},
              "th", out);
  out += "</thead><tbody>\n";
  for (size_t i = 0; i < std::min(report.rows.size(), kMostPageRows); ++i) {
    const WatchRow& row = report.rows[i];
    AppendCells({std::string(VerdictText(row.verdict)), report.rules[row.rule].name,
                 std::to_string(row.step), std::to_string(row.rank),
                 fmt::format("{} {} {}", row.name.view(), row.io.view(), row.slot.view()),
                 row.dtype, row.shape, ChecksText(row), ReasonText(row.reasons), row.source_line},
                "td", out);
  }
  out += "</tbody></table></section>\n";
  if (report.rows.size() > kMostPageRows) {
    out += fmt::format("<p class=\"note\">{} more rows are in the other forms, such as -o "
                       "watch.csv.</p>\n",
                       report.rows.size() - kMostPageRows);
  }
}

}  // namespace

Status WriteWatchHtml(const WatchReport& report, const std::string& path) {
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(path));
  std::string& out = file.text();
  out += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<title>plumbline watch</title>\n<style>";
  out += report::kPageCss;
  out += "</style>\n</head>\n<body>\n<header><div class=\"brand\">plumbline <span>watch</span>"
         "</div></header>\n<main>\n<section><pre>";
  report::AppendHtmlText(WatchText(report), out);
  out += "</pre></section>\n";
  AppendRuleTable(report, out);
  AppendRowTable(report, out);
  if (!report.notes.empty()) {
    out += "<section><h2>Notes</h2><pre>";
    for (const std::string& note : report.notes) report::AppendHtmlText(note + "\n", out);
    out += "</pre></section>\n";
  }
  out += "</main>\n</body>\n</html>\n";
  return file.Close();
}

}  // namespace plumbline::watch

#include "report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "measure/compared_row.h"
#include "record/call_stack.h"
#include "report/certainty.h"
#include "report/findings.h"
#include "report/result_json.h"

namespace plumbline::report {

// HtmlPartData(): a comparison as compact JSON for the report page.

namespace {

constexpr size_t kGrowthPoints = 600;

// Texts that occur again and again, written once.
class Dictionary {
 public:
  int IndexOf(const std::string& text) {
    if (text.empty()) return -1;
    const auto [at, is_new] = indexes_.try_emplace(text, static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, int> indexes_;
  std::vector<std::string> texts_;
};

void AppendIndex(int index, std::string& out) { out += std::to_string(index); }

bool SameStatistics(const Item& target, const Item& golden) {
  return target.is_tensor == golden.is_tensor &&
         target.statistics == golden.statistics;  // NaN differs from itself and is spelled out
}

// A text given as an argument may have megabytes: the page has how it begins.
void AppendShown(const Recorded& recorded, std::string& out) {
  constexpr size_t kMostBytes = 2000;
  const Text* text = std::get_if<Text>(&recorded);
  if (text == nullptr || text->size() <= kMostBytes) return AppendRecorded(recorded, out);
  const std::string_view begin = Utf8Beginning(*text, kMostBytes);
  json::AppendString(fmt::format("{}... ({} bytes)", begin, text->size()), out);
}

// Of a tensor max, min, mean and norm; of an argument its value; 0: there is no such item.
void AppendStatisticsOf(const Slot<Item>& item, std::string& out) {
  if (!item) {
    out += '0';
    return;
  }
  out += '[';
  const size_t count = item->is_tensor ? item->statistics.size() : 1;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    AppendShown(item->statistics[i], out);
  }
  out += ']';
}

void AppendMetrics(CompareMode mode, const ComparedRow& row, std::string& out) {
  out += '[';
  const auto list = [&](std::initializer_list<const Metric*> metrics) {
    for (const Metric* metric : metrics) {
      AppendMetric(*metric, out);
      out += ',';
    }
  };
  const TensorMetrics& tensor = row.tensor;
  const StatisticDifferences statistics = row.statistics();
  const auto& differences = statistics.difference;
  const auto& percents = statistics.relative_percent;
  switch (mode) {
    case CompareMode::kTensor:
      list({&tensor.cosine, &tensor.max_abs_error, &tensor.max_relative_error,
            &tensor.below_thousandth_ratio, &tensor.below_five_thousandths_ratio,
            &tensor.relative_l2, &tensor.max_ulp});
      out += std::to_string(tensor.mismatch_count) + "," + std::to_string(tensor.element_count);
      break;
    case CompareMode::kStatistics:
      list({&differences[0], &differences[1], &differences[2], &differences[3], &percents[0],
            &percents[1], &percents[2], &percents[3]});
      out.pop_back();
      break;
    case CompareMode::kDigest:
      json::AppendString(row.target ? row.target->digest : "", out);
      out += ',';
      json::AppendString(row.golden ? row.golden->digest : "", out);
      break;
  }
  out += ']';
}

// Number or text as in the machine form; NaN, which means "none" here, is null.
void AppendError(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "null";
  } else {
    AppendNumber(value, out);
  }
}

class PartWriter {
 public:
  PartWriter(const HtmlPart& part, size_t most_rows)
      : part_(part), comparison_(*part.comparison), most_rows_(most_rows) {}

  void Append(std::string& out) {
    ObjectWriter object(out);
    object.Text("label", part_.label);
    const std::string summary = SummaryText(comparison_);
    object.Text("answer", summary.substr(0, summary.find('\n')));
    ObjectWriter header(object.Key("header"));
    AppendHeader(comparison_, header);
    header.End();
    AppendCalls(object.Key("calls"));
    AppendStacks(object);
    AppendGrowth(object.Key("growth"));
    object.Integer("row_total", comparison_.rows.size());
    AppendRows(object.Key("rows"));
    AppendEvidence(object.Key("evidence"));
    AppendReasons(object.Key("reasons"));
    object.Texts("texts", texts_.texts());
    object.End();
  }

 private:
  // [target name, golden name unless equal, stack or -1, why unmatched or nothing]
  void AppendCalls(std::string& out) {
    out += '[';
    for (size_t i = 0; i < comparison_.calls.size(); ++i) {
      const ComparedCall& call = comparison_.calls[i];
      out += i == 0 ? "[" : ",\n[";
      json::AppendString(call.target_name, out);
      out += ',';
      json::AppendString(call.golden_name == call.target_name ? "" : call.golden_name, out);
      out += ',';
      AppendIndex(StackOf(i), out);
      if (!call.unmatched_reason.empty()) {
        out += ',';
        const std::string detail =
            call.unmatched_detail.empty() ? "" : " (" + call.unmatched_detail + ")";
        AppendIndex(texts_.IndexOf(call.unmatched_reason + detail), out);
      }
      out += ']';
    }
    out += ']';
  }

  int StackOf(size_t call) {
    if (call >= comparison_.stacks.size() || comparison_.stacks[call].empty()) return -1;
    std::string key;
    for (const std::string& frame : comparison_.stacks[call]) {
      key += (key.empty() ? "" : ",") + std::to_string(frames_.IndexOf(frame));
    }
    return stacks_.IndexOf(key);
  }

  // "foreign" has the numbers of the frames that are not the user's.
  void AppendStacks(ObjectWriter& object) {
    if (comparison_.first_wrong_call) {
      for (const std::string& frame : comparison_.first_wrong_call->stack) frames_.IndexOf(frame);
    }
    object.Texts("frames", frames_.texts());
    std::string& foreign = object.Key("foreign");
    foreign += '[';
    for (size_t i = 0; i < frames_.texts().size(); ++i) {
      if (!IsForeignFrame(frames_.texts()[i])) continue;
      if (!foreign.ends_with('[')) foreign += ',';
      foreign += std::to_string(i);
    }
    foreign += ']';
    std::string& out = object.Key("stacks");
    out += '[';
    for (size_t i = 0; i < stacks_.texts().size(); ++i) {
      out += (i == 0 ? "[" : ",[") + stacks_.texts()[i] + "]";
    }
    out += ']';
  }

  struct Point {
    size_t call = 0;
    double error = std::numeric_limits<double>::quiet_NaN();
    double explained = 0;
    Verdict verdict = Verdict::kNotComparable;
  };

  // The worst output of a call.
  Point PointOf(size_t call) const {
    Point point{.call = call, .verdict = comparison_.calls[call].verdict};
    const ComparedCall& compared = comparison_.calls[call];
    for (size_t i = compared.first_row; i < compared.first_row + compared.row_count; ++i) {
      const ComparedRow& row = comparison_.rows[i];
      if (measure::IsInput(row) || std::isnan(row.error)) continue;
      if (std::isnan(point.error) || row.error > point.error) {
        point.error = row.error;
        point.explained = row.expected;
      }
    }
    return point;
  }

  static bool IsWorse(const Point& a, const Point& b) {
    const bool a_broken = a.verdict == Verdict::kBroken, b_broken = b.verdict == Verdict::kBroken;
    if (a_broken != b_broken) return a_broken;
    if (std::isnan(a.error) || std::isnan(b.error)) return !std::isnan(a.error);
    return a.error > b.error;
  }

  void AppendGrowth(std::string& out) const {
    const size_t calls = comparison_.calls.size();
    const size_t step = (calls + kGrowthPoints - 1) / kGrowthPoints;
    out += '[';
    for (size_t begin = 0; begin < calls; begin += step) {
      Point worst = PointOf(begin);
      for (size_t i = begin + 1; i < std::min(calls, begin + step); ++i) {
        const Point point = PointOf(i);
        if (IsWorse(point, worst)) worst = point;
      }
      out += (begin == 0 ? "[" : ",[") + std::to_string(worst.call) + ",";
      AppendError(worst.error, out);
      out += ',';
      AppendError(worst.explained, out);
      out += "," + std::to_string(static_cast<int>(worst.verdict)) + "]";
    }
    out += ']';
  }

  // Which rows the page holds: all, or the worst.
  std::vector<bool> ChooseRows() const {
    const size_t total = comparison_.rows.size();
    std::vector<bool> chosen(total, total <= most_rows_);
    if (total <= most_rows_) return chosen;
    size_t left = most_rows_;
    const auto take = [&](const auto& wanted) {
      for (size_t i = 0; i < total && left > 0; ++i) {
        if (chosen[i] || !wanted(comparison_.rows[i])) continue;
        chosen[i] = true;
        --left;
      }
    };
    const std::string wrong =
        comparison_.first_wrong_call ? comparison_.first_wrong_call->name : std::string();
    take([&](const ComparedRow& row) { return comparison_.calls[row.call].name() == wrong; });
    take([](const ComparedRow& row) { return row.verdict == Verdict::kBroken; });
    take([](const ComparedRow& row) { return row.verdict == Verdict::kSuspicious; });
    take([](const ComparedRow& row) { return row.verdict == Verdict::kNotComparable; });
    take([](const ComparedRow&) { return true; });
    return chosen;
  }

  void AppendRows(std::string& out) {
    const std::vector<bool> chosen = ChooseRows();
    bool first = true;
    out += '[';
    for (size_t i = 0; i < comparison_.rows.size(); ++i) {
      if (!chosen[i]) continue;
      if (!first) out += ",\n";
      first = false;
      AppendOneRow(comparison_.rows[i], out);
    }
    out += ']';
  }

  void AppendOneRow(const ComparedRow& row, std::string& out) {
    const std::string& call = comparison_.calls[row.call].name();
    const Item& item = row.item();
    out += "[" + std::to_string(row.call) + ",";
    const bool is_suffix = item.name.size() > call.size() && item.name.starts_with(call) &&
                           item.name[call.size()] == '.';
    json::AppendString(std::string_view(item.name).substr(is_suffix ? call.size() : 0), out);
    out += "," + std::to_string(static_cast<int>(item.role)) + "," +
           std::to_string(static_cast<int>(row.verdict)) + ",";
    AppendIndex(texts_.IndexOf(row.reason), out);
    out += ',';
    AppendError(row.error, out);
    out += ',';
    AppendError(row.expected, out);
    for (const auto member : {&Item::dtype, &Item::shape_text}) {
      for (const Slot<Item>* side : {&row.target, &row.golden}) {
        out += ',';
        AppendIndex(*side ? texts_.IndexOf(((**side).*member).value_or("")) : -1, out);
      }
    }
    out += ',';
    AppendIndex(texts_.IndexOf(row.result), out);
    out += ',';
    AppendStatisticsOf(row.target, out);
    out += ',';
    if (row.target && row.golden && SameStatistics(*row.target, *row.golden)) {
      out += '1';
    } else {
      AppendStatisticsOf(row.golden, out);
    }
    out += ',';
    AppendMetrics(comparison_.mode, row, out);
    AppendNotes(row.notes, out);
    out += ']';
  }

  void AppendNotes(const std::vector<Note>& notes, std::string& out) {
    if (notes.empty()) return;
    out += ",[";
    for (size_t i = 0; i < notes.size(); ++i) {
      out += i == 0 ? "[" : ",[";
      AppendIndex(texts_.IndexOf(notes[i].code), out);
      out += ',';
      AppendIndex(texts_.IndexOf(notes[i].text), out);
      out += ']';
    }
    out += ']';
  }

  // The words for the codes that occur.
  void AppendReasons(std::string& out) const {
    std::set<std::string_view> codes;
    for (const ComparedRow& row : comparison_.rows) codes.insert(row.reason);
    ObjectWriter object(out);
    for (const std::string_view code : codes) {
      const std::string_view words = ReasonText(code);
      if (!words.empty()) object.Text(code, words);
    }
    object.End();
  }

  static void AppendPairs(const std::vector<explain::ElementPair>& pairs, std::string& out) {
    out += '[';
    for (size_t i = 0; i < pairs.size(); ++i) {
      out += (i == 0 ? "[" : ",[") + std::to_string(pairs[i].index) + ",";
      AppendNumber(pairs[i].target, out);
      out += ',';
      AppendNumber(pairs[i].golden, out);
      out += ']';
    }
    out += ']';
  }

  void AppendEvidence(std::string& out) const {
    if (part_.evidence == nullptr) {
      out += "null";
      return;
    }
    const explain::Evidence& evidence = *part_.evidence;
    ObjectWriter object(out);
    object.Text("item", evidence.item);
    object.Integer("count", evidence.count);
    std::string& shape = object.Key("shape");
    shape += '[';
    for (size_t i = 0; i < evidence.shape.size(); ++i) {
      shape += (i == 0 ? "" : ",") + std::to_string(evidence.shape[i]);
    }
    shape += ']';
    AppendPairs(evidence.pairs, object.Key("pairs"));
    AppendPairs(evidence.worst, object.Key("worst"));
    ObjectWriter histogram(object.Key("histogram"));
    histogram.Number("low", explain::ErrorHistogram::kLow);
    histogram.Number("step", explain::ErrorHistogram::kStep);
    histogram.Integer("equal", evidence.histogram.equal);
    histogram.Integer("nonfinite", evidence.histogram.nonfinite);
    histogram.Integer("total", evidence.histogram.total);
    std::string& counts = histogram.Key("counts");
    for (size_t i = 0; i < explain::ErrorHistogram::kBuckets; ++i) {
      counts += (i == 0 ? "[" : ",") + std::to_string(evidence.histogram.counts[i]);
    }
    counts += ']';
    histogram.End();
    std::string& profile = object.Key("profile");
    profile += '[';
    for (size_t i = 0; i < evidence.profile.size(); ++i) {
      if (i > 0) profile += ',';
      AppendError(evidence.profile[i], profile);
    }
    profile += ']';
    object.End();
  }

  const HtmlPart& part_;
  const Comparison& comparison_;
  size_t most_rows_;
  Dictionary texts_, frames_, stacks_;
};

}  // namespace

// In place: a page's rows are many.
std::string InScript(std::string json) {
  constexpr std::string_view kSafe = "\\u003c";
  size_t from = json.size();
  const auto count = static_cast<size_t>(std::ranges::count(json, '<'));
  size_t to = from + count * (kSafe.size() - 1);
  json.resize(to);
  while (from < to) {
    const char c = json[--from];
    if (c == '<') {
      to -= kSafe.size();
      kSafe.copy(&json[to], kSafe.size());
    } else {
      json[--to] = c;
    }
  }
  return json;
}

std::string HtmlDataHead(std::string_view overview) {
  return "{\"format\": \"plumbline report\", \"version\": 1, \"overview\": " +
         (overview.empty() ? "null" : InScript(std::string(overview))) + ", \"parts\": [";
}

std::string HtmlPartData(const HtmlPart& part, size_t most_rows) {
  std::string out;
  PartWriter(part, most_rows).Append(out);
  return InScript(std::move(out));
}

namespace {

constexpr size_t kMostKept = 4096;

}  // namespace

StackTexts::StackTexts(const Comparison& comparison, std::string (*spell)(const Frames&))
    : comparison_(comparison), spell_(spell) {
  for (const Shared<Frames>& stack : comparison.stacks) {
    if (texts_.size() == kMostKept) return;
    if (stack.empty()) continue;
    const auto [at, is_new] = texts_.try_emplace(&*stack);
    if (is_new) at->second = spell(*stack);
  }
}

const std::string* StackTexts::Find(size_t call) const {
  if (call >= comparison_.stacks.size()) return nullptr;
  const auto found = texts_.find(&*comparison_.stacks[call]);
  return found == texts_.end() ? nullptr : &found->second;
}

std::string StackTexts::Of(size_t call) const {
  if (const std::string* kept = Find(call)) return *kept;
  const bool has_stack = call < comparison_.stacks.size() && !comparison_.stacks[call].empty();
  return has_stack ? spell_(*comparison_.stacks[call]) : std::string();
}

// Contents of html/, embedded by cmake/embed.cmake.
extern const std::string_view kPageHtml;
extern const std::string_view kPageJs;
extern const std::string_view kRowsJs;
extern const std::string_view kEvidenceJs;
extern const std::string_view kRanksJs;

namespace {

// The answers of all parts, for readers without scripts.
std::string PlainSummary(std::span<const HtmlPart> parts) {
  std::string text;
  for (const HtmlPart& part : parts) {
    if (parts.size() > 1) text += part.label + ": ";
    text += SummaryText(*part.comparison);
  }
  return text;
}

// The page of a comparison.
Status WritePage(const std::string& path, std::string summary,
                 const std::function<Status(AtomicFile&)>& write_data) {
  const HtmlFrame frame{kPageHtml,
                        {kPageCss},
                        {kElementsJs, kPageJs, kRowsJs, kRanksJs, kEvidenceJs},
                        std::move(summary)};
  return WriteHtmlFrame(path, frame, write_data);
}

}  // namespace

Status WriteHtmlFrame(const std::string& path, const HtmlFrame& frame,
                      const std::function<Status(AtomicFile&)>& write_data) {
  PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  std::string plain;
  AppendHtmlText(frame.summary, plain);
  const auto texts = [&](const std::vector<std::string_view>& contents) {
    return [&file, contents]() -> Status {
      for (const std::string_view content : contents) PL_TRY(file.Write(content));
      return {};
    };
  };
  const std::array<std::pair<std::string_view, std::function<Status()>>, 4> fields = {{
      {"@STYLE@", texts(frame.styles)},
      {"@SUMMARY@", texts({plain})},
      {"@DATA@", [&] { return write_data(file); }},
      {"@SCRIPT@", texts(frame.scripts)},
  }};
  // The fields stand in the page in this order.
  std::string_view rest = frame.html;
  for (const auto& [name, write] : fields) {
    const size_t at = rest.find(name);
    PL_TRY(file.Write(rest.substr(0, at)));
    PL_TRY(write());
    rest.remove_prefix(at + name.size());
  }
  PL_TRY(file.Write(rest));
  return file.Commit(false);
}

Status WriteHtml(std::span<const HtmlPart> parts, const std::string& path) {
  return WritePage(path, PlainSummary(parts), [&](AtomicFile& file) -> Status {
    PL_TRY(file.Write(HtmlDataHead({})));
    for (size_t i = 0; i < parts.size(); ++i) {
      PL_TRY(file.Write(i > 0 ? ",\n" : ""));
      PL_TRY(file.Write(HtmlPartData(parts[i], kHtmlRows / parts.size())));
    }
    return file.Write(kHtmlDataEnd);
  });
}

Status WriteHtmlOverview(const HtmlOverview& overview, const std::string& path) {
  return WritePage(path, overview.text, [&](AtomicFile& file) -> Status {
    PL_TRY(file.Write(HtmlDataHead(overview.json)));
    for (size_t i = 0; i < overview.parts.size(); ++i) {
      PL_TRY_ASSIGN(const std::string part, ReadFile(overview.parts[i]));
      PL_TRY(file.Write(i > 0 ? ",\n" : ""));
      PL_TRY(file.Write(part));
    }
    return file.Write(kHtmlDataEnd);
  });
}

}  // namespace plumbline::report

#include "report/result_json.h"

#include <type_traits>

#include "base/text_file.h"
#include "report/certainty.h"
#include "report/first_wrong_members.h"
#include "report/json_object.h"
#include "report/other_ways.h"

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
  object.Truth("complete", comparison.is_complete());
  object.Text("other_way", OtherWaysOf(comparison).text);
  object.Text("narrowed", NarrowedText(comparison));
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

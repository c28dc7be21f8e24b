// What a comparison of checkpoints says: to people, to scripts, and as upstream's JSON file.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "formats/json_document.h"
#include "match/python_text.h"
#include "measure/compared_row.h"
#include "measure/tensor_metrics.h"
#include "measure/verdict.h"
#include "pipeline/arrays/compare_checkpoints.h"

namespace plumbline {
namespace {

constexpr size_t kShownRows = 10;

uint64_t CountOf(const CheckpointComparison& comparison, Verdict verdict) {
  return comparison.counts[static_cast<size_t>(verdict)];
}

using match::ShapeText;

std::string MetricText(const Metric& metric) {
  if (const auto* number = std::get_if<double>(&metric)) return fmt::format("{:.6g}", *number);
  return std::string(AbsentName(std::get<Absent>(metric)));
}

std::string NumberJson(const Metric& metric) {
  const auto* number = std::get_if<double>(&metric);
  return number != nullptr && std::isfinite(*number) ? PythonFloat(*number) : "null";
}

bool IsWrong(const ComparedParameter& row) {
  return measure::IsBad(row.verdict) ||
         (row.verdict == Verdict::kNotComparable && !row.agrees_trivially());
}

int RankOf(Verdict verdict) {
  return verdict == Verdict::kBroken ? 0 : verdict == Verdict::kSuspicious ? 1 : 2;
}

// Wrong rows, the worst first: by verdict, then by error; the order of names decides ties.
std::vector<const ComparedParameter*> WorstFirst(const CheckpointComparison& comparison) {
  std::vector<const ComparedParameter*> rows;
  for (const ComparedParameter& row : comparison.parameters) {
    if (IsWrong(row)) rows.push_back(&row);
  }
  const auto size = [](const ComparedParameter& row) {
    return std::isnan(row.error) ? INFINITY : row.error;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    const int left = RankOf(a->verdict), right = RankOf(b->verdict);
    return left != right ? left < right : size(*a) > size(*b);
  });
  return rows;
}

std::string Evidence(const ComparedParameter& row) {
  if (row.presence == Presence::kTargetOnly) return "only in the target";
  if (row.presence == Presence::kGoldenOnly) return "only in the golden";
  if (row.reason == "shape-differs") {
    return fmt::format("shape {}, expected {}", ShapeText(row.target_sizes),
                       ShapeText(row.golden_sizes));
  }
  if (!row.detail.empty()) return row.detail;
  if (std::isnan(row.error)) return row.reason;
  std::string text = fmt::format("relative error {:.3g}", row.error);
  if (row.expected > 0) text += fmt::format(", rounding explains {:.3g}", row.expected);
  text += fmt::format("; {} of {} elements differ, max absolute {}", row.metrics.mismatch_count,
                      row.metrics.element_count, MetricText(row.metrics.max_abs_error));
  if (!row.reason.empty() && row.reason != "exceeds-rounding") text += "; " + row.reason;
  return text;
}

std::string Rest(const CheckpointComparison& comparison) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const uint64_t within = CountOf(comparison, Verdict::kWithinNoise);
  if (CountOf(comparison, Verdict::kSame) > 0) {
    add(fmt::format("{} equal", CountOf(comparison, Verdict::kSame)));
  }
  if (within > 0) add(fmt::format("{} within rounding", within));
  if (comparison.trivial > 0) {
    add(fmt::format("{} all zeros or empty on both sides", comparison.trivial));
  }
  if (comparison.target_only > 0) {
    add(fmt::format("{} only in the target", comparison.target_only));
  }
  if (comparison.golden_only > 0) {
    add(fmt::format("{} only in the golden", comparison.golden_only));
  }
  return text;
}

std::string ArrayAnswer(const CheckpointComparison& comparison) {
  const ComparedParameter& row = comparison.parameters.front();
  std::string text = fmt::format("{}: ", VerdictName(row.verdict));
  if (row.verdict == Verdict::kSame) return text + "the arrays are equal\n";
  return text + Evidence(row) + "\n";
}

// Of a name's two values, cut where they are long.
std::string SidesText(const DifferingValue& value) {
  constexpr size_t kMostBytes = 100;
  const auto side = [](const torch_pt::PlainValue& plain) {
    const std::string text = OneLine(PlainText(plain));
    const std::string_view shown = Utf8Beginning(text, kMostBytes);
    return std::string(shown) + (shown.size() < text.size() ? "..." : "");
  };
  return fmt::format("{} (golden {})", side(value.target), side(value.golden));
}

std::string ParametersAnswer(const CheckpointComparison& comparison,
                             const std::vector<const ComparedParameter*>& wrong) {
  const uint64_t all = comparison.parameters.size();
  const std::string rest = Rest(comparison);
  const uint64_t differing =
      CountOf(comparison, Verdict::kBroken) + CountOf(comparison, Verdict::kSuspicious);
  if (differing > 0) {
    return fmt::format("differs: {} of {}, most {} ({}){}", differing, CountText(all, "parameter"),
                       OneLine(wrong.front()->name), Evidence(*wrong.front()),
                       rest.empty() ? "" : "; " + rest);
  }
  if (!wrong.empty()) {
    return fmt::format("not judged completely: {} of {}, first {} ({}){}", wrong.size(),
                       CountText(all, "parameter"), OneLine(wrong.front()->name),
                       Evidence(*wrong.front()), rest.empty() ? "" : "; " + rest);
  }
  const std::string parameters = CountText(all, "parameter");
  if (comparison.trivial == all) return fmt::format("not judged: {}, {}", parameters, rest);
  const std::vector<DifferingValue>& values = comparison.values.differing;
  if (values.empty()) return fmt::format("no difference: {} ({})", parameters, rest);
  return fmt::format("differs: {} is {}; {} ({})", OneLine(values.front().name),
                     SidesText(values.front()), parameters, rest);
}

std::string Answer(const CheckpointComparison& comparison,
                   const std::vector<const ComparedParameter*>& wrong) {
  if (comparison.of_arrays) return ArrayAnswer(comparison);
  const std::string values = ValuesText(comparison.values);
  return ParametersAnswer(comparison, wrong) + (values.empty() ? "" : "; " + values) + "\n";
}

void AddMetrics(const ComparedParameter& row, std::string& text) {
  const TensorMetrics& m = row.metrics;
  text += fmt::format("  dtype: {}, {}; shape: {}\n", InfoOf(row.target_dtype).name,
                      InfoOf(row.golden_dtype).name, ShapeText(row.target_sizes));
  text +=
      fmt::format("  cosine {}, max absolute {}, max relative {}, relative L2 {}, L2 {}\n",
                  MetricText(m.cosine), MetricText(m.max_abs_error),
                  MetricText(m.max_relative_error), MetricText(m.relative_l2), MetricText(row.l2));
  text += fmt::format("  within 0.001: {}, within 0.005: {}, max ULP {}\n",
                      MetricText(m.below_thousandth_ratio),
                      MetricText(m.below_five_thousandths_ratio), MetricText(m.max_ulp));
  if (m.mismatch_count > 0) {
    text += fmt::format("  {} of {} elements differ, the first one at flat index {}\n",
                        m.mismatch_count, m.element_count, row.first_mismatch);
  }
  if (row.presence == Presence::kBoth && row.reason != "shape-differs") {
    const std::string accuracy = row.has_nonfinite ? "No" : measure::AccuracyText(m);
    text += fmt::format("  accuracy reached or not: {}\n", accuracy);
  }
}

void AddSide(const ComparedParameter& row, std::string_view key, std::string& out) {
  const std::string target = key == "numel"
                                 ? fmt::format("{}", ElementCount(row.target_sizes).value_or(0))
                                 : ShapeText(row.target_sizes);
  const std::string golden = key == "numel"
                                 ? fmt::format("{}", ElementCount(row.golden_sizes).value_or(0))
                                 : ShapeText(row.golden_sizes);
  const bool both = row.presence == Presence::kBoth && row.target_sizes != row.golden_sizes;
  const std::string& one = row.presence == Presence::kGoldenOnly ? golden : target;
  out += fmt::format(",\n        \"{}\": {}", key,
                     both ? fmt::format("[{}, {}]", target, golden) : one);
}

// Upstream's value for two zero vectors is 1.
Metric CosineOf(const ComparedParameter& row) {
  if (row.reason == "zero-both") return 1.0;
  if (row.verdict == Verdict::kSame) return 1.0;
  return row.metrics.cosine;
}

void AddSimilarity(const ComparedParameter& row, std::string& out) {
  out += "    ";
  json::AppendString(row.name, out);
  out += ": {\n";
  if (row.presence == Presence::kBoth) {
    out += fmt::format("        \"l2\": {},\n        \"cos\": {}", NumberJson(row.l2),
                       NumberJson(CosineOf(row)));
  } else {
    out += fmt::format("        \"only_in\": {}", row.presence == Presence::kTargetOnly ? 1 : 2);
  }
  AddSide(row, "numel", out);
  AddSide(row, "shape", out);
  out += fmt::format(",\n        \"verdict\": \"{}\",\n        \"reason\": \"{}\"",
                     VerdictName(row.verdict), row.reason);
  if (row.presence == Presence::kBoth) {
    out += fmt::format(",\n        \"max_abs\": {}", NumberJson(row.metrics.max_abs_error));
  }
  out += "\n    }";
}

}  // namespace

namespace {

void AddValues(const std::vector<DifferingValue>& values, std::string& text) {
  for (size_t i = 0; i < std::min(values.size(), kShownRows); ++i) {
    text += fmt::format("  value differs: {}: {}\n", OneLine(values[i].name), SidesText(values[i]));
  }
  if (values.size() > kShownRows) {
    text += fmt::format("  and {} values more\n", values.size() - kShownRows);
  }
}

void AddPlain(const torch_pt::PlainValue& value, std::string& out) {
  if (std::holds_alternative<std::monostate>(value)) {
    out += "null";
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    out += *truth ? "true" : "false";
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    json::AppendString(*text, out);
  } else {
    const auto* number = std::get_if<double>(&value);
    const bool is_finite = number == nullptr || std::isfinite(*number);
    out += is_finite ? PlainText(value) : fmt::format("\"{}\"", PlainText(value));
  }
}

std::string ValuesJson(const std::vector<DifferingValue>& values) {
  std::string out = "{";
  for (const DifferingValue& value : values) {
    if (out.size() > 1) out += ", ";
    json::AppendString(value.name, out);
    out += ": [";
    AddPlain(value.target, out);
    out += ", ";
    AddPlain(value.golden, out);
    out += ']';
  }
  return out + "}";
}

}  // namespace

std::string CheckpointSummary(const CheckpointComparison& comparison) {
  const std::vector<const ComparedParameter*> wrong = WorstFirst(comparison);
  std::string text = Answer(comparison, wrong);
  if (comparison.of_arrays) {
    AddMetrics(comparison.parameters.front(), text);
  } else {
    for (size_t i = 0; i < std::min(wrong.size(), kShownRows); ++i) {
      text += fmt::format("  {}: {}: {}\n", VerdictName(wrong[i]->verdict), OneLine(wrong[i]->name),
                          OneLine(Evidence(*wrong[i])));
    }
    if (wrong.size() > kShownRows)
      text += fmt::format("  and {} more\n", wrong.size() - kShownRows);
    AddValues(comparison.values.differing, text);
  }
  for (const std::string& warning : comparison.warnings) {
    text += fmt::format("  warning: {}\n", OneLine(warning));
  }
  return text;
}

Result<std::string> CheckpointJson(const CheckpointComparison& comparison) {
  json::Document out;
  out.Open('{');
  std::string answer = CheckpointSummary(comparison);
  out.Member("answer", answer.substr(0, answer.find('\n')));
  out.Member("target", comparison.target_path);
  out.Member("golden", comparison.golden_path);
  out.Truth("good", comparison.is_good());
  out.Key("counts");
  out.Open('{');
  out.Number("parameters", comparison.parameters.size());
  for (size_t i = 0; i < kVerdictCount; ++i) {
    out.Number(VerdictName(static_cast<Verdict>(i)), comparison.counts[i]);
  }
  out.Number("only in target", comparison.target_only);
  out.Number("only in golden", comparison.golden_only);
  out.Number("zeros or empty on both sides", comparison.trivial);
  const ComparedValues& values = comparison.values;
  out.Number("plain values", values.common);
  out.Number("differing values", values.differing.size());
  out.Number("values only in target", values.target_only);
  out.Number("values only in golden", values.golden_only);
  out.Number("other values in target", values.target_other);
  out.Number("other values in golden", values.golden_other);
  out.Close('}');
  out.Texts("warnings", comparison.warnings);
  out.Key("differing values");
  out.Raw(ValuesJson(values.differing));
  out.Key("parameters");
  out.Raw(SimilarityJson(comparison));
  out.Close('}');
  return out.Finish();
}

std::string SimilarityJson(const CheckpointComparison& comparison) {
  std::string out = "{";
  bool first = true;
  for (const ComparedParameter& row : comparison.parameters) {
    out += first ? "\n" : ",\n";
    first = false;
    AddSimilarity(row, out);
  }
  return out + (first ? "}\n" : "\n}\n");
}

}  // namespace plumbline

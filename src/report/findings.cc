#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/process/log.h"
#include "base/process/parallel.h"
#include "base/text/text_parts.h"
#include "measure/compared_row.h"
#include "measure/standards.h"
#include "measure/stats_metrics.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"

namespace plumbline::report {

namespace {

// The entity that stands for `c` in every place; empty: `c` may stand itself.
std::string_view EntityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    default:
      return {};
  }
}

// Appends what starts `text` and is no ASCII; returns the bytes consumed.
size_t AppendCharacter(std::string_view text, std::string& out) {
  const size_t size = Utf8CharacterBytes(text);
  const std::string_view character = text.substr(0, size);
  const bool is_held = size > 0 && character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";
  out += is_held ? character : kReplacementCharacter;
  return size == 0 ? 1 : size;
}

// Calls `append` with every ASCII character.
template <class AppendAscii>
void AppendText(std::string_view text, std::string& out, const AppendAscii& append) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) >= 0x80) {
      at += AppendCharacter(text.substr(at), out);
      continue;
    }
    const std::string_view entity = EntityOf(text[at]);
    if (entity.empty()) {
      append(text[at]);
    } else {
      out += entity;
    }
    ++at;
  }
}

}  // namespace

void AppendHtmlText(std::string_view text, std::string& out) {
  AppendText(text, out, [&](char c) {
    if (c == '\0') {
      out += kReplacementCharacter;
    } else {
      out += c;
    }
  });
}

void AppendXmlText(std::string_view text, std::string& out) {
  AppendText(text, out, [&](char c) {
    if (c == '"') {
      out += "&quot;";
    } else if (c == '\n') {
      out += "&#10;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  });
}

namespace {

constexpr size_t kBlock = 4096;  // of rows or calls that one thread looks at in one go

void AddNote(ComparedRow& row, std::string_view code, std::string_view text) {
  const bool known = std::any_of(row.notes.begin(), row.notes.end(),
                                 [&](const Note& note) { return note.code == code; });
  if (!known) row.AddNote({std::string(code), std::string(text)});
}

void FillUnmatched(const Comparison& comparison, ComparedRow& row) {
  const Text& why = comparison.calls[row.call].unmatched_reason;
  row.result = comparison.mode == CompareMode::kTensor ? "None" : "N/A";
  if (!row.target) {
    AddNote(row, "no-target", "The target has no such call.");
  } else {
    AddNote(row, "no-bench", "The golden side has no such call.");
  }
  if (why == "recomputed") AddNote(row, "recomputed", "Only this side runs the call again.");
  if (why == "shape-differs") AddNote(row, "shape", "A call of this name has other shapes.");
  if (why == "dtype-differs") AddNote(row, "dtype", "A call of this name has other data types.");
  if (why == "structure-differs") {
    AddNote(row, "structure", "A call of this name has other arguments or results.");
  }
}

void AddPairingNote(const ComparedCall& call, ComparedRow& row) {
  if (call.pairing.empty()) return;
  std::string_view text = "Paired without regard to call numbers.";
  if (call.pairing == "renumbered") text = "Paired by order: the sides number this call otherwise.";
  if (call.pairing == "unwrapped") text = "Paired without the wrapper around one side's model.";
  if (call.pairing == "renamed") text = "Paired by place: the same kind of call, named otherwise.";
  if (call.pairing == "mapped") text = "Paired by a mapping file.";
  AddNote(row, call.pairing, text);
}

void FillStatistics(ComparedRow& row) {
  if (!measure::BreachesWarningRule(row.target->statistics, row.golden->statistics)) return;
  row.result = "Warning";
  AddNote(row, "check", "A statistic differs by more than half; check this call.");
}

void FillTensorNotes(ComparedRow& row) {
  const TensorMetrics& metrics = row.tensor;
  if (const Absent* absent = std::get_if<Absent>(&metrics.max_abs_error)) {
    switch (*absent) {
      case Absent::kEmpty:
        AddNote(row, "empty", "The tensor has no elements.");
        break;
      case Absent::kShapeMismatch:
        AddNote(row, "shape", "The shapes differ; nothing was computed.");
        break;
      case Absent::kNonFinite:
        AddNote(row, "naninf", "NaN or infinite elements at other positions or of other sign.");
        break;
      case Absent::kUnreadable:
        break;  // noted where the file was read, with its path
      default:
        AddNote(row, "no-file", "No tensor file was recorded for this value.");
    }
    return;
  }
  if (const Absent* absent = std::get_if<Absent>(&metrics.cosine)) {
    if (*absent == Absent::kZeroNorm) {
      AddNote(row, "zero", "One side is all zeros, so there is no cosine.");
    } else if (row.target->shape.empty()) {
      AddNote(row, "scalar", "A tensor without dimensions has no cosine and no error ratios.");
    } else {
      AddNote(row, "one-element", "A tensor of one element has no cosine.");
    }
  }
  if (row.target->dtype != row.golden->dtype) AddNote(row, "dtype", "The data types differ.");
  if (metrics.golden_zero_mismatch_count > 0) {
    AddNote(row, "golden-zero",
            fmt::format("{} elements are zero in the golden tensor only.",
                        metrics.golden_zero_mismatch_count));
  }
}

void FillDigest(ComparedRow& row) {
  row.result = row.target->digest == row.golden->digest ? "pass" : "Different";
}

void FillResult(const Comparison& comparison, ComparedRow& row) {
  if (!row.target || !row.golden) {
    FillUnmatched(comparison, row);
    return;
  }
  switch (comparison.mode) {
    case CompareMode::kStatistics:
      FillStatistics(row);
      break;
    case CompareMode::kDigest:
      FillDigest(row);
      break;
    case CompareMode::kTensor:
      row.result = measure::AccuracyText(row.tensor);
      FillTensorNotes(row);
      break;
  }
  AddPairingNote(comparison.calls[row.call], row);
}

// --- colours ---------------------------------------------------------------------------------

// A call's rows as the colour rules see them.
struct ColorView {
  bool is_output = false;
  std::optional<double> difference;  // Max diff or MaxAbsErr
  std::optional<double> golden_max;
  bool has_numbers = false;  // target max, golden max and difference are numbers
};

std::optional<double> NumberOrTruth(const Recorded& recorded) {
  if (const auto* truth = std::get_if<bool>(&recorded)) return *truth ? 1.0 : 0.0;
  return NumberOf(recorded);
}

std::optional<double> Value(const Metric& metric) {
  const double* value = std::get_if<double>(&metric);
  return value == nullptr ? std::nullopt : std::optional<double>(*value);
}

ColorView ViewOf(const Comparison& comparison, const ComparedRow& row, bool first_of_call) {
  ColorView view;
  if (!row.target || !row.golden) return view;
  const bool real = comparison.mode == CompareMode::kTensor;
  view.difference = Value(real ? row.tensor->max_abs_error : row.statistics().difference[0]);
  view.golden_max = NumberOrTruth(row.golden->statistics[0]);
  view.has_numbers = view.difference.has_value() && view.golden_max.has_value() &&
                     NumberOrTruth(row.target->statistics[0]).has_value();
  view.is_output = !first_of_call && !measure::IsInput(*row.target);
  return view;
}

double Order(double value) { return std::abs(value) < 1 ? 0 : std::log10(std::abs(value)); }

void Raise(ComparedRow& row, RowColor color, std::string_view code, std::string_view text) {
  if (row.color == RowColor::kRed && color == RowColor::kYellow) return;
  if (color == RowColor::kRed && row.color == RowColor::kYellow) {
    // Yellow reasons give way to red ones.
    row.DropNotes([](std::string_view known) { return known.starts_with("yellow-"); });
  }
  row.color = color;
  AddNote(row, fmt::format("{}-{}", color == RowColor::kRed ? "red" : "yellow", code), text);
}

void ApplyRowRule(const ColorView& view, ComparedRow& row) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Item& item = row.item();
    const std::optional<double> value = NumberOf(item.statistics[i]);
    if (value && !std::isfinite(*value)) {
      Raise(row, RowColor::kRed, "naninf", "Maximum or minimum is NaN or infinite.");
      return;
    }
  }
  if (view.difference && std::abs(*view.difference) > measure::kHugeDifference) {
    Raise(row, RowColor::kRed, "huge", "The largest difference exceeds 1e10.");
  }
}

void ApplyTensorRules(const TensorMetrics& in, const TensorMetrics& out, ComparedRow& row) {
  const std::optional<double> ratio_in = Value(in.below_thousandth_ratio);
  const std::optional<double> ratio_out = Value(out.below_thousandth_ratio);
  if (ratio_in && ratio_out) {
    if (*ratio_in > measure::kThousandthGood && *ratio_out < measure::kThousandthBad) {
      Raise(row, RowColor::kRed, "thousandth",
            "The one-thousandth ratio falls from above 0.9 "
            "to below 0.6.");
    } else if (*ratio_in - *ratio_out > measure::kRatioDrop) {
      Raise(row, RowColor::kYellow, "thousandth", "The one-thousandth ratio falls by over 0.1.");
    }
  }
  const std::optional<double> cosine_in = Value(in.cosine);
  const std::optional<double> cosine_out = Value(out.cosine);
  if (cosine_in && cosine_out && *cosine_in - *cosine_out > measure::kRatioDrop) {
    Raise(row, RowColor::kYellow, "cosine", "The cosine falls by over 0.1.");
  }
}

void ApplyStatisticsRules(const ColorView& in, const ColorView& out, ComparedRow& row) {
  const auto relative = [](const ColorView& view) {
    // The magnitude: a negative maximum must not count as tiny.
    return std::abs(*view.difference) / std::max(measure::kZeroNorm, std::abs(*view.golden_max));
  };
  const double r_in = relative(in);
  const double r_out = relative(out);
  if (r_out > measure::kRelativeMaxRed) {
    Raise(row, RowColor::kRed, "max-relative",
          "The relative difference of the maximum exceeds "
          "0.5.");
  } else if (r_out > measure::kRelativeMaxYellow && r_in < measure::kRelativeMaxInput) {
    Raise(row, RowColor::kYellow, "max-relative",
          "The relative difference of the maximum grows "
          "from below 0.01 to above 0.1.");
  }
}

void ApplyPairRules(CompareMode mode, const ColorView& in, const ComparedRow& in_row,
                    const ColorView& out, ComparedRow& row) {
  if (!in.has_numbers || !out.has_numbers) return;
  const double d_in = *in.difference;
  const double d_out = *out.difference;
  if (std::abs(d_in) <= std::abs(d_out) && Order(d_out) - Order(d_in) >= measure::kMagnitudeStep) {
    Raise(row, RowColor::kYellow, "magnitude", "The largest difference grows tenfold or more.");
  }
  if (mode == CompareMode::kTensor) {
    ApplyTensorRules(in_row.tensor, row.tensor, row);
  } else {
    ApplyStatisticsRules(in, out, row);
  }
}

void ColorCall(Comparison& comparison, const ComparedCall& call) {
  std::vector<ColorView> views;
  views.reserve(call.row_count);
  for (uint32_t i = 0; i < call.row_count; ++i) {
    ComparedRow& row = comparison.rows[call.first_row + i];
    views.push_back(ViewOf(comparison, row, i == 0));
    ApplyRowRule(views.back(), row);
  }
  for (uint32_t o = 0; o < call.row_count; ++o) {
    if (!views[o].is_output) continue;
    ComparedRow& out_row = comparison.rows[call.first_row + o];
    for (uint32_t i = 0; i < call.row_count; ++i) {
      if (views[i].is_output) continue;
      ApplyPairRules(comparison.mode, views[i], comparison.rows[call.first_row + i], views[o],
                     out_row);
    }
  }
}

// --- advice ----------------------------------------------------------------------------------

std::string_view Advise(std::string_view name) {
  const bool forward = name.find("forward") != std::string_view::npos;
  const bool input = name.find("input") != std::string_view::npos;
  for (const std::string_view random :
       {"conv2d", "conv3d", "matmul", "nll_loss", "layer_norm", "lstm"}) {
    if (name.find(random) != std::string_view::npos &&
        name.find("output") != std::string_view::npos) {
      return "This call may not be deterministic: record both runs with seed_all(mode=True).";
    }
  }
  if (forward && input) {
    return "Look at where this input comes from: an unrecorded operation, an in-place change, or "
           "damaged memory.";
  }
  if (forward) return "This forward call computes something else.";
  if (input) return "Check whether the results of the forward pass differ already.";
  return "This backward call computes something else.";
}

bool IsSuspect(const ComparedRow& row) {
  return row.result == "No" || row.result == "Different" || row.result == "Warning";
}

}  // namespace

void FillTable(Comparison& comparison) {
  const bool has_colors = comparison.mode != CompareMode::kDigest && !comparison.of_graphs();
  ParallelBlocks(comparison.calls.size(), kBlock, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const ComparedCall& call = comparison.calls[i];
      for (uint32_t k = 0; k < call.row_count; ++k) {
        FillResult(comparison, comparison.rows[call.first_row + k]);
      }
      if (has_colors) ColorCall(comparison, call);
    }
  });
}

std::string AdviceText(const Comparison& comparison) {
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    if (!IsSuspect(row)) continue;
    return fmt::format("Line: {}\nSuspect Nodes: {}\nExpert Advice: {}\n", i,
                       ReplaceInvalidUtf8(row.item().name), Advise(row.item().name));
  }
  return "Line: NA\nSuspect Nodes: NA\nExpert Advice: No row of the result is marked.\n";
}

namespace {

// "a; b" taken apart; what was said before is left out.
void AppendFacts(std::string_view text, std::vector<std::string_view>& facts) {
  constexpr std::string_view kBetween = "; ";
  while (!text.empty()) {
    const size_t end = text.find(kBetween);
    const std::string_view fact = text.substr(0, end);
    if (!fact.empty() && std::ranges::find(facts, fact) == facts.end()) facts.push_back(fact);
    text = end == text.npos ? std::string_view() : text.substr(end + kBetween.size());
  }
}

// Whether the sentence of the cause is in the headline: the missing or additional call.
bool IsHeadline(std::string_view fact) {
  return fact.starts_with("missing call") || fact.starts_with("additional call");
}

}  // namespace

std::string FactLines(const FirstWrongCall& call) {
  std::vector<std::string_view> facts;
  AppendFacts(call.what, facts);
  const size_t own = facts.size();
  const bool has_class =
      !call.cause.empty() && call.cause != "unexplained" && call.cause != "argument";
  if (has_class) AppendFacts(call.cause_text, facts);
  const bool is_said = own > 0 && IsHeadline(facts.front());
  std::string text;
  for (size_t i = 0; i < own; ++i) text += fmt::format("  {}\n", OneLine(facts[i]));
  if (has_class && !is_said) {
    text += fmt::format("  cause: {} ({} confidence)", call.cause, call.confidence);
    text += facts.size() > own ? fmt::format(": {}\n", OneLine(facts[own])) : "\n";
  }
  for (size_t i = own + 1; i < facts.size(); ++i) {
    text += fmt::format("  {}\n", OneLine(facts[i]));
  }
  return text;
}

std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:,@%=";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ExtractCommand(const Comparison& comparison) {
  if (!comparison.first_wrong_call || comparison.mode == CompareMode::kDigest) return {};
  if (comparison.of_saves || comparison.of_graphs()) return {};
  std::string name = comparison.first_wrong_call->name;
  const bool is_api =
      name.starts_with("Functional.") || name.starts_with("Tensor.") || name.starts_with("Torch.");
  if (!is_api || comparison.target_path.empty() || comparison.golden_path.empty()) return {};
  const auto call = std::ranges::find_if(
      comparison.calls, [&](const ComparedCall& each) { return each.target_name == name; });
  // Of a call with another name on the other side, or none, there is nothing to expect.
  if (call == comparison.calls.end() || call->golden_name != name) return {};
  // MindSpore's calls have such names too.
  for (uint32_t i = 0; i < call->row_count; ++i) {
    const auto& item = comparison.rows[call->first_row + i].target;
    const std::string_view dtype = item && item->dtype ? item->dtype->view() : "";
    const bool is_known = dtype.empty() || dtype.starts_with("torch.") || dtype.starts_with('<');
    if (!is_known) return {};
  }
  for (const std::string_view end : {".forward", ".backward"}) {
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  }
  return fmt::format("plumb extract {} {} --golden {}", ShellWord(comparison.target_path),
                     ShellWord(name), ShellWord(comparison.golden_path));
}

}  // namespace plumbline::report

#include "report/page_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/memory/packed_text.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "measure/compared_row.h"
#include "record/call_stack.h"
#include "report/certainty.h"
#include "report/html_report.h"
#include "report/page_plan.h"
#include "report/result_json.h"
#include "tree/read_tree.h"

namespace plumbline::report {

// HtmlPartData(): a comparison as packed JSON for the page.

namespace {

constexpr size_t kGrowthPoints = 600;
constexpr size_t kBlockCalls = 512;      // whose rows are packed together
constexpr size_t kEvidenceFrom = 50000;  // bytes of a part that has room for plots of elements
constexpr size_t kTreePercent = 45;      // of the bytes of a part

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

// Whether a statistic is a number of single precision, which half as many digits spell.
bool IsSingle(const Recorded& recorded) {
  const double* const number = std::get_if<double>(&recorded);
  return number != nullptr && std::isfinite(*number) &&
         static_cast<double>(static_cast<float>(*number)) == *number;
}
void AppendSingle(double number, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", static_cast<float>(number));
}

// A number with the digits that a page can show; no number, and what has none, is null.
void AppendRounded(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "null";
  } else if (std::isinf(value)) {
    AppendNumber(value, out);
  } else {
    fmt::format_to(std::back_inserter(out), "{:.8g}", value);
  }
}
void AppendRounded(const Metric& metric, std::string& out) {
  const double* const number = std::get_if<double>(&metric);
  if (number == nullptr || std::isnan(*number)) {
    AppendMetric(metric, out);
  } else {
    AppendRounded(*number, out);
  }
}

// Of a tensor max, min, mean and norm; of an argument its value; 0: there is no such item.
void AppendStatisticsOf(const Slot<Item>& item, std::string& out) {
  if (!item) {
    out += '0';
    return;
  }
  const RecordedStatistics::Array all = item->statistics;
  const size_t count = item->is_tensor ? all.size() : 1;
  const std::span statistics(all.data(), count);
  const bool is_single = count > 1 && std::ranges::all_of(statistics, IsSingle);
  out += is_single ? "[\"f\"" : "[";
  for (const Recorded& recorded : statistics) {
    if (!out.ends_with('[')) out += ',';
    if (is_single) {
      AppendSingle(std::get<double>(recorded), out);
    } else {
      AppendShown(recorded, out);
    }
  }
  out += ']';
}

void AppendMetrics(CompareMode mode, const ComparedRow& row, std::string& out) {
  out += '[';
  const auto list = [&](std::initializer_list<const Metric*> metrics) {
    for (const Metric* metric : metrics) {
      AppendRounded(*metric, out);
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

// One array of a column.
template <class Items, class Append>
void AppendColumn(const Items& items, std::string& out, const Append& append) {
  out += '[';
  for (const auto& item : items) {
    if (!out.ends_with('[')) out += ',';
    append(item, out);
  }
  out += ']';
}
// Requires: no item begins with '['.
template <class Items, class NumberOf>
void AppendIntegers(const Items& items, std::string& out, const NumberOf& number_of) {
  AppendColumn(items, out,
               [&](const auto& item, std::string& to) { to += std::to_string(number_of(item)); });
}

// What the results and the inputs of a call differ by at most.
struct CallErrors {
  double error = std::numeric_limits<double>::quiet_NaN();
  double explained = 0;
  double input_error = std::numeric_limits<double>::quiet_NaN();
};

CallErrors ErrorsOf(const Comparison& comparison, const ComparedCall& call) {
  CallErrors errors;
  for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
    if (std::isnan(row.error)) continue;
    if (measure::IsInput(row)) {
      if (!(errors.input_error >= row.error)) errors.input_error = row.error;
    } else if (!(errors.error >= row.error)) {
      errors.error = row.error;
      errors.explained = row.expected;
    }
  }
  return errors;
}

class PartWriter {
 public:
  PartWriter(const HtmlPart& part, KnownPart known, size_t most_bytes)
      : part_(part),
        comparison_(*part.comparison),
        most_bytes_(most_bytes),
        answer_(std::move(known.answer)),
        trees_(std::move(known.trees)),
        plan_(PlanPage(comparison_, trees_, most_bytes * kTreePercent / 100)) {
    place_of_call_.assign(comparison_.calls.size(), -1);
    for (size_t i = 0; i < plan_.calls.size(); ++i) {
      place_of_call_[plan_.calls[i]] = static_cast<int32_t>(i);
    }
  }

  std::string Write() {
    Add("part", [this](std::string& out) { AppendPart(out); });
    Add("tree", [this](std::string& out) { AppendTree(out); });
    Add("calls", [this](std::string& out) { AppendCalls(out); });
    AddRows();
    Add("end", [this](std::string& out) { AppendEnd(out); });
    return std::move(lines_);
  }

 private:
  static std::string LineOf(std::string_view kind, std::string_view json) {
    return fmt::format("{} {}\n", kind, PackText(json));
  }
  template <class Append>
  void Add(std::string_view kind, const Append& append) {
    std::string json;
    append(json);
    lines_ += LineOf(kind, json);
  }

  void AppendPart(std::string& out) {
    ObjectWriter object(out);
    object.Text("label", part_.label);
    AppendNumberOrNull(part_.step, object.Key("step"));
    AppendNumberOrNull(part_.rank, object.Key("rank"));
    object.Texts("answer", answer_);
    ObjectWriter header(object.Key("header"));
    AppendHeader(comparison_, header);
    header.End();
    object.Text("next_config", comparison_.next_config);
    AppendReasons(object.Key("reasons"));
    AppendFirstStack(object);
    AppendGrowth(object.Key("growth"));
    const bool has_room = most_bytes_ >= kEvidenceFrom;
    object.Truth("evidence_left_out", part_.evidence != nullptr && !has_room);
    AppendEvidence(has_room ? part_.evidence : nullptr, object.Key("evidence"));
    object.End();
  }

  static void AppendNumberOrNull(const std::optional<int64_t>& number, std::string& out) {
    out += number ? std::to_string(*number) : "null";
  }

  // "foreign": which frames of the stack of the first wrong call are not the user's.
  void AppendFirstStack(ObjectWriter& object) const {
    std::vector<size_t> foreign;
    if (comparison_.first_wrong_call) {
      const auto& stack = comparison_.first_wrong_call->stack;
      for (size_t i = 0; i < stack.size(); ++i) {
        if (IsForeignFrame(stack[i])) foreign.push_back(i);
      }
    }
    AppendIntegers(foreign, object.Key("foreign"), [](size_t frame) { return frame; });
  }

  struct Point {
    size_t call = 0;
    double error = std::numeric_limits<double>::quiet_NaN();
    double explained = 0;
    Verdict verdict = Verdict::kNotComparable;
  };

  // The worst output of a call.
  Point PointOf(size_t call) const {
    const CallErrors errors = ErrorsOf(comparison_, comparison_.calls[call]);
    return {call, errors.error, errors.explained, comparison_.calls[call].verdict};
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
      AppendRounded(worst.error, out);
      out += ',';
      AppendRounded(worst.explained, out);
      out += "," + std::to_string(static_cast<int>(worst.verdict)) + "]";
    }
    out += ']';
  }

  void AppendTree(std::string& out) const {
    ObjectWriter object(out);
    object.Integer("micro_steps", static_cast<uint64_t>(trees_.target.micro_steps));
    ObjectWriter counts(object.Key("counts"));
    const tree::NodeCounts& of_nodes = trees_.counts;
    counts.Integer("pass", of_nodes.levels[static_cast<size_t>(vis::Level::kPass)]);
    counts.Integer("warning", of_nodes.levels[static_cast<size_t>(vis::Level::kWarning)]);
    counts.Integer("error", of_nodes.levels[static_cast<size_t>(vis::Level::kError)]);
    counts.Integer("none", of_nodes.not_judged);
    counts.Integer("unmatched_target", of_nodes.unmatched_target);
    counts.Integer("unmatched_golden", of_nodes.unmatched_golden);
    counts.End();
    std::vector<std::string> notes = trees_.target.notes;
    notes.insert(notes.end(), trees_.golden.notes.begin(), trees_.golden.notes.end());
    object.Texts("notes", notes);
    AppendSide(plan_.target, plan_.golden, true, object.Key("target"));
    AppendSide(plan_.golden, plan_.target, false, object.Key("golden"));
    object.End();
  }

  void AppendSide(const PageSide& side, const PageSide& other, bool of_target,
                  std::string& out) const {
    using tree::Node;
    ObjectWriter object(out);
    AppendColumn(side.nodes, object.Key("names"), [&](const Node* node, std::string& to) {
      const bool is_shared =
          !of_target && other.PlaceOf(node->partner) >= 0 && node->partner->name == node->name;
      json::AppendString(is_shared ? "" : node->name, to);
    });
    AppendIntegers(side.nodes, object.Key("types"),
                   [](const Node* node) { return static_cast<int>(node->type); });
    AppendIntegers(side.nodes, object.Key("parents"),
                   [&](const Node* node) { return side.PlaceOf(node->parent); });
    AppendIntegers(side.nodes, object.Key("orders"), [](const Node* node) { return node->order; });
    AppendIntegers(side.nodes, object.Key("micro_steps"),
                   [](const Node* node) { return node->micro_step; });
    AppendIntegers(side.nodes, object.Key("levels"), [](const Node* node) {
      return node->level ? static_cast<int>(*node->level) : -1;
    });
    AppendIntegers(side.nodes, object.Key("partners"), [&](const Node* node) {
      constexpr int32_t kNone = -1, kLeftOut = -2;
      if (node->partner == nullptr) return kNone;
      return other.PlaceOf(node->partner) < 0 ? kLeftOut : other.PlaceOf(node->partner);
    });
    AppendIntegers(side.nodes, object.Key("flags"), [](const Node* node) {
      return (node->is_recomputed ? node_flag::kRecomputed : 0) |
             (node->is_repaired ? node_flag::kRepaired : 0);
    });
    AppendIntegers(side.hidden, object.Key("hidden"), [](uint32_t count) { return count; });
    object.Integer("total", side.total);
    object.End();
  }

  void AppendCalls(std::string& out) {
    Dictionary frames, stacks, texts;
    const auto call_of = [&](uint32_t i) -> const ComparedCall& { return comparison_.calls[i]; };
    std::vector<CallErrors> errors;
    errors.reserve(plan_.calls.size());
    for (const uint32_t i : plan_.calls) errors.push_back(ErrorsOf(comparison_, call_of(i)));
    ObjectWriter object(out);
    object.Integer("total", comparison_.calls.size());
    AppendIntegers(plan_.calls, object.Key("numbers"), [](uint32_t i) { return i; });
    AppendIntegers(plan_.calls, object.Key("target"),
                   [&](uint32_t i) { return plan_.target.PlaceOf(trees_.calls[i].target); });
    AppendIntegers(plan_.calls, object.Key("golden"),
                   [&](uint32_t i) { return plan_.golden.PlaceOf(trees_.calls[i].golden); });
    AppendIntegers(plan_.calls, object.Key("verdicts"),
                   [&](uint32_t i) { return static_cast<int>(call_of(i).verdict); });
    AppendIntegers(plan_.calls, object.Key("flags"),
                   [&](uint32_t i) { return static_cast<int>(plan_.flags[i]); });
    AppendIntegers(plan_.calls, object.Key("rows"),
                   [&](uint32_t i) { return call_of(i).row_count; });
    const std::array<std::pair<std::string_view, double CallErrors::*>, 3> kColumns = {{
        {"errors", &CallErrors::error},
        {"explained", &CallErrors::explained},
        {"input_errors", &CallErrors::input_error},
    }};
    for (const auto& [key, member] : kColumns) {
      AppendColumn(errors, object.Key(key),
                   [member = member](const CallErrors& of, std::string& to) {
                     const double value = of.*member;
                     if (std::isfinite(value)) {
                       fmt::format_to(std::back_inserter(to), "{:.4g}", value);
                     } else {
                       AppendRounded(value, to);
                     }
                   });
    }
    AppendIntegers(plan_.calls, object.Key("stacks"),
                   [&](uint32_t i) { return StackOf(i, frames, stacks); });
    AppendCallTexts(object.Key("unmatched"), texts, [](const ComparedCall& call) {
      const std::string reason = call.unmatched_reason;
      const Text& detail = call.unmatched_detail;
      return detail.empty() ? reason : reason + " (" + detail + ")";
    });
    AppendCallTexts(object.Key("pairings"), texts,
                    [](const ComparedCall& call) { return call.pairing; });
    AppendFrames(frames, stacks, object);
    object.Texts("texts", texts.texts());
    object.End();
  }

  int StackOf(uint32_t call, Dictionary& frames, Dictionary& stacks) const {
    if (call >= comparison_.stacks.size() || comparison_.stacks[call].empty()) return -1;
    std::string key;
    for (const std::string& frame : *comparison_.stacks[call]) {
      key += (key.empty() ? "" : ",") + std::to_string(frames.IndexOf(frame));
    }
    return stacks.IndexOf(key);
  }

  // [place of the call, text] of those that have one.
  template <class TextOf>
  void AppendCallTexts(std::string& out, Dictionary& texts, const TextOf& text_of) const {
    out += '[';
    bool is_first = true;
    for (size_t i = 0; i < plan_.calls.size(); ++i) {
      const std::string text = text_of(comparison_.calls[plan_.calls[i]]);
      if (text.empty()) continue;
      out += fmt::format("{}[{},{}]", is_first ? "" : ",", i, texts.IndexOf(text));
      is_first = false;
    }
    out += ']';
  }

  // "foreign" has the numbers of the frames that are not the user's.
  static void AppendFrames(const Dictionary& frames, const Dictionary& stacks,
                           ObjectWriter& object) {
    std::vector<size_t> foreign;
    for (size_t i = 0; i < frames.texts().size(); ++i) {
      if (IsForeignFrame(frames.texts()[i])) foreign.push_back(i);
    }
    object.Texts("frames", frames.texts());
    AppendIntegers(foreign, object.Key("foreign"), [](size_t frame) { return frame; });
    std::string& out = object.Key("lists");
    out += '[';
    for (size_t i = 0; i < stacks.texts().size(); ++i) {
      out += fmt::format("{}[{}]", i == 0 ? "" : ",", stacks.texts()[i]);
    }
    out += ']';
  }

  // Blocks in order of importance, until the page is full.
  void AddRows() {
    const std::vector<uint32_t>& calls = plan_.importance;
    const uint64_t most_rows = kHtmlRows * most_bytes_ / HtmlShare(1);
    size_t block = kBlockCalls;
    for (size_t at = 0; at < calls.size();) {
      const std::span some = std::span(calls).subspan(at, std::min(block, calls.size() - at));
      uint64_t rows = 0;
      const std::string line = RowsLine(some, rows);
      const bool fits =
          lines_.size() + line.size() <= most_bytes_ && written_rows_ + rows <= most_rows;
      if (at == 0 || fits) {
        lines_ += line;
        written_rows_ += rows;
        at += some.size();
      } else if (block == 1) {
        return;
      } else {
        block = std::max<size_t>(1, block / 8);
      }
    }
  }

  std::string RowsLine(std::span<const uint32_t> calls, uint64_t& rows) {
    texts_ = {};
    std::string json = "{\"rows\":[";
    for (const uint32_t call : calls) {
      for (const ComparedRow& row : measure::RowsOf(comparison_, comparison_.calls[call])) {
        if (rows++ > 0) json += ",\n";
        AppendOneRow(row, json);
      }
    }
    json += "],\"texts\":";
    AppendTexts(texts_.texts(), json);
    json += '}';
    return LineOf("rows", json);
  }

  void AppendOneRow(const ComparedRow& row, std::string& out) {
    const Text& call = comparison_.calls[row.call].name();
    const Item& item = row.item();
    out += "[" + std::to_string(place_of_call_[row.call]) + ",";
    const bool is_suffix = item.name.size() > call.size() && item.name.starts_with(call) &&
                           item.name[call.size()] == '.';
    json::AppendString(std::string_view(item.name).substr(is_suffix ? call.size() : 0), out);
    out += "," + std::to_string(static_cast<int>(item.role)) + "," +
           std::to_string(static_cast<int>(row.verdict)) + ",";
    AppendIndex(texts_.IndexOf(row.reason), out);
    out += ',';
    AppendRounded(row.error, out);
    out += ',';
    AppendRounded(row.expected, out);
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
    for (const ComparedCall& call : comparison_.calls) codes.insert(call.unmatched_reason);
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

  static void AppendEvidence(const explain::Evidence* shown, std::string& out) {
    if (shown == nullptr) {
      out += "null";
      return;
    }
    const explain::Evidence& evidence = *shown;
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
      AppendRounded(evidence.profile[i], profile);
    }
    profile += ']';
    object.End();
  }

  // What the page holds of all there is.
  void AppendEnd(std::string& out) const {
    ObjectWriter object(out);
    object.Integer("rows", written_rows_);
    object.Integer("row_total", comparison_.rows.size());
    object.Integer("calls", plan_.calls.size());
    object.Integer("call_total", comparison_.calls.size());
    object.Integer("nodes", plan_.target.nodes.size());
    object.Integer("node_total", plan_.target.total);
    object.Integer("golden_nodes", plan_.golden.nodes.size());
    object.Integer("golden_node_total", plan_.golden.total);
    object.End();
  }

  const HtmlPart& part_;
  const Comparison& comparison_;
  const size_t most_bytes_;
  const std::vector<std::string> answer_;
  const tree::ComparedTrees trees_;
  const PagePlan plan_;
  std::vector<int32_t> place_of_call_;  // among those held
  std::string lines_;
  uint64_t written_rows_ = 0;
  Dictionary texts_;  // of the block that is being written
};

}  // namespace

size_t HtmlShare(size_t parts) {
  return (kHtmlBytes - kHtmlFrameBytes) / std::max<size_t>(parts, 1);
}

std::string HtmlPartData(const HtmlPart& part, size_t most_bytes) {
  return HtmlPartData(
      part, {tree::ReadTrees(*part.comparison), AnswerLines(SummaryText(*part.comparison))},
      most_bytes);
}

std::string HtmlPartData(const HtmlPart& part, KnownPart known, size_t most_bytes) {
  return PartWriter(part, std::move(known), most_bytes).Write();
}

}  // namespace plumbline::report

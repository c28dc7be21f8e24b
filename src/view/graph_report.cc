#include "view/graph_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/number_text.h"
#include "formats/json/json_feed.h"
#include "report/result_json.h"

namespace plumbline::view {
namespace {

constexpr size_t kMostLines = 5;  // of ranks that name a wrong call

uint64_t LevelCount(const NodeCounts& counts, vis::Level level) {
  return counts.levels[static_cast<size_t>(level)];
}

// "first wrong call: step 2 rank 3 Torch.relu.4.forward", where only one rank of the first step
// that names a call does so; nothing where several do.
std::optional<std::string> FirstOfAll(const std::vector<RankAnswer>& answers) {
  constexpr std::string_view kStart = "first wrong call: ";
  const auto step_of = [](const RankAnswer& rank) {
    return rank.label.substr(0, rank.label.rfind("rank"));
  };
  const auto first = std::ranges::find_if(
      answers, [](const RankAnswer& rank) { return rank.first_wrong_call.has_value(); });
  if (first == answers.end() || !first->answer.starts_with(kStart)) return std::nullopt;
  const auto others = std::count_if(first + 1, answers.end(), [&](const RankAnswer& rank) {
    return rank.first_wrong_call && step_of(rank) == step_of(*first);
  });
  if (others > 0) return std::nullopt;
  return fmt::format("{}{} {}", kStart, first->label, first->answer.substr(kStart.size()));
}

void AddCounts(const NodeCounts& counts, json::Document& out) {
  out.Key("counts");
  out.Open('{');
  VisitCounts(counts, [&](std::string_view name, uint64_t number) { out.Number(name, number); });
  out.Close('}');
}

void AddCall(const FirstWrongCall& call, json::Document& out) {
  out.Key("first_wrong_call");
  out.Open('{');
  report::AddMembers(call, out);
  out.Close('}');
}

void AddRank(const RankAnswer& rank, json::Document& out) {
  out.Open('{');
  out.Member("rank", rank.label);
  out.Member("task", rank.task);
  out.Member("answer", rank.answer);
  out.Truth("complete", rank.is_complete);
  AddCounts(rank.counts, out);
  if (rank.first_wrong_call) AddCall(*rank.first_wrong_call, out);
  out.Close('}');
}

}  // namespace

std::string ComparisonAnswer(const GraphFileReport& report) {
  if (report.answers.empty()) return {};
  if (report.answers.size() == 1) {
    const std::string& answer = report.answers.front().answer;
    return answer.empty() ? "structure compared: no values were recorded\n" : answer + "\n";
  }
  const auto names_call = [](const RankAnswer& rank) { return rank.first_wrong_call.has_value(); };
  const auto wrong = static_cast<size_t>(std::ranges::count_if(report.answers, names_call));
  const auto complete = static_cast<size_t>(
      std::ranges::count_if(report.answers, [](const auto& rank) { return rank.is_complete; }));
  const std::string counts = fmt::format("{} of {} comparisons name a wrong call; {} complete",
                                         wrong, report.answers.size(), complete);
  const std::optional<std::string> first = FirstOfAll(report.answers);
  std::string text = first ? fmt::format("{} ({})\n", *first, counts) : counts + "\n";
  size_t lines = 0;
  for (const RankAnswer& rank : report.answers) {
    if (!names_call(rank) || lines == kMostLines) continue;
    text += fmt::format("  {}: {}\n", rank.label, rank.answer);
    ++lines;
  }
  if (wrong > lines) text += fmt::format("  {} more; --summary has all\n", wrong - lines);
  if (wrong > 1 && !first) text += "  which rank was the first one: plumb compare\n";
  return text;
}

NodeCounts GraphFileReport::counts() const {
  NodeCounts all;
  for (const RankAnswer& rank : answers) {
    for (size_t i = 0; i < vis::kLevels; ++i) all.levels[i] += rank.counts.levels[i];
    all.not_judged += rank.counts.not_judged;
    all.unmatched_target += rank.counts.unmatched_target;
    all.unmatched_golden += rank.counts.unmatched_golden;
  }
  return all;
}

std::string GraphAnswer(const GraphFileReport& report) {
  std::string text = ComparisonAnswer(report);
  const bool is_pair = !report.answers.empty();
  text += is_pair ? fmt::format("graphs of {} and {} nodes", report.nodes, report.golden_nodes)
                  : fmt::format("graph of {}", CountText(report.nodes, "node"));
  text +=
      fmt::format(": {}, {}, {}", CountText(report.ranks, "rank"), CountText(report.steps, "step"),
                  CountText(static_cast<uint64_t>(report.micro_steps), "micro step"));
  if (report.reused > 0)
    text += fmt::format("; {} as an earlier run made it", CountText(report.reused, "rank"));
  if (report.overflows > 0) {
    text +=
        fmt::format("; {} with NaN, Inf or a jump of norms", CountText(report.overflows, "node"));
  }
  text += '\n';
  if (is_pair) text += fmt::format("  {}\n", CountsText(report.counts()));
  return text;
}

Result<std::string> GraphSummaryJson(const GraphFileReport& report) {
  json::Document out;
  out.Open('{');
  out.Texts("files", report.files);
  out.Number("nodes", report.nodes);
  if (!report.answers.empty()) out.Number("golden_nodes", report.golden_nodes);
  out.Number("ranks", report.ranks);
  out.Number("steps", report.steps);
  out.Number("micro_steps", static_cast<uint64_t>(report.micro_steps));
  out.Number("overflows", report.overflows);
  out.Number("reused", report.reused);
  out.Texts("notes", report.notes);
  if (!report.answers.empty()) {
    AddCounts(report.counts(), out);
    out.Key("comparisons");
    out.Open('[');
    for (const RankAnswer& rank : report.answers) AddRank(rank, out);
    out.Close(']');
  }
  out.Close('}');
  return out.Finish();
}

Result<bool> FailsOn(const GraphFileReport& report, const std::vector<std::string>& conditions) {
  const NodeCounts counts = report.counts();
  const bool has_error = LevelCount(counts, vis::Level::kError) > 0;
  bool is_met = false;
  for (const std::string& condition : conditions) {
    if (condition == "overflow") {
      is_met = is_met || report.overflows > 0;
      continue;
    }
    if (report.answers.empty()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("--fail-on {}: nothing is compared (expected overflow, or the "
                               "golden recording too)",
                               condition));
    }
    if (condition == "error") {
      is_met = is_met || has_error;
    } else if (condition == "warning") {
      is_met = is_met || has_error || LevelCount(counts, vis::Level::kWarning) > 0;
    } else if (condition == "unmatched") {
      is_met = is_met || counts.unmatched_target + counts.unmatched_golden > 0;
    } else if (condition == "unjudged") {
      is_met = is_met || std::ranges::any_of(report.answers,
                                             [](const auto& rank) { return !rank.is_complete; });
    } else {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("--fail-on {}: unknown (expected error, warning, unmatched, "
                               "unjudged or overflow)",
                               condition));
    }
  }
  return is_met;
}

}  // namespace plumbline::view

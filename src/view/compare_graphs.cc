#include "view/compare_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "compare/compared_rows.h"
#include "measure/compared_row.h"
#include "report/certainty.h"
#include "report/newest_table.h"

namespace plumbline::view {
namespace {

using vis::Level;

void Link(Node& target, Node& golden) {
  if (target.partner != nullptr || golden.partner != nullptr) return;
  target.partner = &golden;
  golden.partner = &target;
}

void LinkByName(ModelGraph& target, ModelGraph& golden) {
  for (Node& node : target.nodes) {
    if (node.type == NodeType::kCollection) continue;
    Node* const other = golden.Find(node.name);
    if (other != nullptr) Link(node, *other);
  }
}

// Groups of calls, and groups of the ranks' groups behind these.
std::vector<Node*> GroupsFromBelow(ModelGraph& graph) {
  std::vector<Node*> groups, above;
  for (Node* const top : graph.root().children) {
    if (top->type != NodeType::kCollection) continue;
    const auto is_group = [](const Node* child) { return child->type == NodeType::kCollection; };
    std::ranges::copy_if(top->children, std::back_inserter(groups), is_group);
    above.push_back(top);
  }
  groups.insert(groups.end(), above.begin(), above.end());
  return groups;
}

// A group pairs with the one that most of its calls' counterparts are in, the first of several.
void LinkGroups(ModelGraph& target) {
  for (Node* const group : GroupsFromBelow(target)) {
    std::map<size_t, std::pair<size_t, Node*>> votes;  // by the place of the first counterpart
    std::map<const Node*, size_t> place;
    for (const Node* const call : group->children) {
      if (call->partner == nullptr) continue;
      Node* const other = call->partner->parent;
      if (other == nullptr || other->type != NodeType::kCollection) continue;
      const size_t at = place.emplace(other, place.size()).first->second;
      ++votes[at].first;
      votes[at].second = other;
    }
    Node* best = nullptr;
    size_t most = 0;
    for (const auto& [at, vote] : votes) {
      if (vote.first <= most || vote.second->partner != nullptr) continue;
      most = vote.first;
      best = vote.second;
    }
    if (best != nullptr) Link(*group, *best);
  }
}

std::optional<Level> LevelOf(Verdict verdict) {
  if (measure::IsGood(verdict)) return Level::kPass;
  if (verdict == Verdict::kSuspicious) return Level::kWarning;
  if (verdict == Verdict::kBroken) return Level::kError;
  return std::nullopt;
}

void Raise(std::optional<Level> level, Node& node) {
  if (level && (!node.level || *level > *node.level)) node.level = level;
}

// What a row says in upstream's columns "Result" and "Err_message".
struct RowAnswer {
  std::string result, message;
};

std::string ReasonOf(const ComparedRow& row) {
  std::string text(row.reason.view());
  const std::string_view words = report::ReasonText(row.reason);
  if (!words.empty()) text += fmt::format(" ({})", words);
  if (std::isfinite(row.error)) {
    text += fmt::format(": relative error {:.3g}, explained {:.3g}", row.error, row.expected);
  }
  return text;
}

RowAnswer AnswerOf(const ComparedCall& call, const ComparedRow& row) {
  if (!call.paired()) {
    std::string text = call.unmatched_reason;
    if (!call.unmatched_detail.empty()) text += ": " + call.unmatched_detail;
    return {"not comparable", "not comparable: " + text};
  }
  if (!row.golden) return {"no counterpart", "no counterpart: the golden call has no such value"};
  const std::optional<Level> level = LevelOf(row.verdict);
  RowAnswer answer{level ? std::string(vis::LevelName(*level)) : "not comparable", ""};
  if (level != Level::kPass) answer.message = fmt::format("{}: {}", answer.result, ReasonOf(row));
  return answer;
}

constexpr std::string_view kNoNumber = "N/A";
constexpr std::string_view kDifferences[] = {"Max diff", "Min diff", "Mean diff", "L2norm diff"};
constexpr std::string_view kRelative[] = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
                                          "NormRelativeErr"};

std::string NumberText(const Metric& metric, std::string_view unit) {
  const double* const number = std::get_if<double>(&metric);
  if (number == nullptr) return std::string(kNoNumber);
  return std::isnan(*number) ? "Nan" : PythonFloat(*number).append(unit);
}

// Differences of integers are integers.
std::string DifferenceText(const Recorded& target, const Recorded& golden, const Metric& metric) {
  const auto* const a = std::get_if<int64_t>(&target);
  const auto* const b = std::get_if<int64_t>(&golden);
  const double* const number = std::get_if<double>(&metric);
  constexpr double kExact = 9007199254740992;  // 2^53: below it every integer is a double
  const bool is_whole = a != nullptr && b != nullptr && number != nullptr;
  if (!is_whole || !(std::abs(*number) < kExact)) return NumberText(metric, "");
  return fmt::format("{}", static_cast<int64_t>(*number));
}

// The differences of the statistics of a row, as upstream's graphs have them.
void AppendDifferences(const ComparedRow& row, const ValueForm& form, std::string& out) {
  const StatisticDifferences differences = row.statistics();
  for (size_t i = 0; i < std::size(kDifferences); ++i) {
    const std::string text = DifferenceText(row.target->statistics[i], row.golden->statistics[i],
                                            differences.difference[i]);
    AppendField(kDifferences[i], ShownValue(text, form), false, out);
  }
  for (size_t i = 0; i < std::size(kRelative); ++i) {
    const std::string text = NumberText(differences.relative_percent[i], "%");
    AppendField(kRelative[i], ShownValue(text, form), false, out);
  }
}

// Puts the rows of a comparison on the nodes of one graph.
class RowPlacer {
 public:
  RowPlacer(const Comparison& comparison, const ValueForm& form)
      : comparison_(comparison), form_(form) {}

  void Place(const ComparedCall& call, Node& node) const {
    node.metrics.resize(node.values.size());
    size_t next = 0;
    for (uint32_t i = 0; i < call.row_count; ++i) {
      const ComparedRow& row = comparison_.rows[call.first_row + i];
      if (!row.target) continue;
      const std::optional<size_t> at = Find(row.target->name, node.values, next);
      if (!at) continue;
      next = *at + 1;
      node.metrics[*at] = Metrics(call, row);
    }
  }

 private:
  // The parameter of that name; those of a call come nearly in the order of its rows.
  static std::optional<size_t> Find(std::string_view name, const NodeValues& values, size_t from) {
    for (size_t k = 0; k < values.size(); ++k) {
      const size_t i = (from + k) % values.size();
      if (IsNamed(name, values[i].name)) return i;
    }
    return std::nullopt;
  }
  // A transfer in a batch has the name of its place, its row that of the tensor in it.
  static bool IsNamed(std::string_view row, std::string_view parameter) {
    if (!row.starts_with(parameter)) return false;
    return row.size() == parameter.size() || row.substr(parameter.size()) == ".tensor";
  }

  [[nodiscard]] std::string Metrics(const ComparedCall& call, const ComparedRow& row) const {
    std::string out;
    if (row.golden) {
      if (comparison_.mode == CompareMode::kStatistics) AppendDifferences(row, form_, out);
      for (const auto& [column, text] : report::NewestMetricsOf(comparison_, row)) {
        AppendField(column, ShownValue(text, form_), false, out);
      }
    }
    const RowAnswer answer = AnswerOf(call, row);
    AppendField("Result", answer.result, false, out);
    const std::string messages = answer.message.empty() ? "[]" : vis::ListJson({answer.message});
    AppendField("Err_message", messages, false, out);
    return out;
  }

  const Comparison& comparison_;
  const ValueForm& form_;
};

std::optional<Level> LevelOf(const Comparison& comparison, const ComparedCall& call) {
  if (!call.paired()) {
    if (!call.unmatched_reason.ends_with("-differs")) return std::nullopt;
    return call.unmatched_detail.empty() ? Level::kWarning : Level::kError;
  }
  if (const auto level = LevelOf(call.verdict)) return level;
  for (uint32_t i = 0; i < call.row_count; ++i) {
    if (compare::IsMissingValue(comparison.rows[call.first_row + i])) return Level::kWarning;
  }
  return std::nullopt;
}

// The calls of the comparison that are of one node: mostly one.
struct NodeCalls {
  Node* node;
  std::vector<const ComparedCall*> calls;
};

std::vector<NodeCalls> CallsByNode(const Comparison& comparison, const ModelGraph& target) {
  std::vector<NodeCalls> found;
  std::unordered_map<const Node*, size_t> place;
  for (const ComparedCall& call : comparison.calls) {
    Node* const node = call.target_name.empty() ? nullptr : target.Find(call.target_name);
    if (node == nullptr || node->partner == nullptr) continue;
    const auto [at, is_new] = place.emplace(node, found.size());
    if (is_new) found.push_back({node, {}});
    found[at->second].calls.push_back(&call);
  }
  return found;
}

void PlaceCalls(const Comparison& comparison, const ValueForm& form, ModelGraph& target) {
  constexpr size_t kShare = 256;
  const RowPlacer placer(comparison, form);
  const std::vector<NodeCalls> nodes = CallsByNode(comparison, target);
  ParallelBlocks(nodes.size(), kShare, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      for (const ComparedCall* const call : nodes[i].calls) {
        placer.Place(*call, *nodes[i].node);
        Raise(LevelOf(comparison, *call), *nodes[i].node);
      }
    }
  });
  if (!comparison.first_wrong_call) return;
  Node* const first = target.Find(comparison.first_wrong_call->name);
  if (first != nullptr && first->partner != nullptr) Raise(Level::kError, *first);
}

void RollUpGroups(ModelGraph& target) {
  for (Node* const group : GroupsFromBelow(target)) {
    for (const Node* const call : group->children) Raise(call->level, *group);
  }
}

void SpreadMicroSteps(ModelGraph& target) {
  for (const Node* const top : target.root().children) {
    Node* const other = top->partner;
    if (other == nullptr || other->parent == nullptr || other->parent->parent != nullptr) continue;
    SetMicroStep(top->micro_step, *other);
  }
}

NodeCounts Count(const ModelGraph& target, const ModelGraph& golden) {
  NodeCounts counts;
  const auto counts_as_node = [](const ModelGraph& graph, const Node& node) {
    return &node != &graph.root() && node.type != NodeType::kCollection;
  };
  for (const Node& node : target.nodes) {
    if (!counts_as_node(target, node)) continue;
    if (node.partner == nullptr) {
      ++counts.unmatched_target;
    } else if (node.level) {
      ++counts.levels[static_cast<size_t>(*node.level)];
    } else {
      ++counts.not_judged;
    }
  }
  for (const Node& node : golden.nodes) {
    if (counts_as_node(golden, node) && node.partner == nullptr) ++counts.unmatched_golden;
  }
  return counts;
}

}  // namespace

NodeCounts CompareGraphs(const Comparison& comparison, const ValueForm& form, ModelGraph& target,
                         ModelGraph& golden) {
  for (const ComparedCall& call : comparison.calls) {
    if (!call.paired()) continue;
    Node* const ours = target.Find(call.target_name);
    Node* const theirs = golden.Find(call.golden_name);
    if (ours != nullptr && theirs != nullptr) Link(*ours, *theirs);
  }
  LinkByName(target, golden);
  LinkGroups(target);
  PlaceCalls(comparison, form, target);
  RollUpGroups(target);
  SpreadMicroSteps(target);
  return Count(target, golden);
}

NodeCounts PairGraphs(ModelGraph& target, ModelGraph& golden) {
  LinkByName(target, golden);
  LinkGroups(target);
  SpreadMicroSteps(target);
  return Count(target, golden);
}

}  // namespace plumbline::view

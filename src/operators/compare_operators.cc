#include "operators/compare_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/process/log.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/acl/fusion_rule.h"
#include "operators/measure_operator.h"

namespace plumbline::operators {

namespace {

// What the answer says of each row, in the order of computation.
report::TensorAnswer AnswerOfRows(const OperatorComparison& comparison) {
  std::vector<report::JudgedTensor> judged;
  judged.reserve(comparison.rows.size());
  for (const OperatorRow& row : comparison.rows) {
    const PairedOperator& pair = comparison.pairs[row.pair];
    const bool has_target = !pair.target_path.empty();
    report::JudgedTensor tensor;
    tensor.operation = has_target ? pair.target_name : pair.golden_name;
    tensor.name = row.tensor.empty() ? tensor.operation : row.tensor;
    tensor.is_output = !row.is_input;
    tensor.paired = row.paired;
    tensor.verdict = row.verdict;
    judged.push_back(std::move(tensor));
  }
  return report::AnswerOf(judged, comparison.unnamed);
}

}  // namespace

void MeasurePairs(const OperatorRequest& request, OperatorComparison& comparison) {
  const MeasureSettings settings{request.algorithms, request.most_elements, request.with_overflow,
                                 request.own};
  comparison.with_overflow = request.with_overflow;
  OwnLayouts layouts(request.own.code.get());
  std::vector<std::vector<OperatorRow>> rows(comparison.pairs.size());
  RunWithThreads(request.threads, [&] {
    ParallelFor(rows.size(), [&](size_t i) {
      rows[i] = MeasureOperator(comparison.pairs[i], i, settings, layouts);
    });
  });
  size_t count = 0;
  for (const std::vector<OperatorRow>& of_pair : rows) count += of_pair.size();
  comparison.rows.reserve(count);
  for (std::vector<OperatorRow>& of_pair : rows) {
    std::move(of_pair.begin(), of_pair.end(), std::back_inserter(comparison.rows));
  }
  comparison.answer = AnswerOfRows(comparison);
}

Result<OperatorComparison> CompareOperators(const OperatorRequest& request) {
  PL_TRY_ASSIGN(OperatorComparison comparison, PairOperators(request));
  MeasurePairs(request, comparison);
  return comparison;
}

std::string OperatorText(const OperatorComparison& comparison) {
  std::string text = report::AnswerText(comparison.answer, "dumps without a name");
  constexpr size_t kMostNotes = 20;
  for (size_t i = 0; i < std::min(kMostNotes, comparison.notes.size()); ++i) {
    text += "note: " + OneLine(comparison.notes[i]) + "\n";
  }
  if (comparison.notes.size() > kMostNotes) {
    text += "and " + CountText(comparison.notes.size() - kMostNotes, "note") + " more\n";
  }
  return text;
}

namespace {

struct NamedRule {
  std::string graph, path;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The second run of digits in a name; empty: it has none.
std::string SecondNumber(std::string_view name) {
  size_t at = 0;
  for (int number = 1;; ++number) {
    while (at < name.size() && !IsDigit(name[at])) ++at;
    size_t end = at;
    while (end < name.size() && IsDigit(name[end])) ++end;
    if (number == 2) return std::string(name.substr(at, end - at));
    at = end;
  }
}

Result<std::vector<NamedRule>> RulesIn(const std::string& directory) {
  std::vector<NamedRule> rules;
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (!name.ends_with(".json") || KindOf(path) != PathKind::kFile) continue;
    PL_TRY_ASSIGN(const fusion::Rule rule, fusion::Read(path));
    rules.push_back({rule.graph_name, path});
  }
  return rules;
}

const NamedRule* RuleOf(const std::string& model, const std::vector<NamedRule>& rules,
                        std::vector<std::string>& notes) {
  for (const NamedRule& rule : rules) {
    if (rule.graph == model) return &rule;
  }
  const std::string number = SecondNumber(model);
  for (const NamedRule& rule : rules) {
    if (number.empty() || SecondNumber(rule.graph) != number) continue;
    notes.push_back(
        fmt::format("model {}: taken for graph {} of {}, by the second number of "
                    "their names",
                    model, rule.graph, rule.path));
    return &rule;
  }
  return nullptr;
}

// The step of the highest number below a model.
Result<std::optional<std::string>> HighestStep(const std::string& model_id) {
  std::optional<std::string> highest;
  PL_TRY_ASSIGN(std::vector<std::string> steps, ListDirectories(model_id));
  for (std::string& step : steps) {
    const auto number = ParseNatural(step);
    if (!number) continue;
    if (!highest || *number > *ParseNatural(*highest)) highest = std::move(step);
  }
  return highest;
}

}  // namespace

Result<OperatorBatch> FindBatch(const std::string& recording, const std::string& rules) {
  PL_TRY_ASSIGN(const std::string real, RealPath(recording));
  if (!IsDigits(BaseName(real))) {
    return Error(ErrorCode::kInvalidArgument,
                 recording +
                     ": not the directory of one recording (expected a name of digits, "
                     "such as 20260101120000). With a directory after -f, models below "
                     "it are compared");
  }
  OperatorBatch batch;
  PL_TRY_ASSIGN(const std::vector<NamedRule> known, RulesIn(rules));
  PL_TRY_ASSIGN(const std::vector<std::string> devices, ListDirectories(recording));
  for (const std::string& device : devices) {
    const std::string on_device = JoinPath(recording, device);
    PL_TRY_ASSIGN(const std::vector<std::string> models, ListDirectories(on_device));
    for (const std::string& model : models) {
      const NamedRule* rule = RuleOf(model, known, batch.notes);
      if (rule == nullptr) {
        batch.notes.push_back(
            fmt::format("{}: no rule file in {} is for this model", model, rules));
        continue;
      }
      const std::string of_model = JoinPath(on_device, model);
      PL_TRY_ASSIGN(const std::vector<std::string> ids, ListDirectories(of_model));
      for (const std::string& id : ids) {
        const std::string path = JoinPath(of_model, id);
        PL_TRY_ASSIGN(const std::optional<std::string> step, HighestStep(path));
        if (!step) continue;
        batch.models.push_back({device, model, *step, JoinPath(path, *step), rule->path});
      }
    }
  }
  if (batch.models.empty()) {
    return Error(ErrorCode::kNotFound, fmt::format("{}: no model fits a rule file of {} (expected "
                                                   "{{device}}/{{model}}/{{id}}/{{step}} below it)",
                                                   recording, rules));
  }
  return batch;
}

}  // namespace plumbline::operators

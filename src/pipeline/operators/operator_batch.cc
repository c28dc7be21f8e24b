#include "pipeline/operators/operator_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/text_parts.h"
#include "formats/fusion_rule.h"

namespace plumbline::pipeline {
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

}  // namespace plumbline::pipeline

#include "config/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text_parts.h"
#include "config/options.h"
#include "config/risk_levels.h"
#include "record/call_name.h"

namespace plumbline {
namespace {

constexpr std::string_view kModulePrefixes[] = {"Module", "Cell"};

bool IsDirection(std::string_view text) { return text == "forward" || text == "backward"; }

// A complete entry name: "{prefix}.{anything}.{second to last}.{last}".
struct NameParts {
  std::string_view prefix, second_last, last;
};

std::optional<NameParts> Split(std::string_view name) {
  const size_t first = name.find('.');
  const size_t last = name.rfind('.');
  if (first == std::string_view::npos || first == 0 || last == first) return std::nullopt;
  const size_t before = name.rfind('.', last - 1);
  // At least one byte stands between the prefix and the last two parts.
  if (before == first || before <= first + 1) return std::nullopt;
  return NameParts{name.substr(0, first), name.substr(before + 1, last - before - 1),
                   name.substr(last + 1)};
}

// Any prefix that is not a module's: functions that users register bring their own.
bool IsApiName(std::string_view name) {
  const auto parts = Split(name);
  return parts && std::ranges::count(kModulePrefixes, parts->prefix) == 0 &&
         IsDigits(parts->second_last) && IsDirection(parts->last);
}

bool IsModuleName(std::string_view name) {
  const auto parts = Split(name);
  return parts && std::ranges::count(kModulePrefixes, parts->prefix) > 0 &&
         IsDirection(parts->second_last) && IsDigits(parts->last);
}

constexpr std::string_view kApiForm = "an API such as Functional.linear.0.forward";
constexpr std::string_view kModuleForm = "a module such as Module.fc.Linear.forward.0";

void AddOnce(std::vector<std::string>& names, std::string_view name) {
  if (std::ranges::count(names, name) == 0) names.emplace_back(name);
}

Error NoCompleteName(std::string_view field, std::string_view name, std::string_view expected) {
  return settings::Invalid(field, settings::Json(name),
                           fmt::format("a complete name: {}", expected));
}

Status CheckScopeName(std::string_view field, const NamePattern& pattern, Level level) {
  if (!pattern.is_plain()) return {};
  const std::string& name = pattern.text();
  const bool api = IsApiName(name);
  const bool module = IsModuleName(name);
  switch (level) {
    case Level::kL1:
      if (api) return {};
      return NoCompleteName(field, name, fmt::format("{} at level L1", kApiForm));
    case Level::kL0:
      if (module) return {};
      return NoCompleteName(field, name, fmt::format("{} at level L0", kModuleForm));
    case Level::kL2:
    case Level::kDebug:
      return {};  // nothing is filtered by name
    case Level::kMix:
      break;
  }
  if (api || module) return {};
  return NoCompleteName(field, name, fmt::format("{} or {}", kApiForm, kModuleForm));
}

}  // namespace

bool WantsRank(const Config& config, std::optional<int> rank) {
  if (config.ranks.empty()) return true;
  return rank && std::ranges::binary_search(config.ranks, int64_t{*rank});
}

bool WantsStep(const Config& config, int64_t step) {
  return config.steps.empty() || std::ranges::binary_search(config.steps, step);
}

bool IsPastLastStep(const Config& config, int64_t step) {
  return !config.steps.empty() && step > config.steps.back();
}

bool WantsDirection(const DataMode& mode, CallKind kind) {
  switch (kind) {
    case CallKind::kForward:
      return mode.forward;
    case CallKind::kBackward:
    case CallKind::kParametersGrad:
      return mode.backward;
    case CallKind::kOther:
      break;
  }
  return true;
}

bool WantsInput(const DataMode& mode, CallKind kind) {
  return WantsDirection(mode, kind) && mode.input;
}

bool WantsOutput(const DataMode& mode, CallKind kind) {
  // Gradients of parameters have no sides: they are recorded with the backward direction.
  if (kind == CallKind::kParametersGrad) return mode.backward;
  return WantsDirection(mode, kind) && mode.output;
}

Result<Selection> Selection::Create(const Config& config) {
  Selection selection;
  selection.level_ = config.level;
  const auto field_of = [&](std::string_view name) {
    return fmt::format("{}.{}", TaskName(config.task), name);
  };
  PL_TRY_ASSIGN(selection.tensor_list_,
                NamePatterns::Create(field_of("tensor_list"), config.tensor_list));
  if (config.level == Level::kL2) {
    // The list names the call around the operators; these are all recorded.
    for (const std::string& name : config.list) {
      if (IsApiName(name)) continue;
      return NoCompleteName(field_of("list"), name, fmt::format("{} at level L2", kApiForm));
    }
    return selection;
  }
  PL_TRY_ASSIGN(selection.list_, NamePatterns::Create(field_of("list"), config.list));
  if (config.scope.empty() && config.list.empty()) selection.risk_level_ = config.risk_level;
  if (config.scope.empty()) return selection;
  const std::string field = field_of("scope");
  if (config.scope.size() != 2) {
    return settings::Invalid(
        field, settings::Json(config.scope),
        fmt::format("2 names, not {}: the first and the last of a range", config.scope.size()));
  }
  PL_TRY_ASSIGN(selection.scope_, NamePatterns::Create(field, config.scope));
  for (size_t i = 0; i < 2; ++i) PL_TRY(CheckScopeName(field, selection.scope_[i], config.level));
  return selection;
}

bool Selection::SelectApi(std::string_view name) {
  if (selects_all()) return true;
  bool inside = true;
  if (!scope_.empty()) {
    if (IsFirst(name)) open_ = true;
    inside = open_;
    if (IsLast(name) && ending_.empty()) open_ = false;
  }
  return inside && IsAtRisk(risk_level_, name) && (!expanding_.empty() || InList(name));
}

bool Selection::MaySelectApi(std::string_view name) const {
  if (!scope_.empty() && (IsFirst(name) || IsLast(name))) return true;
  return IsAtRisk(risk_level_, name) && (level_ == Level::kMix || InList(name));
}

void Selection::EnterModule(std::string_view name) {
  if (selects_all()) return;
  if (!scope_.empty()) {
    if (IsFirst(name)) open_ = true;
    if (!scope_[1].is_plain() && IsLast(name)) AddOnce(ending_, name);
  }
  const bool expands = level_ == Level::kMix && !list_.empty() && InList(name);
  if (expands) AddOnce(expanding_, name);
}

bool Selection::LeaveModule(std::string_view name) {
  if (selects_all()) return true;
  const bool inside = scope_.empty() || open_;
  const bool selected = inside && (!expanding_.empty() || InList(name));
  std::erase(ending_, name);
  if (!scope_.empty() && IsLast(name) && ending_.empty()) open_ = false;
  std::erase(expanding_, name);
  return selected;
}

}  // namespace plumbline

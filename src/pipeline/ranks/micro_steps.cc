#include "pipeline/ranks/micro_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "record/call_name.h"

namespace plumbline {
namespace {

// The entry of the forward call that belongs to `name`; `name` itself if it is of no known form.
// Parameter gradients without a number belong to the first call.
std::string ForwardOf(std::string_view name) {
  std::optional<CallName> parts = ParseCallName(name);
  if (!parts) return std::string(name);
  if (parts->form == CallName::Form::kGradients) parts->form = CallName::Form::kModule;
  parts->kind = CallKind::kForward;
  parts->number = parts->number.value_or(0);
  return BuildCallName(*parts);
}

bool IsForward(std::string_view name) {
  const std::optional<CallName> parts = ParseCallName(name);
  return !parts || (parts->kind == CallKind::kForward);
}

// The same for all calls of one module or API.
std::string WithoutNumber(CallName parts) {
  parts.number = 0;
  return BuildCallName(parts);
}

// The parts of a row that is a root, borrowed from its name.
std::optional<CallName> RootParts(const dump_json::CallTree::Row& row) {
  if (!row.parent.empty()) return std::nullopt;
  std::optional<CallName> parts = ParseCallName(row.name);
  if (!parts || parts->form != CallName::Form::kModule || parts->kind != CallKind::kForward) {
    return std::nullopt;
  }
  parts->number = 0;
  return parts;
}

bool Encloses(const CallName& outer, const CallName& inner) {
  return inner.path.size() > outer.path.size() && inner.path.starts_with(outer.path) &&
         inner.path[outer.path.size()] == '.';
}

}  // namespace

std::vector<std::string> RootNames(const dump_json::CallTree& tree) {
  std::vector<CallName> roots;
  for (const auto& row : tree.rows) {
    const std::optional<CallName> root = RootParts(row);
    if (!root || std::find(roots.begin(), roots.end(), *root) != roots.end()) continue;
    roots.push_back(*root);
  }
  std::vector<std::string> names;
  for (const CallName& root : roots) {
    const bool inner = std::any_of(roots.begin(), roots.end(),
                                   [&](const CallName& outer) { return Encloses(outer, root); });
    if (!inner) names.push_back(BuildCallName(root));
  }
  return names;
}

Result<MicroSteps> MicroSteps::Derive(const dump_json::CallTree& tree,
                                      const std::vector<std::string>& names) {
  MicroSteps steps;
  if (tree.has_micro_steps) {
    PL_TRY(steps.TakeCounted(tree));
  } else {
    steps.FollowRoots(tree);
  }
  steps.PlaceOthers(names);
  if (steps.renumbers_) steps.Renumber();
  return steps;
}

Status MicroSteps::TakeCounted(const dump_json::CallTree& tree) {
  renumbers_ = true;
  int64_t last = tree.last_micro_step;
  bool valid = last >= 0;
  // Backward entries do not overrule the forward call, wherever they stand.
  for (const bool forward : {true, false}) {
    for (const auto& row : tree.rows) {
      valid = valid && row.micro_step >= 0;
      if (IsForward(row.name) != forward) continue;
      entries_.try_emplace(ForwardOf(row.name), Entry{row.micro_step, 0});
      last = std::max(last, row.micro_step);
    }
  }
  if (!valid) {
    return Error(ErrorCode::kCorrupt,
                 "a micro step is no count (expected 0 or more). Leave them out with "
                 "--micro_step false.");
  }
  count_ = last + 1;
  return {};
}

void MicroSteps::FollowRoots(const dump_json::CallTree& tree) {
  const std::vector<std::string> roots = RootNames(tree);
  if (roots.empty()) return;
  int64_t current = -1;
  std::unordered_map<std::string_view, std::string_view> parents;
  for (const auto& row : tree.rows) {
    parents.emplace(row.name, row.parent);
    const std::optional<CallName> root = RootParts(row);
    if (!root) continue;
    if (BuildCallName(*root) == roots.front()) ++current;
    entries_.try_emplace(row.name, Entry{std::max<int64_t>(current, 0), 0});
  }
  renumbers_ = true;
  count_ = current + 1;
  for (const auto& row : tree.rows) {
    if (!IsForward(row.name)) continue;
    std::string_view at = row.name;
    // As many steps as there are rows, in case the file has a cycle.
    for (size_t i = 0; i < tree.rows.size() && !entries_.contains(std::string(at)); ++i) {
      const auto parent = parents.find(at);
      if (parent == parents.end() || parent->second.empty()) break;
      at = parent->second;
    }
    const auto root = entries_.find(std::string(at));
    if (root != entries_.end()) entries_.try_emplace(row.name, Entry{root->second.micro_step, 0});
  }
}

void MicroSteps::PlaceOthers(const std::vector<std::string>& names) {
  int64_t current = 0;
  for (const std::string& name : names) {
    const auto [at, is_new] = entries_.try_emplace(ForwardOf(name), Entry{current, 0});
    // Backward entries come when later forward calls may have been made.
    if (!is_new && IsForward(name)) current = at->second.micro_step;
  }
}

void MicroSteps::Renumber() {
  std::unordered_map<std::string, std::vector<std::pair<uint64_t, Entry*>>> calls;
  for (auto& [name, entry] : entries_) {
    const std::optional<CallName> parts = ParseCallName(name);
    if (!parts) continue;
    calls[fmt::format("{}\n{}", entry.micro_step, WithoutNumber(*parts))].emplace_back(
        parts->number.value_or(0), &entry);
  }
  for (auto& [key, same] : calls) {
    std::sort(same.begin(), same.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < same.size(); ++i) same[i].second->number = i;
  }
}

MicroSteps::Place MicroSteps::Of(std::string_view name) const {
  Place place{0, std::string(name)};
  const auto entry = entries_.find(ForwardOf(name));
  if (entry == entries_.end()) return place;
  place.micro_step = entry->second.micro_step;
  std::optional<CallName> parts = ParseCallName(name);
  if (!renumbers_ || !parts || !parts->number) return place;
  parts->number = entry->second.number;
  place.name = BuildCallName(*parts);
  return place;
}

}  // namespace plumbline

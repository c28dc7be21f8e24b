#include "match/parameter_names.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "match/call_key.h"

namespace plumbline::match {
namespace {

// Of the normalisations and of Embedding. The running statistics are buffers in PyTorch's own
// modules, but parameters in some of other people.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"gamma", "weight"},
    {"beta", "bias"},
    {"embedding_table", "weight"},
    {"moving_mean", "running_mean"},
    {"moving_variance", "running_var"}};

bool HasPart(const CallItems& call, std::string_view part) {
  return std::ranges::any_of(
      call.items, [&](const Item& item) { return ItemPart(item.name, call.name) == part; });
}

constexpr std::string_view kForward = "parameters.";  // gradients have the bare name
constexpr std::string_view kBuffers = "buffers.";

// Parameters that the call wrote into, as buffers under PyTorch's names, where the golden module
// has them so: both are recorded behind the call.
void TakeForBuffers(const CallItems& golden, std::vector<Item>& items,
                    std::vector<std::string>& parts) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (!parts[i].starts_with(kForward) || HasPart(golden, parts[i])) continue;
    std::string buffer = std::string(kBuffers).append(parts[i].substr(kForward.size()));
    if (!HasPart(golden, buffer)) continue;
    parts[i] = std::move(buffer);
    items[i].role = ItemRole::kBuffer;
  }
}

// What a cell that no mapping names is called in PyTorch, where it has the same place.
std::string ModuleOf(std::string_view cell) {
  constexpr std::string_view kCell = "Cell.";
  if (!cell.starts_with(kCell)) return std::string(cell);
  return std::string("Module.").append(cell.substr(kCell.size()));
}

}  // namespace

std::optional<std::string> ParameterInTorch(std::string_view part) {
  const std::string_view prefix = part.starts_with(kForward) ? kForward : std::string_view();
  for (const auto& [ours, theirs] : kNames) {
    if (part.substr(prefix.size()) == ours) return std::string(prefix).append(theirs);
  }
  return std::nullopt;
}

void MapParameters(const std::vector<CallItems>& golden, std::vector<CallItems>& target) {
  std::unordered_map<std::string_view, const CallItems*> by_name;
  for (const CallItems& call : golden) by_name.emplace(call.name, &call);
  for (CallItems& call : target) {
    if (!IsModuleCall(call.name)) continue;
    const auto other = by_name.find(ModuleOf(call.key()));
    if (other == by_name.end() || !call.mapped_parts.empty()) continue;
    std::vector<std::string> parts;
    bool is_renamed = false;
    for (const Item& item : call.items) {
      const std::string_view part = ItemPart(item.name, call.name).value_or(item.name);
      const auto renamed = ParameterInTorch(part);
      const bool is_so = renamed && !HasPart(*other->second, part);
      parts.push_back(is_so ? *renamed : std::string(part));
      is_renamed = is_renamed || is_so;
    }
    if (!is_renamed) continue;
    TakeForBuffers(*other->second, call.items, parts);
    call.mapped_parts = std::move(parts);
  }
}

}  // namespace plumbline::match

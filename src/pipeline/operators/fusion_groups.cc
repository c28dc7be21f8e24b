#include "pipeline/operators/fusion_groups.h"

#include <algorithm>
#include <utility>

namespace plumbline::pipeline {
namespace {

// A chain of producers is followed this far; longer ones are circles.
constexpr int kLongestChain = 64;

bool HasAny(std::string_view text, std::initializer_list<std::string_view> markers) {
  return std::any_of(markers.begin(), markers.end(), [&](std::string_view marker) {
    return text.find(marker) != std::string_view::npos;
  });
}

bool GivesType(const fusion::Operator& op, std::string_view dtype) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [&](const fusion::OutputDesc& output) { return output.dtype == dtype; });
}

bool OnlyMovesData(const fusion::Operator& op) {
  return op.type == "Cast" || op.type == "TransData";
}

// Names that say which group an operator belongs to.
std::string KeyOf(const fusion::Operator& op) {
  if (!op.l1_group.empty()) return "L1 " + op.l1_group;
  if (!op.original_names) return "op " + op.name;
  const std::vector<std::string>& names = *op.original_names;
  if (names.size() == 1) return "op " + (names[0].empty() ? op.name : names[0]);
  std::string key = "ops";
  for (const std::string& name : names) key += '\n' + name;
  return key;
}

FusionRelation RelationOf(const std::vector<const fusion::Operator*>& operators) {
  const fusion::Operator& first = *operators[0];
  const size_t originals = first.original_names ? first.original_names->size() : 1;
  if (operators.size() == 1) {
    return originals == 1 ? FusionRelation::kOneToOne : FusionRelation::kMultiToOne;
  }
  if (!first.l1_group.empty()) return FusionRelation::kL1Fusion;
  return originals == 1 ? FusionRelation::kOneToMulti : FusionRelation::kMultiToMulti;
}

}  // namespace

bool Quantises(const fusion::Operator& op) {
  return GivesType(op, "DT_INT8") &&
         HasAny(op.name,
                {"_quant_layer", "/AscendQuant", "/AscendWeightQuant", ".quant", ".weight_quant"});
}

bool Dequantises(const fusion::Operator& op) {
  return GivesType(op, "DT_FLOAT16") &&
         HasAny(op.name, {"_dequant_layer", "_anti_quant_layer", "/AscendDequant", "/AntiQuant",
                          ".dequant", ".anti_quant"});
}

std::vector<FusionGroup> GroupsOf(const fusion::Rule& rule) {
  std::vector<FusionGroup> groups;
  std::map<std::string, size_t> known;
  for (const fusion::Operator& op : rule.operators) {
    const auto [entry, is_new] = known.try_emplace(KeyOf(op), groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].operators.push_back(&op);
  }
  for (FusionGroup& group : groups) group.relation = RelationOf(group.operators);
  return groups;
}

RuleIndex::RuleIndex(const fusion::Rule& rule) {
  for (const fusion::Operator& op : rule.operators) {
    by_name_.try_emplace(op.name, &op);
    for (const fusion::InputRef& input : op.inputs) users_[input.producer].push_back(&op);
    if (OnlyMovesData(op)) continue;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (const auto origin = OriginOf(op, i)) {
        holders_.try_emplace({origin->name, origin->index}, &op, i);
      }
    }
  }
}

const fusion::Operator* RuleIndex::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::optional<OriginalOutput> RuleIndex::OriginOf(const fusion::Operator& op, size_t output) {
  OriginalOutput origin;
  origin.index = output;
  if (output < op.outputs.size()) {
    const fusion::OutputDesc& desc = op.outputs[output];
    origin.index = desc.origin_index;
    origin.format = desc.origin_format;
    origin.shape = desc.origin_shape;
    origin.name = desc.origin_name.value_or("");
  }
  if (!origin.name.empty()) return origin;
  if (op.original_names && op.original_names->size() != 1) return std::nullopt;
  origin.name = op.original_names ? op.original_names->front() : op.name;
  if (origin.name.empty()) return std::nullopt;
  return origin;
}

std::optional<OriginalOutput> RuleIndex::OriginOf(const fusion::InputRef& input) const {
  const fusion::InputRef* at = &input;
  for (int i = 0; i < kLongestChain; ++i) {
    const fusion::Operator* producer = Find(at->producer);
    if (producer == nullptr) return OriginalOutput{at->producer, at->index, "", {}};
    if (!OnlyMovesData(*producer) || producer->inputs.empty()) {
      return OriginOf(*producer, at->index);
    }
    at = &producer->inputs[0];
  }
  return std::nullopt;
}

std::optional<std::pair<const fusion::Operator*, size_t>> RuleIndex::HolderOf(
    const std::string& original, size_t index) const {
  const auto found = holders_.find({original, index});
  if (found == holders_.end()) return std::nullopt;
  return found->second;
}

bool RuleIndex::FeedsOnly(const fusion::Operator& op,
                          const std::set<std::string_view>& names) const {
  const auto found = users_.find(op.name);
  if (found == users_.end()) return false;
  return std::all_of(found->second.begin(), found->second.end(),
                     [&](const fusion::Operator* user) { return names.contains(user->name); });
}

bool RuleIndex::IsBetweenQuantAndDequant(const fusion::Operator& op) const {
  if (Quantises(op) || Dequantises(op)) return false;
  std::vector<const fusion::Operator*> open = {&op};
  std::set<std::string_view> seen = {op.name};
  while (!open.empty()) {
    const fusion::Operator* at = open.back();
    open.pop_back();
    for (const fusion::InputRef& input : at->inputs) {
      const fusion::Operator* producer = Find(input.producer);
      if (producer == nullptr || Dequantises(*producer)) continue;
      if (Quantises(*producer)) return true;
      if (seen.insert(producer->name).second) open.push_back(producer);
    }
  }
  return false;
}

}  // namespace plumbline::pipeline

#include "compare/compare_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace plumbline::compare {
namespace {

using match::CallPair;
using match::TrainingMatch;
using ShownNames = std::unordered_map<std::string_view, std::string_view>;

void WarnOfTheRest(const TrainingMatch& found, Comparison& comparison) {
  const auto warn = [&](uint64_t count, std::string_view what) {
    if (count > 0) comparison.warnings.push_back(fmt::format("left out: {} {}", count, what));
  };
  warn(found.backward, "backward entries of the training, which inference does not have");
  warn(found.recomputed, "forward calls of the training that its backward pass ran again");
  warn(found.other, "calls of either side that are no modules or wrap one");
}

std::string_view Shown(const ShownNames& names, std::string_view name) {
  const auto known = names.find(name);
  return known == names.end() ? name : known->second;
}

// Everything before went by the name of the first of several.
void ShowAllNames(const TrainingMatch& found, Comparison& comparison) {
  ShownNames names;
  for (const auto& [first, all] : found.shown_names) names.insert_or_assign(first, all);
  for (ComparedRow& row : comparison.rows) {
    for (Slot<Item>* item : {&row.target, &row.golden}) {
      if (*item) (*item)->name = Shown(names, (*item)->name);
    }
  }
  for (ComparedCall& call : comparison.calls) {
    call.target_name = Shown(names, call.target_name);
    call.golden_name = Shown(names, call.golden_name);
  }
  if (!comparison.first_wrong_call) return;
  FirstWrongCall& first = *comparison.first_wrong_call;
  first.name = Shown(names, first.name);
  first.item = Shown(names, first.item);
}

}  // namespace

Result<match::TrainingRules> TrainingRulesOf(const std::string& backend,
                                             const std::string& module_map) {
  if (backend != "fsdp" && backend != "megatron") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("backend: \"{}\" (expected fsdp or megatron)", backend));
  }
  match::TextPairs modules;
  if (!module_map.empty()) {
    PL_TRY_ASSIGN(modules, match::ReadCellMapping(module_map));
  }
  return match::RulesOfBackend(
      backend == "megatron" ? match::TrainingBackend::kMegatron : match::TrainingBackend::kFsdp,
      std::move(modules));
}

Status CheckTrainingOptions(const CompareOptions& options) {
  const MappingFiles& files = options.mappings;
  if (!files.data.empty() || files.api || files.cell || files.layer || options.fuzzy_match) {
    return Error(
        ErrorCode::kInvalidArgument,
        "--consistent_check: has pairing rules of its own (expected no mapping file and no "
        "--fuzzy_match). Name modules with --module-map");
  }
  return {};
}

Pairing TrainingPairing(const match::TrainingRules& rules) {
  const auto found = std::make_shared<TrainingMatch>();
  Pairing pairing;
  pairing.pair = [rules, found](const PairingSide& left, const PairingSide& right,
                                Comparison& comparison) -> Result<std::vector<CallPair>> {
    *found = match::MatchTraining(rules, left.calls, right.calls);
    if (std::ranges::none_of(found->pairs, &CallPair::paired)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: no module in common with {} (expected two recordings of one "
                               "model at level L0). Name modules with --module-map",
                               left.run.dump_json_path(), right.run.dump_json_path()));
    }
    WarnOfTheRest(*found, comparison);
    return found->pairs;
  };
  pairing.show_names = [found](Comparison& comparison) { ShowAllNames(*found, comparison); };
  return pairing;
}

Result<Comparison> CompareTraining(const std::string& target, const std::string& golden,
                                   const match::TrainingRules& rules,
                                   const CompareOptions& options) {
  PL_TRY(CheckTrainingOptions(options));
  return ComparePaired(target, golden, options, TrainingPairing(rules));
}

}  // namespace plumbline::compare

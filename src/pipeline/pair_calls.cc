#include "pipeline/pair_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
#include "match/data_match.h"
#include "match/layer_mapping.h"
#include "match/name_mapping.h"
#include "match/parameter_names.h"

namespace plumbline::pipeline {
namespace {

using match::CallItems;
using match::CallPair;

// Module and line of code of a call, without what differs from run to run: call numbers, wrappers,
// the path of the file and the line's number.
std::string SiteOf(const PairingSide& side, size_t index) {
  const std::string_view name = side.calls[index].name;
  const std::string_view parent = side.run.ParentOf(name);
  std::string site = match::WithoutCallNumber(match::UnwrappedName(parent));
  const std::vector<std::string>& stack = side.run.StackOf(name);
  if (stack.empty()) return site;
  const size_t code = stack.front().find(", in ");
  return site + '\n' + stack.front().substr(code == std::string::npos ? 0 : code);
}

// Empty: none.
std::string WarningOfNames(const PairingSide& side) {
  const auto is_odd = [](const CallItems& call) {
    return !call.items.empty() && !match::HasDirection(call.name);
  };
  const auto count = std::ranges::count_if(side.calls, is_odd);
  if (count == 0) return {};
  const auto first = std::ranges::find_if(side.calls, is_odd);
  return fmt::format(
      "{}: names without forward, backward or parameters_grad: {}, such as {}; compared "
      "by name alone",
      side.run.dump_json_path(), count, first->name);
}

Status ApplyNameMappings(const PairingSide& target, const PairingSide& golden,
                         const MappingFiles& files, Comparison& comparison) {
  if (files.cell) {
    match::TextPairs pairs;
    if (!files.cell->empty()) {
      PL_TRY_ASSIGN(pairs, match::ReadCellMapping(*files.cell));
    }
    match::MapCells(pairs, target.calls);
  }
  const bool to_torch =
      target.run.header().framework != "pytorch" && golden.run.header().framework == "pytorch";
  if (to_torch && (files.cell || files.api)) match::MapParameters(golden.calls, target.calls);
  if (!files.api) return {};
  if (target.run.header().framework == "pytorch") {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: an API mapping needs a MindSpore recording on the target's side "
                             "(expected framework mindspore, got pytorch)",
                             target.run.dump_json_path()));
  }
  match::ApiRules rules;
  if (!files.api->empty()) {
    PL_TRY_ASSIGN(rules, match::ReadApiMapping(*files.api));
  }
  for (std::string& skipped : rules.skipped) comparison.warnings.push_back(std::move(skipped));
  match::MapApis(rules.rules, golden.calls, target.calls);
  return {};
}

Result<match::TextPairs> MapLayers(const PairingSide& target, const PairingSide& golden,
                                   const std::string& path) {
  std::vector<match::LayerRules> rules;
  if (!path.empty()) {
    PL_TRY_ASSIGN(rules, match::ReadLayerMapping(path));
  }
  const auto side_of = [](const PairingSide& side) {
    return match::LayerSide{side.calls, side.run.header().framework != "pytorch",
                            [&side](std::string_view name) { return side.run.ParentOf(name); },
                            [&side](std::string_view name) { return side.run.StackOf(name); }};
  };
  return match::DataMappingByLayers(side_of(target), side_of(golden), rules);
}

}  // namespace

Result<std::vector<CallPair>> PairCalls(const PairingSide& target, const PairingSide& golden,
                                        const CompareOptions& options, Comparison& comparison) {
  const MappingFiles& files = options.mappings;
  const bool across = target.run.header().framework != golden.run.header().framework;
  const match::MatchOptions rules{
      // Names of saved values hold no call number that could be ignored.
      .fuzzy = options.fuzzy_match && !comparison.of_saves,
      .items = {.by_kind = across},
      .target_site = [&](size_t i) { return SiteOf(target, i); },
      .golden_site = [&](size_t i) { return SiteOf(golden, i); },
  };
  if (!comparison.of_saves) {
    std::string of_target, of_golden;
    RunBoth([&] { of_target = WarningOfNames(target); },
            [&] { of_golden = WarningOfNames(golden); });
    for (std::string* warning : {&of_target, &of_golden}) {
      if (!warning->empty()) comparison.warnings.push_back(std::move(*warning));
    }
  }
  const int kinds =
      (files.data.empty() ? 0 : 1) + (files.layer ? 1 : 0) + (files.api || files.cell ? 1 : 0);
  if (kinds > 1) {
    return Error(ErrorCode::kInvalidArgument,
                 "a data or layer mapping stands alone (expected one of --data_mapping, "
                 "--layer_mapping, or --api_mapping and --cell_mapping)");
  }
  if (!files.data.empty()) {
    PL_TRY_ASSIGN(const match::TextPairs mapping, match::ReadDataMapping(files.data));
    return match::MatchByValues(target.calls, golden.calls, mapping, rules, comparison.warnings);
  }
  if (files.layer) {
    PL_TRY_ASSIGN(comparison.data_mapping, MapLayers(target, golden, *files.layer));
    return match::MatchByValues(target.calls, golden.calls, comparison.data_mapping, rules,
                                comparison.warnings);
  }
  PL_TRY(ApplyNameMappings(target, golden, files, comparison));
  return match::MatchCalls(target.calls, golden.calls, rules);
}

}  // namespace plumbline::pipeline

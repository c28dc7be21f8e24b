#include "match/name_mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "match/call_key.h"

namespace plumbline::match {
namespace {

constexpr size_t kNone = std::string_view::npos;

// "Functional.linear" of "Functional.linear.0.forward"; of a primitive that a cell holds also its
// class, "Primitive.bn_train.BatchNorm".
std::string_view ApiOf(std::string_view call_name) {
  size_t end = call_name.find('.');
  for (int more = call_name.starts_with("Primitive.") ? 2 : 1; more > 0 && end != kNone; --more) {
    end = call_name.find('.', end + 1);
  }
  return call_name.substr(0, end);
}

bool ReplaceFirst(std::string& text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  if (at == kNone) return false;
  text.replace(at, what.size(), by);
  return true;
}

// Where path and class of a module's name end: in front of its direction.
size_t EndOfModule(std::string_view name) {
  for (const std::string_view mark : {".forward", ".backward", ".parameters_grad"}) {
    const size_t at = name.rfind(mark);
    if (at != kNone) return at;
  }
  return kNone;
}

std::string MappedModule(std::string_view module,
                         const std::unordered_map<std::string_view, std::string_view>& exact,
                         const TextPairs& pairs) {
  if (const auto found = exact.find(module); found != exact.end()) {
    return std::string(found->second);
  }
  std::string mapped(module);
  for (const auto& [target, golden] : pairs) ReplaceFirst(mapped, target, golden);
  return mapped;
}

struct Term {
  std::string_view mark;
  TextPairs ApiRule::*member;
};
constexpr std::array<Term, 5> kTerms = {
    Term{"input.", &ApiRule::args}, Term{"kwargs.", &ApiRule::args},
    Term{"output.", &ApiRule::output}, Term{"parameters.", &ApiRule::parameters},
    Term{"parameters_grad.", &ApiRule::parameters_grad}};

// The part of an item as the rule's lists have it; whole entries only ("1" is not "10").
std::string MappedPart(std::string_view part, const ApiRule& rule) {
  for (const Term& term : kTerms) {
    if (!part.starts_with(term.mark)) continue;
    const std::string_view entry = part.substr(term.mark.size());
    for (const auto& [target, golden] : rule.*term.member) {
      const bool inside = entry.starts_with(target + ".");  // an element of a list argument
      if (entry != target && !inside) continue;
      return fmt::format("{}{}{}", term.mark, golden, entry.substr(target.size()));
    }
    return std::string(CallItems::kNoPart);
  }
  return std::string(part);
}

void ApplyRule(const ApiRule& rule, CallItems& call) {
  call.mapped_name = call.name;
  ReplaceFirst(call.mapped_name, rule.target, rule.golden);
  for (const Item& item : call.items) {
    call.mapped_parts.push_back(
        MappedPart(ItemPart(item.name, call.name).value_or(item.name), rule));
  }
}

std::string BuiltInName(const std::string& name) {
  std::string mapped = name;
  constexpr std::string_view kMint = "Mint.";
  constexpr std::string_view kMintFunctional = "MintFunctional.";
  if (name.starts_with(kMint)) return "Torch." + name.substr(kMint.size());
  if (name.starts_with(kMintFunctional)) {
    return "Functional." + name.substr(kMintFunctional.size());
  }
  const std::string_view api = ApiOf(name);
  const TextPairs& table = BuiltInApis();
  const auto found = std::ranges::lower_bound(
      table, api, {}, [](const auto& pair) { return std::string_view(pair.first); });
  if (found != table.end() && found->first == api) ReplaceFirst(mapped, api, found->second);
  return mapped;
}

}  // namespace

void MapCells(const TextPairs& pairs, std::vector<CallItems>& target) {
  std::unordered_map<std::string_view, std::string_view> exact;
  for (const auto& [from, to] : pairs) exact.emplace(from, to);
  for (CallItems& call : target) {
    if (!IsModuleCall(call.name)) continue;
    const size_t first = call.name.find('.');
    const size_t end = EndOfModule(call.name);
    if (first == kNone || end == kNone || end <= first) continue;
    const std::string_view name = call.name;
    call.mapped_name = fmt::format(
        "{}.{}{}", name.starts_with("Cell.") ? "Module" : name.substr(0, first),
        MappedModule(name.substr(first + 1, end - first - 1), exact, pairs), name.substr(end));
  }
}

void MapApis(const std::vector<ApiRule>& rules, const std::vector<CallItems>& golden,
             std::vector<CallItems>& target) {
  std::unordered_set<std::string_view> in_golden;
  for (const CallItems& call : golden) in_golden.insert(ApiOf(call.name));
  std::unordered_map<std::string_view, const ApiRule*> by_api;
  for (const ApiRule& rule : rules) {
    if (in_golden.contains(rule.golden)) by_api.emplace(rule.target, &rule);
  }
  for (CallItems& call : target) {
    if (IsModuleCall(call.name)) continue;
    if (const auto found = by_api.find(ApiOf(call.name)); found != by_api.end()) {
      ApplyRule(*found->second, call);
    } else {
      call.mapped_name = BuiltInName(call.name);
    }
  }
}

}  // namespace plumbline::match

#include "match/mapping_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/text/yaml_file.h"
#include "match/call_align.h"

namespace plumbline::match {

namespace {

Result<YamlFile> Load(const std::string& path) {
  PL_TRY_ASSIGN(YamlFile file, YamlFile::Read(path));
  const YAML::Node& root = file.root();
  if (root.IsDefined() && root.IsScalar()) {
    return file.Bad(root, "holds a text (expected a mapping)");
  }
  if (!root.IsDefined() || root.IsNull() || root.size() == 0) {
    return file.Bad("the mapping is empty. Leave the option out to map nothing");
  }
  return file;
}

Result<std::string> TextOf(const YamlFile& file, const YAML::Node& node, std::string_view what) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    return file.Bad(node, fmt::format("{} is not a text (expected a name)", what));
  }
  return node.Scalar();
}

// A map of texts to texts.
Result<TextPairs> PairsOf(const YamlFile& file, const YAML::Node& node) {
  if (!node.IsMap()) return file.Bad(node, "expected lines of the form `target: golden`");
  TextPairs pairs;
  std::unordered_set<std::string> known;
  for (const auto& entry : node) {
    PL_TRY_ASSIGN(std::string target, TextOf(file, entry.first, "a name on the left"));
    PL_TRY_ASSIGN(std::string golden,
                  TextOf(file, entry.second, fmt::format("the counterpart of {}", target)));
    if (!known.insert(target).second) {
      return file.Bad(entry.first, fmt::format("{} is mapped twice", target));
    }
    pairs.emplace_back(std::move(target), std::move(golden));
  }
  return pairs;
}

// The texts under one of `keys`; none when no key is there.
Result<std::vector<std::string>> ListOf(const YamlFile& file, const YAML::Node& rule,
                                        const std::vector<std::string>& keys) {
  std::vector<std::string> texts;
  for (const std::string& key : keys) {
    const YAML::Node node = rule[key];
    if (!node.IsDefined() || node.IsNull()) continue;
    if (!node.IsSequence()) return file.Bad(node, fmt::format("{} is not a list", key));
    for (const YAML::Node& element : node) {
      PL_TRY_ASSIGN(std::string text, TextOf(file, element, fmt::format("an entry of {}", key)));
      texts.push_back(std::move(text));
    }
    break;
  }
  return texts;
}

struct TermRule {
  std::string_view term;
  TextPairs ApiRule::*member;
};
constexpr TermRule kTerms[] = {{"args", &ApiRule::args},
                               {"output", &ApiRule::output},
                               {"parameters", &ApiRule::parameters},
                               {"parameters_grad", &ApiRule::parameters_grad}};

// True: the rule is complete. False: its lists differ in length, as `skipped` then says.
Result<bool> FillTerms(const YamlFile& file, const YAML::Node& node, ApiRule& rule,
                       std::vector<std::string>& skipped) {
  for (const TermRule& term : kTerms) {
    const auto keys = [&](std::string_view side) {
      const std::string key = fmt::format("{}_{}", side, term.term);
      return std::vector<std::string>{key, key + "s"};
    };
    PL_TRY_ASSIGN(const std::vector<std::string> target, ListOf(file, node, keys("ms")));
    PL_TRY_ASSIGN(const std::vector<std::string> golden, ListOf(file, node, keys("pt")));
    if (target.size() != golden.size()) {
      skipped.push_back(fmt::format(
          "{}: {}: ms_{} and pt_{} have {} and {} entries; the rule is "
          "not used",
          file.path(), rule.target, term.term, term.term, target.size(), golden.size()));
      return false;
    }
    for (size_t i = 0; i < target.size(); ++i) {
      (rule.*term.member).emplace_back(target[i], golden[i]);
    }
  }
  return true;
}

Status AddApiRule(const YamlFile& file, const YAML::Node& node, ApiRules& result) {
  if (!node.IsMap()) return file.Bad(node, "expected a rule with the keys ms_api and pt_api");
  ApiRule rule;
  for (const auto& [key, member] :
       {std::pair{"ms_api", &ApiRule::target}, std::pair{"pt_api", &ApiRule::golden}}) {
    const YAML::Node name = node[key];
    if (!name.IsDefined()) return file.Bad(node, fmt::format("a rule has no key {}", key));
    PL_TRY_ASSIGN(rule.*member, TextOf(file, name, key));
  }
  PL_TRY_ASSIGN(const bool complete, FillTerms(file, node, rule, result.skipped));
  if (complete) result.rules.push_back(std::move(rule));
  return {};
}

}  // namespace

Result<TextPairs> ReadDataMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  return PairsOf(file, file.root());
}

Result<ApiRules> ReadApiMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  ApiRules result;
  if (!file.root().IsSequence()) {
    PL_TRY(AddApiRule(file, file.root(), result));
    return result;
  }
  for (const YAML::Node& element : file.root()) PL_TRY(AddApiRule(file, element, result));
  return result;
}

Result<TextPairs> ReadCellMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  return PairsOf(file, file.root());
}

Result<std::vector<LayerRules>> ReadLayerMapping(const std::string& path) {
  PL_TRY_ASSIGN(const YamlFile file, Load(path));
  if (!file.root().IsMap())
    return file.Bad(file.root(), "expected class names, each with its paths");
  std::vector<LayerRules> result;
  for (const auto& entry : file.root()) {
    LayerRules& rules = result.emplace_back();
    PL_TRY_ASSIGN(rules.class_name, TextOf(file, entry.first, "a class name"));
    if (rules.class_name == "Cell") rules.class_name = "TopLayer";
    PL_TRY_ASSIGN(rules.paths, PairsOf(file, entry.second));
    // Releases differ in whether the golden side may carry a note in brackets.
    for (auto& [target, golden] : rules.paths) golden = golden.substr(0, golden.find('('));
  }
  return result;
}

namespace {

constexpr size_t kNowhere = std::string_view::npos;

// "Functional.linear" of "Functional.linear.0.forward"; of a primitive that a cell holds also its
// class, "Primitive.bn_train.BatchNorm".
std::string_view ApiOf(std::string_view call_name) {
  size_t end = call_name.find('.');
  for (int more = call_name.starts_with("Primitive.") ? 2 : 1; more > 0 && end != kNowhere;
       --more) {
    end = call_name.find('.', end + 1);
  }
  return call_name.substr(0, end);
}

bool ReplaceFirst(std::string& text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  if (at == kNowhere) return false;
  text.replace(at, what.size(), by);
  return true;
}

// Where path and class of a module's name end: in front of its direction.
size_t EndOfModule(std::string_view name) {
  for (const std::string_view mark : {".forward", ".backward", ".parameters_grad"}) {
    const size_t at = name.rfind(mark);
    if (at != kNowhere) return at;
  }
  return kNowhere;
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

struct PartRule {
  std::string_view mark;
  TextPairs ApiRule::*member;
};
constexpr std::array<PartRule, 5> kPartRules = {
    PartRule{"input.", &ApiRule::args}, PartRule{"kwargs.", &ApiRule::args},
    PartRule{"output.", &ApiRule::output}, PartRule{"parameters.", &ApiRule::parameters},
    PartRule{"parameters_grad.", &ApiRule::parameters_grad}};

// The part of an item as the rule's lists have it; whole entries only ("1" is not "10").
std::string MappedPart(std::string_view part, const ApiRule& rule) {
  for (const PartRule& term : kPartRules) {
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
  std::string name = call.name;
  ReplaceFirst(name, rule.target, rule.golden);
  call.mapped_name = name;
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
    if (first == kNowhere || end == kNowhere || end <= first) continue;
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

namespace {

constexpr std::string_view kNothing = "N/A";  // "no counterpart" in a mapping file

struct TablePlace {
  size_t call = 0, item = 0;
};

class ValueMatcher {
 public:
  ValueMatcher(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
               const TextPairs& mapping, const ItemRules& rules)
      : target_(target), golden_(golden), rules_(rules), used_(golden.size()) {
    for (const auto& [from, to] : mapping) mapping_.emplace(from, to);
    for (size_t j = 0; j < golden.size(); ++j) {
      for (size_t k = 0; k < golden[j].items.size(); ++k) {
        by_name_.insert_or_assign(golden[j].items[k].name, TablePlace{j, k});
      }
      used_[j].assign(golden[j].items.size(), false);
    }
  }

  // Whether the call has a mapped value; its pairs are appended then.
  bool Add(size_t i, std::vector<CallPair>& pairs) {
    const std::vector<Item>& items = target_[i].items;
    const bool mapped =
        std::ranges::any_of(items, [&](const Item& item) { return mapping_.contains(item.name); });
    if (!mapped) return false;
    std::map<size_t, ItemLinks> by_call;
    std::vector<size_t> alone;
    for (size_t k = 0; k < items.size(); ++k) {
      const auto line = mapping_.find(items[k].name);
      const bool listed = line != mapping_.end();
      if (listed) found_.insert(line->first);
      if (const TablePlace* place = Find(listed ? line->second : std::string_view(items[k].name))) {
        by_call[place->call].emplace_back(k, place->item);
      } else {
        alone.push_back(k);
      }
    }
    PlaceInSameCall(i, by_call, alone);
    if (!by_call.empty()) std::erase_if(alone, [&](size_t k) { return SaysNothing(items[k]); });
    const size_t first = pairs.size();
    for (const auto& [j, links] : by_call) {
      for (const auto& link : links) used_[j][link.second] = true;
      CallPair& pair = pairs.emplace_back();
      pair.target = i;
      pair.golden = j;
      pair.rule = "mapped";
      pair.links = links;
    }
    // In the order of the target's values.
    std::sort(pairs.begin() + static_cast<std::ptrdiff_t>(first), pairs.end(),
              [](const CallPair& a, const CallPair& b) { return a.links < b.links; });
    if (alone.empty()) return true;
    CallPair& rest = pairs.emplace_back();
    rest.target = i;
    rest.reason = "no-golden";
    for (const size_t k : alone) rest.links.emplace_back(k, kUnpaired);
    return true;
  }

  bool IsUsed(size_t j) const {
    return std::ranges::any_of(used_[j], [](bool used) { return used; });
  }

  // Values of a used golden call that nothing of the target is mapped to.
  void AddRest(size_t j, std::vector<CallPair>& pairs) const {
    CallPair rest;
    rest.golden = j;
    rest.reason = "no-target";
    for (size_t k = 0; k < used_[j].size(); ++k) {
      const bool is_left = !used_[j][k] && !SaysNothing(golden_[j].items[k]);
      if (is_left) rest.links.emplace_back(kUnpaired, k);
    }
    if (!rest.links.empty()) pairs.push_back(std::move(rest));
  }

  void Warn(const TextPairs& mapping, std::vector<std::string>& warnings) const {
    for (const auto& [from, to] : mapping) {
      if (!found_.contains(from)) {
        warnings.push_back(fmt::format("data mapping: the target has no value {}", from));
      }
      if (to != kNothing && Find(to) == nullptr) {
        warnings.push_back(fmt::format("data mapping: the golden side has no value {}", to));
      }
    }
  }

 private:
  // See ItemRules::by_kind.
  bool SaysNothing(const Item& item) const { return rules_.by_kind && !item.dtype; }

  const TablePlace* Find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }

  // Unlisted values go to the same part of the one golden call that the listed ones are in.
  void PlaceInSameCall(size_t i, std::map<size_t, ItemLinks>& by_call, std::vector<size_t>& alone) {
    if (by_call.size() != 1) return;
    const size_t j = by_call.begin()->first;
    ItemLinks& links = by_call.begin()->second;
    std::erase_if(alone, [&](size_t k) {
      const Item& item = target_[i].items[k];
      if (mapping_.contains(item.name)) return false;
      const auto part = ItemPart(item.name, target_[i].name);
      for (size_t g = 0; part && g < golden_[j].items.size(); ++g) {
        const auto other = ItemPart(golden_[j].items[g].name, golden_[j].name);
        const bool taken = std::ranges::any_of(links, [&](const auto& l) { return l.second == g; });
        if (!other || taken || !SamePart(*part, *other)) continue;
        links.emplace_back(k, g);
        return true;
      }
      return false;
    });
    std::ranges::sort(links);
  }

  const std::vector<CallItems>& target_;
  const std::vector<CallItems>& golden_;
  const ItemRules rules_;
  std::unordered_map<std::string_view, std::string_view> mapping_;
  std::unordered_map<std::string_view, TablePlace> by_name_;
  std::unordered_set<std::string_view> found_;
  std::vector<std::vector<bool>> used_;  // by golden call and item
};

}  // namespace

std::vector<CallPair> MatchByValues(std::vector<CallItems>& target, std::vector<CallItems>& golden,
                                    const TextPairs& mapping, const MatchOptions& options,
                                    std::vector<std::string>& warnings) {
  ValueMatcher matcher(target, golden, mapping, options.items);
  std::vector<CallPair> pairs;
  std::vector<std::vector<Item>> target_items(target.size()), golden_items(golden.size());
  std::vector<bool> mapped(target.size(), false);
  for (size_t i = 0; i < target.size(); ++i) mapped[i] = matcher.Add(i, pairs);
  std::vector<CallPair> rest;
  for (size_t j = 0; j < golden.size(); ++j) {
    if (matcher.IsUsed(j)) matcher.AddRest(j, rest);
  }
  matcher.Warn(mapping, warnings);
  // Calls without items take no part in the matching of the others.
  for (size_t i = 0; i < target.size(); ++i) {
    if (mapped[i]) target_items[i].swap(target[i].items);
  }
  std::vector<bool> used(golden.size(), false);
  for (size_t j = 0; j < golden.size(); ++j) used[j] = matcher.IsUsed(j);
  for (size_t j = 0; j < golden.size(); ++j) {
    if (used[j]) golden_items[j].swap(golden[j].items);
  }
  std::vector<CallPair> others = MatchCalls(target, golden, options);
  for (size_t i = 0; i < target.size(); ++i) {
    if (mapped[i]) target_items[i].swap(target[i].items);
  }
  for (size_t j = 0; j < golden.size(); ++j) {
    if (used[j]) golden_items[j].swap(golden[j].items);
  }
  pairs.insert(pairs.end(), std::make_move_iterator(others.begin()),
               std::make_move_iterator(others.end()));
  pairs.insert(pairs.end(), std::make_move_iterator(rest.begin()),
               std::make_move_iterator(rest.end()));
  std::ranges::stable_sort(pairs, {}, &CallPair::target);  // kUnpaired, golden only, is the largest
  return pairs;
}

}  // namespace plumbline::match

#include "view/serve/layer_rules.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "record/call_name.h"

namespace plumbline::view {
namespace {

// Class of a module -> name on the target's side -> name on the golden one.
using LayerRules = std::map<std::string, std::map<std::string, std::string>>;

// The class that rules for the whole model stand under.
constexpr const char* kTopClass = "TopLayer";

// As YAML writes it: plain where nothing can be misread, otherwise in quotes, whose escapes are
// those of JSON.
std::string YamlText(const std::string& text) {
  const bool is_plain = std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
                        std::ranges::all_of(text, [](unsigned char c) {
                          return std::isalnum(c) != 0 || c == '_' || c == '.';
                        });
  // These mean something else without quotes.
  static const std::set<std::string> kWords = {"true", "false", "yes", "no", "on", "off", "null"};
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (is_plain && text.size() > 1 && !kWords.contains(lower)) return text;
  std::string quoted;
  json::AppendString(ReplaceInvalidUtf8(text), quoted);
  return quoted;
}

// A name below that of the module it stands in; nothing: it is not named after it.
std::optional<std::string> PathBelow(const CallName& name, const std::optional<CallName>& module) {
  if (!module || module->path.empty() || name.form == CallName::Form::kApi) {
    return std::string(name.path);
  }
  const std::string start = std::string(module->path) + ".";
  if (!name.path.starts_with(start)) return std::nullopt;
  return std::string(name.path.substr(start.size()));
}

class RuleMaker {
 public:
  explicit RuleMaker(const ResultStore& store) : store_(store) {
    for (const StorePlace& place : store.places()) places_.push_back(&place);
  }

  // Whether a rule says that the two are one.
  bool Add(size_t place, const NamePair& names, const HandMatches& matches) {
    const auto target = store_.Find(place, false, names.first);
    const auto golden = store_.Find(place, true, names.second);
    const std::optional<CallName> a = ParseCallName(names.first), b = ParseCallName(names.second);
    if (!target || !golden || !a || !b || a->path.empty() || b->path.empty()) return false;
    const StorePlace& at = *places_[place];
    by_hand_.clear();
    for (const auto& [left, right] : matches.PairsOf(at.step, at.rank)) by_hand_[left] = right;
    for (uint32_t above = store_.nodes().parent[*target]; above != kNoNode;
         above = store_.nodes().parent[above]) {
      const std::optional<uint32_t> partner = PartnerOf(place, above);
      if (!partner || !IsAbove(*partner, *golden)) continue;
      const std::optional<bool> is_said = AddBelow(*a, *b, above, *partner);
      if (is_said) return *is_said;
    }
    return false;
  }

  [[nodiscard]] const LayerRules& rules() const { return rules_; }

 private:
  [[nodiscard]] std::optional<uint32_t> PartnerOf(size_t place, uint32_t node) const {
    const uint32_t partner = store_.nodes().partner[node];
    if (partner != kNoNode) return partner;
    const auto found = by_hand_.find(store_.Name(node));
    if (found == by_hand_.end()) return std::nullopt;
    return store_.Find(place, true, found->second);
  }
  [[nodiscard]] bool IsAbove(uint32_t above, uint32_t node) const {
    return above < node && node < above + store_.nodes().size[above];
  }

  // Whether a rule below this pair of modules says it; nothing: the names do not begin with theirs.
  std::optional<bool> AddBelow(const CallName& a, const CallName& b, uint32_t above,
                               uint32_t partner) {
    const std::string above_name = store_.Name(above), partner_name = store_.Name(partner);
    const std::optional<CallName> module = ParseCallName(above_name),
                                  golden_module = ParseCallName(partner_name);
    const std::optional<std::string> left = PathBelow(a, module),
                                     right = PathBelow(b, golden_module);
    if (!left || !right) return std::nullopt;
    if (*left == *right) return true;  // stands for itself
    const std::string under = module ? std::string(module->class_name) : kTopClass;
    const auto [rule, is_new] = rules_[under.empty() ? kTopClass : under].emplace(*left, *right);
    return is_new || rule->second == *right;
  }

  const ResultStore& store_;
  std::vector<const StorePlace*> places_;
  std::map<std::string, std::string> by_hand_;
  LayerRules rules_;
};

}  // namespace

LayerMappingText LayerMappingOf(const ResultStore& store, const HandMatches& matches) {
  LayerMappingText made;
  RuleMaker maker(store);
  std::set<NamePair> seen;
  for (size_t place = 0; place < store.places().size(); ++place) {
    const StorePlace& at = store.places()[place];
    for (const NamePair& names : matches.PairsOf(at.step, at.rank)) {
      if (!seen.insert(names).second) continue;
      ++(maker.Add(place, names, matches) ? made.matched : made.unmatched);
    }
  }
  // With a file, names alone pair what it says nothing of: what was found to be called otherwise
  // has to be in it too.
  for (size_t place = 0; place < store.places().size() && !seen.empty(); ++place) {
    const StorePlace& at = store.places()[place];
    for (uint32_t node = at.target; node < at.target + at.target_count; ++node) {
      const uint32_t partner = store.nodes().partner[node];
      if (partner == kNoNode || store.nodes().name[partner] == store.nodes().name[node]) continue;
      (void)maker.Add(place, {store.Name(node), store.Name(partner)}, matches);
    }
  }
  for (const auto& [module, rules] : maker.rules()) {
    made.yaml += YamlText(module) + ":\n";
    for (const auto& [target, golden] : rules) {
      made.yaml += "  " + YamlText(target) + ": " + YamlText(golden) + "\n";
    }
  }
  return made;
}

std::string MappingAnswer(const LayerMappingText& mapping) {
  json::Value value = json::Value::Object();
  value.Put("yaml", json::Value(mapping.yaml));
  value.Put("matched", json::Value(static_cast<int64_t>(mapping.matched)));
  value.Put("unmatched", json::Value(static_cast<int64_t>(mapping.unmatched)));
  return value.Text();
}

}  // namespace plumbline::view

#include "view/serve/hand_matches.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "record/call_name.h"

namespace plumbline::view {
namespace {

// A member that is no name of a call.
constexpr const char* kLogMember = "plumbline";
constexpr int64_t kMatchesVersion = 1;
constexpr int64_t kAnyPlace = -1;  // of a file of msprobe's viewer, which has pairs alone

using NodePair = std::pair<uint32_t, uint32_t>;  // target, golden

Result<NamePair> NamePairOf(const json::Value& value) {
  const json::Value::List* list = value.AsList();
  if (list != nullptr && list->size() == 2) {
    const std::string *target = (*list)[0].AsText(), *golden = (*list)[1].AsText();
    if (target != nullptr && golden != nullptr) return NamePair(*target, *golden);
  }
  return Error(ErrorCode::kInvalidArgument, "pairs: expected [target name, golden name]");
}

Result<std::vector<NamePair>> NamePairsOf(const json::Value* value) {
  if (value == nullptr || value->AsList() == nullptr) {
    return Error(ErrorCode::kInvalidArgument, "pairs: expected a list of pairs of names");
  }
  std::vector<NamePair> pairs;
  for (const json::Value& item : *value->AsList()) {
    PL_TRY_ASSIGN(NamePair pair, NamePairOf(item));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

void AppendPairs(const std::vector<NamePair>& pairs, std::string& text) {
  text += '[';
  for (const auto& [target, golden] : pairs) {
    text += text.back() == '[' ? "[" : ", [";
    json::AppendString(target, text);
    text += ", ";
    json::AppendString(golden, text);
    text += ']';
  }
  text += ']';
}

std::string NowText() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

std::string AuthorName() {
  const char* name = std::getenv("USER");
  return name == nullptr ? std::string() : name;
}

Result<MatchAction> ActionOf(const json::Value& value) {
  const json::Value *what = value.Find("what"), *step = value.Find("step"),
                    *rank = value.Find("rank"), *undone = value.Find("undone");
  const bool is_known = what != nullptr && what->AsText() != nullptr &&
                        (*what->AsText() == "match" || *what->AsText() == "unmatch");
  const bool is_whole =
      is_known && step != nullptr && step->AsInteger() && rank != nullptr && rank->AsInteger();
  if (!is_whole) return Error(ErrorCode::kCorrupt, "an entry of the log is not whole");
  MatchAction action{.is_match = *what->AsText() == "match",
                     .step = *step->AsInteger(),
                     .rank = *rank->AsInteger()};
  PL_TRY_ASSIGN(action.pairs, NamePairsOf(value.Find("pairs")));
  for (const auto& [key, text] : {std::pair{"author", &action.author}, {"time", &action.time}}) {
    const json::Value* member = value.Find(key);
    if (member != nullptr && member->AsText() != nullptr) *text = *member->AsText();
  }
  action.is_undone = undone != nullptr && undone->AsBool() != nullptr && *undone->AsBool();
  return action;
}

void AppendAction(const MatchAction& action, std::string& text) {
  text += fmt::format(R"({{"what": "{}", "step": {}, "rank": {}, "undone": {}, "author": )",
                      action.is_match ? "match" : "unmatch", action.step, action.rank,
                      action.is_undone);
  json::AppendString(action.author, text);
  text += R"(, "time": )";
  json::AppendString(action.time, text);
  text += R"(, "pairs": )";
  AppendPairs(action.pairs, text);
  text += '}';
}

// ".forward" for ".backward" and back; empty: it has no direction.
std::string OtherDirection(std::string name) {
  for (const auto& [from, to] : {std::pair{".forward", ".backward"}, {".backward", ".forward"}}) {
    const size_t at = name.rfind(from);
    if (at == std::string::npos) continue;
    name.replace(at, std::string_view(from).size(), to);
    return name;
  }
  return {};
}

// The last part of the path that is no number, and what stands behind it.
std::string ShortName(const std::string& name) {
  const std::optional<CallName> parts = ParseCallName(name);
  if (!parts) return name;
  std::string_view path = parts->path;
  for (size_t dot = path.rfind('.'); dot != std::string_view::npos; dot = path.rfind('.')) {
    const std::string_view last = path.substr(dot + 1);
    const bool is_number = !last.empty() && std::ranges::all_of(last, [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    if (!is_number) return std::string(last);
    path = path.substr(0, dot);
  }
  return std::string(path);
}

// What is paired while one request is carried out.
class Pairing {
 public:
  Pairing(const ResultStore& store, size_t place, const std::vector<NamePair>& before)
      : store_(store), place_(place) {
    for (const auto& [target, golden] : before) {
      taken_target_.insert(target);
      taken_golden_.insert(golden);
    }
  }

  Result<NodePair> Find(const NamePair& names) const {
    const auto target = store_.Find(place_, false, names.first);
    const auto golden = store_.Find(place_, true, names.second);
    if (target && golden) return NodePair(*target, *golden);
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: there is no such node on the {} side",
                             target ? names.second : names.first, target ? "golden" : "target"));
  }

  Status Add(const NamePair& names) {
    PL_TRY_ASSIGN(const NodePair nodes, Find(names));
    for (const auto& [node, name] :
         {std::pair{nodes.first, &names.first}, {nodes.second, &names.second}}) {
      if (IsFree(node)) continue;
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: has a counterpart already. Take that pair apart first", *name));
    }
    if (Type(nodes.first) != Type(nodes.second)) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("{} and {}: one is of type {}, the other {}", names.first, names.second,
                      StoredTypeName(Type(nodes.first)), StoredTypeName(Type(nodes.second))));
    }
    Take(nodes);
    const NamePair other(OtherDirection(names.first), OtherDirection(names.second));
    const Result<NodePair> others = Find(other);
    if (others && CanPair(*others)) Take(*others);
    return {};
  }

  // What is below a pair, level by level.
  void AddBelow(const NodePair& top) {
    std::vector<NodePair> open{top};
    while (!open.empty()) {
      const NodePair at = open.back();
      open.pop_back();
      std::map<std::tuple<uint8_t, uint8_t, std::string>, std::vector<uint32_t>> golden;
      for (const uint32_t child : Children(at.second)) golden[Key(child)].push_back(child);
      for (const uint32_t child : Children(at.first)) {
        auto found = golden.find(Key(child));
        if (found == golden.end() || found->second.empty()) continue;
        const NodePair pair(child, found->second.front());
        found->second.erase(found->second.begin());
        if (CanPair(pair)) Take(pair);
        open.push_back(pair);
      }
    }
  }

  std::vector<NamePair> TakePairs() { return std::move(made_); }

 private:
  [[nodiscard]] StoredType Type(uint32_t node) const {
    return static_cast<StoredType>(store_.nodes().type[node]);
  }
  [[nodiscard]] std::tuple<uint8_t, uint8_t, std::string> Key(uint32_t node) const {
    return {store_.nodes().type[node], store_.nodes().direction[node],
            ShortName(store_.Name(node))};
  }
  [[nodiscard]] std::vector<uint32_t> Children(uint32_t node) const {
    const NodeColumns& nodes = store_.nodes();
    std::vector<uint32_t> all;
    for (uint32_t child = node + 1; child < node + nodes.size[node]; child += nodes.size[child]) {
      all.push_back(child);
    }
    return all;
  }
  [[nodiscard]] bool IsFree(uint32_t node) const {
    const std::set<std::string>& taken = store_.IsGolden(node) ? taken_golden_ : taken_target_;
    return store_.nodes().partner[node] == kNoNode && !taken.contains(store_.Name(node));
  }
  [[nodiscard]] bool CanPair(const NodePair& nodes) const {
    return IsFree(nodes.first) && IsFree(nodes.second) && Type(nodes.first) == Type(nodes.second);
  }
  void Take(const NodePair& nodes) {
    made_.emplace_back(store_.Name(nodes.first), store_.Name(nodes.second));
    taken_target_.insert(made_.back().first);
    taken_golden_.insert(made_.back().second);
  }

  const ResultStore& store_;
  const size_t place_;
  std::set<std::string> taken_target_, taken_golden_;
  std::vector<NamePair> made_;
};

}  // namespace

Result<MatchRequest> ParseMatchRequest(std::string_view body, size_t places) {
  PL_TRY_ASSIGN(const json::Value value, json::Value::Parse(body));
  MatchRequest request;
  PL_TRY_ASSIGN(request.pairs, NamePairsOf(value.Find("pairs")));
  const json::Value *place = value.Find("place"), *below = value.Find("with_children");
  const std::optional<uint64_t> number =
      place == nullptr ? std::optional<uint64_t>(0) : place->AsNatural();
  if (!number || *number >= places) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("place: expected a number from 0 to {}", places - 1));
  }
  request.place = *number;
  request.with_children = below != nullptr && below->AsBool() != nullptr && *below->AsBool();
  if (!request.pairs.empty()) return request;
  return Error(ErrorCode::kInvalidArgument, "pairs: is empty (expected at least one pair)");
}

Result<HandMatches> HandMatches::Read(const std::string& path) {
  HandMatches matches;
  if (KindOf(path) == PathKind::kMissing) return matches;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const Result<json::Value> value = json::Value::Parse(text);
  if (!value) return value.error().In(path);
  if (!value->is_object()) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: is no JSON object of names", path));
  }
  if (const json::Value* log = value->Find(kLogMember)) {
    const json::Value *version = log->Find("version"), *entries = log->Find("log");
    if (version != nullptr && version->AsInteger().value_or(kMatchesVersion) != kMatchesVersion) {
      return Error(
          ErrorCode::kUnsupported,
          fmt::format("{}: is of version {}, which this program does not know (expected {})", path,
                      *version->AsInteger(), kMatchesVersion));
    }
    if (version == nullptr || entries == nullptr || entries->AsList() == nullptr) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: {} has no version and log of pairs", path, kLogMember));
    }
    for (const json::Value& entry : *entries->AsList()) {
      Result<MatchAction> action = ActionOf(entry);
      if (!action) return Error(ErrorCode::kCorrupt, action.error().In(path).message());
      matches.actions_.push_back(*std::move(action));
    }
    return matches;
  }
  MatchAction all{.step = kAnyPlace, .rank = kAnyPlace};
  for (const std::string_view key : value->Keys()) {
    const std::string* golden = value->Find(key)->AsText();
    if (golden == nullptr) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: holds no pairs (of {} no name)", path, Utf8Beginning(key, 40)));
    }
    all.pairs.emplace_back(key, *golden);
  }
  if (!all.pairs.empty()) matches.actions_.push_back(std::move(all));
  return matches;
}

Status HandMatches::Write(const std::string& path) const {
  std::string text = "{\n";
  for (const auto& [target, golden] : AllPairs()) {
    text += "    ";
    json::AppendString(target, text);
    text += ": ";
    json::AppendString(golden, text);
    text += ",\n";
  }
  text += fmt::format("    \"{}\": {{\"version\": {}, \"log\": [", kLogMember, kMatchesVersion);
  for (const MatchAction& action : actions_) {
    text += &action == actions_.data() ? "\n        " : ",\n        ";
    AppendAction(action, text);
  }
  text += "\n    ]}\n}\n";
  return WriteFileAtomically(path, text, /*durable=*/true);
}

void HandMatches::Append(const ResultStore& store, size_t place, bool is_match,
                         std::vector<NamePair> pairs) {
  // What was undone cannot be done again behind another action.
  std::erase_if(actions_, [](const MatchAction& action) { return action.is_undone; });
  const StorePlace& at = store.places()[place];
  actions_.push_back({is_match, at.step, at.rank, std::move(pairs), AuthorName(), NowText()});
}

Status HandMatches::Match(const ResultStore& store, const MatchRequest& request) {
  const StorePlace& at = store.places()[request.place];
  Pairing pairing(store, request.place, PairsOf(at.step, at.rank));
  for (const NamePair& names : request.pairs) {
    PL_TRY(pairing.Add(names));
    PL_TRY_ASSIGN(const NodePair top, pairing.Find(names));
    if (request.with_children) pairing.AddBelow(top);
  }
  Append(store, request.place, true, pairing.TakePairs());
  return {};
}

Status HandMatches::Unmatch(const ResultStore& store, const MatchRequest& request) {
  const StorePlace& at = store.places()[request.place];
  const std::vector<NamePair> before = PairsOf(at.step, at.rank);
  std::vector<NamePair> gone;
  for (const NamePair& names : request.pairs) {
    if (std::ranges::find(before, names) == before.end()) {
      return Error(ErrorCode::kNotFound,
                   fmt::format("{} and {}: were not paired by hand", names.first, names.second));
    }
    gone.push_back(names);
    const auto top = store.Find(request.place, false, names.first);
    if (!request.with_children || !top) continue;
    for (const NamePair& pair : before) {
      const auto node = store.Find(request.place, false, pair.first);
      const bool is_below = node && *node > *top && *node < *top + store.nodes().size[*top];
      if (is_below) gone.push_back(pair);
    }
  }
  Append(store, request.place, false, std::move(gone));
  return {};
}

Status HandMatches::Undo() {
  for (auto action = actions_.rbegin(); action != actions_.rend(); ++action) {
    if (action->is_undone) continue;
    action->is_undone = true;
    return {};
  }
  return Error(ErrorCode::kNotFound, "there is nothing to undo");
}

bool HandMatches::can_undo() const {
  return std::ranges::any_of(actions_, [](const MatchAction& action) { return !action.is_undone; });
}

std::vector<NamePair> HandMatches::PairsOf(int64_t step, int64_t rank) const {
  std::vector<NamePair> pairs;
  for (const MatchAction& action : actions_) {
    const bool is_here = action.step == kAnyPlace || (action.step == step && action.rank == rank);
    if (action.is_undone || !is_here) continue;
    for (const NamePair& pair : action.pairs) {
      std::erase(pairs, pair);
      if (action.is_match) pairs.push_back(pair);
    }
  }
  return pairs;
}

std::set<std::pair<int64_t, int64_t>> HandMatches::Places() const {
  std::set<std::pair<int64_t, int64_t>> places;
  for (const MatchAction& action : actions_) places.emplace(action.step, action.rank);
  return places;
}

std::vector<NamePair> HandMatches::AllPairs() const {
  std::vector<NamePair> all;
  std::set<NamePair> seen;
  for (const auto& [step, rank] : Places()) {
    for (NamePair& pair : PairsOf(step, rank)) {
      if (seen.insert(pair).second) all.push_back(std::move(pair));
    }
  }
  return all;
}

std::string HandMatches::StateText() const {
  std::string text;
  for (const auto& [step, rank] : Places()) {
    const std::vector<NamePair> pairs = PairsOf(step, rank);
    if (pairs.empty()) continue;
    text += fmt::format(" step {} rank {} ", step, rank);
    AppendPairs(pairs, text);
  }
  return text;
}

std::string HandMatches::AnswerText() const {
  std::string text = R"({"pairs":)";
  AppendPairs(AllPairs(), text);
  text += can_undo() ? R"(,"can_undo":true})" : R"(,"can_undo":false})";
  return text;
}

}  // namespace plumbline::view

#include "view/merge/fold_pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/text/number_text.h"
#include "formats/json/dump_json.h"
#include "tree/call_twin.h"
#include "view/merge/fold_chunks.h"
#include "view/merge/layer_names.h"
#include "view/merge/merged_values.h"

namespace plumbline::view {
namespace {

using Parts = std::vector<Part*>;

// Layers that are numbered together: one pass through the model in one direction.
using PassKey = std::pair<bool, std::string>;  // is forward, call number

std::optional<PassKey> PassOf(const Part& part) {
  const auto directed = part.is_module() ? tree::ParseDirected(part.name) : std::nullopt;
  if (!directed) return std::nullopt;
  return PassKey(directed->is_forward(), std::string(directed->number));
}

// The member of `part` becomes that of another call; without one there it goes.
void TakeMember(std::string_view key, const Part& from, Part& part) {
  std::erase_if(part.members, [&](const auto& member) { return member.first == key; });
  for (const auto& member : from.members) {
    if (member.first == key) part.members.push_back(member);
  }
}

bool HasNaNs(Part& part) {
  return std::ranges::any_of(PlacedValuesOf(part), [](const PlacedValue& value) {
    return value.tensor != nullptr && IsMergeable(*value.tensor) && HasNaN(*value.tensor);
  });
}

// Everything below a layer that got another number, and calls of APIs, whose numbers are those of
// their rank.
void RenameMoved(Part& top, std::optional<int64_t> number) {
  std::string from, to;
  const auto layer = ParseLayer(top.name);
  if (layer && number) {
    from = top.name.substr(0, layer->number_at + layer->number_size + 1);
    to = fmt::format("{}{}.", std::string_view(top.name).substr(0, layer->number_at), *number);
  }
  for (Part* const part : PartsBelow(top)) {
    if (!part->is_module()) {
      part->name = WithRankMark(part->name, part->rank);
    } else if (!from.empty() && part->name.starts_with(from)) {
      part->name = to + part->name.substr(from.size());
    }
  }
}

class PipelineFolder {
 public:
  explicit PipelineFolder(std::span<RankTree* const> stages)
      : stages_(stages), main_(*stages.front()) {
    for (size_t i = 0; i < stages.size(); ++i) stage_of_.emplace(stages[i]->rank, i);
  }

  void Run() {
    FindWhatIsAroundLayers();
    const Parts tops = main_.root().children;
    for (Part* const top : tops) {
      if (top->is_module() && !IsOwnOfRank(*top)) FoldFrom(*top);
    }
    AddTopLevel();
    for (Part* const parent : receivers_) {
      parent == &main_.root() ? PlaceAtTop() : Place(*parent);
    }
    if (left_out_ > 0) {
      main_.notes.push_back(
          fmt::format("{} of later pipeline ranks left out, because the same stands on several of "
                      "them and not on rank {}",
                      CountText(left_out_, "module"), main_.rank));
    }
  }

 private:
  void FindWhatIsAroundLayers() {
    for (const Part* const part : PartsBelow(main_.root())) {
      if (!part->is_module() || !ParseLayer(part->name)) continue;
      const Part* above = part->parent;
      while (above != nullptr && around_layers_.insert(above).second) above = above->parent;
    }
  }

  void FoldFrom(Part& top) {
    Parts open = {&top};
    while (!open.empty()) {
      Part* const part = open.back();
      open.pop_back();
      const Parts children = part->children;  // without what is taken
      if (!FoldOne(*part)) continue;
      for (auto child = children.rbegin(); child != children.rend(); ++child) {
        if ((*child)->is_module()) open.push_back(*child);
      }
    }
  }

  // Whether to go on below the part.
  bool FoldOne(Part& part) {
    const Parts others = CounterpartsOf(part);
    const bool is_on_all = others.size() + 1 == stages_.size();
    const auto layer = ParseLayer(part.name);
    if (others.empty() || (!is_on_all && !layer)) return false;
    const DifferingTensors differing = TensorsThat(Which::kDiffering, part, others);
    if (layer && IsSplit(part, differing)) {
      part.is_split = true;
      for (Part* const other : others) TakeLayer(*other, *part.parent);
      return false;
    }
    if (!is_on_all) return false;
    TakeEnds(differing, *others.back(), part);
    AddWhatIsMissing(others, part);
    return true;
  }

  [[nodiscard]] Parts CounterpartsOf(const Part& part) const {
    Parts others;
    for (RankTree* const stage : stages_.subspan(1)) {
      Part* const other = stage->Find(part.name);
      if (other != nullptr) others.push_back(other);
    }
    return others;
  }

  // One name, other layers. A layer that is NaN all over looks alike on every rank.
  [[nodiscard]] bool IsSplit(Part& part, const DifferingTensors& differing) const {
    if (!differing.inputs.empty() && !differing.outputs.empty()) return true;
    if (const auto forward = tree::ForwardOf(part.name)) {
      const Part* const twin = main_.Find(*forward);
      if (twin != nullptr && twin->is_split) return true;
    }
    return HasNaNs(part);
  }

  void TakeEnds(const DifferingTensors& differing, const Part& last, Part& part) {
    const bool is_forward = IsForward(part.name);
    const auto& behind = is_forward ? differing.outputs : differing.inputs;
    const auto& before = is_forward ? differing.inputs : differing.outputs;
    // A module that differs at both ends, and is none around layers, is not one module of all
    // ranks.
    if (behind.empty() || (!before.empty() && !around_layers_.contains(&part))) return;
    TakeMember(is_forward ? dump_json::kOutput : dump_json::kInput, last, part);
    part.merge.push_back(fmt::format("{} of rank {}, the last of the pipeline [{}]",
                                     is_forward ? "Outputs" : "Inputs", last.rank, Ranks()));
  }

  [[nodiscard]] std::string Ranks() const {
    std::vector<int64_t> ranks;
    for (const RankTree* const stage : stages_) ranks.push_back(stage->rank);
    return fmt::format("{}", fmt::join(ranks, ", "));
  }

  void TakeLayer(Part& part, Part& parent) {
    const Parts& siblings = part.parent->children;
    const auto at = std::ranges::find(siblings, &part);
    Take(part, static_cast<size_t>(at - siblings.begin()), parent);
  }

  void Take(Part& part, size_t position, Part& parent) {
    part.position = position;
    part.merge.push_back(fmt::format("Recorded by rank {} as {}", part.rank, part.name));
    for (Part* const each : PartsBelow(part)) each->is_moved = true;
    part.parent = &parent;
    parent.children.push_back(&part);
    if (known_receivers_.insert(&parent).second) receivers_.push_back(&parent);
  }

  void AddWhatIsMissing(const Parts& others, Part& part) {
    std::unordered_set<std::string_view> known;
    for (const Part* const child : part.children) known.insert(child->name);
    std::unordered_set<std::string_view> taken;
    for (Part* const other : others) {
      const Parts children = other->children;
      for (size_t i = 0; i < children.size(); ++i) {
        if (!known.contains(children[i]->name)) TakeOnce(*children[i], i, part, taken);
      }
    }
  }

  // Calls of APIs and layers get names of their own; of other modules one can stand there.
  void TakeOnce(Part& part, size_t position, Part& parent,
                std::unordered_set<std::string_view>& taken) {
    const bool is_renamed = !part.is_module() || ParseLayer(part.name);
    if (is_renamed || taken.insert(part.name).second) {
      Take(part, position, parent);
    } else {
      ++left_out_;
    }
  }

  void AddTopLevel() {
    std::unordered_set<std::string_view> taken;
    for (RankTree* const stage : stages_.subspan(1)) {
      const Parts children = stage->root().children;
      for (size_t i = 0; i < children.size(); ++i) {
        Part& part = *children[i];
        if (part.type == NodeType::kCollection || IsOwnOfRank(part)) continue;
        // What was moved before is one of the first rank's children by now.
        if (part.is_moved || main_.Find(part.name) != nullptr) continue;
        TakeOnce(part, i, main_.root(), taken);
      }
    }
  }

  [[nodiscard]] auto PlaceKey(bool is_forward) const {
    return [this, is_forward](const Part* part) {
      const auto stage = static_cast<int64_t>(stage_of_.at(part->rank));
      return std::pair(is_forward ? stage : -stage, part->position);
    };
  }

  static std::pair<Parts, Parts> KeptAndMoved(const Parts& children) {
    std::pair<Parts, Parts> halves;
    for (Part* const child : children) {
      (child->is_moved ? halves.second : halves.first).push_back(child);
    }
    return halves;
  }

  void Place(Part& parent) {
    auto [kept, moved] = KeptAndMoved(parent.children);
    const bool is_forward = IsForward(moved.back()->name);
    std::ranges::stable_sort(moved, {}, PlaceKey(is_forward));
    Parts& first = is_forward ? kept : moved;
    const Parts& second = is_forward ? moved : kept;
    first.insert(first.end(), second.begin(), second.end());
    parent.children = std::move(first);
    Number(parent.children, is_forward);
  }

  // On the top level, passes in both directions follow each other.
  void PlaceAtTop() {
    auto [kept, moved] = KeptAndMoved(main_.root().children);
    std::map<PassKey, std::pair<size_t, size_t>> range;  // first and last of the kept
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto key = PassOf(*kept[i]);
      if (key) range.emplace(*key, std::pair(i, i)).first->second.second = i;
    }
    std::vector<Parts> before(kept.size() + 1);  // what goes in front of each
    std::ranges::stable_sort(moved, {}, PlaceKey(true));
    for (Part* const part : moved) {
      const auto key = PassOf(*part);
      const auto found = key ? range.find(*key) : range.end();
      if (found == range.end()) {
        before.back().push_back(part);
      } else {
        before[key->first ? found->second.second + 1 : found->second.first].push_back(part);
      }
    }
    Parts& children = main_.root().children;
    children.clear();
    for (size_t i = 0; i < before.size(); ++i) {
      // Forward calls end what stands before, backward calls, the last stage's first, begin what
      // follows.
      std::ranges::stable_sort(before[i], {}, [&](const Part* part) {
        const auto key = PassOf(*part);
        const bool is_backward = key && !key->first;
        return std::pair(is_backward, PlaceKey(!is_backward)(part));
      });
      children.insert(children.end(), before[i].begin(), before[i].end());
      if (i < kept.size()) children.push_back(kept[i]);
    }
    NumberPasses(children);
  }

  // Layers count on from those of the first rank; in backward from the end.
  void Number(const Parts& children, bool is_forward) {
    std::map<PassKey, int64_t> next;
    const auto count = [&](Part& part) {
      const auto key = ParseLayer(part.name) ? PassOf(part) : std::nullopt;
      std::optional<int64_t> number;
      if (key) number = next[*key]++;
      if (part.is_moved) RenameMoved(part, number);
    };
    if (is_forward) {
      for (Part* const child : children) count(*child);
    } else {
      for (auto child = children.rbegin(); child != children.rend(); ++child) count(**child);
    }
  }

  void NumberPasses(const Parts& children) {
    Parts forward, backward;
    for (Part* const child : children) {
      const auto key = PassOf(*child);
      (key && !key->first ? backward : forward).push_back(child);
    }
    Number(forward, true);
    Number(backward, false);
  }

  const std::span<RankTree* const> stages_;
  RankTree& main_;
  std::unordered_map<int64_t, size_t> stage_of_;   // by rank
  std::unordered_set<const Part*> around_layers_;  // modules of the first rank
  Parts receivers_;  // what got parts of other ranks, in the order of the first
  std::unordered_set<const Part*> known_receivers_;
  uint64_t left_out_ = 0;
};

constexpr std::string_view kLoose = "Apis_Between_Modules";

// Adds the calls of other ranks to a group of the first one, or to a new group.
class LooseFolder {
 public:
  explicit LooseFolder(std::span<RankTree* const> trees) : trees_(trees), main_(*trees.front()) {}

  void Run() {
    std::vector<Part*> groups;
    for (Part* const top : main_.root().children) {
      if (top->type == NodeType::kCollection) groups.push_back(top);
    }
    std::unordered_set<std::string> known;
    for (Part* const group : groups) {
      known.insert(group->name);
      Fold(group->name, *group);
    }
    for (RankTree* const tree : trees_.subspan(1)) {
      const Parts tops = tree->root().children;
      for (Part* const top : tops) {
        if (top->type != NodeType::kCollection || !known.insert(top->name).second) continue;
        AddGroup(top->name);
      }
    }
  }

 private:
  // `group` becomes that of all ranks; its calls go into one of its rank.
  void Fold(const std::string name, Part& group) {
    Part& own = main_.parts.emplace_back();
    own.type = NodeType::kCollection;
    own.name = OfRank(name, main_.rank);
    own.rank = main_.rank;
    own.micro_step = group.micro_step;
    own.parent = &group;
    own.children = std::move(group.children);
    for (Part* const call : own.children) call->parent = &own;
    group.children = {&own};
    group.name = Number();
    AddOthers(name, group);
  }

  // A group that the first rank has nothing of.
  void AddGroup(const std::string& name) {
    Part& group = main_.parts.emplace_back();
    group.type = NodeType::kCollection;
    group.name = Number();
    group.rank = main_.rank;
    AttachAt(group, main_.root(), main_.root().children.size());
    AddOthers(name, group);
    if (!group.children.empty()) group.micro_step = group.children.front()->micro_step;
  }

  void AddOthers(const std::string& name, Part& group) {
    for (RankTree* const tree : trees_.subspan(1)) {
      Part* const other = tree->Find(name);
      if (other == nullptr) continue;
      std::erase(tree->root().children, other);
      other->name = OfRank(name, tree->rank);
      for (Part* const call : other->children) call->name = WithRankMark(call->name, tree->rank);
      AttachAt(*other, group, group.children.size());
    }
    std::ranges::stable_sort(group.children, {}, &Part::rank);
  }

  std::string Number() { return fmt::format("{}_All_Ranks.{}", kLoose, count_++); }
  static std::string OfRank(std::string_view name, int64_t rank) {
    return fmt::format("{}_Rank{}{}", kLoose, rank, name.substr(name.rfind('.')));
  }

  const std::span<RankTree* const> trees_;
  RankTree& main_;
  size_t count_ = 0;
};

}  // namespace

bool IsOwnOfRank(const Part& part) {
  return part.name.starts_with("optimizer") || part.name.starts_with("clip_grad");
}

void FoldPipeline(std::span<RankTree* const> stages, int64_t chunks) {
  if (stages.size() < 2) return;
  PipelineFolder(stages).Run();
  RankTree& main = *stages.front();
  main.Index();
  if (chunks < 2) return;
  FoldChunks(chunks, main);
  main.Index();
}

void FoldLooseCalls(std::span<RankTree* const> trees) {
  LooseFolder(trees).Run();
  for (RankTree* const tree : trees) tree->Index();
}

}  // namespace plumbline::view

#include "match/training_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>

#include "base/text/text_parts.h"
#include "load/derived_tensor.h"
#include "match/expand.h"
#include "record/call_name.h"
#include "record/recorded_number.h"

namespace plumbline::match {

namespace {

using load::Derivation;

constexpr std::string_view kBetweenNames = ";  ";

// After a backward call the training runs forward calls again, until one of this class begins the
// next pass. A class counts whose name is part of this text, as upstream has it.
std::string_view FirstClassOf(TrainingBackend backend) {
  return backend == TrainingBackend::kFsdp ? "Embedding" : "VocabParallelEmbedding";
}

// --- items ------------------------------------------------------------------------------------

std::string_view PartOf(const Item& item, const CallItems& call) {
  const std::string_view name = item.name;
  return name.starts_with(call.name) ? name.substr(call.name.size()) : name;
}

void SetShape(Shape shape, Item& item) {
  item.shape_text = ShapeText(shape);
  item.shape = std::move(shape);
}

Shape ShapeOf(const Item& item) { return {item.shape.begin(), item.shape.end()}; }

void DropOnes(Item& item) {
  if (!item.is_tensor) return;
  Shape shape = load::WithoutOnes(ShapeOf(item));
  if (shape.size() == item.shape.size()) return;
  SetShape(std::move(shape), item);
  if (item.data_name.empty()) return;
  const std::array<std::string, 1> files = {std::string(item.data_name)};
  item.data_name = load::DerivedName(Derivation::kSame, files);
}

// The file itself, of a name that only drops dimensions.
std::string FileOf(const Item& item) {
  const auto derived = load::ParseDerivedName(item.data_name);
  return derived ? derived->files.front() : std::string(item.data_name);
}

// Of all elements together; nothing where a piece has none.
std::array<Recorded, 4> StatisticsOf(std::span<const Item* const> pieces) {
  std::array<double, 4> all = {-HUGE_VAL, HUGE_VAL, 0, 0};
  double count = 0;
  for (const Item* piece : pieces) {
    std::array<double, 4> own{};
    for (size_t i = 0; i < own.size(); ++i) {
      const auto number = NumberOf(piece->statistics[i]);
      if (!number) return {};
      own[i] = *number;
    }
    double elements = 1;
    for (const int64_t size : piece->shape) elements *= static_cast<double>(size);
    count += elements;
    // NaN must not get lost.
    all[0] = std::isnan(own[0]) || own[0] > all[0] ? own[0] : all[0];
    all[1] = std::isnan(own[1]) || own[1] < all[1] ? own[1] : all[1];
    all[2] += own[2] * elements;
    all[3] += own[3] * own[3];
  }
  if (count == 0) return {};
  return {all[0], all[1], all[2] / count, std::sqrt(all[3])};
}

// One item of several; nothing if they do not fit together.
std::optional<Item> Combined(Derivation derivation, std::span<const Item* const> pieces) {
  std::vector<Shape> shapes;
  std::vector<std::string> files;
  for (const Item* piece : pieces) {
    if (!piece->is_tensor || piece->dtype != pieces.front()->dtype) return std::nullopt;
    shapes.push_back(ShapeOf(*piece));
    if (!piece->data_name.empty()) files.push_back(FileOf(*piece));
  }
  std::optional<Shape> shape = load::DerivedShape(derivation, shapes);
  const bool has_files = files.size() == pieces.size();
  // What a sum is cannot be said without the elements.
  if (!shape || (derivation == Derivation::kSum && !has_files)) return std::nullopt;
  Item item = *pieces.front();
  SetShape(std::move(*shape), item);
  item.finite_extremes = {};
  item.digest = {};
  item.statistics = {};
  if (derivation != Derivation::kSum) item.statistics = StatisticsOf(pieces);
  item.data_name = has_files ? load::DerivedName(derivation, files) : std::string();
  return item;
}

std::string ShownName(std::span<const Item* const> pieces) {
  std::vector<std::string_view> names;
  for (const Item* piece : pieces) names.push_back(piece->name);
  return fmt::format("{}", fmt::join(names, kBetweenNames));
}

// --- calls ------------------------------------------------------------------------------------

struct Key {
  ModulePlace place;
  uint64_t number = 0;  // of forward calls of that module before
  friend auto operator<=>(const Key&, const Key&) = default;
};

// A call of one side that takes part.
struct Member {
  size_t index = 0;
  Key key;
};

class TrainingMatcher {
 public:
  TrainingMatcher(const TrainingRules& rules, std::vector<CallItems>& training,
                  std::vector<CallItems>& inference)
      : rules_(rules), training_(training), inference_(inference) {}

  TrainingMatch Run() {
    const std::vector<Member> target = MembersOf(training_, true);
    const std::vector<Member> golden = MembersOf(inference_, false);
    std::map<Key, Group> groups;
    for (const Member& member : target) groups[member.key].target.push_back(member.index);
    for (const Member& member : golden) groups[member.key].golden.push_back(member.index);
    std::vector<Group> ordered;
    for (auto& [key, group] : groups) Split(group, ordered);
    // A call made of several is complete with the last of them.
    std::ranges::sort(ordered, {}, [](const Group& group) {
      const bool alone = group.target.empty();
      return std::tuple(alone, alone ? group.golden.back() : group.target.back());
    });
    for (const Group& group : ordered) AddGroup(group);
    training_ = std::move(new_training_);
    inference_ = std::move(new_inference_);
    return std::move(result_);
  }

 private:
  struct Group {
    std::vector<size_t> target, golden;
  };

  std::vector<Member> MembersOf(std::vector<CallItems>& calls, bool is_training) {
    std::vector<Member> members;
    std::unordered_map<std::string, uint64_t> numbers;
    const auto wrappers = WrapperPaths(calls);
    // The table is about the training's names.
    const TrainingRules rules = is_training ? rules_ : TrainingRules{rules_.backend, {}};
    bool again = false;
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto name = ParseCallName(calls[i].name);
      if (!name || name->form == CallName::Form::kApi || wrappers.contains(name->path)) {
        ++result_.other;
        continue;
      }
      if (name->kind != CallKind::kForward) {
        again = again || name->kind == CallKind::kBackward;
        ++(is_training ? result_.backward : result_.other);
        continue;
      }
      const std::string_view first = FirstClassOf(rules_.backend);
      if (first.find(name->class_name) != std::string_view::npos) again = false;
      if (is_training && (again || calls[i].recomputed)) {
        ++result_.recomputed;
        continue;
      }
      uint64_t& number = numbers[fmt::format("{}.{}", name->path, name->class_name)];
      members.push_back({i, {PlaceOfModule(name->path, name->class_name, rules), number++}});
      for (Item& item : calls[i].items) DropOnes(item);
    }
    return members;
  }

  // Groups of which at least one side has one call.
  static void Split(Group& group, std::vector<Group>& groups) {
    const size_t target = group.target.size(), golden = group.golden.size();
    const bool simple = target == 0 || golden == 0 || target == 1 || golden == 1;
    if (simple && target > 0 && golden > 0) {
      groups.push_back(std::move(group));
    } else if (target == golden) {
      for (size_t i = 0; i < target; ++i) groups.push_back({{group.target[i]}, {group.golden[i]}});
    } else {
      for (const size_t i : group.target) groups.push_back({{i}, {}});
      for (const size_t i : group.golden) groups.push_back({{}, {i}});
    }
  }

  // One call of several; its name is that of the first, until all is judged.
  CallItems Merge(std::vector<CallItems>& calls, const std::vector<size_t>& indices) {
    CallItems merged = std::move(calls[indices.front()]);
    if (indices.size() == 1) return merged;
    std::vector<std::string_view> names = {merged.name};
    for (size_t k = 1; k < indices.size(); ++k) names.push_back(calls[indices[k]].name);
    result_.shown_names.emplace_back(merged.name,
                                     fmt::format("{}", fmt::join(names, kBetweenNames)));
    std::vector<Item> items;
    for (const Item& item : merged.items) {
      const std::string_view part = PartOf(item, merged);
      std::vector<const Item*> pieces = {&item};
      for (size_t k = 1; k < indices.size(); ++k) {
        const CallItems& other = calls[indices[k]];
        const auto found = std::ranges::find_if(
            other.items, [&](const Item& each) { return PartOf(each, other) == part; });
        if (found != other.items.end()) pieces.push_back(&*found);
      }
      // All of them are given the same.
      std::optional<Item> combined = item;
      if (item.role != ItemRole::kInput) {
        combined = Combined(
            item.role == ItemRole::kParameter ? Derivation::kRows : Derivation::kColumns, pieces);
      }
      if (pieces.size() == indices.size() && combined) {
        result_.shown_names.emplace_back(std::string(item.name), ShownName(pieces));
        items.push_back(std::move(*combined));
      } else {
        for (const Item* piece : pieces) items.push_back(*piece);
      }
    }
    for (size_t k = 1; k < indices.size(); ++k) AddExtra(calls[indices[k]], merged, items);
    merged.items = std::move(items);
    return merged;
  }

  // Items of which the first of several calls has no like.
  static void AddExtra(const CallItems& call, const CallItems& first, std::vector<Item>& items) {
    for (const Item& item : call.items) {
      const bool known = std::ranges::any_of(
          first.items, [&](const Item& each) { return PartOf(each, first) == PartOf(item, call); });
      if (!known) items.push_back(item);
    }
  }

  void AddGroup(const Group& group) {
    CallPair pair;
    if (!group.target.empty()) {
      pair.target = new_training_.size();
      new_training_.push_back(Merge(training_, group.target));
    }
    if (!group.golden.empty()) {
      pair.golden = new_inference_.size();
      new_inference_.push_back(Merge(inference_, group.golden));
    }
    if (pair.target == kUnpaired) pair.reason = "no-target";
    if (pair.golden == kUnpaired) pair.reason = "no-golden";
    if (!pair.paired()) {
      const CallItems& call =
          pair.target == kUnpaired ? new_inference_[pair.golden] : new_training_[pair.target];
      if (!call.items.empty()) result_.pairs.push_back(std::move(pair));
      return;
    }
    pair.rule = "mapped";
    LinkItems(std::move(pair));
  }

  void LinkItems(CallPair pair) {
    CallItems& target = new_training_[pair.target];
    CallItems& golden = new_inference_[pair.golden];
    AddResiduals(target, golden);
    CallPair alone_target, alone_golden;
    alone_target.target = pair.target;
    alone_target.reason = "no-golden";
    alone_golden.golden = pair.golden;
    alone_golden.reason = "no-target";
    std::vector<bool> used(golden.items.size(), false);
    for (size_t i = 0; i < target.items.size(); ++i) {
      const size_t j = CounterpartOf(target, i, golden, used);
      if (j == kUnpaired) {
        if (HasValue(target.items[i])) alone_target.links.emplace_back(i, kUnpaired);
        continue;
      }
      used[j] = true;
      pair.links.emplace_back(i, j);
    }
    for (size_t j = 0; j < used.size(); ++j) {
      if (!used[j] && HasValue(golden.items[j])) alone_golden.links.emplace_back(kUnpaired, j);
    }
    if (!pair.links.empty()) result_.pairs.push_back(std::move(pair));
    if (!alone_target.links.empty()) result_.pairs.push_back(std::move(alone_target));
    if (!alone_golden.links.empty()) result_.pairs.push_back(std::move(alone_golden));
  }

  // Engines return nothing beside a result, where a bias to be added later might be.
  static bool HasValue(const Item& item) { return item.dtype.has_value(); }

  // The item at the same place with the same shape; else the only one of that shape in its role.
  static size_t CounterpartOf(CallItems& target, size_t i, CallItems& golden,
                              const std::vector<bool>& used) {
    Item& item = target.items[i];
    const std::string_view part = PartOf(item, target);
    size_t only = kUnpaired;
    size_t found = 0;
    for (size_t j = 0; j < golden.items.size(); ++j) {
      Item& other = golden.items[j];
      if (used[j] || other.role != item.role) continue;
      if (PartOf(other, golden) == part && Fit(item, other)) return j;
      if (!item.is_tensor || !SameForm(item, other)) continue;
      only = j;
      ++found;
    }
    const auto like = std::ranges::count_if(target.items, [&](const Item& each) {
      return each.role == item.role && SameForm(each, item);
    });
    return found == 1 && like == 1 ? only : kUnpaired;
  }

  static bool SameForm(const Item& a, const Item& b) {
    return a.is_tensor && b.is_tensor && DTypesAgree(a.dtype, b.dtype) && ShapeOf(a) == ShapeOf(b);
  }

  // Whether they may stand against each other; heads and their size may be one dimension or two.
  static bool Fit(Item& a, Item& b) {
    if (!a.is_tensor || !b.is_tensor) return a.is_tensor == b.is_tensor;
    return SameForm(a, b) || (DTypesAgree(a.dtype, b.dtype) && (Flatten(a, b) || Flatten(b, a)));
  }

  static bool Flatten(Item& deep, const Item& flat) {
    const std::array<Shape, 1> shape = {ShapeOf(deep)};
    std::optional<Shape> merged = load::DerivedShape(Derivation::kPairs, shape);
    if (!merged || *merged != ShapeOf(flat)) return false;
    SetShape(std::move(*merged), deep);
    if (deep.data_name.empty()) return true;
    const std::array<std::string, 1> files = {FileOf(deep)};
    deep.data_name = load::DerivedName(Derivation::kPairs, files);
    return true;
  }

  // Inference passes a tensor and the residual that is still to be added side by side.
  void AddResiduals(const CallItems& target, CallItems& golden) {
    for (const ItemRole role : {ItemRole::kInput, ItemRole::kOutput}) {
      const bool is_norm = golden.name.find("Norm.forward") != std::string::npos;
      if (role == ItemRole::kOutput && is_norm) continue;  // the first one is the sum, normalised
      for (const Item& item : target.items) {
        if (item.role != role || !item.is_tensor) continue;
        AddResidualTo(item, target, role, golden);
      }
    }
  }

  void AddResidualTo(const Item& item, const CallItems& target, ItemRole role, CallItems& golden) {
    const auto is_like = [&](const Item& each) {
      return each.role == role && SameForm(each, item);
    };
    if (std::ranges::count_if(target.items, is_like) != 1) return;
    std::vector<size_t> found;
    for (size_t j = 0; j < golden.items.size(); ++j) {
      if (is_like(golden.items[j])) found.push_back(j);
    }
    if (found.size() != 2) return;
    Item& first = golden.items[found[0]];
    const std::array<const Item*, 2> pieces = {&first, &golden.items[found[1]]};
    std::optional<Item> sum = Combined(Derivation::kSum, pieces);
    if (!sum) return;
    result_.shown_names.emplace_back(std::string(first.name), ShownName(pieces));
    first = std::move(*sum);
    golden.items.erase(golden.items.begin() + static_cast<std::ptrdiff_t>(found[1]));
  }

  const TrainingRules& rules_;
  std::vector<CallItems>& training_;
  std::vector<CallItems>& inference_;
  std::vector<CallItems> new_training_, new_inference_;
  TrainingMatch result_;
};

}  // namespace

TrainingMatch MatchTraining(const TrainingRules& rules, std::vector<CallItems>& training,
                            std::vector<CallItems>& inference) {
  return TrainingMatcher(rules, training, inference).Run();
}

std::string_view FirstOfShown(std::string_view shown) {
  return shown.substr(0, shown.find(kBetweenNames));
}

// Where a module stands: PlaceOfModule().

namespace {

using RenamedModule = std::pair<std::string_view, std::string_view>;

constexpr std::array<RenamedModule, 5> kFsdp = {{{"q_proj", "qkv_proj"},
                                                 {"k_proj", "qkv_proj"},
                                                 {"v_proj", "qkv_proj"},
                                                 {"gate_proj", "gate_up_proj"},
                                                 {"up_proj", "gate_up_proj"}}};

constexpr std::array<RenamedModule, 10> kMegatron = {{{"word_embeddings", "embed_tokens"},
                                                      {"self_attention", "self_attn"},
                                                      {"linear_qkv", "qkv_proj"},
                                                      {"q_layernorm", "q_norm"},
                                                      {"k_layernorm", "k_norm"},
                                                      {"core_attention", "attn"},
                                                      {"linear_proj", "o_proj"},
                                                      {"router", "gate"},
                                                      {"linear_fc1", "gate_up_proj"},
                                                      {"linear_fc2", "down_proj"}}};

// What stands around a model or a part of it.
constexpr std::array<std::string_view, 3> kTrainingWrappers = {"_fsdp_wrapped_module", "_orig_mod",
                                                               "_checkpoint_wrapped_module"};

std::string_view Mapped(std::string_view field, const TrainingRules& rules) {
  const auto found = std::ranges::find(rules.modules, field, &TextPairs::value_type::first);
  return found == rules.modules.end() ? field : std::string_view(found->second);
}

}  // namespace

TrainingRules RulesOfBackend(TrainingBackend backend, TextPairs user) {
  TrainingRules rules{backend, std::move(user)};
  const auto add = [&](const auto& table) {
    for (const auto& [training, inference] : table) rules.modules.emplace_back(training, inference);
  };
  if (backend == TrainingBackend::kFsdp) {
    add(kFsdp);
  } else {
    add(kMegatron);
  }
  return rules;
}

std::set<std::string, std::less<>> WrapperPaths(const std::vector<CallItems>& calls) {
  std::set<std::string, std::less<>> paths;
  for (const CallItems& call : calls) {
    const auto name = ParseCallName(call.name);
    if (!name || name->form == CallName::Form::kApi) continue;
    for (const std::string_view wrapper : kTrainingWrappers) {
      size_t at = name->path.find(wrapper);
      for (; at != std::string_view::npos; at = name->path.find(wrapper, at + 1)) {
        paths.emplace(name->path.substr(0, at == 0 ? 0 : at - 1));
      }
    }
  }
  return paths;
}

ModulePlace PlaceOfModule(std::string_view path, std::string_view class_name,
                          const TrainingRules& rules) {
  std::vector<std::string_view> fields;
  if (!path.empty()) fields = SplitAt(path, '.');
  std::erase_if(fields, [](std::string_view field) {
    return std::ranges::find(kTrainingWrappers, field) != kTrainingWrappers.end();
  });
  ModulePlace place;
  auto from = fields.begin();
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    const std::string_view number = fields[i + 1];
    if (fields[i] != "layers" || !IsDigits(number)) continue;
    if (const auto layer = ParseNatural(number)) place.layer = *layer;
    from = fields.begin() + static_cast<std::ptrdiff_t>(i) + 2;
  }
  if (place.layer < 0) {
    from = std::find_if_not(fields.begin(), fields.end(), [](std::string_view field) {
      return field == "model" || field == "module" || IsDigits(field);
    });
  }
  if (fields.end() - from > 1) ++from;
  for (; from != fields.end(); ++from) {
    if (!place.module.empty()) place.module += '.';
    place.module += Mapped(*from, rules);
  }
  if (place.module.empty() && place.layer < 0) place.module = class_name;
  return place;
}

}  // namespace plumbline::match

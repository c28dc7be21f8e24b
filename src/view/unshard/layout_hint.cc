#include "view/unshard/layout_hint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "record/call_name.h"
#include "record/recorded_number.h"
#include "view/merge/merged_values.h"
#include "view/unshard/shard_fold.h"

namespace plumbline::view {
namespace {

constexpr std::array<std::string_view, 7> kFields = {"tp", "sp", "pp", "ep", "cp", "dp", "fsdp"};
constexpr std::string_view kOrderField = "order", kOption = "--layout";

Error Wrong(std::string text) { return Error(ErrorCode::kInvalidArgument, std::move(text)); }

bool IsOfExperts(std::string_view list) {
  return LowerCase(list).find("expert") != std::string::npos;
}

// "layers" of a model, not a list within one of its modules.
bool IsOuter(std::string_view list) {
  return std::ranges::none_of(
      SplitAt(list, '.'), [](std::string_view part) { return NaturalAfter("", part).has_value(); });
}

// The group that has the rank, and the place in it; nothing where no group has it.
std::optional<std::pair<const std::vector<int64_t>*, size_t>> PlaceIn(const RankGroups& groups,
                                                                      int64_t rank) {
  for (const std::vector<int64_t>& group : groups) {
    const auto found = std::ranges::find(group, rank);
    if (found != group.end()) {
      return std::pair(&group, static_cast<size_t>(found - group.begin()));
    }
  }
  return std::nullopt;
}

// What a rank's list of layers gets and gives.
struct StageEnds {
  std::vector<TensorRecord> in, out;
};

// Tensors of a module's first forward call that have more than one dimension.
std::vector<TensorRecord> TensorsOf(Part& part, bool of_output) {
  std::vector<TensorRecord> tensors;
  for (const PlacedValue& value : PlacedValuesOf(part)) {
    if (value.tensor == nullptr || value.is_output != of_output) continue;
    if (!of_output && value.place.starts_with("parameters")) continue;
    if (value.tensor->shape.size() > 1 && NumberOf(value.tensor->norm)) {
      tensors.push_back(*value.tensor);
    }
  }
  return tensors;
}

StageEnds EndsOf(RankTree& tree, const ListOffset& list) {
  StageEnds ends;
  const int64_t first = list.first - list.offset;  // the rank's own number
  for (Part& part : tree.parts) {
    const auto name = ParseCallName(part.name);
    if (!name || name->form != CallName::Form::kModule || name->kind != CallKind::kForward) {
      continue;
    }
    if (name->number.value_or(0) != 0) continue;
    if (name->path == fmt::format("{}.{}", list.list, first)) ends.in = TensorsOf(part, false);
    if (name->path == fmt::format("{}.{}", list.list, first + list.count - 1)) {
      ends.out = TensorsOf(part, true);
    }
  }
  return ends;
}

bool Meet(const std::vector<TensorRecord>& out, const std::vector<TensorRecord>& in) {
  return std::ranges::any_of(out, [&](const TensorRecord& given) {
    return std::ranges::any_of(in, [&](const TensorRecord& got) {
      return given.shape == got.shape && AgreeIn(given, got, Sameness::kNearly);
    });
  });
}

Error Contradiction(const LayoutHint& hint, std::string_view name, std::string_view found) {
  return Wrong(fmt::format("{} {}={}: {} (expected what was run; without {} the layout is found)",
                           kOption, name, hint.SizeOr(name, 1), found, kOption));
}

// What divides the batch and the sequence.
Status CheckInputHint(const LayoutHint& hint, int64_t input) {
  for (const std::string_view name : {"cp", "dp", "fsdp"}) {
    if (!hint.Has(name) || input % hint.SizeOr(name, 1) == 0) continue;
    return Contradiction(
        hint, name,
        input == 1 ? "the first module gets all of its input on every rank"
                   : fmt::format("the first module's input is in {} parts on the ranks", input));
  }
  const int64_t all = hint.SizeOr("cp", 1) * hint.SizeOr("dp", 1) * hint.SizeOr("fsdp", 1);
  const bool are_all_said = hint.Has("cp") && (hint.Has("dp") || hint.Has("fsdp"));
  if (input % all == 0 && (!are_all_said || input == all)) return {};
  return Wrong(
      fmt::format("{} {}: {} parts of the batch and the sequence, but the first module's "
                  "input is in {} on the ranks",
                  kOption, hint.Text(), all, input));
}

}  // namespace

int64_t LayoutHint::SizeOr(std::string_view name, int64_t otherwise) const {
  const auto found = sizes.find(name);
  return found == sizes.end() ? otherwise : found->second;
}

std::string LayoutHint::Text() const {
  std::vector<std::string> parts;
  for (const std::string_view name : kFields) {
    if (Has(name)) parts.push_back(fmt::format("{}={}", name, SizeOr(name, 1)));
  }
  if (order != kDefaultOrder) parts.push_back(fmt::format("{}={}", kOrderField, order));
  return fmt::format("{}", fmt::join(parts, ","));
}

Result<LayoutHint> ParseLayoutHint(std::string_view text) {
  LayoutHint hint;
  if (text.empty()) return hint;
  bool has_order = false;
  for (const std::string_view field : SplitAt(text, ',')) {
    const size_t equals = field.find('=');
    const std::string name(field.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : field.substr(equals + 1);
    if (name == kOrderField) {
      if (std::exchange(has_order, true)) return Wrong(fmt::format("{}: order twice", kOption));
      PL_TRY(CheckOrder(value, fmt::format("{}: order", kOption)));
      hint.order = value;
      continue;
    }
    if (std::ranges::find(kFields, name) == kFields.end()) {
      return Wrong(
          fmt::format("{}: unknown field \"{}\" (expected {} or {}, each with =SIZE, "
                      "parted by commas)",
                      kOption, name, fmt::join(kFields, ", "), kOrderField));
    }
    const auto size = ParseNatural(value);
    if (!size || *size == 0) {
      return Wrong(
          fmt::format("{}: {}: expected a number above 0, got \"{}\"", kOption, name, value));
    }
    if (!hint.sizes.emplace(name, *size).second) {
      return Wrong(fmt::format("{}: {} twice", kOption, name));
    }
  }
  if (has_order && !hint.is_given()) {
    return Wrong(fmt::format("{}: order: needs a size, such as pp=2", kOption));
  }
  return hint;
}

Status CheckHint(const LayoutHint& hint, const FoundLayout& found) {
  const int64_t tensor = hint.SizeOr("tp", 1);
  // Parameters may be recorded as the shards that they are kept in, or whole.
  const bool fits_shards = hint.Has("fsdp") && found.tensor == tensor * hint.SizeOr("fsdp", 1);
  if (hint.Has("tp") && found.tensor && found.tensor != tensor && !fits_shards) {
    return Contradiction(hint, "tp",
                         *found.tensor == 1
                             ? "every rank has whole parameters"
                             : fmt::format("parameters are in shards of {}", *found.tensor));
  }
  if (hint.Has("pp") && found.pipeline && *found.pipeline != hint.SizeOr("pp", 1)) {
    return Contradiction(hint, "pp",
                         *found.pipeline == 1
                             ? "all ranks run the same layers"
                             : fmt::format("the layers are on {} stages", *found.pipeline));
  }
  if (hint.Has("ep") && found.expert && *found.expert != hint.SizeOr("ep", 1)) {
    return Contradiction(hint, "ep",
                         *found.expert == 1
                             ? "no rank has experts of its own"
                             : fmt::format("the experts are in {} parts", *found.expert));
  }
  if (hint.Has("sp") && found.sequence != hint.SizeOr("sp", 1)) {
    return Contradiction(hint, "sp",
                         found.sequence == 1
                             ? "norms get the whole sequence on every rank"
                             : fmt::format("norms get the sequence in {} parts", found.sequence));
  }
  return CheckInputHint(hint, found.input);
}

Result<HintedGroups> GroupsOf(const LayoutHint& hint, int64_t ranks) {
  ParallelLayout layout{ranks, hint.SizeOr("tp", 1), hint.SizeOr("pp", 1), 1, hint.order};
  layout.context = hint.SizeOr("cp", 1);
  layout.expert = hint.SizeOr("ep", 1);
  for (const auto& [name, size] : hint.sizes) {
    if (size <= ranks && ranks % size == 0) continue;
    return Wrong(fmt::format("{} {}={}: does not divide the {} of the run", kOption, name, size,
                             CountText(static_cast<uint64_t>(ranks), "rank")));
  }
  const auto fits = [&](int64_t product) { return product <= ranks && ranks % product == 0; };
  const int64_t dense = layout.tensor * layout.context * layout.pipeline;
  const int64_t whole = dense * hint.SizeOr("dp", 1) * hint.SizeOr("fsdp", 1);
  if (!fits(dense) || !fits(whole) || !fits(layout.tensor * layout.pipeline * layout.expert)) {
    return Wrong(fmt::format("{} {}: the sizes do not make up the {} of the run", kOption,
                             hint.Text(), CountText(static_cast<uint64_t>(ranks), "rank")));
  }
  HintedGroups groups;
  if (layout.tensor > 1) {
    PL_TRY_ASSIGN(groups.tensor, GroupsByArithmetic(layout, ParallelDimension::kTensor));
  }
  if (hint.Has("pp")) {
    PL_TRY_ASSIGN(groups.pipeline, GroupsByArithmetic(layout, ParallelDimension::kPipeline));
  }
  if (hint.Has("ep")) {
    PL_TRY_ASSIGN(groups.experts, GroupsByArithmetic(layout, ParallelDimension::kExpert));
  }
  return groups;
}

ToldAhead AheadOf(const HintedGroups& groups, std::span<const ListOffsets> found, int64_t rank) {
  return [&groups, found, rank](const std::string& list, int64_t count) -> std::optional<int64_t> {
    if (IsOfExperts(list)) {
      const auto place = PlaceIn(groups.experts, rank);
      return place ? std::optional(static_cast<int64_t>(place->second) * count) : std::nullopt;
    }
    const auto place = PlaceIn(groups.pipeline, rank);
    if (!place || !IsOuter(list)) return std::nullopt;
    int64_t ahead = 0;
    for (size_t i = 0; i < place->second; ++i) {
      const ListOffsets& lists = found[static_cast<size_t>((*place->first)[i])];
      const auto own = lists.find(list);
      if (own != lists.end()) ahead += own->second.count;
    }
    return ahead;
  };
}

Result<int64_t> CheckStageOrder(const RankGroups& pipelines, std::span<RankTree> trees,
                                std::span<const ListOffsets> offsets) {
  int64_t seen = 0;
  for (const std::vector<int64_t>& group : pipelines) {
    std::vector<StageEnds> stages;
    for (const int64_t rank : group) {
      const auto at = static_cast<size_t>(rank);
      const auto list = std::ranges::find_if(offsets[at], [](const auto& entry) {
        return IsOuter(entry.first) && !IsOfExperts(entry.first);
      });
      stages.push_back(list == offsets[at].end() ? StageEnds() : EndsOf(trees[at], list->second));
    }
    for (size_t to = 0; to < stages.size(); ++to) {
      if (to > 0 && Meet(stages[to - 1].out, stages[to].in)) {
        ++seen;
        continue;
      }
      for (size_t from = 0; from < stages.size(); ++from) {
        if (from == to || from + 1 == to || !Meet(stages[from].out, stages[to].in)) continue;
        return Wrong(fmt::format(
            "{}: rank {} is stage {} by pp={} and its order, but its layers get what those of rank "
            "{} give, which is stage {} (expected another order)",
            kOption, group[to], to, group.size(), group[from], from));
      }
    }
  }
  return seen;
}

Status CheckShardGroups(const RankGroups& groups, const TensorRecord& golden,
                        std::span<const int64_t> ranks, std::span<TensorRecord* const> parts) {
  for (const std::vector<int64_t>& group : groups) {
    std::vector<const TensorRecord*> own;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (std::ranges::find(group, ranks[i]) != group.end()) own.push_back(parts[i]);
    }
    if (own.size() != group.size()) continue;
    const FoldedTensor folded = FoldShards(golden, own, TensorKind::kParameter);
    const bool is_whole = folded.share == Share::kShards && HasStatisticsOf(golden, folded.tensor);
    if (is_whole) continue;
    return Wrong(
        fmt::format("{}: tp={} and its order put ranks {} together, but only other ranks "
                    "beside them have all shards of a parameter (expected another order)",
                    kOption, group.size(), fmt::join(group, ", ")));
  }
  return {};
}

}  // namespace plumbline::view

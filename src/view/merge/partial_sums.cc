#include "view/merge/partial_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <utility>

#include "load/rank_scan.h"
#include "record/recorded_number.h"

namespace plumbline::view {
namespace {

bool IsReduction(std::string_view api) {
  return api == "all_reduce" || api == "reduce_scatter_tensor" || api == "_reduce_scatter_base";
}

// Whether a call of communication is among the ranks of the group, as far as it says.
bool IsAmong(const std::vector<int64_t>& group, const Part& part, std::string_view api) {
  std::vector<CommGroup> groups;
  const CommCall comm = CommunicationOf(part, api, groups);
  if (comm.group < 0) return true;
  const std::vector<int64_t>& ranks = groups[static_cast<size_t>(comm.group)].ranks;
  return ranks.empty() || std::ranges::is_permutation(ranks, group);
}

std::vector<Part*> ReductionsAmong(const std::vector<int64_t>& group, RankTree& tree) {
  std::vector<Part*> found;
  for (Part& part : tree.parts) {
    const auto api = CommunicationApi(part.name);
    if (api && IsReduction(*api) && IsAmong(group, part, *api)) found.push_back(&part);
  }
  return found;
}

// all_reduce(tensor), reduce_scatter(output, input)
TensorRecord* SummandOf(Part& call, bool is_scattered) {
  TensorRecord* last = nullptr;
  for (const PlacedValue& value : PlacedValuesOf(call)) {
    if (value.is_output || value.tensor == nullptr) continue;
    if (!is_scattered || value.place == "input.input") return value.tensor;
    if (value.place == "input.1") last = value.tensor;
  }
  return last;
}

TensorRecord* ResultOf(Part& call) {
  for (const PlacedValue& value : PlacedValuesOf(call)) {
    if (value.is_output && value.tensor != nullptr) return value.tensor;
  }
  return nullptr;
}

}  // namespace

PartialSums::PartialSums(std::span<RankTree> trees, const RankGroups& groups) {
  for (const auto& group : groups) {
    std::vector<std::vector<Part*>> of_ranks;
    for (const int64_t rank : group) {
      const auto tree = std::ranges::find(trees, rank, &RankTree::rank);
      if (tree != trees.end()) of_ranks.push_back(ReductionsAmong(group, *tree));
    }
    if (of_ranks.size() != group.size() || group.size() < 2) continue;
    const auto shortest = std::ranges::min_element(of_ranks, {}, &std::vector<Part*>::size);
    for (size_t i = 0, count = shortest->size(); i < count; ++i) {
      std::vector<Part*> calls;
      for (const auto& list : of_ranks) calls.push_back(list[i]);
      Add(calls);
    }
  }
}

PartialSums::Key PartialSums::KeyOf(const TensorRecord& tensor) {
  Key key{};
  const Statistic* const statistics[] = {&tensor.max, &tensor.min, &tensor.mean, &tensor.norm};
  for (size_t i = 0; i < key.size(); ++i) {
    const auto number = NumberOf(*statistics[i]);
    if (number) key[i] = std::bit_cast<uint64_t>(*number + 0.0);  // -0 is 0
  }
  return key;
}

void PartialSums::Add(const std::vector<Part*>& calls) {
  const bool is_scattered = *CommunicationApi(calls.front()->name) != "all_reduce";
  Sum sum{calls.front(), is_scattered, {}, {}};
  for (Part* const call : calls) {
    sum.summands.push_back(SummandOf(*call, is_scattered));
    sum.results.push_back(ResultOf(*call));
    if (sum.summands.back() == nullptr || sum.results.back() == nullptr) return;
  }
  // Copies that are summed up, as a loss is for its mean, are no summands of what they look like.
  const auto is_copy = [&](const TensorRecord* each) {
    return AgreeIn(*sum.summands.front(), *each, Sameness::kNearly);
  };
  if (std::ranges::all_of(sum.summands, is_copy)) return;
  for (const TensorRecord* const each : sum.summands) {
    by_summand_.emplace(KeyOf(*each), sums_.size());
  }
  sums_.push_back(std::move(sum));
}

std::vector<std::string> PartialSums::Replace(const TensorsAt& summands) const {
  TensorRecord& first = *summands.tensors.front();
  const auto are_same = [](const TensorRecord* a, const TensorRecord* b) {
    return AgreeIn(*a, *b, Sameness::kExact);
  };
  auto [at, end] = by_summand_.equal_range(KeyOf(first));
  for (; at != end; ++at) {
    const Sum& sum = sums_[at->second];
    if (!std::ranges::is_permutation(summands.tensors, sum.summands, are_same)) continue;
    std::vector<TensorRecord> results;
    TensorsAt parts{summands.place, {}};
    for (const TensorRecord* const result : sum.results) results.push_back(*result);
    for (TensorRecord& result : results) parts.tensors.push_back(&result);
    std::vector<std::string> lines = {
        fmt::format("{}: that of {}", summands.place, sum.reduction->name)};
    if (sum.is_scattered) std::ranges::move(MergeTensors(parts), std::back_inserter(lines));
    TakeStatistics(results.front(), first);
    return lines;
  }
  return {};
}

}  // namespace plumbline::view

#include "view/unshard/gather_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/file/file.h"
#include "load/run_reader.h"
#include "measure/tensor_metrics.h"
#include "view/merge/merged_values.h"
#include "view/unshard/parallel_run.h"

namespace plumbline::view {
namespace {

using load::GatheredTensor;

constexpr double kFar = std::numeric_limits<double>::infinity();
// Nearer to golden than this, and so many times nearer than golden is to itself when halves change
// places: the order shows. Of tensors that hardly change then none does.
constexpr double kNear = 0.05, kTimesNearer = 4, kLeastChange = 1e-4;

// The distance of two tensors as a share of golden's norm.
double DistanceOf(const Result<TensorFile>& target, const TensorView& golden) {
  if (!target || target->view().element_count() != golden.element_count()) return kFar;
  const auto pair = measure::MeasurePair(target->view(), golden);
  if (!pair) return kFar;
  if (const double* error = std::get_if<double>(&pair->metrics.relative_l2)) return *error;
  return pair->metrics.mismatch_count == 0 &&
                 std::get<Absent>(pair->metrics.relative_l2) != Absent::kNonFinite
             ? 0
             : kFar;
}

GatheredTensor Whole(const Shape& shape, std::vector<std::string> files) {
  GatheredTensor whole{.shape = shape};
  whole.pieces.push_back({std::move(files), {}});
  return whole;
}

// Along one dimension: how many parts golden has of the size of this one; 0: no whole number.
int64_t PartsAlong(const Shape& golden, const Shape& part, size_t dimension) {
  const int64_t size = part[dimension];
  return size > 0 && golden[dimension] % size == 0 ? golden[dimension] / size : 0;
}

// One for each of the ways in which ranks count along two dimensions, the faster one first.
std::vector<std::vector<int64_t>> IndicesFor(const std::vector<int64_t>& counts, int64_t part) {
  if (counts.size() == 1) return {{part}};
  return {{part / counts[1], part % counts[1]}, {part % counts[0], part / counts[0]}};
}

}  // namespace

Result<TensorFile> GatherPlan::TargetOf(const GatheredTensor& recipe) const {
  return load::OpenTensorIn(places_.target, load::GatheredName(recipe));
}

Result<TensorFile> GatherPlan::GoldenOf(const GatheredTensor& recipe) const {
  return load::OpenTensorIn(places_.golden, load::GatheredName(recipe));
}

// How far golden is from itself when the halves of a dimension change places: of any the least.
double GatherPlan::ChangeOf(const Shape& shape, const std::string& file,
                            const TensorView& golden) const {
  double least = kFar;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 2) continue;
    std::vector<int64_t> turned(static_cast<size_t>(shape[i]));
    std::iota(turned.begin(), turned.end(), 0);
    std::rotate(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(shape[i] / 2),
                turned.end());
    GatheredTensor other{.shape = shape, .axes = {{i, shape[i]}}};
    other.pieces.push_back({{file}, {turned}});
    least = std::min(least, DistanceOf(GoldenOf(other), golden));
  }
  return least;
}

std::string GatherPlan::FileOf(const Value& value, size_t part) const {
  return JoinPath(places_.ranks[value.ranks[part]], *value.parts[part]->data_name);
}

std::string GatherPlan::GoldenFileOf(const Value& value) const {
  return JoinPath(places_.golden_rank, *value.tensor->data_name);
}

bool GatherPlan::IsZigZag(const Value& value, size_t dimension, int64_t parts) const {
  return !value.is_parameter && parts == zigzag_parts_ &&
         value.tensor->shape[dimension] == zigzag_size_;
}

std::vector<GatheredTensor> GatherPlan::JoinsOf(const Value& value, const Files& files,
                                                const Shape& part) const {
  const Shape& golden = value.tensor->shape;
  if (part.size() != golden.size()) return {};
  std::vector<int64_t> counts;
  GatheredTensor empty{.shape = golden, .divisor = value.divisor};
  for (size_t i = 0; i < golden.size(); ++i) {
    if (part[i] == golden[i]) continue;
    counts.push_back(PartsAlong(golden, part, i));
    empty.axes.push_back({i, counts.back() * (IsZigZag(value, i, counts.back()) ? 2 : 1)});
  }
  const int64_t parts =
      std::accumulate(counts.begin(), counts.end(), int64_t{1}, std::multiplies<>());
  const auto held = static_cast<int64_t>(files.size());
  if (counts.empty() || counts.size() > 2 || parts < 1 || held % parts != 0) return {};
  if (counts.size() == 2 && held != parts) return {};
  // Shards that several ranks hold: neighbours, or those that are as far apart as there are shards.
  std::vector<GatheredTensor> joins;
  const size_t ways = counts.size() == 2 || held != parts ? 2 : 1;
  for (size_t way = 0; way < ways; ++way) {
    GatheredTensor join = empty;
    for (int64_t i = 0; i < parts; ++i) {
      const bool are_neighbours = counts.size() == 1 && way == 0;
      GatheredTensor::Piece piece{
          files[static_cast<size_t>(are_neighbours ? i * (held / parts) : i)], {}};
      const auto indices = IndicesFor(counts, i)[counts.size() == 2 ? way : 0];
      for (size_t k = 0; k < counts.size(); ++k) {
        const bool is_zigzag = join.axes[k].blocks == 2 * counts[k];
        std::vector<int64_t> blocks = {indices[k]};
        if (is_zigzag) blocks.push_back(2 * counts[k] - 1 - indices[k]);
        piece.blocks.push_back(std::move(blocks));
      }
      join.pieces.push_back(std::move(piece));
    }
    joins.push_back(std::move(join));
  }
  return joins;
}

GatherPlan::Files GatherPlan::SummandsOf(const Value& value) const {
  Files sums;
  std::set<size_t> summed;
  for (const std::vector<int64_t>& group : groups_) {
    std::vector<std::string> files;
    std::vector<size_t> parts;
    for (size_t i = 0; i < value.parts.size(); ++i) {
      const auto rank = static_cast<int64_t>(value.ranks[i]);
      if (std::ranges::find(group, rank) == group.end() || summed.contains(i)) continue;
      files.push_back(FileOf(value, i));
      parts.push_back(i);
    }
    if (parts.size() != group.size()) continue;
    sums.push_back(std::move(files));
    summed.insert(parts.begin(), parts.end());
  }
  if (summed.size() == value.parts.size()) return sums;
  sums.assign(1, {});
  for (size_t i = 0; i < value.parts.size(); ++i) sums.front().push_back(FileOf(value, i));
  return sums;
}

void GatherPlan::AddSums(const Value& value, Pending& pending) const {
  const Shape& golden = value.tensor->shape;
  const Files sums = SummandsOf(value);
  if (value.parts.front()->shape != golden) {
    size_t way = 0;
    for (GatheredTensor& join : JoinsOf(value, sums, value.parts.front()->shape)) {
      pending.candidates.push_back({fmt::format("sums {}", way++), std::move(join), kFar});
    }
  } else {
    std::vector<std::string> all;
    for (const auto& files : sums) all.insert(all.end(), files.begin(), files.end());
    const auto count = static_cast<double>(all.size());
    for (const double divisor : {value.divisor, count}) {
      if (!pending.candidates.empty() && divisor == value.divisor) continue;
      GatheredTensor sum = Whole(golden, all);
      sum.divisor = divisor;
      pending.candidates.push_back({fmt::format("sum by {}", divisor), std::move(sum), kFar});
    }
    if (sums.size() > 1) {
      GatheredTensor sum = Whole(golden, sums.front());
      sum.divisor = value.divisor;
      pending.candidates.push_back({"sum of a group", std::move(sum), kFar});
    }
  }
  // Without a recorded sum nothing says that these are summands.
  if (value.is_summed && !pending.candidates.empty()) {
    pending.any_order = pending.candidates.front().recipe;
    if (sums.size() > 1) pending.any_order = pending.candidates.back().recipe;
  }
}

void GatherPlan::AddCandidates(const Value& value, const FoldedTensor& folded,
                               Pending& pending) const {
  const Shape& golden = value.tensor->shape;
  if (value.share == Share::kSummands || value.share == Share::kAverage) {
    AddSums(value, pending);
    return;
  }
  Files files;
  for (size_t i = 0; i < value.parts.size(); ++i) files.push_back({FileOf(value, i)});
  pending.are_copies = value.share == Share::kWhole || value.share == Share::kDivided;
  pending.do_differ = value.share == Share::kDivided;
  if (pending.are_copies) {
    for (size_t i = 0; i < files.size(); ++i) {
      GatheredTensor copy = Whole(golden, files[i]);
      copy.divisor = value.divisor;
      if (AgreeIn(*value.parts[i], folded.tensor, Sameness::kExact)) pending.farthest = i;
      pending.candidates.push_back({fmt::format("copy {}", i), std::move(copy), kFar});
    }
    pending.any_order = pending.candidates[pending.farthest].recipe;
    return;
  }
  if (value.share == Share::kPacked) {
    GatheredTensor packed{.shape = golden, .divisor = value.divisor};
    for (const auto& each : files) packed.pieces.push_back({each, {}});
    pending.candidates.push_back({"packed", packed, kFar});
    pending.any_order = std::move(packed);
    return;
  }
  if (value.share != Share::kShards) return;
  size_t way = 0;
  for (GatheredTensor& join : JoinsOf(value, files, value.parts.front()->shape)) {
    pending.candidates.push_back({fmt::format("shards {}", way++), std::move(join), kFar});
  }
  if (!pending.candidates.empty()) pending.any_order = pending.candidates.front().recipe;
}

void GatherPlan::SetInput(const Value& input, const FoldedTensor& folded) {
  if (folded.share != Share::kShards || folded.dimensions.size() != 1) return;
  const size_t dimension = folded.dimensions.front();
  const int64_t size = input.tensor->shape[dimension];
  if (size % (2 * folded.parts) != 0) return;
  const auto golden = TensorFile::Open(JoinPath(places_.golden, GoldenFileOf(input)));
  if (!golden) return;
  const auto is_right = [&](bool is_zigzag) {
    zigzag_parts_ = is_zigzag ? folded.parts : 0;
    zigzag_size_ = is_zigzag ? size : 0;
    Pending pending{};
    AddCandidates(input, folded, pending);
    return std::ranges::any_of(pending.candidates, [&](const Candidate& candidate) {
      return DistanceOf(TargetOf(candidate.recipe), golden->view()) == 0;
    });
  };
  if (is_right(false) || !is_right(true)) zigzag_parts_ = zigzag_size_ = 0;
}

void GatherPlan::Add(const Value& value, const FoldedTensor& folded) {
  const auto has_file = [](const TensorRecord* tensor) { return tensor->data_name.has_value(); };
  if (value.parts.empty() || !has_file(value.tensor)) return;
  if (!std::ranges::all_of(value.parts, has_file)) return;
  Pending pending{
      .golden = value.golden, .out = value.out, .place = value.place, .kind = value.kind};
  pending.golden_file = GoldenFileOf(value);
  const auto golden = TensorFile::Open(JoinPath(places_.golden, pending.golden_file));
  const Shape& shape = value.tensor->shape;
  const bool is_whole = golden && std::ranges::equal(golden->view().sizes, shape);
  if (!is_whole) return;
  AddCandidates(value, folded, pending);
  bool is_near = false;
  for (Candidate& candidate : pending.candidates) {
    candidate.distance = DistanceOf(TargetOf(candidate.recipe), golden->view());
    is_near = is_near || candidate.distance <= kNear;
  }
  pending.has_one_order = golden->view().element_count() <= 1;
  if (is_near && !pending.has_one_order) {
    const double change = ChangeOf(shape, pending.golden_file, golden->view());
    for (const Candidate& candidate : pending.candidates) {
      const bool is_shown = candidate.distance <= kNear && change > kLeastChange &&
                            candidate.distance * kTimesNearer < change;
      if (is_shown) ++shown_[{pending.kind, candidate.label}];
    }
  }
  pending_.push_back(std::move(pending));
}

// Of copies the farthest one whose order is shown; else the order that most layers show.
const GatherPlan::Candidate* GatherPlan::ChoiceOf(const Pending& pending) const {
  const auto shown = [&](const Candidate& candidate) -> uint64_t {
    const auto found = shown_.find({pending.kind, candidate.label});
    return found == shown_.end() ? 0 : found->second;
  };
  const Candidate* best = nullptr;
  if (pending.are_copies) {
    if (pending.do_differ && !pending.has_one_order) {
      const Candidate& farthest = pending.candidates[pending.farthest];
      return shown(farthest) > 0 ? &farthest : nullptr;
    }
    for (const Candidate& candidate : pending.candidates) {
      if (!pending.has_one_order && shown(candidate) == 0) continue;
      if (best == nullptr || candidate.distance > best->distance) best = &candidate;
    }
    return best;
  }
  bool is_tied = false;
  for (const Candidate& candidate : pending.candidates) {
    if (pending.has_one_order) {
      if (best == nullptr || candidate.distance < best->distance) best = &candidate;
      continue;
    }
    const uint64_t own = shown(candidate), most = best == nullptr ? 0 : shown(*best);
    if (own == 0) continue;
    is_tied = own == most;
    if (own > most) best = &candidate;
  }
  return is_tied ? nullptr : best;
}

void GatherPlan::Finish(RankTree& golden, RankTree& out) {
  std::map<std::pair<const Part*, std::string>, std::string> names;
  for (const Pending& pending : pending_) {
    const Candidate* const choice = ChoiceOf(pending);
    if (choice == nullptr && !pending.any_order) continue;
    GatheredTensor recipe = choice != nullptr ? choice->recipe : *pending.any_order;
    GatheredTensor whole = Whole(recipe.shape, {pending.golden_file});
    const std::string name = fmt::format("{}.{}", pending.golden->name, pending.place);
    compared_.insert(name);
    if (choice != nullptr) {
      ++in_order_;
    } else {
      recipe.is_ascending = whole.is_ascending = true;
      ++by_size_;
      named_by_size_.push_back(name);
    }
    names.emplace(std::pair(pending.out, pending.place), load::GatheredName(recipe));
    names.emplace(std::pair(pending.golden, pending.place), load::GatheredName(whole));
  }
  for (RankTree* const tree : {&golden, &out}) {
    tree->task = kTaskOfTensors;
    tree->tensor_directory = tree == &golden ? places_.golden : places_.target;
    for (Part* const part : PartsBelow(tree->root())) {
      for (PlacedValue& value : PlacedValuesOf(*part)) {
        if (value.tensor == nullptr) continue;
        ForgetContents(*value.tensor);
        const auto found = names.find(std::pair(part, value.place));
        if (found != names.end()) value.tensor->data_name = found->second;
      }
    }
  }
}

std::string GatherPlan::Text() const {
  std::string text = fmt::format(
      "tensors: {} values are compared element by element{}", in_order_,
      zigzag_parts_ > 0 ? fmt::format(", the sequence in zig-zag over {} ranks", zigzag_parts_)
                        : "");
  if (by_size_ > 0) {
    text += fmt::format("; {} in order of size, as nothing shows the order of their elements: {}",
                        by_size_, Shortened(named_by_size_));
  }
  return text;
}

}  // namespace plumbline::view

#include "view/merge/parallel_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/text/number_text.h"
#include "base/text/text_parts.h"

namespace plumbline::view {
namespace {

Error Wrong(std::string text) { return Error(ErrorCode::kInvalidArgument, std::move(text)); }

// Names of the dimensions in --order.
constexpr std::string_view kTensorName = "tp", kPipelineName = "pp", kDataName = "dp";
constexpr std::string_view kExpertName = "ep", kContextName = "cp";
constexpr std::array<std::string_view, 5> kDimensions = {kTensorName, kContextName, kExpertName,
                                                         kDataName, kPipelineName};

using Sizes = std::map<std::string_view, int64_t>;

// Of a grouping along one dimension.
Sizes SizesFor(ParallelDimension dimension, const ParallelLayout& layout) {
  const bool of_experts = dimension == ParallelDimension::kExpert;
  Sizes sizes = {{kTensorName, layout.tensor},
                 {kContextName, of_experts ? 1 : layout.context},
                 {kExpertName, of_experts ? layout.expert : 1},
                 {kPipelineName, layout.pipeline}};
  int64_t others = 1;
  for (const auto& [name, size] : sizes) others *= size;
  sizes.emplace(kDataName, std::max<int64_t>(layout.ranks / others, 1));
  return sizes;
}

// The dimensions from the fastest on, those of size 1 that are not named at the end.
Result<std::vector<std::string_view>> DimensionsOf(const ParallelLayout& layout,
                                                   const Sizes& sizes) {
  std::vector<std::string_view> order = SplitAt(layout.order, '-');
  const auto place = [&](std::string_view name) { return std::ranges::find(order, name); };
  const auto expert = place(kExpertName), data = place(kDataName);
  if (expert != order.end() && (data == order.end() || std::abs(expert - data) != 1)) {
    return Wrong(fmt::format("--order: ep must stand beside dp (got {})", layout.order));
  }
  for (const std::string_view name : kDimensions) {
    if (place(name) != order.end()) continue;
    const int64_t size = sizes.at(name);
    if (size != 1) {
      return Wrong(
          fmt::format("--order: {} does not name {}, whose size is {}", layout.order, name, size));
    }
    order.push_back(name);
  }
  return order;
}

struct Named {
  std::string_view option;
  const std::vector<int64_t>* values;
};

Status CheckCounts(const std::vector<Named>& needed, size_t count) {
  for (const Named& each : needed) {
    if (!each.values->empty()) continue;
    return Wrong(fmt::format(
        "{}: is missing (merging ranks needs --rank_size, --tp and --pp together)", each.option));
  }
  for (const Named& each : needed) {
    if (each.values->size() == count) continue;
    return Wrong(fmt::format(
        "{}: expected {}, got {}", each.option,
        count == 1 ? "one value for one recording" : "two values, for target and golden",
        CountText(each.values->size(), "value")));
  }
  return {};
}

}  // namespace

Result<std::vector<ParallelLayout>> LayoutsOf(const ParallelOptions& options, bool is_pair) {
  const size_t count = is_pair ? 2 : 1;
  PL_TRY(CheckCounts(
      {{"--tp", &options.tp}, {"--pp", &options.pp}, {"--rank_size", &options.rank_size}}, count));
  std::vector<ParallelLayout> layouts(count);
  for (size_t i = 0; i < count; ++i) {
    ParallelLayout& layout = layouts[i];
    layout.ranks = options.rank_size[i];
    layout.tensor = options.tp[i];
    layout.pipeline = options.pp[i];
    // As in msprobe, a single value is no statement about two sides.
    const bool both = options.vpp.size() >= count;
    if (both) layout.chunks = options.vpp[i];
    if (options.order.size() >= count) layout.order = options.order[i];
  }
  return layouts;
}

Status CheckLayout(const ParallelLayout& layout, size_t found, std::string_view side) {
  if (static_cast<int64_t>(found) != layout.ranks) {
    return Wrong(fmt::format("{}: --rank_size: expected {}, the number of recorded ranks, got {}",
                             side, found, layout.ranks));
  }
  const std::array<std::pair<std::string_view, int64_t>, 4> sizes = {
      std::pair("--tp", layout.tensor), std::pair("--pp", layout.pipeline),
      std::pair("--rank_size", layout.ranks), std::pair("--vpp", layout.chunks)};
  for (const auto& [option, value] : sizes) {
    if (value > 0) continue;
    return Wrong(fmt::format("{}: {}: expected a number above 0, got {}", side, option, value));
  }
  for (const auto& [option, value] : {sizes[0], sizes[1]}) {
    if (value <= layout.ranks) continue;
    return Wrong(fmt::format("{}: {}: expected at most --rank_size {}, got {}", side, option,
                             layout.ranks, value));
  }
  for (const auto& [option, value] : {sizes[0], sizes[1]}) {
    if (layout.ranks % value == 0) continue;
    return Wrong(fmt::format("{}: --rank_size: {} is not divisible by {} {}", side, layout.ranks,
                             option, value));
  }
  if (layout.tensor * layout.pipeline > layout.ranks) {
    return Wrong(fmt::format("{}: --tp {} times --pp {} is more than --rank_size {}", side,
                             layout.tensor, layout.pipeline, layout.ranks));
  }
  if (layout.ranks % (layout.tensor * layout.pipeline) != 0) {
    return Wrong(fmt::format("{}: --rank_size: {} is not divisible by --tp {} times --pp {}", side,
                             layout.ranks, layout.tensor, layout.pipeline));
  }
  if (layout.chunks > 1 && layout.pipeline < 2) {
    return Wrong(fmt::format("{}: --vpp: {} needs --pp 2 or more, got --pp {}", side, layout.chunks,
                             layout.pipeline));
  }
  return CheckOrder(layout.order, fmt::format("{}: --order", side));
}

Status CheckOrder(std::string_view order, std::string_view option) {
  const auto is_allowed = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
  if (order.empty() || !std::ranges::all_of(order, is_allowed)) {
    return Wrong(
        fmt::format("{}: expected lower-case letters and \"-\", such as {}, got "
                    "\"{}\"",
                    option, kDefaultOrder, order));
  }
  std::vector<std::string_view> seen;
  for (const std::string_view part : SplitAt(order, '-')) {
    if (std::ranges::find(kDimensions, part) == kDimensions.end()) {
      return Wrong(
          fmt::format("{}: unknown dimension \"{}\" in {} (expected tp, cp, ep, "
                      "dp, pp)",
                      option, part, order));
    }
    if (std::ranges::find(seen, part) != seen.end()) {
      return Wrong(fmt::format("{}: {} names {} twice", option, order, part));
    }
    seen.push_back(part);
  }
  return {};
}

Result<RankGroups> GroupsByArithmetic(const ParallelLayout& layout, ParallelDimension dimension) {
  const Sizes sizes = SizesFor(dimension, layout);
  PL_TRY_ASSIGN(const std::vector<std::string_view> order, DimensionsOf(layout, sizes));
  const std::string_view wanted = dimension == ParallelDimension::kTensor   ? kTensorName
                                  : dimension == ParallelDimension::kExpert ? kExpertName
                                                                            : kPipelineName;
  int64_t stride = 1, inner = 1;
  for (const std::string_view name : order) {
    if (name == wanted) inner = stride;
    stride *= sizes.at(name);
  }
  const int64_t size = sizes.at(wanted);
  RankGroups groups;
  for (int64_t outer = 0; outer < layout.ranks; outer += inner * size) {
    for (int64_t first = outer; first < outer + inner; ++first) {
      std::vector<int64_t>& group = groups.emplace_back();
      for (int64_t i = 0; i < size; ++i) group.push_back(first + i * inner);
    }
  }
  return groups;
}

}  // namespace plumbline::view

#include "pipeline/operators/golden_layout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pipeline/operators/plain_tensor.h"
#include "tensor/plain_order.h"

namespace plumbline::pipeline {
namespace {

// The layout of the golden side: as `rule` has it, or NHWC in place of NCHW (and the other way
// round) where only this order gives the array's own sizes.
std::optional<PlainLayout> LayoutOf(const PlainLayout& rule, const Shape& sizes) {
  if (PlainAxes(rule.format).size() != sizes.size()) return std::nullopt;
  if (sizes == rule.sizes) return rule;
  for (const DeviceFormat other : {DeviceFormat::kNCHW, DeviceFormat::kNHWC}) {
    const bool is_image = rule.format == DeviceFormat::kNCHW || rule.format == DeviceFormat::kNHWC;
    if (is_image && other != rule.format && SizesIn(rule.format, rule.sizes, other) == sizes) {
      return PlainLayout{other, sizes};
    }
  }
  return PlainLayout{rule.format, sizes};
}

// The plain layout that a tensor has, or stands for by its own facts.
std::optional<PlainLayout> PlainFacts(const acl::DumpedTensor& tensor) {
  if (auto own = OwnLayout(tensor)) return own;
  const auto format = static_cast<DeviceFormat>(tensor.format);
  const std::optional<Shape> sizes = acl::KnownShape(tensor.shape);
  if (!sizes || PlainAxes(format).size() != sizes->size() || sizes->empty()) return std::nullopt;
  return PlainLayout{format, *sizes};
}

// What the rule file says; its sizes may be those of my tensor.
std::optional<PlainLayout> RuleOf(const GoldenTensor& golden,
                                  const std::optional<PlainLayout>& mine) {
  if (!golden.format) return std::nullopt;
  PlainLayout rule{*golden.format, golden.sizes};
  if (rule.sizes.empty() && mine) {
    rule.sizes = SizesIn(mine->format, mine->sizes, rule.format).value_or(Shape{});
  }
  return rule;
}

Result<LaidOut> InLayoutOf(const acl::DumpedTensor& mine, const std::optional<PlainLayout>& layout,
                           UserCode* own = nullptr) {
  LaidOut result;
  PL_TRY_ASSIGN(result.elements, PlainElements(mine, layout, own));
  result.format = layout ? layout->format : static_cast<DeviceFormat>(mine.format);
  return result;
}

Shape WithoutOnes(const Shape& sizes) {
  Shape kept = sizes;
  std::erase(kept, 1);
  return kept;
}

// Whether each size of `coarse` is the product of the next sizes of `fine`.
bool MergesInto(const Shape& fine, const Shape& coarse) {
  size_t at = 0;
  for (const int64_t wanted : coarse) {
    int64_t product = 1;
    while (at < fine.size() && product < wanted) product *= fine[at++];
    if (product != wanted) return false;
  }
  return at == fine.size();
}

}  // namespace

Result<LaidOut> LikeGolden(const acl::DumpedTensor& mine, const GoldenTensor& golden,
                           const Shape& golden_sizes, UserCode* own) {
  const auto format = static_cast<DeviceFormat>(mine.format);
  const std::optional<PlainLayout> facts = PlainFacts(mine);
  const std::optional<PlainLayout> rule = RuleOf(golden, facts);
  std::optional<PlainLayout> wanted = rule ? LayoutOf(*rule, golden_sizes) : std::nullopt;
  if (wanted && HasConverter(own, mine, wanted->format)) return InLayoutOf(mine, wanted, own);
  if (!wanted) {
    // Matrices in blocks need nothing but the sizes.
    const PlainLayout matrices{DeviceFormat::kND, golden_sizes};
    if (!facts && format == DeviceFormat::kFractalNZ && IsExactly(mine, matrices)) {
      return InLayoutOf(mine, matrices);
    }
    // Without a word of the rule file, the golden sizes may still be mine in another order.
    if (!facts) return InLayoutOf(mine, std::nullopt);
    wanted = LayoutOf(*facts, golden_sizes);
    if (!wanted || wanted->format == facts->format) return InLayoutOf(mine, facts);
  }
  if (!BlockedAxes(format).empty()) {
    // Sizes that would cut more than padding off are no counterpart.
    return InLayoutOf(mine, IsExactly(mine, *wanted) ? wanted : OwnLayout(mine));
  }
  LaidOut result{{}, format};
  PL_TRY_ASSIGN(result.elements, acl::ElementsOf(mine));
  const bool is_other_order = PlainAxes(format).size() == result.elements.sizes.size() &&
                              !PlainAxes(format).empty() && format != wanted->format;
  if (!is_other_order) return result;
  PL_TRY_ASSIGN(result.elements, Reordered(std::move(result.elements), format, *wanted));
  result.format = wanted->format;
  return result;
}

bool HaveSameOrder(const LaidOut& mine, const Shape& golden_sizes) {
  const Shape& sizes = mine.elements.sizes;
  if (sizes == golden_sizes) return true;
  if (!BlockedAxes(mine.format).empty()) return false;
  if (ElementCount(sizes).value_or(-1) != ElementCount(golden_sizes).value_or(-2)) return false;
  const Shape a = WithoutOnes(sizes), b = WithoutOnes(golden_sizes);
  return a.size() < b.size() ? MergesInto(b, a) : MergesInto(a, b);
}

}  // namespace plumbline::pipeline

// Tensors that are recorded in parts or in another layout, put together.

#ifndef PLUMBLINE_OPERATORS_SLICE_ASSEMBLY_H_
#define PLUMBLINE_OPERATORS_SLICE_ASSEMBLY_H_

#include <cstddef>
#include <vector>

#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_types.h"
#include "operators/measure_operator.h"
#include "operators/user_code.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

// My tensor of a device in the order in which a rule file, or the golden array itself, has it.

struct LaidOut {
  acl::Elements elements;  // may lie in the tensor's data
  DeviceFormat format = DeviceFormat::kND;
};

// `mine` in the layout of the rule file, or in the other order of the axes where only that gives
// the golden sizes; in its own plain one where neither is known or can be, or as it lies. Without
// sizes in the rule file those of `mine` stand for them. `own` may be null. Errors of
// PlainElements().
Result<LaidOut> LikeGolden(const acl::DumpedTensor& mine, const GoldenTensor& golden,
                           const Shape& golden_sizes, UserCode* own);

// Whether element i of the one is element i of the other: equal sizes but for ones, or sizes of
// which one side has neighbours as one. What still lies in blocks needs equal sizes.
bool HaveSameOrder(const LaidOut& mine, const Shape& golden_sizes);

// The parts of one tensor that FFTS+ cut into tasks, put together.

// The dimensions in which a tensor is cut, of the number of cuts in each.
std::vector<size_t> CutAxes(const Shape& cuts);

// The parts behind each other along `axis`; `bytes` of the result is empty, `owned` has them.
// kCorrupt: the parts do not fit each other. Requires: at least one part.
Result<acl::Elements> ConcatenateParts(const std::vector<acl::Elements>& parts, size_t axis);

// The parts at their places, as ConcatenateParts() gives them; they are cut along `axes`. kCorrupt:
// they do not fit each other, do not fill a whole, or overlap. Requires: a start for each of the
// parts, of which there is at least one.
Result<acl::Elements> PlaceParts(const std::vector<acl::Elements>& parts,
                                 const std::vector<Shape>& starts, const std::vector<size_t>& axes);

// The parts at their places, which may overlap where they have the same elements, as the inputs of
// tasks do that need the borders of others. kCorrupt: they differ there, or do not fill a whole.
// Requires: as PlaceParts().
Result<acl::Elements> CoverParts(const std::vector<acl::Elements>& parts,
                                 const std::vector<Shape>& starts);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_SLICE_ASSEMBLY_H_

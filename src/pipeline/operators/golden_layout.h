// My tensor of a device in the order in which a rule file, or the golden array itself, has it.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_GOLDEN_LAYOUT_H_
#define PLUMBLINE_PIPELINE_OPERATORS_GOLDEN_LAYOUT_H_

#include "formats/acl_dump.h"
#include "formats/acl_types.h"
#include "pipeline/operators/paired_operator.h"
#include "pipeline/user_code/user_code.h"
#include "tensor/device_format.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_GOLDEN_LAYOUT_H_

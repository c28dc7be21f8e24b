// The parts of one tensor that FFTS+ cut into tasks, put together.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_SLICE_ASSEMBLY_H_
#define PLUMBLINE_PIPELINE_OPERATORS_SLICE_ASSEMBLY_H_

#include <cstddef>
#include <vector>

#include "formats/acl_types.h"

namespace plumbline::pipeline {

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

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_SLICE_ASSEMBLY_H_

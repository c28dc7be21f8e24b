// Operators that FFTS+ cut into tasks: which dump files are parts of one execution
// (docs/formats/acl_dump.md, "Operators in several files").

#ifndef PLUMBLINE_LOAD_OPERATOR_SLICES_H_
#define PLUMBLINE_LOAD_OPERATOR_SLICES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/operator_dumps.h"

namespace plumbline::load {

// What the name of an operator says of its part: {name}_lxslice{n} of a graph cut by hand.
struct SliceName {
  std::string whole;  // without that end
  int64_t number = 0;
};
std::optional<SliceName> ParseSliceName(std::string_view op_name);

// The name that an operator has in the framework's graph: without the end of a part, and without
// the name of the graph that FFTS+ made of it ({...}_sgt_graph_{n}_) in front.
std::string NameInModel(std::string_view op_name);

// Makes one entry of the parts of each execution of an operator, and gives all operators their
// names in the model. Parts follow each other by number; a number that comes again starts the next
// execution.
void JoinSlices(OperatorDumps& dumps);

// Tells each part which parts of its execution there are, and leaves them apart.
void CountSlices(OperatorDumps& dumps);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_OPERATOR_SLICES_H_

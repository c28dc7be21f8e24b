// TakeInventory() of dumps that graph engines write: MindSpore's static graphs and ATB.

#ifndef PLUMBLINE_PIPELINE_GRAPHS_INVENTORY_GRAPHS_H_
#define PLUMBLINE_PIPELINE_GRAPHS_INVENTORY_GRAPHS_H_

#include <string>
#include <vector>

#include "pipeline/inventory.h"

namespace plumbline {

// One entry per rank and step of a static-graph dump, one of an ATB dump; none if `directory` is
// neither. Errors of ReadGraphDump() and ReadAtbDump().
Result<std::vector<SideFileFacts>> ReadGraphFacts(const std::string& directory);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_GRAPHS_INVENTORY_GRAPHS_H_

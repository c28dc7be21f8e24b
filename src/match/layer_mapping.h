// Pairing by the structure of two models: which call stands at the same place of the other model's
// tree of modules, where rules say what is called otherwise.

#ifndef PLUMBLINE_MATCH_LAYER_MAPPING_H_
#define PLUMBLINE_MATCH_LAYER_MAPPING_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "match/expand.h"
#include "match/mapping_file.h"

namespace plumbline::match {

// One side. The functions are those of Run.
struct LayerSide {
  const std::vector<CallItems>& calls;
  bool is_mindspore = false;
  std::function<std::string_view(std::string_view)> parent_of;
  std::function<std::vector<std::string>(std::string_view)> stack_of;
};

// A data mapping that gives every value of the target the value of the same name in the golden call
// at the corresponding place, or "N/A". A call's place is its module and, for APIs, the function of
// the framework that the user's code called; repeated calls of one place pair in order.
// kInvalidArgument: a name of fewer than four fields.
Result<TextPairs> DataMappingByLayers(const LayerSide& target, const LayerSide& golden,
                                      const std::vector<LayerRules>& rules);

// The mapping as a file for -dm.
std::string DataMappingYaml(const TextPairs& pairs);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_LAYER_MAPPING_H_

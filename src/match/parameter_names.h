// Parameters that MindSpore's cells and PyTorch's modules call differently.

#ifndef PLUMBLINE_MATCH_PARAMETER_NAMES_H_
#define PLUMBLINE_MATCH_PARAMETER_NAMES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "match/expand.h"

namespace plumbline::match {

// PyTorch's name for a part of a call of MindSpore: "parameters.weight" for "parameters.gamma",
// "weight" for "gamma". Nothing for a part that is no such parameter.
std::optional<std::string> ParameterInTorch(std::string_view part);

// Sets mapped_parts of the target's cells whose parameters the golden module of that name has under
// PyTorch's names alone; a cell without mapped_name is the module of its place. Requires:
// mapped_name is set where it will be.
void MapParameters(const std::vector<CallItems>& golden, std::vector<CallItems>& target);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_PARAMETER_NAMES_H_

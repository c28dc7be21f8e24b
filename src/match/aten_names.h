// PyTorch's operators (ATen) against the functions that users call.

#ifndef PLUMBLINE_MATCH_ATEN_NAMES_H_
#define PLUMBLINE_MATCH_ATEN_NAMES_H_

#include <string_view>

namespace plumbline::match {

// The function that an operator is known by: "native_layer_norm" -> "layer_norm", "_softmax" ->
// "softmax", "_to_copy" -> "to"; the operator's own name where the two agree.
std::string_view TorchNameOfAten(std::string_view operator_name);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_ATEN_NAMES_H_

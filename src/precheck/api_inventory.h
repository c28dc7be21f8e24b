// Which APIs the pre-check knows, by the lists that the recorder wraps, and what is special about
// single ones.

#ifndef PLUMBLINE_PRECHECK_API_INVENTORY_H_
#define PLUMBLINE_PRECHECK_API_INVENTORY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// The parts of a call's name: "Torch.linalg.inv.0" is of type "Torch" and API "linalg.inv". Views
// into the name. Nothing: not a type, one or two names and a number.
struct ApiName {
  std::string_view type, api;
};
std::optional<ApiName> ParseApiName(std::string_view call_name);

// Why no call of this name can be run: its type is not supported, or its API is in no list of it.
// Nothing: it can.
std::optional<Skip> WhyNotCallable(std::string_view call_name);

// Whether the API returns something else each time, or what nobody wrote: no two runs agree. APIs
// whose names contain "dropout" are no such; they are judged by their share of zeros.
bool IsRandom(std::string_view api);
// Whether what it returns is of no use to a comparison: memory that nobody wrote, or its argument
// on another device.
bool IsNeverRun(std::string_view api);

// How much work one byte of its arguments is, compared to an element-wise API.
double WorkPerByte(std::string_view api);

// Names that black and white lists may hold: the APIs of torch.nn.functional, torch.Tensor, torch
// and torch_npu. kInvalidArgument lists the others; `field` says where they stand.
plumbline::Status CheckApiNames(std::string_view field, const std::vector<std::string>& names);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_API_INVENTORY_H_

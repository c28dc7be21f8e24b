// The questions of a page that a store answers alone (docs/design/viewer.md), as functions from
// parameters to JSON.

#ifndef PLUMBLINE_VIEW_QUERY_ANSWERS_H_
#define PLUMBLINE_VIEW_QUERY_ANSWERS_H_

#include <span>
#include <string>
#include <string_view>

#include "plumbline/result.h"
#include "view/query/parameters.h"
#include "view/store/result_store.h"

namespace plumbline::view {

// "meta", "children", "path", "node", "find", "first", "flow", "comm", "timeline", "structure",
// "over_steps", "baseline".
std::span<const std::string_view> Questions();

// The JSON text. `base`: the store that the parameter `base` names; null: none. Thread-safe.
// kNotFound for a question or a node that there is not, kInvalidArgument for faulty parameters;
// kCorrupt for a damaged store.
Result<std::string> Answer(const ResultStore& store, std::string_view question,
                           const Parameters& parameters, const ResultStore* base = nullptr);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_QUERY_ANSWERS_H_

#include "view/query/parameters.h"

#include <fmt/format.h>

#include "base/text/text_parts.h"

namespace plumbline::view {

Result<int64_t> Parameters::Number(std::string_view name, int64_t missing, int64_t lowest,
                                   int64_t highest) const {
  const std::string_view text = Text(name);
  if (text.empty()) return missing;
  const std::optional<int64_t> number = ParseInteger(text);
  if (number && *number >= lowest && *number <= highest) return *number;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: expected a whole number from {} to {}, got '{}'", name, lowest,
                           highest, text.substr(0, 40)));
}

}  // namespace plumbline::view

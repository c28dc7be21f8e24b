#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "base/file/file.h"
#include "base/text/json.h"
#include "view/graph_files.h"

namespace plumbline::view {
namespace {

constexpr std::string_view kNormRatio = "overflow_norm_ratio";

}  // namespace

Result<GraphThresholds> ReadGraphThresholds(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  const Result<json::Value> root = json::Value::Parse(text);
  if (!root) return root.error().In(path);
  if (!root->is_object()) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: no JSON object", path));
  }
  GraphThresholds thresholds;
  for (const std::string_view key : root->Keys()) {
    if (key != kNormRatio) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: unknown key \"{}\" (expected {}). The limits of verdicts and "
                               "levels cannot be set: they follow from the rounding of each call.",
                               path, key, kNormRatio));
    }
    const std::optional<double> ratio = root->Find(key)->AsReal();
    if (!ratio || !(*ratio > 1) || std::isinf(*ratio)) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: {} is no number above 1", path, key));
    }
    thresholds.overflow_norm_ratio = *ratio;
  }
  return thresholds;
}

}  // namespace plumbline::view

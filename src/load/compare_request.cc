#include "load/compare_request.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "base/file.h"

namespace plumbline::load {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

Error BadKey(const std::string& path, std::string_view key, std::string_view problem) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: key \"{}\" {} (expected a path as text)", path, key, problem));
}

Result<std::string> RequiredPath(const object& root, const std::string& path,
                                 std::string_view key) {
  element value;
  if (root.at_key(key).get(value) != simdjson::SUCCESS) return BadKey(path, key, "is missing");
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return BadKey(path, key, "is not a text");
  if (text.empty()) return BadKey(path, key, "is empty");
  return std::string(text);
}

Status CheckOptionalKeys(const object& root, const std::string& path) {
  element value;
  if (root.at_key("is_print_compare_log").get(value) == simdjson::SUCCESS && !value.is_bool()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: key \"is_print_compare_log\" is not true or false", path));
  }
  if (root.at_key("rank_id").get(value) == simdjson::SUCCESS && !value.is_null()) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}: key \"rank_id\" asks for a static-graph comparison, which this "
                             "version cannot do. Remove the key to compare dump.json files.",
                             path));
  }
  return {};
}

}  // namespace

Result<CompareRequest> ReadCompareRequest(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  simdjson::dom::parser parser;
  element document;
  if (const auto error = parser.parse(text).get(document); error != simdjson::SUCCESS) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("{}: not JSON ({})", path, simdjson::error_message(error)));
  }
  object root;
  if (document.get(root) != simdjson::SUCCESS) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: expected an object with npu_path and bench_path", path));
  }
  CompareRequest request;
  PL_TRY_ASSIGN(request.target_path, RequiredPath(root, path, "npu_path"));
  PL_TRY_ASSIGN(request.golden_path, RequiredPath(root, path, "bench_path"));
  element stack;
  if (root.at_key("stack_path").get(stack) == simdjson::SUCCESS && !stack.is_null()) {
    PL_TRY_ASSIGN(request.stack_path, RequiredPath(root, path, "stack_path"));
  }
  PL_TRY(CheckOptionalKeys(root, path));
  const PathKind target = KindOf(request.target_path);
  const PathKind golden = KindOf(request.golden_path);
  const bool both_exist = target != PathKind::kMissing && golden != PathKind::kMissing;
  if (both_exist && target != golden) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: npu_path and bench_path are not of one kind (expected two files "
                             "or two directories)",
                             path));
  }
  return request;
}

}  // namespace plumbline::load

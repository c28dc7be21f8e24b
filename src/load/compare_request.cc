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

// Whole numbers from 0 on; a single one is a list of one.
Result<std::vector<int64_t>> NumbersIn(const object& root, const std::string& path,
                                       std::string_view key) {
  std::vector<int64_t> numbers;
  const Error bad(ErrorCode::kInvalidArgument,
                  fmt::format("{}: key \"{}\" is no list of numbers (expected [0, 1])", path, key));
  element value;
  if (root.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return numbers;
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return bad;
  for (const element each : list) {
    int64_t number = 0;
    if (each.get(number) != simdjson::SUCCESS || number < 0) return bad;
    numbers.push_back(number);
  }
  return numbers;
}

Status ReadOptionalKeys(const object& root, const std::string& path, CompareRequest& request) {
  element value;
  if (root.at_key("is_print_compare_log").get(value) == simdjson::SUCCESS && !value.is_bool()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: key \"is_print_compare_log\" is not true or false", path));
  }
  request.of_graphs = root.at_key("rank_id").get(value) == simdjson::SUCCESS && !value.is_null();
  PL_TRY_ASSIGN(request.ranks, NumbersIn(root, path, "rank_id"));
  PL_TRY_ASSIGN(request.steps, NumbersIn(root, path, "step_id"));
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
  PL_TRY(ReadOptionalKeys(root, path, request));
  const PathKind target = KindOf(request.target_path);
  const PathKind golden = KindOf(request.golden_path);
  const auto is_usual = [](PathKind kind) {  // who opens another says what it is
    return kind == PathKind::kFile || kind == PathKind::kDirectory;
  };
  if (is_usual(target) && is_usual(golden) && target != golden) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: npu_path and bench_path are not of one kind (expected two files "
                             "or two directories)",
                             path));
  }
  return request;
}

}  // namespace plumbline::load

#include "load/compare_request.h"

#include <fmt/format.h>

#include "base/file/file.h"
#include "base/text/json.h"

namespace plumbline::load {
namespace {

using json::Value;

Error BadKey(const std::string& path, std::string_view key, std::string_view problem) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: key \"{}\" {} (expected a path as text)", path, key, problem));
}

Result<std::string> RequiredPath(const Value& root, const std::string& path, std::string_view key) {
  const Value* const value = root.Find(key);
  if (value == nullptr) return BadKey(path, key, "is missing");
  const std::string* const text = value->AsText();
  if (text == nullptr) return BadKey(path, key, "is not a text");
  if (text->empty()) return BadKey(path, key, "is empty");
  return *text;
}

// Whole numbers from 0 on; a single one is a list of one.
Result<std::vector<int64_t>> NumbersIn(const Value& root, const std::string& path,
                                       std::string_view key) {
  std::vector<int64_t> numbers;
  const Error bad(ErrorCode::kInvalidArgument,
                  fmt::format("{}: key \"{}\" is no list of numbers (expected [0, 1])", path, key));
  const Value* const value = root.Find(key);
  if (value == nullptr || value->is_null()) return numbers;
  if (value->AsList() == nullptr) return bad;
  for (const Value& each : *value->AsList()) {
    const std::optional<int64_t> number = each.AsInteger();
    if (!number || *number < 0) return bad;
    numbers.push_back(*number);
  }
  return numbers;
}

Status ReadOptionalKeys(const Value& root, const std::string& path, CompareRequest& request) {
  const Value* const log = root.Find("is_print_compare_log");
  if (log != nullptr && log->AsBool() == nullptr) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: key \"is_print_compare_log\" is not true or false", path));
  }
  const Value* const ranks = root.Find("rank_id");
  request.of_graphs = ranks != nullptr && !ranks->is_null();
  PL_TRY_ASSIGN(request.ranks, NumbersIn(root, path, "rank_id"));
  PL_TRY_ASSIGN(request.steps, NumbersIn(root, path, "step_id"));
  return {};
}

Result<Value> ReadObject(const std::string& path) {
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  size_t error_at = 0;
  Result<Value> document = Value::Parse(text, &error_at);
  if (!document) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: not JSON (at byte {})", path, error_at));
  }
  if (!document->is_object()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: expected an object with npu_path and bench_path", path));
  }
  return document;
}

}  // namespace

Result<GraphRequest> ReadGraphRequest(const std::string& path) {
  PL_TRY_ASSIGN(const Value root, ReadObject(path));
  GraphRequest request;
  PL_TRY_ASSIGN(request.target_path, RequiredPath(root, path, "npu_path"));
  const Value* const golden = root.Find("bench_path");
  const bool is_given = golden != nullptr && !golden->is_null() && *golden != Value("");
  if (is_given) {
    PL_TRY_ASSIGN(request.golden_path, RequiredPath(root, path, "bench_path"));
  }
  return request;
}

Result<CompareRequest> ReadCompareRequest(const std::string& path) {
  PL_TRY_ASSIGN(const Value root, ReadObject(path));
  CompareRequest request;
  PL_TRY_ASSIGN(request.target_path, RequiredPath(root, path, "npu_path"));
  PL_TRY_ASSIGN(request.golden_path, RequiredPath(root, path, "bench_path"));
  const Value* const stack = root.Find("stack_path");
  if (stack != nullptr && !stack->is_null()) {
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

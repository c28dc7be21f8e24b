#include "precheck/executor_wire.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/text/json.h"

namespace plumbline::precheck {
namespace {

// An answer is an object around trees whose depth ParseCallValue() bounds by itself.
constexpr int kDeepestAnswer = 192;
constexpr size_t kMostQuoted = 200;

Error NoAnswer(std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("an answer of an executor: {}", what)};
}

class AnswerReader {
 public:
  explicit AnswerReader(std::string_view line) : line_(line), in_(line, kDeepestAnswer) {}

  Result<ExecutorAnswer> Read() {
    std::string_view key;
    if (!in_.EnterObject()) return NoAnswer("no object");
    while (in_.NextMember(key)) PL_TRY(ReadMember(std::string(key)));
    if (!in_.ReadEnd()) return in_.error().In("an answer of an executor");
    // It could not make sense of the request.
    if (id_ && !error_.empty())
      forward_ = tl::make_unexpected(Skip{SkipCause::kBadArgument, error_});
    if (!id_ || !forward_) return NoAnswer("id or forward is missing");
    return ExecutorAnswer{*id_,
                          {*std::move(forward_), std::move(backward_), std::move(note_),
                           has_overflow_, std::move(arguments_)},
                          is_last_};
  }

 private:
  plumbline::Status ReadMember(const std::string& key) {
    if (key == "id") {
      json::Number number;
      if (!in_.ReadNumber(number)) return in_.error();
      const auto* id = std::get_if<int64_t>(&number);
      if (id == nullptr || *id < 0) return NoAnswer("an id that is no natural number");
      id_ = static_cast<uint64_t>(*id);
      return {};
    }
    if (key == "error") {
      std::string_view text;
      if (!in_.ReadString(text)) return NoAnswer("an error without a text");
      error_ = text.empty() ? "an error without a text" : text;
      return {};
    }
    if (key == "last") {
      if (!in_.ReadBool(is_last_)) return in_.error();
      return {};
    }
    if (key == "forward" || key == "backward") {
      if (in_.Peek() == json::Kind::kNull && key == "backward") {
        (void)in_.ReadNull();
        return {};
      }
      PL_TRY_ASSIGN(SideValue side, ReadSide());
      (key == "forward" ? forward_ : backward_) = std::move(side);
      return {};
    }
    if (key == "arguments") return ReadArguments();
    // Members of later versions.
    if (!in_.SkipValue()) return in_.error();
    return {};
  }

  plumbline::Status ReadArguments() {
    ArgumentsAfter arguments;
    std::string_view key;
    if (!in_.EnterObject()) return NoAnswer("arguments that are no object");
    while (in_.NextMember(key)) {
      CallMap* const to = key == "changed" ? &arguments.changed
                          : key == "kept"  ? &arguments.kept
                                           : nullptr;
      PL_TRY_ASSIGN(SideValue value, ReadValue());
      auto* const map = value->As<CallMap>();
      if (to != nullptr && map == nullptr) return NoAnswer("arguments without their places");
      if (to != nullptr) *to = std::move(*map);
    }
    if (in_.failed()) return in_.error();
    arguments_ = std::move(arguments);
    return {};
  }

  // One member says what came out; others may say more about it.
  Result<SideValue> ReadSide() {
    std::optional<SideValue> side;
    std::string_view key;
    if (!in_.EnterObject()) return NoAnswer("a direction without a result");
    while (in_.NextMember(key)) {
      const bool is_result = key == "value" || key == "skip";
      if (!is_result) {
        PL_TRY(ReadRemark(std::string(key)));
        continue;
      }
      if (side) return NoAnswer("a direction with two results");
      PL_TRY_ASSIGN(side, key == "skip" ? ReadSkip() : ReadValue());
    }
    if (in_.failed() || !side) return NoAnswer("a direction without a result");
    return *std::move(side);
  }

  plumbline::Status ReadRemark(const std::string& key) {
    std::string_view text;
    bool is_true = false;
    const bool is_read = key == "note"       ? in_.ReadString(text)
                         : key == "overflow" ? in_.ReadBool(is_true)
                                             : in_.SkipValue();
    if (!is_read) return NoAnswer("a remark of another kind");
    if (key == "note") note_ = text;
    if (key == "overflow") has_overflow_ = has_overflow_.value_or(false) || is_true;
    return {};
  }

  Result<SideValue> ReadValue() {
    const size_t begin = in_.offset();
    if (!in_.SkipValue()) return in_.error();
    PL_TRY_ASSIGN(CallValue value, ParseCallValue(line_.substr(begin, in_.offset() - begin)));
    return SideValue(std::move(value));
  }

  Result<SideValue> ReadSkip() {
    std::array<std::string, 2> texts;
    std::string_view text;
    if (!in_.EnterArray()) return NoAnswer("a skip without a cause");
    for (std::string& one : texts) {
      if (!in_.NextElement() || !in_.ReadString(text)) return NoAnswer("a skip without a cause");
      one = text;
    }
    if (in_.NextElement() || in_.failed()) return NoAnswer("a skip with more than cause and text");
    return SideValue(tl::make_unexpected(
        Skip{ParseCause(texts[0]).value_or(SkipCause::kDeviceFailed), texts[1]}));
  }

  std::string_view line_;
  json::Reader in_;
  std::optional<uint64_t> id_;
  std::optional<SideValue> forward_, backward_;
  std::string error_, note_;
  std::optional<bool> has_overflow_;
  std::optional<ArgumentsAfter> arguments_;
  bool is_last_ = false;
};

plumbline::Status CheckPlaces(const CallValue& value, size_t bytes) {
  if (const auto* place = value.As<TensorPlace>()) {
    PL_TRY_ASSIGN(const size_t size, BytesOf(*place));
    if (place->offset <= bytes && size <= bytes - place->offset) return {};
    return NoAnswer(fmt::format("a tensor of {} bytes at {} (expected within {} bytes)", size,
                                place->offset, bytes));
  }
  if (const auto* sequence = value.As<CallSequence>()) {
    for (const CallValue& item : sequence->items) PL_TRY(CheckPlaces(item, bytes));
  }
  if (const auto* map = value.As<CallMap>()) {
    for (const auto& [key, item] : *map) PL_TRY(CheckPlaces(item, bytes));
  }
  return {};
}

// The object in a line, which may hold an error instead.
Result<json::Value> ParseSaying(std::string_view line, std::string_view who) {
  const Result<json::Value> value = json::Value::Parse(line);
  if (!value || !value->is_object()) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: said '{}' (expected a JSON object)", who,
                                                  line.substr(0, kMostQuoted)));
  }
  const json::Value* const error = value->Find("error");
  if (error != nullptr && error->AsText() != nullptr) {
    return Error(ErrorCode::kUnsupported, *error->AsText());
  }
  return *value;
}

std::string TextOf(const json::Value& value, std::string_view key) {
  const json::Value* const found = value.Find(key);
  return found != nullptr && found->AsText() != nullptr ? *found->AsText() : std::string();
}

bool IsReady(const json::Value& value) {
  const json::Value* const ready = value.Find("ready");
  return ready != nullptr && ready->AsBool() != nullptr && *ready->AsBool();
}

}  // namespace

std::string_view RoleName(Role role) { return role == Role::kBench ? "bench" : "device"; }

Result<ExecutorAnswer> ParseAnswer(std::string_view line) { return AnswerReader(line).Read(); }

plumbline::Status CheckPlaces(const SideResult& result, size_t bytes) {
  if (result.forward) PL_TRY(CheckPlaces(*result.forward, bytes));
  if (result.backward && *result.backward) PL_TRY(CheckPlaces(**result.backward, bytes));
  if (!result.arguments) return {};
  for (const CallMap* map : {&result.arguments->changed, &result.arguments->kept}) {
    for (const auto& [place, value] : *map) PL_TRY(CheckPlaces(value, bytes));
  }
  return {};
}

Result<ExecutorHello> ParseHello(std::string_view line) {
  PL_TRY_ASSIGN(const json::Value value, ParseSaying(line, "an executor"));
  const json::Value* const process = value.Find("pid");
  if (!IsReady(value) || process == nullptr || !process->AsInteger()) {
    return NoAnswer("it does not say that it is ready, or not as which process");
  }
  return ExecutorHello{*process->AsInteger()};
}

Result<ServerFacts> ParseServerFacts(std::string_view line) {
  PL_TRY_ASSIGN(const json::Value value, ParseSaying(line, "the Python interpreter"));
  ServerFacts facts{TextOf(value, "framework_version"),
                    TextOf(value, "device"),
                    TextOf(value, "device_name"),
                    {}};
  if (!IsReady(value) || facts.device.empty()) {
    return Error(ErrorCode::kCorrupt,
                 "the Python interpreter: does not say that it is ready, or with which device");
  }
  const json::Value* const missing = value.Find("inventory_missing");
  if (missing != nullptr && missing->AsList() != nullptr) {
    for (const json::Value& name : *missing->AsList()) {
      if (name.AsText() != nullptr) facts.missing.push_back(*name.AsText());
    }
  }
  return facts;
}

Result<ExecutorEnd> ParseExecutorEnd(std::string_view line) {
  PL_TRY_ASSIGN(const json::Value value, ParseSaying(line, "the Python interpreter"));
  const json::Value* const id = value.Find("ended");
  if (id == nullptr || !id->AsNatural()) {
    return Error(ErrorCode::kCorrupt, "the Python interpreter: said something unknown");
  }
  return ExecutorEnd{*id->AsNatural(), TextOf(value, "how")};
}

std::string StartLine(const ServerStart& start) {
  std::string line = R"({"op":"start","framework":)";
  json::AppendString(start.framework, line);
  line += R"(,"device":)";
  json::AppendString(start.device, line);
  return line + fmt::format(R"(,"slots":{}}})", start.slots);
}

std::string ForkLine(const ExecutorStart& start) {
  std::string line =
      fmt::format(R"({{"op":"fork","id":{},"role":"{}","device":)", start.id, RoleName(start.role));
  json::AppendString(start.device, line);
  return line + fmt::format(R"(,"threads":{}}})", start.threads);
}

}  // namespace plumbline::precheck

#include "record/call_name.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text/text_parts.h"

namespace plumbline {

namespace {

constexpr std::string_view kForward = "forward", kBackward = "backward";
constexpr std::string_view kGradients = "parameters_grad";

// Cuts the last component off `rest`, without its dot. A text without dots is one component.
std::string_view TakeLast(std::string_view& rest) {
  const size_t dot = rest.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? rest : rest.substr(dot + 1);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(0, dot);
  return last;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool leading_zero = text.size() > 1 && text[0] == '0';
  if (error != std::errc() || end != text.data() + text.size() || leading_zero) return std::nullopt;
  return number;
}

std::optional<CallKind> ParseDirection(std::string_view text) {
  if (text == kForward) return CallKind::kForward;
  if (text == kBackward) return CallKind::kBackward;
  return std::nullopt;
}

bool IsModulePrefix(std::string_view prefix) { return prefix == "Module" || prefix == "Cell"; }

// Splits "prefix.path.Class" (path may be empty: "Module.Class") of a module.
std::optional<CallName> ParseModule(std::string_view rest, CallName name) {
  name.class_name = TakeLast(rest);
  const size_t dot = rest.find('.');
  name.prefix = rest.substr(0, dot);
  if (dot != std::string_view::npos) name.path = rest.substr(dot + 1);
  const bool path_missing = dot != std::string_view::npos && name.path.empty();
  if (name.class_name.empty() || path_missing || !IsModulePrefix(name.prefix)) return std::nullopt;
  return name;
}

std::optional<CallName> ParseGradients(std::string_view text) {
  CallName name;
  name.form = CallName::Form::kGradients;
  name.kind = CallKind::kParametersGrad;
  std::string_view last = TakeLast(text);
  if (last != kGradients) {
    name.number = ParseNumber(last);
    if (!name.number || TakeLast(text) != kGradients) return std::nullopt;
  }
  return ParseModule(text, name);
}

std::optional<CallName> ParseModuleCall(std::string_view text) {
  CallName name;
  name.form = CallName::Form::kModule;
  name.number = ParseNumber(TakeLast(text));
  const auto direction = ParseDirection(TakeLast(text));
  if (!name.number || !direction) return std::nullopt;
  name.kind = *direction;
  return ParseModule(text, name);
}

std::optional<CallName> ParseApi(std::string_view text) {
  CallName name;
  const auto direction = ParseDirection(TakeLast(text));
  name.number = ParseNumber(TakeLast(text));
  const size_t dot = text.find('.');
  if (!direction || !name.number || dot == std::string_view::npos) return std::nullopt;
  name.kind = *direction;
  name.prefix = text.substr(0, dot);
  name.path = text.substr(dot + 1);
  if (name.prefix.empty() || name.path.empty()) return std::nullopt;
  return name;
}

std::string_view DirectionText(CallKind kind) {
  return kind == CallKind::kBackward ? kBackward : kForward;
}

}  // namespace

std::optional<CallName> ParseCallName(std::string_view name) {
  const std::string_view prefix = name.substr(0, name.find('.'));
  if (!IsModulePrefix(prefix)) return ParseApi(name);
  if (const auto call = ParseModuleCall(name)) return call;
  return ParseGradients(name);
}

std::string BuildCallName(const CallName& name) {
  std::string text(name.prefix);
  if (!name.path.empty()) text.append(".").append(name.path);
  if (!name.class_name.empty()) text.append(".").append(name.class_name);
  const std::string number = name.number ? fmt::format(".{}", *name.number) : std::string();
  switch (name.form) {
    case CallName::Form::kApi:
      return fmt::format("{}{}.{}", text, number, DirectionText(name.kind));
    case CallName::Form::kModule:
      return fmt::format("{}.{}{}", text, DirectionText(name.kind), number);
    case CallName::Form::kGradients:
      break;
  }
  return fmt::format("{}.{}{}", text, kGradients, number);
}

std::string_view WithoutRankMark(std::string_view part) {
  constexpr std::string_view kMark = "_rank";
  const size_t at = part.rfind(kMark);
  if (at == std::string_view::npos || at == 0) return part;
  return IsDigits(part.substr(at + kMark.size())) ? part.substr(0, at) : part;
}

std::string TensorName(std::string_view entry, std::string_view part, std::string_view path) {
  std::string text(entry);
  if (!part.empty()) text.append(".").append(part);
  if (!path.empty()) text.append(".").append(path);
  return text;
}

GraphName ParseGraphName(std::string_view data_name, size_t directories) {
  const size_t colon = data_name.find(':');
  if (colon == std::string_view::npos) return {0, data_name};
  const auto number = ParseNatural(data_name.substr(0, colon));
  if (!number || static_cast<uint64_t>(*number) >= directories) return {0, data_name};
  return {static_cast<size_t>(*number), data_name.substr(colon + 1)};
}

std::string GraphNamePrefix(size_t directory) {
  return directory == 0 ? std::string() : fmt::format("{}:", directory);
}

std::string MangledKernel(std::string_view full_name) {
  std::string text(full_name);
  for (char& c : text) {
    if (c == '/' || c == '\\' || c == '.' || c == ' ') c = '_';
  }
  return text;
}

}  // namespace plumbline

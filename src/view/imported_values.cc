#include "view/imported_values.h"

#include <cmath>
#include <limits>

#include "base/text/json.h"
#include "base/text/text_parts.h"

namespace plumbline::view {
namespace {

constexpr double kNotSaid = std::numeric_limits<double>::quiet_NaN();
// As upstream's rules have it: inputs are fine below this relative error of the norm, or above this
// share of elements within a thousandth.
constexpr double kFineNorm = 0.1, kFineRatio = 0.9;

// A text, or the JSON of what is none.
std::string ReadMember(std::string_view json, json::Reader& in) {
  std::string_view text;
  if (in.Peek() == json::Kind::kString) {
    in.ReadString(text);
    return std::string(text);
  }
  const size_t begin = in.offset();
  in.SkipValue();
  return std::string(json.substr(begin, in.offset() - begin));
}

Status AppendValues(std::string_view json, bool is_output, std::vector<FileValue>& values) {
  json::Reader in(json);
  if (in.Peek() != json::Kind::kObject || !in.EnterObject()) return {};
  std::string_view key;
  while (in.NextMember(key)) {
    FileValue value{.name = std::string(key), .is_output = is_output, .members = {}};
    if (in.Peek() == json::Kind::kObject) {
      if (!in.EnterObject()) break;
      while (in.NextMember(key)) {
        std::string name(key);
        value.members.emplace_back(std::move(name), ReadMember(json, in));
      }
    } else {
      value.members.emplace_back("value", ReadMember(json, in));
    }
    values.push_back(std::move(value));
  }
  return in.failed() ? Status(in.error()) : Status();
}

void RaiseError(double error, double& largest) {
  if (!std::isnan(error) && !(error <= largest)) largest = error;
}

// Of "20.0%" or "0.2".
double RatioOf(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  const std::optional<double> number = ParseReal(text);
  if (!number) return kNotSaid;
  return std::abs(is_percent ? *number / 100 : *number);
}

bool IsBad(std::string_view key, std::string_view text) {
  if (key == "NormRelativeErr") return RatioOf(text) >= kFineNorm;
  if (key == "One Thousandth Err Ratio") {
    const std::optional<double> ratio = ParseReal(text);
    return ratio && !(*ratio > kFineRatio);
  }
  // Others, such as "unsupported", say nothing.
  return key == "Result" && (text == "error" || text == "warning" || text == "Different");
}

double NumberBehind(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return kNotSaid;
  const std::string_view rest = text.substr(at + words.size());
  return ParseReal(rest.substr(0, rest.find_first_of(", "))).value_or(kNotSaid);
}

}  // namespace

std::string_view FileValue::Find(std::string_view key) const {
  for (const auto& [member, text] : members) {
    if (member == key) return text;
  }
  return {};
}

Result<std::vector<FileValue>> ValuesIn(const vis::NodeTexts& texts) {
  std::vector<FileValue> values;
  PL_TRY(AppendValues(texts.inputs, false, values));
  PL_TRY(AppendValues(texts.outputs, true, values));
  return values;
}

std::vector<std::string> TextsIn(std::string_view json) {
  std::vector<std::string> texts;
  json::Reader in(json);
  if (in.Peek() != json::Kind::kArray || !in.EnterArray()) return texts;
  while (in.NextElement()) texts.push_back(ReadMember(json, in));
  if (in.failed()) texts.clear();
  return texts;
}

ValueErrors ErrorsOf(const std::vector<FileValue>& values) {
  ValueErrors errors{kNotSaid, kNotSaid};
  for (const FileValue& value : values) {
    double& largest = value.is_output ? errors.of_outputs : errors.of_inputs;
    double said = kNotSaid;
    for (const std::string& message : TextsIn(value.Find("Err_message"))) {
      RaiseError(SaidIn(message).error, said);
    }
    for (const auto& [key, text] : value.members) {
      if (key.ends_with("RelativeErr") && std::isnan(said)) RaiseError(RatioOf(text), largest);
      if (!value.is_output && IsBad(key, text)) errors.are_inputs_bad = true;
    }
    RaiseError(said, largest);
  }
  return errors;
}

// "error: exceeds-noise (words): relative error 0.4, explained 0.014"
SaidErrors SaidIn(std::string_view message) {
  SaidErrors said{{}, NumberBehind(message, ": relative error "), kNotSaid};
  if (std::isnan(said.error)) return said;
  said.explained = NumberBehind(message, ", explained ");
  const size_t level = message.find(": ");
  const std::string_view rest = message.substr(level + 2);
  said.reason = rest.substr(0, rest.find_first_of(" :"));
  return said;
}

}  // namespace plumbline::view

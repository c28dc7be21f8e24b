#include "operators/convert_options.h"

#include <fmt/format.h>

#include <utility>

#include "base/text/text_parts.h"

namespace plumbline::operators {
namespace {

DumpFailure Invalid(std::string text) { return {DumpCode::kInvalidParameter, std::move(text)}; }

DumpStatus CheckNeedsFormat(const ConvertRequest& request) {
  const std::pair<const std::string*, const char*> dependent[] = {
      {&request.shape, "\"-s\" or \"--shape\""},
      {&request.output_index, "\"-o\" or \"--output_tensor\""},
      {&request.input_index, "\"-i\" or \"--input_tensor\""},
      {&request.custom_script_path, "\"-c\" or \"--custom_script_path\""}};
  if (!request.format.empty()) return {};
  for (const auto& [value, spelling] : dependent) {
    if (value->empty()) continue;
    return Invalid(
        fmt::format("The argument '{}' takes effect only when the \"-f\" exists.", spelling));
  }
  return {};
}

DumpResult<Shape> ParseShape(const std::string& text) {
  const auto invalid = [&] {
    return DumpFailure{DumpCode::kInvalidShape,
                       fmt::format("The shape \"{}\" is invalid (expected at least two sizes above "
                                   "0 between commas, as 1,3,224,224).",
                                   text)};
  };
  Shape sizes;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::optional<int64_t> size = ParseNatural(part);
    if (!size || *size == 0) return invalid();
    sizes.push_back(*size);
  }
  if (sizes.size() < 2) return invalid();
  return sizes;
}

DumpResult<std::optional<size_t>> ParseIndex(const std::string& text, const char* option) {
  if (text.empty()) return std::optional<size_t>();
  const std::optional<int64_t> index = ParseNatural(text);
  if (!index) {
    return Invalid(
        fmt::format("The index \"{}\" of {} is invalid (expected 0, 1, 2, ...).", text, option));
  }
  return std::optional(static_cast<size_t>(*index));
}

}  // namespace

DumpResult<ConvertOptions> CheckConvert(const ConvertRequest& request) {
  PL_TRY(CheckNeedsFormat(request));
  ConvertOptions options;
  options.kind = request.kind;
  options.takes_atb = request.takes_atb;
  if (request.format.empty()) return options;
  const std::optional<DeviceFormat> format = ParseDeviceFormat(request.format);
  if (!format) {
    return Invalid(fmt::format("The format \"{}\" is not supported. Please check the format.",
                               request.format));
  }
  options.layout.emplace().format = *format;
  if (!request.shape.empty()) {
    PL_TRY_ASSIGN(options.layout->sizes, ParseShape(request.shape));
  }
  if (!request.output_index.empty() && !request.input_index.empty()) {
    return Invalid("-o and -i cannot be given together.");
  }
  PL_TRY_ASSIGN(options.only_output, ParseIndex(request.output_index, "-o"));
  PL_TRY_ASSIGN(options.only_input, ParseIndex(request.input_index, "-i"));
  if (!request.custom_script_path.empty()) {
    PL_TRY_ASSIGN(options.own, UserCode::Load({request.custom_script_path, false, {}}));
  }
  return options;
}

}  // namespace plumbline::operators

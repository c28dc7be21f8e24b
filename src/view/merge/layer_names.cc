#include "view/merge/layer_names.h"

#include <fmt/format.h>

#include "base/text/text_parts.h"
#include "tree/call_twin.h"

namespace plumbline::view {
namespace {

// The part of a name that ends at `end`, and the place where it begins.
std::pair<std::string_view, size_t> PartBefore(std::string_view name, size_t end) {
  const size_t dot = end == 0 ? std::string_view::npos : name.rfind('.', end - 1);
  const size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
  return {name.substr(begin, end - begin), begin};
}

std::optional<std::string_view> ChunkText(std::string_view name) {
  const size_t begin = name.find('.');
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = name.find('.', begin + 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = name.substr(begin + 1, end - begin - 1);
  return IsDigits(text) ? std::optional(text) : std::nullopt;
}

}  // namespace

std::optional<LayerName> ParseLayer(std::string_view name) {
  const auto directed = tree::ParseDirected(name);
  if (!directed) return std::nullopt;
  const auto [class_name, class_at] = PartBefore(name, directed->stem.size());
  if (class_at < 2) return std::nullopt;
  const auto [number, number_at] = PartBefore(name, class_at - 1);
  if (number_at < 2 || !IsDigits(number)) return std::nullopt;
  const auto [list, list_at] = PartBefore(name, number_at - 1);
  if (!list.ends_with("layers") && !list.ends_with("layer")) return std::nullopt;
  return LayerName{number_at, number.size(), ParseNatural(number).value_or(0),
                   directed->is_forward()};
}

std::string Renumbered(std::string_view name, const LayerName& layer, int64_t number) {
  return fmt::format("{}{}{}", name.substr(0, layer.number_at), number,
                     name.substr(layer.number_at + layer.number_size));
}

bool IsForward(std::string_view name) {
  const auto directed = tree::ParseDirected(name);
  return directed ? directed->is_forward() : name.ends_with(".forward");
}

std::optional<int64_t> ChunkOf(std::string_view name) {
  const auto text = ChunkText(name);
  return text ? ParseNatural(*text) : std::nullopt;
}

std::string WithChunk(std::string_view name, int64_t chunk) {
  const auto text = ChunkText(name);
  if (!text) return std::string(name);
  const size_t at = static_cast<size_t>(text->data() - name.data());
  return fmt::format("{}{}{}", name.substr(0, at), chunk, name.substr(at + text->size()));
}

}  // namespace plumbline::view

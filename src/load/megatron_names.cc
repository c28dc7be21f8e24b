#include "load/megatron_names.h"

#include <array>
#include <charconv>
#include <utility>

namespace plumbline::load {
namespace {

// Applied in this order, each to the result of the one before.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kReplacements = {{
    {"self_attention.linear_qkv.layer_norm_", "input_layernorm."},
    {"language_model.", ""},
    {"encoder", "decoder"},
    {".input_norm.", ".input_layernorm."},
    {"query_key_value", "linear_qkv"},
    {".dense.", ".linear_proj."},
    {"post_attention_norm", "pre_mlp_layernorm"},
    {"dense_h_to_4h", "linear_fc1"},
    {"dense_4h_to_h", "linear_fc2"},
    {"mlp.local_experts", "mlp.experts.local_experts"},
    {"final_norm", "final_layernorm"},
    {"word_embeddings_for_head", "output_layer"},
}};

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

bool Has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

// The digits that begin at `begin`, when there are some.
std::optional<NumberInName> NumberAt(std::string_view name, size_t begin) {
  NumberInName number{.begin = begin};
  const char* const first = name.data() + begin;
  const auto parsed = std::from_chars(first, name.data() + name.size(), number.value);
  if (parsed.ec != std::errc() || number.value < 0) return std::nullopt;
  number.length = static_cast<size_t>(parsed.ptr - first);
  return number;
}

}  // namespace

std::string CommonMegatronName(std::string name) {
  for (const auto& [from, to] : kReplacements) ReplaceAll(name, from, to);
  return name;
}

TensorSplit SplitOf(std::string_view name) {
  // The norm in front of a fused layer carries the layer's name, and every rank has all of it.
  if (Has(name, "layer_norm") || Has(name, "layernorm")) return TensorSplit::kReplicated;
  for (const std::string_view part :
       {"linear_qkv", "linear_fc1", "word_embeddings.weight", "output_layer.weight"}) {
    if (Has(name, part)) return TensorSplit::kRows;
  }
  for (const std::string_view part : {"linear_fc2.weight", "linear_proj.weight"}) {
    if (Has(name, part)) return TensorSplit::kColumns;
  }
  return TensorSplit::kReplicated;
}

bool IsFirstLinear(std::string_view name) { return Has(name, "linear_fc1"); }

std::optional<NumberInName> LayerIn(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  return at == name.npos ? std::nullopt : NumberAt(name, at + kLayers.size());
}

std::optional<NumberInName> ExpertIn(std::string_view name) {
  constexpr std::string_view kExperts = "experts.";
  for (size_t at = name.find(kExperts); at != name.npos; at = name.find(kExperts, at + 1)) {
    if (auto number = NumberAt(name, at + kExperts.size())) return number;
  }
  if (!Has(name, kExperts)) return std::nullopt;
  for (const std::string_view part : {".weight", ".bias"}) {
    const size_t at = name.rfind(part);
    if (at == name.npos) continue;
    const auto number = NumberAt(name, at + part.size());
    if (number && number->begin + number->length == name.size()) return number;
  }
  return std::nullopt;
}

std::string WithNumber(std::string name, const NumberInName& place, int64_t value) {
  return name.replace(place.begin, place.length, std::to_string(value));
}

}  // namespace plumbline::load

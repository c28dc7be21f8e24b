// Names of the numbered layers of a model, and of its parts on one rank of an interleaved pipeline.

#ifndef PLUMBLINE_VIEW_MERGE_LAYER_NAMES_H_
#define PLUMBLINE_VIEW_MERGE_LAYER_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plumbline::view {

// A call of a layer itself: "Module.decoder.layers.3.TransformerLayer.forward.0".
struct LayerName {
  size_t number_at = 0, number_size = 0;  // where the number stands in the name
  int64_t number = 0;
  bool is_forward = true;
};
// Nothing for other names, also for those of modules within a layer.
std::optional<LayerName> ParseLayer(std::string_view name);

// The name with another number in the place of the one at `layer`.
std::string Renumbered(std::string_view name, const LayerName& layer, int64_t number);

// Whether the name of a call says forward.
bool IsForward(std::string_view name);

// The second part of a name, where it is a number: "Module.1.module..." -> 1.
std::optional<int64_t> ChunkOf(std::string_view name);
// The same with another number there; the name as it is without one.
std::string WithChunk(std::string_view name, int64_t chunk);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_LAYER_NAMES_H_

#include "view/merge/fold_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/json/dump_json.h"
#include "tree/call_twin.h"
#include "view/merge/layer_names.h"

namespace plumbline::view {
namespace {

bool IsLayerOfPipeline(const Part& part) {
  return (part.is_split || part.is_moved) && ParseLayer(part.name);
}

class ChunkFolder {
 public:
  ChunkFolder(int64_t chunks, RankTree& tree) : chunks_(chunks), tree_(tree) {}

  void Run() {
    std::vector<Part*> tops;
    for (Part* const top : tree_.root().children) {
      if (top->is_module() && ChunkOf(top->name) == 0) tops.push_back(top);
    }
    for (Part* const top : tops) FoldFrom(*top);
    std::erase_if(tree_.root().children, [&](const Part* top) { return vanished_.contains(top); });
  }

 private:
  void FoldFrom(Part& top) {
    std::vector<Part*> open = {&top};
    while (!open.empty()) {
      Part* const part = open.back();
      open.pop_back();
      const std::vector<Part*> children = part->children;
      FoldOne(*part);
      for (Part* const child : children) {
        if (child->is_module() && !IsLayerOfPipeline(*child)) open.push_back(child);
      }
    }
  }

  void FoldOne(Part& part) {
    if (Part* const last = tree_.Find(WithChunk(part.name, chunks_ - 1))) TakeEnds(*last, part);
    const bool holds_layers = std::ranges::any_of(
        part.children, [](const Part* each) { return IsLayerOfPipeline(*each); });
    for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
      Part* const other = tree_.Find(WithChunk(part.name, chunk));
      if (other == nullptr || other == &part) continue;
      vanished_.insert(other);
      holds_layers ? TakeAll(*other, part) : TakeMissing(*other, part);
    }
    if (holds_layers) NumberLayers(part);
  }

  // What the model returns leaves its last chunk, and gradients enter there.
  static void TakeEnds(Part& last, Part& part) {
    const std::string_view key = IsForward(part.name) ? dump_json::kOutput : dump_json::kInput;
    const auto has_key = [&](const auto& member) { return member.first == key; };
    const auto found = std::ranges::find_if(last.members, has_key);
    if (found == last.members.end()) return;
    std::erase_if(part.members, has_key);
    part.members.push_back(*found);
    part.merge.push_back(fmt::format("{} of {}, the last chunk",
                                     IsForward(part.name) ? "Outputs" : "Inputs", last.name));
  }

  void TakeAll(Part& other, Part& part) {
    for (Part* const child : other.children) child->parent = &part;
    auto& children = part.children;
    const auto place = IsForward(part.name) ? children.end() : children.begin();
    children.insert(place, other.children.begin(), other.children.end());
    for (Part* const child : other.children) {
      if (!ParseLayer(child->name)) MoveToFirstChunk(*child);
    }
  }

  // Modules that chunk 0 has not, such as the head behind the last layer.
  void TakeMissing(Part& other, Part& part) {
    std::vector<Part*> missing;
    for (Part* const child : other.children) {
      if (!child->is_module() || tree_.Find(WithChunk(child->name, 0)) != nullptr) continue;
      missing.push_back(child);
    }
    for (Part* const child : missing) {
      child->parent = &part;
      MoveToFirstChunk(*child);
    }
    auto& children = part.children;
    const auto place = IsForward(part.name) ? children.end() : children.begin();
    children.insert(place, missing.begin(), missing.end());
  }

  static void MoveToFirstChunk(Part& top) {
    top.merge.push_back(fmt::format("Moved from {}", top.name));
    for (Part* const part : PartsBelow(top)) {
      if (part->is_module()) part->name = WithChunk(part->name, 0);
    }
  }

  // Layers of later chunks get the numbers behind those of chunk 0.
  static void NumberLayers(Part& part) {
    std::vector<Part*> layers;
    for (Part* const child : part.children) {
      if (ParseLayer(child->name)) layers.push_back(child);
    }
    if (!IsForward(part.name)) std::ranges::reverse(layers);
    for (size_t i = 0; i < layers.size(); ++i) {
      if (ChunkOf(layers[i]->name) == 0) continue;
      RenameLayer(*layers[i], static_cast<int64_t>(i));
    }
  }

  static void RenameLayer(Part& top, int64_t number) {
    const LayerName layer = *ParseLayer(top.name);
    const std::string from = top.name.substr(0, layer.number_at + layer.number_size + 1);
    const std::string to =
        WithChunk(fmt::format("{}{}.", top.name.substr(0, layer.number_at), number), 0);
    top.merge.push_back(fmt::format("Moved from {}", top.name));
    for (Part* const part : PartsBelow(top)) {
      if (!part->is_module()) continue;
      part->name = part->name.starts_with(from) ? to + part->name.substr(from.size())
                                                : WithChunk(part->name, 0);
    }
  }

  const int64_t chunks_;
  RankTree& tree_;
  std::unordered_set<const Part*> vanished_;
};

}  // namespace

void FoldChunks(int64_t chunks, RankTree& tree) { ChunkFolder(chunks, tree).Run(); }

}  // namespace plumbline::view

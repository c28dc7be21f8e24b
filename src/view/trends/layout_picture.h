// The picture of a parallel training: which ranks hold which layers, as upstream's
// plot_model_parallelism draws it.

#ifndef PLUMBLINE_VIEW_TRENDS_LAYOUT_PICTURE_H_
#define PLUMBLINE_VIEW_TRENDS_LAYOUT_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumbline/result.h"
#include "view/merge/parallel_layout.h"

namespace plumbline::view {

// What is drawn; the names are upstream's.
struct LayoutRequest {
  int64_t world_size = 0;  // ranks; at most 1024
  int64_t num_layers = 0;  // of the model; at most 256
  int64_t tensor_parallel_size = 1;
  int64_t pipeline_parallel_size = 1;
  std::optional<int64_t> num_layers_per_virtual_pipeline_stage;
  std::string order = std::string(kDefaultOrder);  // the dimension that varies fastest first
  bool standalone_embedding_stage = false;         // the first stage has no layers
};

// Ranks that hold the same layers: those of one tensor parallel group.
struct LayoutRow {
  std::vector<int64_t> ranks;
  std::string label;               // "Group0: Ranks0-3", "Rank0"
  size_t replica = 0;              // which copy of the model they are part of
  std::vector<std::string> cells;  // of each virtual stage: "Embed+L1-4+Out"
};

struct LayoutGrid {
  LayoutRequest request;
  int64_t virtual_stages = 1;      // on each rank
  int64_t data_parallel_size = 1;  // copies of the model
  int64_t transformer_stages = 1;  // of the pipeline, that have layers
  std::vector<LayoutRow> rows;

  [[nodiscard]] std::string title() const;
  // "ws8_ln16_tp2_pp2_vpp4".
  [[nodiscard]] std::string name() const;
};

// kInvalidArgument, one message for each rule: sizes above 0 and within the limits, and every
// division exact.
Result<LayoutGrid> LayOutModel(const LayoutRequest& request);

std::string LayoutSvg(const LayoutGrid& grid);
// kInvalidArgument where the picture would be too large: as SVG it is not.
Result<std::string> LayoutPng(const LayoutGrid& grid);

// Where WriteLayout() writes. `output`: a file that ends in .svg or .png, or a directory, which
// gets {name}.png.
std::string LayoutPath(const LayoutGrid& grid, const std::string& output);
// Writes the picture and returns its path; a directory is made if missing. Errors of LayoutPng();
// kIo.
Result<std::string> WriteLayout(const LayoutGrid& grid, const std::string& output);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_TRENDS_LAYOUT_PICTURE_H_

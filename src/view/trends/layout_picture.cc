#include "view/trends/layout_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/file/file.h"
#include "formats/image/plot_font.h"
#include "formats/image/png.h"

namespace plumbline::view {
namespace {

constexpr int64_t kMostRanks = 1024, kMostLayers = 256;

Error WrongLayout(std::string text) { return Error(ErrorCode::kInvalidArgument, std::move(text)); }

Status CheckSizes(const LayoutRequest& request) {
  const std::array<std::pair<const char*, int64_t>, 5> sizes = {
      std::pair("world_size", request.world_size), std::pair("num_layers", request.num_layers),
      std::pair("tensor_parallel_size", request.tensor_parallel_size),
      std::pair("pipeline_parallel_size", request.pipeline_parallel_size),
      std::pair("num_layers_per_virtual_pipeline_stage",
                request.num_layers_per_virtual_pipeline_stage.value_or(1))};
  for (const auto& [name, size] : sizes) {
    if (size >= 1) continue;
    return WrongLayout(fmt::format("{}: expected a whole number above 0, got {}", name, size));
  }
  for (const auto& [name, size, most] :
       {std::tuple("world_size", request.world_size, kMostRanks),
        std::tuple("num_layers", request.num_layers, kMostLayers)}) {
    if (size <= most) continue;
    return WrongLayout(fmt::format("{}: expected at most {}, got {}", name, most, size));
  }
  const int64_t tensor = request.tensor_parallel_size, pipeline = request.pipeline_parallel_size;
  // Each is compared first, as their product might leave 64 bits.
  if (tensor <= kMostRanks && pipeline <= kMostRanks &&
      request.world_size % (tensor * pipeline) == 0) {
    return {};
  }
  return WrongLayout(
      fmt::format("world_size: {} ranks cannot be shared out over tensor_parallel_size {} times "
                  "pipeline_parallel_size {}",
                  request.world_size, tensor, pipeline));
}

// Stages that have layers, and parts of the model on each rank.
Status SetStages(LayoutGrid& grid) {
  const LayoutRequest& request = grid.request;
  const int64_t pipeline = request.pipeline_parallel_size;
  grid.transformer_stages = request.standalone_embedding_stage ? pipeline - 1 : pipeline;
  if (grid.transformer_stages == 0) {
    return WrongLayout(
        "pipeline_parallel_size: with standalone_embedding_stage the first stage has no layers, so "
        "at least 2 are needed, got 1");
  }
  if (request.num_layers % grid.transformer_stages != 0) {
    return WrongLayout(
        fmt::format("num_layers: {} layers cannot be shared out over {} stages of the pipeline{}",
                    request.num_layers, grid.transformer_stages,
                    request.standalone_embedding_stage
                        ? " (pipeline_parallel_size - 1, with standalone_embedding_stage)"
                        : " (pipeline_parallel_size)"));
  }
  if (!request.num_layers_per_virtual_pipeline_stage) return {};
  const int64_t of_stage = request.num_layers / grid.transformer_stages;
  const int64_t of_part = *request.num_layers_per_virtual_pipeline_stage;
  if (of_stage % of_part != 0) {
    return WrongLayout(fmt::format(
        "num_layers_per_virtual_pipeline_stage: {} layers of a stage cannot be shared out over "
        "parts of {}",
        of_stage, of_part));
  }
  grid.virtual_stages = of_stage / of_part;
  if (grid.virtual_stages == 1 || pipeline > 1) return {};
  return WrongLayout(
      "pipeline_parallel_size: virtual stages need at least 2 stages of the pipeline, got 1");
}

// What one rank holds as its k-th part of the model.
std::string CellText(const LayoutGrid& grid, int64_t stage, int64_t part) {
  const LayoutRequest& request = grid.request;
  const int64_t first_stage = request.standalone_embedding_stage ? 1 : 0;
  std::vector<std::string> parts;
  if (stage == 0 && part == 0) parts.emplace_back("Embed");
  if (stage >= first_stage) {
    const int64_t layers = request.num_layers / grid.transformer_stages / grid.virtual_stages;
    const int64_t begin =
        part * (request.num_layers / grid.virtual_stages) + (stage - first_stage) * layers + 1;
    parts.push_back(fmt::format("L{}-{}", begin, begin + layers - 1));
  }
  const bool is_last = stage == request.pipeline_parallel_size - 1;
  if (is_last && part == grid.virtual_stages - 1) parts.emplace_back("Out");
  return fmt::format("{}", fmt::join(parts, "+"));
}

std::string RowLabel(size_t group, const std::vector<int64_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("Rank{}", ranks.front());
  const int64_t step = ranks[1] - ranks[0];
  const std::string every = step == 1 ? "" : fmt::format(" by {}", step);
  return fmt::format("Group{}: Ranks{}-{}{}", group, ranks.front(), ranks.back(), every);
}

// The copy of the model that each rank is part of: tensor and pipeline groups hold it together.
// Copies count from that of the smallest rank on.
std::vector<size_t> ReplicasOf(int64_t ranks, const RankGroups& tensor,
                               const RankGroups& pipeline) {
  std::vector<const std::vector<int64_t>*> tensor_of(static_cast<size_t>(ranks));
  for (const auto& group : tensor) {
    for (const int64_t rank : group) tensor_of[static_cast<size_t>(rank)] = &group;
  }
  // A pipeline has one rank of each tensor group of its copy, the first one of the first group too.
  std::vector<int64_t> first_of(static_cast<size_t>(ranks));
  for (const auto& group : pipeline) {
    for (const int64_t rank : group) {
      first_of[static_cast<size_t>(rank)] = tensor_of[static_cast<size_t>(group.front())]->front();
    }
  }
  const std::set<int64_t> firsts(first_of.begin(), first_of.end());
  std::map<int64_t, size_t> numbers;
  for (const int64_t first : firsts) numbers.emplace(first, numbers.size());
  std::vector<size_t> replicas;
  for (const int64_t first : first_of) replicas.push_back(numbers.at(first));
  return replicas;
}

}  // namespace

std::string LayoutGrid::title() const {
  return fmt::format("Layers: {} | DP={} | TP={} | PP={} | VPP={}", request.num_layers,
                     data_parallel_size, request.tensor_parallel_size,
                     request.pipeline_parallel_size, virtual_stages);
}

std::string LayoutGrid::name() const {
  return fmt::format("ws{}_ln{}_tp{}_pp{}_vpp{}", request.world_size, request.num_layers,
                     request.tensor_parallel_size, request.pipeline_parallel_size, virtual_stages);
}

Result<LayoutGrid> LayOutModel(const LayoutRequest& request) {
  LayoutGrid grid;
  grid.request = request;
  PL_TRY(CheckSizes(request));
  PL_TRY(SetStages(grid));
  grid.data_parallel_size =
      request.world_size / (request.tensor_parallel_size * request.pipeline_parallel_size);
  ParallelLayout layout;
  layout.ranks = request.world_size;
  layout.tensor = request.tensor_parallel_size;
  layout.pipeline = request.pipeline_parallel_size;
  layout.order = request.order;
  // Sizes are checked: what is left is the order.
  PL_TRY(CheckLayout(layout, static_cast<size_t>(request.world_size), "the ranks"));
  PL_TRY_ASSIGN(const RankGroups tensor, GroupsByArithmetic(layout, ParallelDimension::kTensor));
  PL_TRY_ASSIGN(const RankGroups pipeline,
                GroupsByArithmetic(layout, ParallelDimension::kPipeline));
  std::vector<int64_t> stage_of(static_cast<size_t>(request.world_size));
  for (const auto& group : pipeline) {
    for (size_t i = 0; i < group.size(); ++i) {
      stage_of[static_cast<size_t>(group[i])] = static_cast<int64_t>(i);
    }
  }
  const std::vector<size_t> replicas = ReplicasOf(request.world_size, tensor, pipeline);
  for (size_t i = 0; i < tensor.size(); ++i) {
    const auto first = static_cast<size_t>(tensor[i].front());
    LayoutRow row{tensor[i], RowLabel(i, tensor[i]), replicas[first], {}};
    for (int64_t part = 0; part < grid.virtual_stages; ++part) {
      row.cells.push_back(CellText(grid, stage_of[first], part));
    }
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

namespace {

// All lengths are in units of one pixel of the letters (plot_font.h).
struct Sizes {
  int left, top, cell_width, right, width, height;
};
constexpr int kRowHeight = 16, kGap = 1, kMargin = 8;
constexpr size_t kMostLegend = 40;  // copies of the model that are named

int TextWidth(size_t letters) { return static_cast<int>(letters) * plot_font::kAdvance; }

std::string LegendText(const LayoutGrid& grid, size_t replica) {
  if (replica + 1 == kMostLegend && static_cast<size_t>(grid.data_parallel_size) > kMostLegend) {
    return fmt::format("... {} copies", grid.data_parallel_size);
  }
  return fmt::format("Model copy {}", replica + 1);
}

size_t LegendLines(const LayoutGrid& grid) {
  return std::min(static_cast<size_t>(grid.data_parallel_size), kMostLegend);
}

Sizes SizesOf(const LayoutGrid& grid) {
  size_t label = 0, cell = 8;
  for (const LayoutRow& row : grid.rows) {
    label = std::max(label, row.label.size());
    for (const std::string& text : row.cells) cell = std::max(cell, text.size());
  }
  Sizes sizes{};
  sizes.left = kMargin + TextWidth(label) + kMargin;
  sizes.top = 4 * kMargin + 2 * plot_font::kHeight;
  sizes.cell_width = TextWidth(cell) + 2 * kMargin;
  const auto columns = static_cast<int>(grid.virtual_stages);
  sizes.right = sizes.left + columns * sizes.cell_width + kMargin;
  const int legend = TextWidth(16) + 3 * kMargin;
  sizes.width = std::max(sizes.right + legend, TextWidth(grid.title().size()) + 2 * kMargin);
  const auto lines = static_cast<int>(std::max(grid.rows.size(), LegendLines(grid)));
  sizes.height = sizes.top + lines * kRowHeight + kMargin;
  return sizes;
}

// Light colours, whose neighbours differ: the hue goes on by the golden angle.
png::Color ColorOf(size_t replica) {
  constexpr double kGolden = 0.6180339887498949, kStart = 0.58;
  constexpr double kSaturation = 0.45, kLight = 0.92;
  const double hue = std::fmod(kStart + static_cast<double>(replica) * kGolden, 1.0) * 6;
  const auto channel = [&](double shift) {
    const double place = std::fmod(shift + hue, 6.0);
    const double share = std::clamp(std::min(place, 4 - place), 0.0, 1.0);
    return static_cast<uint8_t>(std::lround(255 * kLight * (1 - kSaturation * share)));
  };
  return {channel(5), channel(3), channel(1)};
}

// What a picture is made of. `Canvas` has Box(x, y, width, height, color) and Text(x, y, text), of
// the upper left corner.
template <class Canvas>
void DrawGrid(const LayoutGrid& grid, const Sizes& sizes, Canvas& canvas) {
  constexpr int kTextDown = (kRowHeight - plot_font::kHeight) / 2;
  canvas.Text(kMargin, kMargin, grid.title());
  const auto middle = [&](int x, std::string_view text) {
    return x + (sizes.cell_width - TextWidth(text.size())) / 2;
  };
  for (int64_t part = 0; part < grid.virtual_stages; ++part) {
    const std::string text = fmt::format("Stage {}", part);
    const int x = sizes.left + static_cast<int>(part) * sizes.cell_width;
    canvas.Text(middle(x, text), sizes.top - plot_font::kHeight - kMargin / 2, text);
  }
  int y = sizes.top;
  for (const LayoutRow& row : grid.rows) {
    canvas.Text(kMargin, y + kTextDown, row.label);
    int x = sizes.left;
    for (const std::string& text : row.cells) {
      canvas.Box(x, y, sizes.cell_width - kGap, kRowHeight - kGap, ColorOf(row.replica));
      canvas.Text(middle(x, text), y + kTextDown, text);
      x += sizes.cell_width;
    }
    y += kRowHeight;
  }
  for (size_t i = 0; i < LegendLines(grid); ++i) {
    const int at = sizes.top + static_cast<int>(i) * kRowHeight;
    canvas.Box(sizes.right, at + kTextDown, plot_font::kHeight, plot_font::kHeight, ColorOf(i));
    canvas.Text(sizes.right + 2 * kMargin, at + kTextDown, LegendText(grid, i));
  }
}

class SvgCanvas {
 public:
  explicit SvgCanvas(const Sizes& sizes) {
    constexpr int kScale = 2;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} "
        "{}\" font-family=\"monospace\" font-size=\"9\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"#ffffff\"/>\n",
        sizes.width * kScale, sizes.height * kScale, sizes.width, sizes.height);
  }
  void Box(int x, int y, int width, int height, png::Color color) {
    text_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#{:02x}{:02x}{:02x}\"/>\n", x, y,
        width, height, color.red, color.green, color.blue);
  }
  // The texts have no letter that means something here.
  void Text(int x, int y, std::string_view text) {
    if (text.empty()) return;
    text_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>\n",
        x, y + plot_font::kHeight, TextWidth(text.size()), text);
  }
  std::string Take() { return std::move(text_) + "</svg>\n"; }

 private:
  std::string text_;
};

class PixelCanvas {
 public:
  PixelCanvas(const Sizes& sizes, int scale)
      : width_(sizes.width * scale),
        height_(sizes.height * scale),
        scale_(scale),
        pixels_(static_cast<size_t>(width_) * static_cast<size_t>(height_), {255, 255, 255}) {}

  void Box(int x, int y, int width, int height, png::Color color) {
    for (int down = y * scale_; down < (y + height) * scale_; ++down) {
      for (int right = x * scale_; right < (x + width) * scale_; ++right) {
        pixels_[static_cast<size_t>(down) * static_cast<size_t>(width_) +
                static_cast<size_t>(right)] = color;
      }
    }
  }
  void Text(int x, int y, std::string_view text) {
    plot_font::Draw(text, [&](int right, int down) { Box(x + right, y + down, 1, 1, {}); });
  }
  Result<std::string> FileBytes() const {
    return png::FileBytes(static_cast<uint32_t>(width_), static_cast<uint32_t>(height_), pixels_);
  }

 private:
  int width_, height_, scale_;
  std::vector<png::Color> pixels_;
};

}  // namespace

std::string LayoutSvg(const LayoutGrid& grid) {
  const Sizes sizes = SizesOf(grid);
  SvgCanvas canvas(sizes);
  DrawGrid(grid, sizes, canvas);
  return canvas.Take();
}

Result<std::string> LayoutPng(const LayoutGrid& grid) {
  const Sizes sizes = SizesOf(grid);
  constexpr int64_t kMostPixels = 60'000'000;
  for (const int scale : {4, 3, 2, 1}) {
    if (int64_t{sizes.width} * scale * sizes.height * scale > kMostPixels) continue;
    PixelCanvas canvas(sizes, scale);
    DrawGrid(grid, sizes, canvas);
    return canvas.FileBytes();
  }
  return WrongLayout(fmt::format("a PNG picture of {} by {} pixels is too large. Write a .svg",
                                 sizes.width, sizes.height));
}

std::string LayoutPath(const LayoutGrid& grid, const std::string& output) {
  if (output.ends_with(".svg") || output.ends_with(".png")) return output;
  return JoinPath(output, grid.name() + ".png");
}

Result<std::string> WriteLayout(const LayoutGrid& grid, const std::string& output) {
  const std::string path = LayoutPath(grid, output);
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
  if (path.ends_with(".svg")) {
    PL_TRY(WriteFileAtomically(path, LayoutSvg(grid), /*durable=*/false));
    return path;
  }
  PL_TRY_ASSIGN(const std::string bytes, LayoutPng(grid));
  PL_TRY(WriteFileAtomically(path, bytes, /*durable=*/false));
  return path;
}

}  // namespace plumbline::view

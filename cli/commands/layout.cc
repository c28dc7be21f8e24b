// plumb layout: a picture of which ranks hold which layers.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/process/log.h"
#include "commands.h"
#include "commands/natural_number.h"
#include "help_page.h"
#include "terminal.h"
#include "view/trends/layout_picture.h"
#include "vocabulary.h"

namespace plumbline::cli {
namespace {

struct LayoutArguments {
  view::LayoutRequest request;
  int64_t layers_of_part = 0;
  std::string output = "./";
};

Result<int> RunLayout(LayoutArguments& arguments, bool has_parts) {
  if (has_parts) {
    arguments.request.num_layers_per_virtual_pipeline_stage = arguments.layers_of_part;
  }
  PL_TRY_ASSIGN(const view::LayoutGrid grid, view::LayOutModel(arguments.request));
  PL_TRY_ASSIGN(const std::string path, view::WriteLayout(grid, arguments.output));
  Print(fmt::format("{}: {} ranks, {}\n", OneLine(path), grid.request.world_size, grid.title()));
  return 0;
}

}  // namespace

void AddLayoutCommand(CLI::App& app, int& exit_status) {
  const auto arguments = std::make_shared<LayoutArguments>();
  view::LayoutRequest& request = arguments->request;
  CLI::App* command = app.add_subcommand(
      "layout", "Draw which ranks of a parallel training hold which layers of the model.");
  const auto add_size = [&](const char* names, int64_t& size, const char* help) {
    return command->add_option(names, size, help)->check(NaturalNumber());
  };
  add_size("--world-size", request.world_size, "ranks, at most 1024")->required();
  add_size("--num-layers", request.num_layers, "layers of the model, at most 256")->required();
  add_size("--tp,--tensor-parallel-size", request.tensor_parallel_size,
           "ranks that share each layer")
      ->capture_default_str();
  add_size("--pp,--pipeline-parallel-size", request.pipeline_parallel_size,
           "stages that the layers are shared out over")
      ->capture_default_str();
  const CLI::Option* parts =
      add_size("--num-layers-per-virtual-pipeline-stage", arguments->layers_of_part,
               "layers of each of the parts that a stage holds; default: one part");
  command
      ->add_option("--order", request.order, "the dimension that varies fastest over ranks first")
      ->capture_default_str();
  command->add_flag("--standalone-embedding-stage", request.standalone_embedding_stage,
                    "the first stage has the embedding alone");
  AddOutput(*command, arguments->output,
            "picture that ends in .svg or .png, or a directory for ws8_ln16_tp2_pp2_vpp1.png")
      ->capture_default_str();
  command->footer(
      FooterText("", {"plumb layout --world-size 8 --num-layers 16 --tp 2 --pp 2 -o layout.svg",
                      "plumb layout --world-size 8 --num-layers 16 --tp 2 --pp 2 "
                      "--num-layers-per-virtual-pipeline-stage 2"}));
  command->callback([arguments, parts, &exit_status] {
    const Result<int> status = RunLayout(*arguments, parts->count() > 0);
    exit_status = status ? *status : ReportError("layout", status.error());
  });
}

}  // namespace plumbline::cli

#include "match/parameter_names.h"

#include <gtest/gtest.h>

namespace plumbline::match {
namespace {

CallItems CallOf(const std::string& name, const std::vector<std::string>& parts) {
  CallItems call;
  call.name = name;
  for (const std::string& part : parts) call.items.emplace_back().name = name + "." + part;
  return call;
}

using Parts = std::vector<std::string>;

Parts Mapped(const CallItems& target, const std::string& name, const CallItems& golden) {
  std::vector<CallItems> calls = {target};
  calls[0].mapped_name = name;
  MapParameters({golden}, calls);
  return calls[0].mapped_parts;
}

TEST(ParameterNames, OfCellsAreThoseOfModules) {
  EXPECT_EQ(ParameterInTorch("parameters.gamma"), "parameters.weight");
  EXPECT_EQ(ParameterInTorch("beta"), "bias");
  EXPECT_EQ(ParameterInTorch("embedding_table"), "weight");
  EXPECT_EQ(ParameterInTorch("parameters.moving_mean"), "parameters.running_mean");
  EXPECT_EQ(ParameterInTorch("parameters.moving_variance"), "parameters.running_var");
  EXPECT_FALSE(ParameterInTorch("parameters.weight"));
  EXPECT_FALSE(ParameterInTorch("input.gamma"));
  EXPECT_FALSE(ParameterInTorch("parameters.gamma.0"));
}

TEST(ParameterNames, OnlyNamesThatTheGoldenSideLacksAreMapped) {
  const CallItems cell =
      CallOf("Cell.n.LayerNorm.forward.0", {"input.0", "parameters.gamma", "output.0"});
  const std::string name = "Module.n.LayerNorm.forward.0";
  EXPECT_EQ(Mapped(cell, name, CallOf(name, {"input.0", "parameters.weight", "output.0"})),
            (Parts{"input.0", "parameters.weight", "output.0"}));
  EXPECT_EQ(Mapped(cell, name, CallOf(name, {"input.0", "parameters.gamma"})), Parts());
  EXPECT_EQ(Mapped(cell, name, CallOf("Module.other.LayerNorm.forward.0", {"input.0"})), Parts());
  // Without a mapping of cells.
  EXPECT_EQ(Mapped(cell, "", CallOf(name, {"input.0", "parameters.weight", "output.0"})),
            (Parts{"input.0", "parameters.weight", "output.0"}));
  const CallItems gradients = CallOf("Cell.n.LayerNorm.parameters_grad", {"gamma", "beta"});
  const std::string of_module = "Module.n.LayerNorm.parameters_grad";
  EXPECT_EQ(Mapped(gradients, of_module, CallOf(of_module, {"weight", "bias"})),
            (Parts{"weight", "bias"}));
}

TEST(ParameterNames, RunningStatisticsAreBuffersWhereGoldenHasThemSo) {
  const CallItems cell =
      CallOf("Cell.n.BatchNorm2d.forward.0", {"parameters.moving_mean", "output.0"});
  const std::string name = "Module.n.BatchNorm2d.forward.0";
  EXPECT_EQ(Mapped(cell, name, CallOf(name, {"output.0", "buffers.running_mean"})),
            (Parts{"buffers.running_mean", "output.0"}));
  EXPECT_EQ(Mapped(cell, name, CallOf(name, {"output.0", "parameters.running_mean"})),
            (Parts{"parameters.running_mean", "output.0"}));
}

}  // namespace
}  // namespace plumbline::match

#include "pipeline/ranks/micro_steps.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline {
namespace {

using dump_json::CallTree;
using Names = std::vector<std::string>;

CallTree Tree(const std::vector<std::pair<std::string, std::string>>& parents) {
  CallTree tree;
  for (const auto& [name, parent] : parents) tree.rows.push_back({name, parent, 0});
  return tree;
}

// "{micro step}:{name}" of every name.
Names Places(const CallTree& tree, const Names& names) {
  const Result<MicroSteps> steps = MicroSteps::Derive(tree, names);
  EXPECT_TRUE(steps);
  Names places;
  for (const std::string& name : names) {
    const MicroSteps::Place place = steps->Of(name);
    places.push_back(std::to_string(place.micro_step) + ":" + place.name);
  }
  return places;
}

TEST(MicroSteps, RootsAreModulesWithoutParent) {
  const CallTree tree = Tree({{"Torch.add.0.forward", ""},
                              {"Module.a.A.forward.0", "Module.n.N.forward.0"},
                              {"Module.n.N.forward.0", ""},
                              {"Module.n.N.forward.1", ""},
                              {"Module.n.N.backward.0", ""},
                              {"Cell.m.M.forward.0", ""}});
  EXPECT_EQ(RootNames(tree), (Names{"Module.n.N.forward.0", "Cell.m.M.forward.0"}));
}

TEST(MicroSteps, ModuleInsideOfARootIsNone) {
  const CallTree tree = Tree({{"Module.net.a.A.forward.0", ""},
                              {"Module.net.N.forward.0", ""},
                              {"Module.network.N.forward.0", ""},
                              {"Module.net.a.A.forward.1", ""},
                              {"Module.net.N.forward.1", ""},
                              {"Module.net.a.A.forward.2", ""}});
  EXPECT_EQ(RootNames(tree), (Names{"Module.net.N.forward.0", "Module.network.N.forward.0"}));
  EXPECT_EQ(Places(tree, {"Module.net.a.A.forward.0", "Module.net.N.forward.0",
                          "Module.net.a.A.forward.1", "Module.net.a.A.forward.2"}),
            (Names{"0:Module.net.a.A.forward.0", "0:Module.net.N.forward.0",
                   "0:Module.net.a.A.forward.1", "1:Module.net.a.A.forward.0"}));
}

TEST(MicroSteps, EveryCallOfTheFirstRootStartsOne) {
  const CallTree tree = Tree({{"Module.n.N.forward.0", ""},
                              {"Torch.add.5.forward", "Module.n.N.forward.0"},
                              {"Module.h.H.forward.0", ""},
                              {"Module.n.N.forward.1", ""},
                              {"Torch.add.9.forward", "Module.n.N.forward.1"},
                              {"Torch.add.8.forward", "Module.n.N.forward.1"},
                              {"Module.h.H.forward.1", ""}});
  EXPECT_EQ(Places(tree, {"Torch.add.5.forward", "Module.n.N.forward.0", "Module.h.H.forward.0",
                          "Torch.sub.0.forward", "Torch.add.8.forward", "Torch.add.9.forward",
                          "Module.n.N.forward.1", "Module.h.H.forward.1", "Torch.sub.1.forward",
                          "Torch.sub.1.backward", "Torch.add.9.backward", "Torch.sub.0.backward",
                          "Module.n.N.parameters_grad.1", "Module.n.N.parameters_grad"}),
            (Names{"0:Torch.add.0.forward", "0:Module.n.N.forward.0", "0:Module.h.H.forward.0",
                   "0:Torch.sub.0.forward", "1:Torch.add.0.forward", "1:Torch.add.1.forward",
                   "1:Module.n.N.forward.0", "1:Module.h.H.forward.0", "1:Torch.sub.0.forward",
                   "1:Torch.sub.0.backward", "1:Torch.add.1.backward", "0:Torch.sub.0.backward",
                   "1:Module.n.N.parameters_grad.0", "0:Module.n.N.parameters_grad"}));
}

TEST(MicroSteps, WithoutARootNothingChanges) {
  const Names names = {"Torch.add.3.forward", "x"};
  EXPECT_EQ(Places(Tree({{"Torch.add.3.forward", ""}}), names),
            (Names{"0:Torch.add.3.forward", "0:x"}));
  EXPECT_EQ(MicroSteps::Derive({}, names)->count(), 1);
}

TEST(MicroSteps, CycleOfParentsEnds) {
  const CallTree tree = Tree({{"Module.n.N.forward.0", ""},
                              {"Torch.add.0.forward", "Torch.sub.0.forward"},
                              {"Torch.sub.0.forward", "Torch.add.0.forward"},
                              {"Torch.mul.0.forward", "Torch.mul.0.forward"}});
  EXPECT_EQ(Places(tree, {"Torch.add.0.forward", "Torch.mul.0.forward"}),
            (Names{"0:Torch.add.0.forward", "0:Torch.mul.0.forward"}));
}

TEST(MicroSteps, CountsOfTheFileWin) {
  CallTree tree = Tree({{"Torch.add.1.backward", ""}, {"Torch.add.1.forward", ""}});
  tree.rows[0].micro_step = 3;
  tree.rows[1].micro_step = 2;
  tree.has_micro_steps = true;
  tree.last_micro_step = 4;
  EXPECT_EQ(MicroSteps::Derive(tree, {})->count(), 5);
  EXPECT_EQ(Places(tree, {"Torch.add.1.forward", "Torch.add.1.backward", "Torch.sub.0.forward"}),
            (Names{"2:Torch.add.0.forward", "2:Torch.add.0.backward", "2:Torch.sub.0.forward"}));
  tree.rows[1].micro_step = -1;
  EXPECT_EQ(MicroSteps::Derive(tree, {}).error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace plumbline

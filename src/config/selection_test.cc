#include "config/selection.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/risk_levels.h"

namespace plumbline {
namespace {

using Names = std::vector<std::string>;

Config With(Level level, Names scope, Names list) {
  Config config;
  config.level = level;
  config.scope = std::move(scope);
  config.list = std::move(list);
  return config;
}

// Feeds a program of events: a plain name is an API, "<name" a module that begins, ">name" one that
// ends. Returns the entries selected, in the order in which they complete.
Names Selected(const Config& config, const Names& program) {
  auto selection = Selection::Create(config);
  Names selected;
  if (!selection) return {selection.error().message()};
  for (const std::string& event : program) {
    const std::string name = event.substr(1);
    if (event[0] == '<') {
      selection->EnterModule(name);
    } else if (event[0] == '>') {
      if (selection->LeaveModule(name)) selected.push_back(name);
    } else if (selection->SelectApi(event)) {
      selected.push_back(event);
    }
  }
  return selected;
}

const Names kApiProgram = {"Functional.linear.0.forward",     "Functional.relu.0.forward",
                           "Functional.linear.1.forward",     "Tensor.add.0.forward",
                           "Functional.layer_norm.0.forward", "Tensor.sum.0.forward",
                           "Tensor.sum.0.backward",           "Functional.layer_norm.0.backward",
                           "Tensor.add.0.backward",           "Functional.linear.1.backward",
                           "Functional.relu.0.backward",      "Functional.linear.0.backward"};

TEST(Selection, NoFilterSelectsEverything) {
  EXPECT_EQ(Selected(With(Level::kL1, {}, {}), kApiProgram), kApiProgram);
}

TEST(Selection, ApiRangeIncludesBothEnds) {
  EXPECT_EQ(Selected(With(Level::kL1,
                          {"Functional.linear.1.forward", "Functional.layer_norm.0.forward"}, {}),
                     kApiProgram),
            (Names{"Functional.linear.1.forward", "Tensor.add.0.forward",
                   "Functional.layer_norm.0.forward"}));
}

TEST(Selection, ApiRangeMaySpanForwardAndBackward) {
  EXPECT_EQ(Selected(With(Level::kL1,
                          {"Functional.linear.1.forward", "Functional.linear.1.backward"}, {}),
                     kApiProgram),
            Names(kApiProgram.begin() + 2, kApiProgram.begin() + 10));
}

TEST(Selection, RangeReopensWithItsStartNameAndStaysOpenWithoutAnEnd) {
  Names two_steps = {"Torch.a.0.forward", "Torch.b.0.forward", "Torch.c.0.forward",
                     "Torch.a.0.forward", "Torch.b.0.forward", "Torch.c.0.forward"};
  EXPECT_EQ(
      Selected(With(Level::kL1, {"Torch.a.0.forward", "Torch.b.0.forward"}, {}), two_steps),
      (Names{"Torch.a.0.forward", "Torch.b.0.forward", "Torch.a.0.forward", "Torch.b.0.forward"}));
  EXPECT_EQ(
      Selected(With(Level::kL1, {"Torch.c.0.forward", "Torch.z.0.forward"}, {}), two_steps).size(),
      4U);
}

TEST(Selection, RangeOfOneNameSelectsThatEntry) {
  EXPECT_EQ(
      Selected(With(Level::kL1, {"Tensor.add.0.forward", "Tensor.add.0.forward"}, {}), kApiProgram),
      (Names{"Tensor.add.0.forward"}));
}

TEST(Selection, ListKeepsNamesThatContainAnItem) {
  EXPECT_EQ(
      Selected(With(Level::kL1, {}, {"relu", "sum.0.forward"}), kApiProgram),
      (Names{"Functional.relu.0.forward", "Tensor.sum.0.forward", "Functional.relu.0.backward"}));
  EXPECT_EQ(Selected(With(Level::kL1, {}, {"RELU"}), kApiProgram), Names{});
  // A substring, not a whole component.
  EXPECT_EQ(Selected(With(Level::kL1, {}, {"linear.1"}),
                     {"Functional.linear.1.forward", "Functional.linear.10.forward"})
                .size(),
            2U);
}

TEST(Selection, ScopeAndListMustBothPass) {
  EXPECT_EQ(
      Selected(With(Level::kL1, {"Functional.linear.1.forward", "Functional.layer_norm.0.forward"},
                    {"linear"}),
               kApiProgram),
      (Names{"Functional.linear.1.forward"}));
}

TEST(Selection, PatternsInLists) {
  EXPECT_EQ(Selected(With(Level::kL1, {}, {"re:(relu|sum)\\..*backward$", "*.add.0.forward"}),
                     kApiProgram),
            (Names{"Tensor.add.0.forward", "Tensor.sum.0.backward", "Functional.relu.0.backward"}));
  EXPECT_EQ(Selected(With(Level::kL1, {}, {"Functional.linear.[1-9].*"}), kApiProgram),
            (Names{"Functional.linear.1.forward", "Functional.linear.1.backward"}));
  // At mix a pattern of a module keeps what runs inside it.
  EXPECT_EQ(Selected(With(Level::kMix, {}, {"Module.b*.forward.*"}),
                     {"<Module.a.A.forward.0", "Torch.x.0.forward", ">Module.a.A.forward.0",
                      "<Module.b.B.forward.0", "Torch.x.1.forward", ">Module.b.B.forward.0"}),
            (Names{"Torch.x.1.forward", "Module.b.B.forward.0"}));
}

TEST(Selection, PatternsOfARangeOpenAtAnyMatchAndCloseBehindOne) {
  const Names program = {"Torch.a.0.forward", "Torch.b.0.forward", "Torch.c.0.forward",
                         "Torch.d.0.forward", "Torch.a.1.forward", "Torch.c.1.forward",
                         "Torch.a.2.forward"};
  EXPECT_EQ(Selected(With(Level::kL1, {"re:\\.b\\.", "Torch.c.*"}, {}), program),
            (Names{"Torch.b.0.forward", "Torch.c.0.forward"}));
  EXPECT_EQ(Selected(With(Level::kL1, {"Torch.a.*", "Torch.b.*"}, {}), program),
            (Names{"Torch.a.0.forward", "Torch.b.0.forward", "Torch.a.1.forward",
                   "Torch.c.1.forward", "Torch.a.2.forward"}));
  // Both ends match: ranges of one entry each.
  EXPECT_EQ(Selected(With(Level::kL1, {"Torch.a.*", "Torch.a.*"}, {}), program),
            (Names{"Torch.a.0.forward", "Torch.a.1.forward", "Torch.a.2.forward"}));
  // One end may be a pattern and the other a name.
  EXPECT_EQ(Selected(With(Level::kL1, {"Torch.c.0.forward", "*.a.1.*"}, {}), program),
            (Names{"Torch.c.0.forward", "Torch.d.0.forward", "Torch.a.1.forward"}));
}

TEST(Selection, AModuleRangeOfAPatternEndsWithTheOutermostModuleThatMatches) {
  const Names program = {"<Module.in.I.forward.0", ">Module.in.I.forward.0",
                         "<Module.l.0.B.forward.0", "<Module.l.0.at.A.forward.0",
                         ">Module.l.0.at.A.forward.0", "<Module.l.0.mlp.M.forward.0",
                         ">Module.l.0.mlp.M.forward.0", ">Module.l.0.B.forward.0",
                         "<Module.out.O.forward.0", ">Module.out.O.forward.0"};
  const Names blocks = {"Module.l.0.at.A.forward.0", "Module.l.0.mlp.M.forward.0",
                        "Module.l.0.B.forward.0"};
  EXPECT_EQ(Selected(With(Level::kL0, {"Module.l.*", "Module.l.*"}, {}), program), blocks);
  EXPECT_EQ(
      Selected(With(Level::kL0, {"re:^Module\\.l\\.0\\.B\\.", "Module.l.*.B.*"}, {}), program),
      blocks);
  // At mix an API inside such a module does not close it.
  EXPECT_EQ(Selected(With(Level::kMix, {"re:B\\.forward", "re:B\\.forward|Torch"}, {}),
                     {"<Module.b.B.forward.0", "Torch.x.0.forward", "Torch.y.0.forward",
                      ">Module.b.B.forward.0", "Torch.z.0.forward"}),
            (Names{"Torch.x.0.forward", "Torch.y.0.forward", "Module.b.B.forward.0"}));
}

TEST(Selection, PatternsThatAreNoExpressionsAreRefused) {
  for (const auto& [scope, list] : {std::pair<Names, Names>{{}, {"re:["}},
                                    std::pair<Names, Names>{{"re:(", "re:a"}, {}}}) {
    const auto selection = Selection::Create(With(Level::kMix, scope, list));
    ASSERT_FALSE(selection);
    EXPECT_EQ(selection.error().code(), ErrorCode::kInvalidArgument);
    const std::string field = list.empty() ? "statistics.scope" : "statistics.list";
    EXPECT_EQ(selection.error().message().rfind(field + ": is \"re:", 0), 0U);
  }
}

TEST(Selection, TensorsOfEntriesThatMatchAreStored) {
  Config config;
  config.tensor_list = {"relu", "re:linear\\.1\\."};
  const Selection selection = *Selection::Create(config);
  EXPECT_TRUE(selection.selects_all());
  EXPECT_TRUE(selection.SavesTensors("Functional.relu.3.backward"));
  EXPECT_TRUE(selection.SavesTensors("Functional.linear.1.forward"));
  EXPECT_FALSE(selection.SavesTensors("Functional.linear.11.forward"));
}

TEST(Selection, NamesThatNeedNotBeTested) {
  const Selection list = *Selection::Create(With(Level::kL1, {}, {"relu"}));
  EXPECT_TRUE(list.MaySelectApi("Functional.relu.0.backward"));
  EXPECT_FALSE(list.MaySelectApi("Functional.linear.0.backward"));
  // A running module may select any API inside it.
  EXPECT_TRUE(Selection::Create(With(Level::kMix, {}, {"relu"}))
                  ->MaySelectApi("Functional.linear.0.backward"));
  // The ends of a range move it, whatever the list says.
  const Names ends = {"Tensor.a.0.forward", "Tensor.a.0.backward"};
  const Selection both = *Selection::Create(With(Level::kL1, ends, {"relu"}));
  for (const std::string& end : ends) EXPECT_TRUE(both.MaySelectApi(end));
  EXPECT_FALSE(both.MaySelectApi("Tensor.a.1.backward"));
}

TEST(Selection, GradientsOfParametersFollowTheModuleAndTheRange) {
  const Selection list = *Selection::Create(With(Level::kL0, {}, {"norm"}));
  EXPECT_TRUE(list.SelectGradients("Module.norm.LayerNorm"));
  EXPECT_FALSE(list.SelectGradients("Module.fc.Linear"));
  Selection range =
      *Selection::Create(With(Level::kL0, {"Module.b.B.backward.0", "Module.a.A.backward.0"}, {}));
  EXPECT_FALSE(range.SelectGradients("Module.b.B"));
  range.EnterModule("Module.b.B.backward.0");
  EXPECT_TRUE(range.SelectGradients("Module.b.B"));
  EXPECT_TRUE(range.LeaveModule("Module.a.A.backward.0"));
  EXPECT_FALSE(range.SelectGradients("Module.a.A"));
  Selection mix = *Selection::Create(With(Level::kMix, {}, {"Module.b.B.backward.0"}));
  EXPECT_FALSE(mix.SelectGradients("Module.b.B"));
  mix.EnterModule("Module.b.B.backward.0");
  EXPECT_TRUE(mix.SelectGradients("Module.b.B"));
}

const Names kModuleProgram = {"<Module.a.Blk.forward.0",        "<Module.a.fc.Linear.forward.0",
                              ">Module.a.fc.Linear.forward.0",  ">Module.a.Blk.forward.0",
                              "<Module.b.Blk.forward.0",        "<Module.b.fc.Linear.forward.0",
                              ">Module.b.fc.Linear.forward.0",  ">Module.b.Blk.forward.0",
                              "<Module.c.Linear.forward.0",     ">Module.c.Linear.forward.0",
                              "<Module.b.Blk.backward.0",       "<Module.b.fc.Linear.backward.0",
                              ">Module.b.fc.Linear.backward.0", ">Module.b.Blk.backward.0"};

TEST(Selection, ModuleScopeOfOneNameTakesItsContents) {
  EXPECT_EQ(Selected(With(Level::kL0, {"Module.b.Blk.forward.0", "Module.b.Blk.forward.0"}, {}),
                     kModuleProgram),
            (Names{"Module.b.fc.Linear.forward.0", "Module.b.Blk.forward.0"}));
}

TEST(Selection, ModuleRangeRunsFromBeginOfFirstToEndOfLast) {
  EXPECT_EQ(
      Selected(With(Level::kL0, {"Module.a.fc.Linear.forward.0", "Module.b.Blk.forward.0"}, {}),
               kModuleProgram),
      (Names{"Module.a.fc.Linear.forward.0", "Module.a.Blk.forward.0",
             "Module.b.fc.Linear.forward.0", "Module.b.Blk.forward.0"}));
  EXPECT_EQ(Selected(With(Level::kL0, {"Module.c.Linear.forward.0", "Module.b.Blk.backward.0"}, {}),
                     kModuleProgram),
            (Names{"Module.c.Linear.forward.0", "Module.b.fc.Linear.backward.0",
                   "Module.b.Blk.backward.0"}));
}

TEST(Selection, ListAtL0IsASubstringWithoutExpansion) {
  EXPECT_EQ(Selected(With(Level::kL0, {}, {"Module.b.Blk.forward.0"}), kModuleProgram),
            (Names{"Module.b.Blk.forward.0"}));
}

const Names kMixProgram = {"<Module.b.Blk.forward.0",       "Torch.cat.0.forward",
                           "<Module.b.fc.Linear.forward.0", "Functional.linear.0.forward",
                           ">Module.b.fc.Linear.forward.0", ">Module.b.Blk.forward.0",
                           "Tensor.sum.0.forward",          "<Module.b.Blk.backward.0",
                           "Functional.linear.0.backward",  ">Module.b.Blk.backward.0"};

TEST(Selection, MixListExpandsARunningModule) {
  EXPECT_EQ(Selected(With(Level::kMix, {}, {"Module.b.Blk.forward.0"}), kMixProgram),
            (Names{"Torch.cat.0.forward", "Functional.linear.0.forward",
                   "Module.b.fc.Linear.forward.0", "Module.b.Blk.forward.0"}));
}

TEST(Selection, MixListOfAnApiKeepsOnlyIt) {
  EXPECT_EQ(Selected(With(Level::kMix, {}, {"sum"}), kMixProgram), (Names{"Tensor.sum.0.forward"}));
}

TEST(Selection, MixRangeMayStartAtAnApiAndEndAtAModule) {
  EXPECT_EQ(
      Selected(With(Level::kMix, {"Functional.linear.0.forward", "Module.b.Blk.backward.0"}, {}),
               kMixProgram),
      (Names{"Functional.linear.0.forward", "Module.b.fc.Linear.forward.0",
             "Module.b.Blk.forward.0", "Tensor.sum.0.forward", "Functional.linear.0.backward",
             "Module.b.Blk.backward.0"}));
}

struct BadScope {
  Level level;
  Names scope;
  const char* named;  // must be in the message
};

TEST(Selection, ScopesThatAreNotTwoCompleteNamesOfTheLevel) {
  const BadScope cases[] = {
      {Level::kL1, {"Torch.a.0.forward"}, "2 names, not 1"},
      {Level::kL1,
       {"Torch.a.0.forward", "Torch.a.0.forward", "Torch.a.0.forward"},
       "2 names, not 3"},
      {Level::kL1, {"relu", "Torch.a.0.forward"}, "\"relu\""},
      {Level::kL1, {"Torch.a.0.forward", "Torch.a.forward"}, "\"Torch.a.forward\""},
      {Level::kL1, {"Torch.a.x.forward", "Torch.a.0.forward"}, "\"Torch.a.x.forward\""},
      {Level::kL1, {"Torch.a.0.sideways", "Torch.a.0.forward"}, "\"Torch.a.0.sideways\""},
      {Level::kL1, {".a.0.forward", "Torch.a.0.forward"}, "\".a.0.forward\""},
      {Level::kL1, {"Module.a.B.forward.0", "Torch.a.0.forward"}, "\"Module.a.B.forward.0\""},
      {Level::kL0, {"Module.a.B.forward.0", "Torch.a.0.forward"}, "\"Torch.a.0.forward\""},
      {Level::kL0, {"Module.forward.0", "Module.a.B.forward.0"}, "\"Module.forward.0\""},
      {Level::kMix, {"Module.a.B.forward.0", "a"}, "\"a\""},
      {Level::kMix, {"", ""}, "\"\""},
  };
  for (const BadScope& bad : cases) {
    const auto selection = Selection::Create(With(bad.level, bad.scope, {}));
    ASSERT_FALSE(selection) << bad.named;
    EXPECT_EQ(selection.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(selection.error().message().find(bad.named), std::string::npos)
        << selection.error().message();
  }
}

TEST(Selection, NamesWithDotsInsideAreComplete) {
  EXPECT_TRUE(Selection::Create(
      With(Level::kL1, {"Torch.linalg.norm.0.forward", "Aten.add.Tensor.12.backward"}, {})));
  EXPECT_TRUE(Selection::Create(
      With(Level::kL1, {"my_package.kernels.rms_norm.0.forward", "Own.f.1.backward"}, {})));
  EXPECT_TRUE(Selection::Create(
      With(Level::kL0, {"Module.0.l.1.Conv2d.forward.0", "Cell.relu.ReLU.backward.3"}, {})));
}

TEST(DataMode, DefaultWantsEveryPart) {
  const DataMode all;
  for (const CallKind kind : {CallKind::kForward, CallKind::kBackward, CallKind::kOther}) {
    EXPECT_TRUE(WantsInput(all, kind));
    EXPECT_TRUE(WantsOutput(all, kind));
  }
}

TEST(DataMode, PartsNeedTheirDirectionAndTheirSide) {
  for (int bits = 0; bits < 16; ++bits) {
    const DataMode mode{.forward = (bits & 1) != 0,
                        .backward = (bits & 2) != 0,
                        .input = (bits & 4) != 0,
                        .output = (bits & 8) != 0};
    EXPECT_EQ(WantsInput(mode, CallKind::kForward), mode.forward && mode.input);
    EXPECT_EQ(WantsOutput(mode, CallKind::kForward), mode.forward && mode.output);
    EXPECT_EQ(WantsInput(mode, CallKind::kBackward), mode.backward && mode.input);
    EXPECT_EQ(WantsOutput(mode, CallKind::kBackward), mode.backward && mode.output);
    EXPECT_EQ(WantsDirection(mode, CallKind::kParametersGrad), mode.backward);
  }
}

TEST(StepAndRank, Filters) {
  Config config;
  EXPECT_TRUE(WantsStep(config, 7));
  EXPECT_FALSE(IsPastLastStep(config, 7));
  EXPECT_TRUE(WantsRank(config, std::nullopt));
  config.steps = {1, 3};
  config.ranks = {0, 2};
  EXPECT_FALSE(WantsStep(config, 0));
  EXPECT_TRUE(WantsStep(config, 3));
  EXPECT_FALSE(IsPastLastStep(config, 3));
  EXPECT_TRUE(IsPastLastStep(config, 4));
  EXPECT_TRUE(WantsRank(config, 2));
  EXPECT_FALSE(WantsRank(config, 1));
  EXPECT_FALSE(WantsRank(config, std::nullopt));
}

TEST(RiskLevel, ClassesOfNames) {
  const auto keeps = [](RiskLevel level, std::string_view name) { return IsAtRisk(level, name); };
  for (const char* core : {"Functional.linear.0.forward", "Torch.chain_matmul.3.backward",
                           "Tensor.__matmul__.12.forward", "Torch.linalg.multi_dot.0.forward",
                           "Distributed.barrier.0.forward", "NPU.npu_rotary_mul.1.forward"}) {
    EXPECT_TRUE(keeps(RiskLevel::kCore, core)) << core;
    EXPECT_TRUE(keeps(RiskLevel::kFocus, core)) << core;
  }
  EXPECT_TRUE(keeps(RiskLevel::kFocus, "Functional.relu.0.forward"));
  EXPECT_FALSE(keeps(RiskLevel::kCore, "Functional.relu.0.forward"));
  EXPECT_FALSE(keeps(RiskLevel::kFocus, "Torch.arange.0.forward"));
  EXPECT_FALSE(keeps(RiskLevel::kCore, "Torch.arange.0.forward"));
  EXPECT_TRUE(keeps(RiskLevel::kAll, "Torch.arange.0.forward"));
}

TEST(RiskLevel, ModulesAndListedNamesPass) {
  Config config;
  config.risk_level = RiskLevel::kCore;
  config.level = Level::kMix;
  Selection selection = *Selection::Create(config);
  EXPECT_FALSE(selection.selects_all());
  EXPECT_FALSE(selection.SelectApi("Functional.relu.0.forward"));
  selection.EnterModule("Module.act.ReLU.forward.0");
  EXPECT_TRUE(selection.LeaveModule("Module.act.ReLU.forward.0"));
  config.list = {"relu"};
  selection = *Selection::Create(config);
  EXPECT_TRUE(selection.SelectApi("Functional.relu.0.forward"));
}

}  // namespace
}  // namespace plumbline

#include "match/name_match.h"

#include <gtest/gtest.h>

namespace plumbline::match {

namespace {

Item TensorItem(const std::string& name, const std::string& dtype, const std::string& shape,
                ItemRole role) {
  Item item;
  item.name = name;
  item.is_tensor = true;
  item.dtype = dtype;
  item.shape_text = shape;
  item.role = role;
  return item;
}

CallItems NamedCall(const std::string& name, const std::string& shape = "[2]",
                    const std::string& dtype = "torch.float32") {
  CallItems call;
  call.name = name;
  call.items = {TensorItem(name + ".input.0", dtype, shape, ItemRole::kInput),
                TensorItem(name + ".output.0", dtype, shape, ItemRole::kOutput)};
  return call;
}

std::string Described(const std::vector<CallPair>& pairs) {
  std::string text;
  for (const CallPair& pair : pairs) {
    const auto index = [](size_t i) { return i == CallPair::kNone ? "-" : std::to_string(i); };
    text += index(pair.target) + ":" + index(pair.golden) + (pair.reason.empty() ? "" : "!") + " ";
  }
  return text;
}

TEST(NameMatch, NothingIsLostWhenGoldenEndsEarly) {
  // Upstream stops reading here and reports two of the five calls.
  const std::vector<CallItems> target = {NamedCall("A"), NamedCall("X1"), NamedCall("X2"),
                                         NamedCall("X3"), NamedCall("X4")};
  EXPECT_EQ(Described(MatchCalls(target, {NamedCall("A")})), "0:0 1:-! 2:-! 3:-! 4:-! ");
}

TEST(NameMatch, GoldenOnlyCallsAreReported) {
  const auto pairs = MatchCalls({NamedCall("A")}, {NamedCall("B"), NamedCall("A")});
  EXPECT_EQ(Described(pairs), "0:1 -:0! ");
  EXPECT_EQ(pairs[1].reason, "no-target");
}

TEST(NameMatch, SwappedOrderStillPairs) {
  EXPECT_EQ(
      Described(MatchCalls({NamedCall("A"), NamedCall("B")}, {NamedCall("B"), NamedCall("A")})),
      "0:1 1:0 ");
}

TEST(NameMatch, OtherShapeIsUnmatchedOnBothSides) {
  const auto pairs = MatchCalls({NamedCall("A", "[2]")}, {NamedCall("A", "[3]")});
  EXPECT_EQ(Described(pairs), "0:-! -:0! ");
  EXPECT_EQ(pairs[0].reason, "shape-differs");
  EXPECT_EQ(pairs[1].reason, "shape-differs");
  EXPECT_EQ(pairs[0].detail, "A.input.0: target [2], golden [3]");
}

TEST(NameMatch, LooseFloatsPairAndOthersDoNot) {
  const auto reason = [](const char* a, const char* b) {
    return MatchCalls({NamedCall("A", "[2]", a)}, {NamedCall("A", "[2]", b)})[0].reason;
  };
  EXPECT_EQ(reason("torch.float32", "torch.bfloat16"), "");  // refused by 1.2.2
  EXPECT_EQ(reason("torch.float16", "torch.float32"), "");
  EXPECT_EQ(reason("torch.float16", "torch.bfloat16"), "");
  EXPECT_EQ(reason("Float16", "torch.float32"), "");
  EXPECT_EQ(reason("torch.float64", "torch.float32"), "dtype-differs");
  EXPECT_EQ(reason("torch.int64", "torch.int32"), "dtype-differs");
}

TEST(NameMatch, ExtraArgumentIsAStructureDifference) {
  CallItems longer = NamedCall("A");
  longer.items.insert(longer.items.begin() + 1,
                      TensorItem("A.input.1", "torch.float32", "[2]", ItemRole::kInput));
  EXPECT_EQ(MatchCalls({longer}, {NamedCall("A")})[0].reason, "structure-differs");
}

TEST(NameMatch, FuzzyPairsByOccurrence) {
  const std::vector<CallItems> target = {NamedCall("T.f.0.backward"), NamedCall("T.f.2.backward"),
                                         NamedCall("T.f.4.backward")};
  const std::vector<CallItems> golden = {NamedCall("T.f.0.backward"), NamedCall("T.f.1.backward"),
                                         NamedCall("T.f.2.backward")};
  EXPECT_EQ(Described(MatchCalls(target, golden, {.fuzzy = true})), "0:0 1:1 2:2 ");
}

TEST(NameMatch, FuzzyAlignsByShapeWhenCountsDiffer) {
  const std::vector<CallItems> target = {NamedCall("T.f.0.forward", "[1]"),
                                         NamedCall("T.f.1.forward", "[2]"),
                                         NamedCall("T.f.2.forward", "[3]")};
  const std::vector<CallItems> golden = {NamedCall("T.f.0.forward", "[2]"),
                                         NamedCall("T.f.1.forward", "[3]")};
  EXPECT_EQ(Described(MatchCalls(target, golden, {.fuzzy = true})), "0:-! 1:0 2:1 ");
}

std::string RulesOf(const std::vector<CallPair>& pairs) {
  std::string text;
  for (const CallPair& pair : pairs) text += std::string(pair.rule) + pair.reason + " ";
  return text;
}

TEST(NameMatch, RecomputedBackwardCallsPairByOrder) {
  const std::vector<CallItems> target = {NamedCall("T.f.0.backward"), NamedCall("T.f.2.backward"),
                                         NamedCall("T.f.4.backward")};
  const std::vector<CallItems> golden = {NamedCall("T.f.0.backward"), NamedCall("T.f.1.backward"),
                                         NamedCall("T.f.2.backward")};
  const auto pairs = MatchCalls(target, golden);
  EXPECT_EQ(Described(pairs), "0:0 1:1 2:2 ");
  EXPECT_EQ(RulesOf(pairs), " renumbered renumbered ");
}

TEST(NameMatch, RecomputedForwardCallsDoNotTakeOthersPlaces) {
  // Two micro batches; the target runs each call again in the backward pass.
  std::vector<CallItems> target = {NamedCall("T.f.0.forward"), NamedCall("T.f.1.forward"),
                                   NamedCall("T.f.2.forward"), NamedCall("T.f.3.forward")};
  target[1].recomputed = target[3].recomputed = true;
  const std::vector<CallItems> golden = {NamedCall("T.f.0.forward"), NamedCall("T.f.1.forward")};
  const auto pairs = MatchCalls(target, golden);
  EXPECT_EQ(Described(pairs), "0:0 1:-! 2:1 3:-! ");
  EXPECT_EQ(RulesOf(pairs), " recomputed renumbered recomputed ");
}

TEST(NameMatch, WrappedModulesPair) {
  for (const char* wrapped :
       {"Module.module.fc.Linear.forward.0",
        "Module._orig_mod.fc.Linear."
        "forward.0",
        "Module._fsdp_wrapped_module.fc.FSDPLinear.forward.0", "Cell.module.fc.Linear.forward.0"}) {
    const auto pairs = MatchCalls({NamedCall(wrapped)}, {NamedCall("Module.fc.Linear.forward.0")});
    EXPECT_EQ(Described(pairs), "0:0 ") << wrapped;
    EXPECT_EQ(RulesOf(pairs), "unwrapped ");
    EXPECT_EQ(
        Described(MatchCalls({NamedCall("Module.fc.Linear.forward.0")}, {NamedCall(wrapped)})),
        "0:0 ");
  }
}

TEST(NameMatch, ModulesNamedLikeWrappersKeepTheirNames) {
  const std::vector<CallItems> calls = {NamedCall("Module.module.fc.Linear.forward.0"),
                                        NamedCall("Module.fc.Linear.forward.0")};
  const auto pairs = MatchCalls(calls, {calls[1], calls[0]});
  EXPECT_EQ(Described(pairs), "0:1 1:0 ");
  EXPECT_EQ(RulesOf(pairs), "  ");
}

TEST(NameMatch, RenamedModulesPairAtTheSamePlace) {
  const std::vector<CallItems> target = {NamedCall("A"), NamedCall("Module.dense.Linear.forward.0"),
                                         NamedCall("B")};
  const std::vector<CallItems> golden = {NamedCall("A"), NamedCall("Module.fc.Linear.forward.0"),
                                         NamedCall("B")};
  const auto pairs = MatchCalls(target, golden);
  EXPECT_EQ(Described(pairs), "0:0 1:1 2:2 ");
  EXPECT_EQ(RulesOf(pairs), " renamed  ");
  // At another place, and of another class.
  EXPECT_EQ(Described(MatchCalls(target, {golden[1], golden[0], golden[2]})), "0:1 1:-! 2:2 -:0! ");
  EXPECT_EQ(Described(MatchCalls({NamedCall("Module.a.Linear.forward.0")},
                                 {NamedCall("Module.a.Norm.forward.0")})),
            "0:-! -:0! ");
}

TEST(NameMatch, AnExtraCallShiftsNoOther) {
  const std::vector<CallItems> target = {
      NamedCall("T.add.0.forward"), NamedCall("T.relu.0.forward"), NamedCall("T.add.1.forward"),
      NamedCall("T.add.2.forward")};
  const std::vector<CallItems> golden = {
      NamedCall("T.add.0.forward"), NamedCall("T.relu.0.forward"), NamedCall("T.add.1.forward")};
  MatchOptions options;
  const std::vector<std::string> target_sites = {"one", "two", "extra", "three"};
  const std::vector<std::string> golden_sites = {"one", "two", "three"};
  options.target_site = [&](size_t i) { return target_sites[i]; };
  options.golden_site = [&](size_t j) { return golden_sites[j]; };
  EXPECT_EQ(Described(MatchCalls(target, golden, options)), "0:0 1:1 2:-! 3:2 ");
  EXPECT_EQ(Described(MatchCalls(target, golden)), "0:0 1:1 2:2 3:-! ");  // nothing tells them
}

// With a scalar argument of this value.
CallItems ScaledBy(const std::string& name, const std::string& value) {
  CallItems call = NamedCall(name);
  Item argument;
  argument.name = name + ".input.1";
  argument.dtype = "<class 'float'>";
  argument.digest = value;
  call.items.insert(call.items.begin() + 1, argument);
  return call;
}

TEST(NameMatch, OfMoreCallsOnOneSideThatWithTheSameArgumentPairs) {
  const auto mul = [](int number, const std::string& value) {
    return ScaledBy("Tensor.__mul__." + std::to_string(number) + ".forward", value);
  };
  const std::vector<CallItems> golden = {mul(0, "0.9"), mul(1, "0.1"), mul(2, "0.98"),
                                         mul(3, "0.02")};
  // In place, and therefore under another name.
  EXPECT_EQ(Described(MatchCalls({ScaledBy("Tensor.mul_.0.forward", "0.98")}, golden)),
            "0:2 -:0! -:1! -:3! ");
  // A wrong argument stays where it is.
  EXPECT_EQ(
      Described(MatchCalls({mul(0, "0.9"), mul(1, "0.3"), mul(2, "0.98"), mul(3, "0.02")}, golden)),
      "0:0 1:1 2:2 3:3 ");
  EXPECT_EQ(Described(MatchCalls({mul(0, "0.9"), mul(1, "0.02"), mul(2, "0.98")}, golden)),
            "0:0 1:1 2:2 -:3! ");
}

TEST(NameMatch, OperatorsPairWithFunctions) {
  EXPECT_EQ(Described(MatchCalls({NamedCall("Aten.add.Tensor.0.forward")},
                                 {NamedCall("Torch.add.0.forward")})),
            "0:0 ");
}

TEST(NameMatch, GradientsOfBothReleasesPair) {
  EXPECT_EQ(Described(MatchCalls({NamedCall("Module.fc.Linear.parameters_grad")},
                                 {NamedCall("Module.fc.Linear.parameters_grad.0")})),
            "0:0 ");
}

TEST(NameMatch, EmptySides) {
  EXPECT_TRUE(MatchCalls({}, {}).empty());
  EXPECT_EQ(Described(MatchCalls({}, {NamedCall("A")})), "-:0! ");
}

CallItems NamedCallWith(const std::string& name, const std::vector<std::string>& parts) {
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
      NamedCallWith("Cell.n.LayerNorm.forward.0", {"input.0", "parameters.gamma", "output.0"});
  const std::string name = "Module.n.LayerNorm.forward.0";
  EXPECT_EQ(Mapped(cell, name, NamedCallWith(name, {"input.0", "parameters.weight", "output.0"})),
            (Parts{"input.0", "parameters.weight", "output.0"}));
  EXPECT_EQ(Mapped(cell, name, NamedCallWith(name, {"input.0", "parameters.gamma"})), Parts());
  EXPECT_EQ(Mapped(cell, name, NamedCallWith("Module.other.LayerNorm.forward.0", {"input.0"})),
            Parts());
  // Without a mapping of cells.
  EXPECT_EQ(Mapped(cell, "", NamedCallWith(name, {"input.0", "parameters.weight", "output.0"})),
            (Parts{"input.0", "parameters.weight", "output.0"}));
  const CallItems gradients = NamedCallWith("Cell.n.LayerNorm.parameters_grad", {"gamma", "beta"});
  const std::string of_module = "Module.n.LayerNorm.parameters_grad";
  EXPECT_EQ(Mapped(gradients, of_module, NamedCallWith(of_module, {"weight", "bias"})),
            (Parts{"weight", "bias"}));
}

TEST(ParameterNames, RunningStatisticsAreBuffersWhereGoldenHasThemSo) {
  const CallItems cell =
      NamedCallWith("Cell.n.BatchNorm2d.forward.0", {"parameters.moving_mean", "output.0"});
  const std::string name = "Module.n.BatchNorm2d.forward.0";
  EXPECT_EQ(Mapped(cell, name, NamedCallWith(name, {"output.0", "buffers.running_mean"})),
            (Parts{"buffers.running_mean", "output.0"}));
  EXPECT_EQ(Mapped(cell, name, NamedCallWith(name, {"output.0", "parameters.running_mean"})),
            (Parts{"parameters.running_mean", "output.0"}));
}

}  // namespace

}  // namespace plumbline::match

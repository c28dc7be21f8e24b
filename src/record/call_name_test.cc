#include "record/call_name.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "record/value.h"

namespace plumbline {

namespace {

using Form = CallName::Form;

TEST(CallName, ApiCallHasPrefixPathNumberAndDirection) {
  const auto name = ParseCallName("Torch.linalg.norm.12.backward");
  EXPECT_EQ(name, (CallName{Form::kApi, CallKind::kBackward, "Torch", "linalg.norm", "", 12}));
}

TEST(CallName, PrimitivesAndJitFunctionsAreApiCalls) {
  EXPECT_EQ(ParseCallName("Primitive.conv2d.Conv2D.0.forward"),
            (CallName{Form::kApi, CallKind::kForward, "Primitive", "conv2d.Conv2D", "", 0}));
  EXPECT_EQ(ParseCallName("Jit.AlexNet.1.forward"),
            (CallName{Form::kApi, CallKind::kForward, "Jit", "AlexNet", "", 1}));
}

TEST(CallName, LastMatchingPairDecidesForModules) {
  EXPECT_EQ(
      ParseCallName("Module.0.a.forward.1.b.Conv2d.forward.3"),
      (CallName{Form::kModule, CallKind::kForward, "Module", "0.a.forward.1.b", "Conv2d", 3}));
  EXPECT_EQ(ParseCallName("Module.parameters_grad.forward.0.x.forward.forward.0"),
            (CallName{Form::kModule, CallKind::kForward, "Module", "parameters_grad.forward.0.x",
                      "forward", 0}));
}

TEST(CallName, GradientsMayHaveANumber) {
  EXPECT_EQ(ParseCallName("Module.fc.Linear.parameters_grad"),
            (CallName{Form::kGradients, CallKind::kParametersGrad, "Module", "fc", "Linear", {}}));
  EXPECT_EQ(ParseCallName("Cell.fc.Dense.parameters_grad.4"),
            (CallName{Form::kGradients, CallKind::kParametersGrad, "Cell", "fc", "Dense", 4}));
}

TEST(CallName, OtherTextsAreNoEntryNames) {
  for (const char* text :
       {"", ".", "optimizer", "clip_grad", "forward", "x.0.debug", "Functional.0.forward",
        "Functional.linear.forward", "Functional.linear.-1.forward", "Functional.linear.01.forward",
        "Functional.linear.0.sideways", ".linear.0.forward", "Module.a.A.forward.x", "Module",
        "Module.forward.0", "Functional.linear.99999999999999999999.forward", "Module..A.forward.0",
        "Functional..0.forward"}) {
    EXPECT_FALSE(ParseCallName(text)) << text;
  }
}

// Components that make parsing hard: separators, numbers and keywords of the grammar.
std::string RandomPath(std::mt19937& random, size_t min_components) {
  constexpr const char* kComponents[] = {"layer1",
                                         "forward",
                                         "backward",
                                         "0",
                                         "17",
                                         "norm",
                                         "parameters_grad",
                                         "Linear",
                                         "_fsdp_wrapped_module"};
  std::string path;
  for (size_t i = min_components + random() % 4; i > 0; --i) {
    if (!path.empty()) path += '.';
    path += kComponents[random() % std::size(kComponents)];
  }
  return path;
}

TEST(CallName, EveryBuiltNameIsParsedBack) {
  std::mt19937 random(11);
  const std::vector<std::string> api_prefixes = {
      "Functional", "Tensor", "Torch", "Primitive", "Jit", "MintFunctional", "my_prefix"};
  for (int round = 0; round < 20000; ++round) {
    CallName name;
    name.form = static_cast<Form>(random() % 3);
    name.kind = random() % 2 == 0 ? CallKind::kForward : CallKind::kBackward;
    name.number = random() % 100;
    const std::string path = RandomPath(random, name.form == Form::kApi ? 1 : 0);
    const std::string class_name = RandomPath(random, 1);
    name.path = path;
    name.prefix = random() % 2 == 0 ? "Module" : "Cell";
    name.class_name = std::string_view(class_name).substr(0, class_name.find('.'));
    if (name.form == Form::kApi) {
      name.prefix = api_prefixes[random() % api_prefixes.size()];
      name.class_name = {};
    }
    if (name.form == Form::kGradients) {
      name.kind = CallKind::kParametersGrad;
      if (random() % 2 == 0) name.number.reset();
    }
    const std::string text = BuildCallName(name);
    const auto parsed = ParseCallName(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(BuildCallName(*parsed), text);
    EXPECT_EQ(*parsed, name) << text;
    EXPECT_EQ(KindOfCall(text), name.kind) << text;
  }
}

TEST(CallName, TensorNameJoinsItsParts) {
  EXPECT_EQ(TensorName("Torch.cat.0.forward", "kwargs", "tensors.0"),
            "Torch.cat.0.forward.kwargs.tensors.0");
  EXPECT_EQ(TensorName("Module.fc.Linear.parameters_grad", "", "weight"),
            "Module.fc.Linear.parameters_grad.weight");
}

TEST(GraphName, NumberNamesTheDirectory) {
  const std::string name = GraphNamePrefix(2) + "a.npy";  // borrowed by what is parsed
  const GraphName third = ParseGraphName(name, 3);
  EXPECT_EQ(third.directory, 2U);
  EXPECT_EQ(third.name, "a.npy");
  EXPECT_EQ(ParseGraphName(GraphNamePrefix(0) + "a.npy", 3).directory, 0U);
}

TEST(GraphName, OtherColonsAreOfTheName) {
  for (const char* text : {"3:a.npy", "a:b.npy", ":a.npy", "-1:a.npy", ""}) {
    EXPECT_EQ(ParseGraphName(text, 3).directory, 0U) << text;
    EXPECT_EQ(ParseGraphName(text, 3).name, text);
  }
}

TEST(GraphName, FilesHaveNoSlashesAndDots) {
  EXPECT_EQ(MangledKernel("Default/net v1.0\\Conv2D-op1"), "Default_net_v1_0_Conv2D-op1");
}

}  // namespace

}  // namespace plumbline

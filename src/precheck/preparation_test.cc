#include "precheck/preparation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/json/dump_json.h"
#include "precheck/api_inventory.h"
#include "precheck/input_data.h"
#include "tensor/element_value.h"

namespace plumbline::precheck::preparation_test {
namespace {

constexpr uint64_t kLimit = uint64_t{1} << 24;

// Text of a tensor with values from `low` to `high`.
std::string Tensor(std::string_view dtype, std::string_view shape, double low = 0, double high = 1,
                   bool requires_grad = false) {
  return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.{}", "shape": {}, "Max": {},)"
                     R"( "Min": {}, "Mean": 0, "Norm": 0, "requires_grad": {}}})",
                     dtype, shape, high, low, requires_grad);
}

std::string Forward(std::string_view args, std::string_view kwargs = "{}",
                    std::string_view output = "[]") {
  return fmt::format(R"({{"input_args": [{}], "input_kwargs": {}, "output": {}}})", args, kwargs,
                     output);
}

OrSkip<PreparedCall> Prepare(const std::string& name, const std::string& forward,
                             const std::string& backward = "") {
  const Result<Call> read = dump_json::ParseEntry(name + ".forward", forward);
  EXPECT_TRUE(read) << forward;
  const ApiName parts = *ParseApiName(name);
  RecordedCall recorded{name, parts.type, parts.api, &*read, nullptr};
  Call gradients;
  if (!backward.empty()) {
    gradients = dump_json::ParseEntry(name + ".backward", backward).value();
    recorded.backward = &gradients;
  }
  return PrepareCall(recorded, {.seed = 1234, .memory_limit = kLimit, .tensor_directory = ""});
}

// The skip of a call that cannot be prepared.
std::string SkipOf(const OrSkip<PreparedCall>& call) {
  return call ? std::string("no skip") : call.error().Text();
}

const TensorPlace& TensorOf(const CallValue& value) { return *value.As<TensorPlace>(); }

// The elements of a tensor of a call.
std::vector<double> Elements(const PreparedCall& call, const TensorPlace& tensor) {
  std::vector<std::byte> memory(call.input_bytes);
  EXPECT_TRUE(FillInputs(call, memory));
  std::vector<double> values;
  const auto count = static_cast<size_t>(*ElementCount(tensor.shape));
  const size_t size = InfoOf(tensor.dtype).size_bytes;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(ElementAsDouble(tensor.dtype, memory.data() + tensor.offset + i * size));
  }
  return values;
}

TEST(Preparation, ScalarsOfEveryKindAreRebuilt) {
  const auto call = Prepare("Torch.f.0", Forward(R"(
      {"type": "int", "value": 3}, {"type": "float", "value": NaN}, {"type": "bool", "value": true},
      {"type": "str", "value": "mean"}, null, {"type": "int64", "value": 5},
      {"type": "numpy.float16", "value": 0.5}, {"type": "torch.dtype", "value": "torch.float16"},
      {"type": "torch.device", "value": "npu:0"}, {"type": "ellipsis", "value": "..."},
      {"type": "torch.memory_format", "format": "channels_last"})"));
  ASSERT_TRUE(call) << SkipOf(call);
  const std::vector<CallValue>& args = call->args;
  EXPECT_EQ(*args[0].As<int64_t>(), 3);
  EXPECT_TRUE(std::isnan(*args[1].As<double>()));
  EXPECT_TRUE(*args[2].As<bool>());
  EXPECT_EQ(*args[3].As<std::string>(), "mean");
  EXPECT_TRUE(args[4].is_null());
  EXPECT_EQ(*args[5].As<int64_t>(), 5);
  EXPECT_EQ(args[6].As<SpecialValue>()->type, "float16");
  EXPECT_EQ(args[6].As<SpecialValue>()->text, "0.5");
  const std::pair<Special, std::string> specials[] = {
      {Special::kDType, "torch.float16"},
      {Special::kDevice, "npu:0"},
      {Special::kEllipsis, "..."},
      {Special::kMemoryFormat, "torch.channels_last"}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(args[7 + i].As<SpecialValue>()->kind, specials[i].first);
    EXPECT_EQ(args[7 + i].As<SpecialValue>()->text, specials[i].second);
  }
}

TEST(Preparation, ContainersAreRebuiltInPositionAndUnderKeywords) {
  const std::string size = R"({"type": "torch.Size", "value": [2, 3]})";
  const std::string slice = R"({"type": "slice", "value": [1, null, 2]})";
  const std::string nested = fmt::format("[{}, [{}, null]]", slice, Tensor("float32", "[2]"));
  const auto call =
      Prepare("Torch.f.0",
              Forward(size + ", " + nested, fmt::format(R"({{"a": {}, "b": {}, "c": {{"x": {}}}}})",
                                                        nested, size, Tensor("int8", "[]"))));
  ASSERT_TRUE(call) << SkipOf(call);
  EXPECT_EQ(call->args[0].As<CallSequence>()->kind, Sequence::kSize);
  for (const CallValue* list : {&call->args[1], &call->kwargs[0].second}) {
    const auto& items = list->As<CallSequence>()->items;
    EXPECT_EQ(items[0].As<CallSequence>()->kind, Sequence::kSlice);
    EXPECT_TRUE(items[0].As<CallSequence>()->items[1].is_null());
    EXPECT_EQ(TensorOf(items[1].As<CallSequence>()->items[0]).shape, Shape{2});
    EXPECT_TRUE(items[1].As<CallSequence>()->items[1].is_null());
  }
  EXPECT_EQ(call->kwargs[1].first, "b");
  const auto& dict = *call->kwargs[2].second.As<CallMap>();
  EXPECT_EQ(dict[0].first, "x");
  EXPECT_EQ(TensorOf(dict[0].second).dtype, DType::kInt8);
}

TEST(Preparation, WhatCannotBeRebuiltIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(1, {"type": "torch.Generator", "value": null})",
       "bad-argument: input_args.1: an object of type torch.Generator"},
      {R"({})", "bad-argument: input_args.0: an object that the recorder could not describe"},
      {R"([[{"type": "function", "value": "f"}]])", "bad-argument: input_args.0.0.0: an object of"},
      {R"({"type": "numpy.datetime64", "value": "2020"})", "a NumPy scalar of type datetime64"},
      {R"({"type": "torch.dtype", "value": "os.system"})", "a dtype \"os.system\""},
      {R"({"type": "slice", "value": [1, 2]})", "a slice of 2 parts"},
      {R"({"type": "slice", "value": [1, 2, "x"]})", "a slice with the text \"x\" in it"},
      {R"({"type": "torch.Size", "value": [null]})", "a size with null in it"},
      {R"({"type": "int", "value": 99999999999999999999})", "an integer of 20 digits"},
      {R"({"type": "numpy.ndarray", "dtype": "float32", "shape": [1], "Max": 1, "Min": 0})",
       "input_args.0: a numpy.ndarray"},
      {R"([[[[[[[[[[[1]]]]]]]]]]])", "nested deeper than 10 levels"},
      {R"({"type": "torch.Tensor", "dtype": "torch.qint8", "shape": [1], "Max": 1, "Min": 0})",
       "a tensor of type torch.qint8, for which no elements can be drawn"},
      {R"({"type": "torch.Tensor", "dtype": "torch.int8", "shape": [1], "Max": null, "Min": 0})",
       "input_args.0: a tensor without Max and Min"},
  };
  for (const auto& [args, expected] : cases) {
    const std::string skip = SkipOf(Prepare("Torch.f.0", Forward(args)));
    EXPECT_NE(skip.find(expected), std::string::npos) << args << "\n" << skip;
  }
  EXPECT_TRUE(Prepare("Torch.f.0", Forward("[[[[[[[[[[1]]]]]]]]]]")));
  EXPECT_EQ(SkipOf(Prepare("Torch.f.0", R"({"output": []})")).find("bad-argument: input_args"), 0u);
}

TEST(Preparation, AbsurdSizesAreRefusedBeforeAnythingIsComputed) {
  for (const char* shape : {"[99999999999]", "[4294967296, 4294967296, 4294967296]",
                            "[9223372036854775807, 2]", "[4194305]"}) {
    const std::string skip = SkipOf(Prepare("Torch.f.0", Forward(Tensor("float32", shape))));
    EXPECT_EQ(skip.find("out-of-memory: input_args.0 of shape ("), 0u) << skip;
  }
  // Together they are too many, each alone is not.
  const std::string half = Tensor("float32", "[2097152]");
  EXPECT_TRUE(Prepare("Torch.f.0", Forward(half)));
  const std::string skip = SkipOf(Prepare("Torch.f.0", Forward(half + "," + half + "," + half)));
  EXPECT_EQ(skip.find("out-of-memory: input_args.2"), 0u) << skip;
}

TEST(Preparation, EmptyTensorsNeedNoRange) {
  const auto call = Prepare("Torch.f.0", Forward(R"({"type": "torch.Tensor",
      "dtype": "torch.float32", "shape": [2, 0], "Max": null, "Min": null})"));
  ASSERT_TRUE(call) << SkipOf(call);
  EXPECT_EQ(TensorOf(call->args[0]).shape, (Shape{2, 0}));
  EXPECT_TRUE(Elements(*call, TensorOf(call->args[0])).empty());
}

// The elements of the one tensor of a call, whose statistics are `statistics`.
std::vector<double> DrawnFrom(const std::string& shape, const std::string& statistics) {
  const auto call = Prepare(
      "Torch.f.0", Forward(fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32",)"
                                       R"( "shape": {}, {}}})",
                                       shape, statistics)));
  EXPECT_TRUE(call) << SkipOf(call);
  return call ? Elements(*call, TensorOf(call->args[0])) : std::vector<double>();
}

TEST(Preparation, ElementsAreAsTheRecordedStatisticsSay) {
  const std::vector<double> plain = DrawnFrom("[4, 4]", R"("Max": 5, "Min": -5)");
  ASSERT_EQ(plain.size(), 16u);
  EXPECT_EQ(plain.front(), -5);
  EXPECT_EQ(plain.back(), 5);
  EXPECT_TRUE(std::ranges::all_of(plain, [](double x) { return x >= -5 && x <= 5; }));
  const std::vector<double> with_nan = DrawnFrom(
      "[6]", R"("Max": NaN, "Max_except_inf_nan": 2, "Min": NaN, "Min_except_inf_nan": 1)");
  ASSERT_EQ(with_nan.size(), 6u);
  EXPECT_EQ(with_nan[0], 1);
  EXPECT_TRUE(std::isnan(with_nan[1]));
  EXPECT_EQ(with_nan[5], 2);
  for (size_t i = 2; i < 6; ++i) EXPECT_TRUE(with_nan[i] >= 1 && with_nan[i] <= 2) << with_nan[i];
  const std::vector<double> with_inf =
      DrawnFrom("[6]", R"("Max": Infinity, "Max_except_inf_nan": 2, "Min": 1)");
  ASSERT_EQ(with_inf.size(), 6u);
  EXPECT_EQ(with_inf.front(), 1);
  EXPECT_EQ(with_inf.back(), INFINITY);
  for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(with_inf[i] >= 1 && with_inf[i] <= 2) << with_inf[i];
  EXPECT_EQ(DrawnFrom("[3]", R"("Max": Infinity, "Max_except_inf_nan": Infinity,)"
                             R"( "Min": Infinity, "Min_except_inf_nan": Infinity)"),
            std::vector<double>(3, INFINITY));
}

// What the benchmark raises the tensors of a call to: positional ones, then keywords.
std::vector<std::optional<DType>> Raised(const PreparedCall& call) {
  std::vector<std::optional<DType>> raised;
  for (const CallValue& value : call.args) raised.push_back(TensorOf(value).raised);
  for (const auto& [key, value] : call.kwargs) raised.push_back(TensorOf(value).raised);
  return raised;
}

TEST(Preparation, OneTypeIsRaisedToTheNextWiderOne) {
  const std::pair<const char*, DType> cases[] = {
      {"float16", DType::kFloat32}, {"bfloat16", DType::kFloat32}, {"float32", DType::kFloat64}};
  for (const auto& [from, to] : cases) {
    const auto call =
        Prepare("Torch.f.0", Forward(Tensor(from, "[2]") + "," + Tensor("int64", "[2]"),
                                     fmt::format(R"({{"w": {}}})", Tensor(from, "[2]"))));
    ASSERT_TRUE(call);
    EXPECT_EQ(Raised(*call), (std::vector<std::optional<DType>>{to, std::nullopt, to}));
    EXPECT_FALSE(call->autocast);
  }
  for (const char* stays : {"float64", "int32", "bool", "complex64"}) {
    EXPECT_FALSE(Raised(*Prepare("Torch.f.0", Forward(Tensor(stays, "[2]"))))[0]) << stays;
  }
  EXPECT_EQ(Raised(*Prepare("Torch.f.0", Forward(Tensor("float8_e5m2", "[2]"))))[0],
            DType::kFloat32);
}

TEST(Preparation, MixedTypesAreRaisedToFloat32AndRunUnderAutocast) {
  const auto call = Prepare(
      "Torch.f.0",
      Forward(Tensor("float32", "[2]"), fmt::format(R"({{"w": {}}})", Tensor("bfloat16", "[2]"))));
  ASSERT_TRUE(call);
  EXPECT_EQ(Raised(*call), (std::vector<std::optional<DType>>{std::nullopt, DType::kFloat32}));
  EXPECT_EQ(call->autocast, DType::kBFloat16);
}

TEST(Preparation, AnOutputOfAnotherTypeWasMadeUnderAutocast) {
  const auto autocast = [](const char* input, const char* output) {
    const auto call = Prepare(
        "Torch.f.0", Forward(Tensor(input, "[2]"), "{}", "[" + Tensor(output, "[2]") + "]"));
    return call->autocast;
  };
  EXPECT_EQ(autocast("float32", "float16"), DType::kFloat16);
  EXPECT_EQ(autocast("float16", "bfloat16"), DType::kBFloat16);
  EXPECT_EQ(autocast("bfloat16", "float32"), DType::kBFloat16);
  EXPECT_EQ(autocast("float32", "float32"), std::nullopt);
  EXPECT_EQ(autocast("float16", "float16"), std::nullopt);
  EXPECT_EQ(autocast("float32", "float64"), std::nullopt);
  EXPECT_EQ(autocast("float32", "bool"), std::nullopt);
}

TEST(Preparation, SomeApisAreNotRaised) {
  EXPECT_FALSE(Raised(*Prepare("Tensor.type_as.0", Forward(Tensor("float16", "[2]"))))[0]);
  const std::string inputs =
      Tensor("float32", "[1, 1, 4, 4]") + "," + Tensor("float32", "[1, 1, 2, 2]");
  const auto conv = Prepare("Functional.conv2d.0", Forward(inputs));
  EXPECT_EQ(Raised(*conv), (std::vector<std::optional<DType>>{std::nullopt, std::nullopt}));
  for (const double value : Elements(*conv, TensorOf(conv->args[0]))) {
    EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(value)) & 0xFFF, 0u);
  }
  EXPECT_EQ(Raised(*Prepare("Functional.conv3d.0", Forward(inputs)))[0], DType::kFloat64);
}

TEST(Preparation, CrossEntropyTargetsAreClasses) {
  const auto call = Prepare(
      "Functional.cross_entropy.0",
      Forward(Tensor("float32", "[64, 3]", -2, 2) + "," + Tensor("int32", "[64]", -100, 2)));
  ASSERT_TRUE(call) << SkipOf(call);
  const TensorPlace& target = TensorOf(call->args[1]);
  EXPECT_EQ(target.dtype, DType::kInt64);
  for (const double value : Elements(*call, target)) EXPECT_TRUE(value >= 0 && value <= 2);
}

TEST(Preparation, HistogramsAreOfFloats) {
  for (const char* dtype : {"int8", "int32", "int64"}) {
    const auto call = Prepare("Torch.histc.0", Forward(Tensor(dtype, "[4]", 0, 9)));
    EXPECT_EQ(TensorOf(call->args[0]).dtype, DType::kFloat32) << dtype;
  }
}

TEST(Preparation, IndicesAreWithinWhatTheyIndex) {
  const std::string table = Tensor("float32", "[5, 7]");
  const std::string index = Tensor("int64", "[3, 7]", -4, 1e9);
  const struct {
    const char* name;
    std::string args;
    size_t position;
    double extent;
  } cases[] = {
      {"Functional.embedding.0", index + "," + table, 0, 5},
      {"Torch.embedding.0", table + "," + index, 1, 5},
      {"Functional.one_hot.0", index + ", 6", 0, 6},
      {"Functional.nll_loss.0", table + "," + Tensor("int64", "[5]", -100, 90), 1, 7},
      {"Torch.gather.0", table + ", 0, " + index, 2, 5},
      {"Tensor.gather.0", table + ", -1, " + index, 2, 7},
      {"Tensor.scatter_add_.0", table + ", 1, " + index + "," + table, 2, 7},
      {"Tensor.index_select.0", table + ", 0, " + Tensor("int32", "[9]", 0, 80), 2, 5},
      {"Torch.take.0", table + "," + index, 1, 35},
      {"Torch.take_along_dim.0", table + "," + index + ", 0", 1, 5},
      {"Torch.take_along_dim.0", table + "," + index, 1, 35},
  };
  for (const auto& row : cases) {
    const auto call = Prepare(row.name, Forward(row.args));
    ASSERT_TRUE(call) << SkipOf(call);
    for (const double value : Elements(*call, TensorOf(call->args[row.position]))) {
      EXPECT_TRUE(value >= 0 && value < row.extent) << row.name << " " << value;
    }
  }
}

TEST(Preparation, ScatteredPlacesAreDistinct) {
  const auto call = Prepare("Tensor.scatter_.0", Forward(Tensor("float32", "[4, 9]") + ", 1, " +
                                                         Tensor("int64", "[4, 9]", 0, 8) + "," +
                                                         Tensor("float32", "[4, 9]")));
  const std::vector<double> index = Elements(*call, TensorOf(call->args[2]));
  for (size_t row = 0; row < 4; ++row) {
    std::vector<double> places(index.begin() + static_cast<long>(9 * row),
                               index.begin() + static_cast<long>(9 * row + 9));
    std::ranges::sort(places);
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(places[i], static_cast<double>(i));
  }
}

TEST(Preparation, CumulativeLengthsAscend) {
  const auto call = Prepare("NPU.f.0", Forward("", fmt::format(R"({{"cu_seqlens_q": {}}})",
                                                               Tensor("int32", "[9]", 0, 512))));
  const std::vector<double> lengths = Elements(*call, TensorOf(call->kwargs[0].second));
  EXPECT_TRUE(std::ranges::is_sorted(lengths));
  EXPECT_EQ(lengths.back(), 512);
}

TEST(Preparation, BoundariesAscend) {
  for (const char* dtype : {"float16", "float32", "float64", "int32"}) {
    const std::string boundaries = Tensor(dtype, "[50]", -3, 7);
    const auto call = Prepare("Torch.bucketize.0", Forward(boundaries + "," + boundaries));
    EXPECT_FALSE(std::ranges::is_sorted(Elements(*call, TensorOf(call->args[0]))));
    const std::vector<double> sorted = Elements(*call, TensorOf(call->args[1]));
    EXPECT_TRUE(std::ranges::is_sorted(sorted)) << dtype;
    EXPECT_EQ(sorted.front(), -3);
    EXPECT_EQ(sorted.back(), 7);
  }
}

TEST(Preparation, FusedAttentionOfSparseModesGetsItsFullMask) {
  const auto mask_of = [](const char* mode) {
    return Prepare("NPU.npu_fusion_attention.0",
                   Forward(Tensor("float16", "[2]"), fmt::format(R"({{"atten_mask": {}{}}})",
                                                                 Tensor("bool", "[8, 8]"), mode)));
  };
  const auto full = mask_of(R"(, "sparse_mode": {"type": "int", "value": 2})");
  ASSERT_TRUE(full) << SkipOf(full);
  const TensorPlace& mask = TensorOf(full->kwargs[0].second);
  ASSERT_EQ(mask.shape, (Shape{2048, 2048}));
  const std::vector<double> values = Elements(*full, mask);
  for (size_t i = 0; i < values.size(); i += 1021) {
    EXPECT_EQ(values[i], i % 2048 > i / 2048 ? 1 : 0);
  }
  EXPECT_EQ(TensorOf(mask_of("")->kwargs[0].second).shape, (Shape{8, 8}));
  EXPECT_EQ(SkipOf(mask_of(R"(, "sparse_mode": {"type": "str", "value": "x"})"))
                .find("bad-argument: input_kwargs.sparse_mode"),
            0u);
}

TEST(Preparation, ArgumentsThatMakeResultsRandomAreSkipped) {
  const std::string q = Tensor("float16", "[1, 2, 2]");
  const auto attention = [&](const char* p) {
    return Prepare("Functional.scaled_dot_product_attention.0",
                   Forward(q + "," + q + "," + q, fmt::format(R"({{"dropout_p": {}}})", p)));
  };
  EXPECT_EQ(SkipOf(attention(R"({"type": "float", "value": 0.1})")).find("random: "), 0u);
  EXPECT_TRUE(attention(R"({"type": "float", "value": 0.0})"));
  EXPECT_EQ(
      SkipOf(Prepare("Functional.rrelu.0", Forward(q, R"({"training": true})"))).find("random"),
      0u);
  EXPECT_TRUE(Prepare("Functional.rrelu.0", Forward(q, R"({"training": false})")));
}

std::string Backward(const std::string& grads) {
  return fmt::format(R"({{"input": [{}], "output": []}})", grads);
}

TEST(Preparation, AllRecordedGradientsComeIn) {
  const std::string with = Tensor("float16", "[2]", 0, 1, true);
  const auto call =
      Prepare("Torch.max.0", Forward(with + ", 0"), Backward(Tensor("float16", "[2]") + ", null"));
  ASSERT_TRUE(call);
  EXPECT_TRUE(TensorOf(call->args[0]).requires_grad);
  ASSERT_TRUE(call->grads);
  ASSERT_EQ(call->grads->size(), 2u);
  EXPECT_EQ(TensorOf((*call->grads)[0]).raised, DType::kFloat32);
  EXPECT_FALSE(TensorOf((*call->grads)[0]).requires_grad);
  EXPECT_TRUE((*call->grads)[1].is_null());
  EXPECT_FALSE(call->backward_skip);
}

TEST(Preparation, KeywordTensorsHaveGradients) {
  const auto call =
      Prepare("Functional.linear.0",
              Forward(Tensor("float32", "[2]"), fmt::format(R"({{"weight": {}, "i": {}}})",
                                                            Tensor("float32", "[2, 2]", 0, 1, true),
                                                            Tensor("int64", "[2]", 0, 1, true))),
              Backward(Tensor("float32", "[2]")));
  ASSERT_TRUE(call->grads);
  EXPECT_FALSE(TensorOf(call->args[0]).requires_grad);
  EXPECT_TRUE(TensorOf(call->kwargs[0].second).requires_grad);
  EXPECT_FALSE(TensorOf(call->kwargs[1].second).requires_grad);
}

TEST(Preparation, BackwardsThatCannotRunSayWhy) {
  const std::string with = Tensor("float32", "[2]", 0, 1, true);
  const std::string grad = Backward(Tensor("float32", "[2]"));
  const struct {
    const char* name;
    std::string forward, backward;
    const char* expected;
  } cases[] = {
      {"Torch.add.0", Forward(with, R"({"out": )" + with + "}"), grad,
       "backward-skipped: the call writes into the argument out"},
      {"Tensor.masked_select.0", Forward(with), grad, "backward-skipped: masked_select"},
      {"Torch.repeat_interleave.0", Forward(with), grad, "backward-skipped: repeat_interleave"},
      {"Torch.add.0", Forward(Tensor("float32", "[2]")), grad,
       "backward-skipped: no input requires a gradient"},
      {"Torch.add.0", Forward(with), R"({"output": []})", "no incoming gradients were recorded"},
      {"Torch.add.0", Forward(with), Backward("null"), "no incoming gradients were recorded"},
      {"Torch.add.0", Forward(with), Backward(R"({"type": "f", "value": 1})"),
       "bad-argument: input.0"},
      {"Torch.add.0", Forward(with), Backward(Tensor("float32", "[99999999999]")), "out-of-memory"},
  };
  for (const auto& row : cases) {
    const auto call = Prepare(row.name, row.forward, row.backward);
    ASSERT_TRUE(call) << SkipOf(call);
    EXPECT_FALSE(call->grads);
    ASSERT_TRUE(call->backward_skip) << row.expected;
    EXPECT_NE(call->backward_skip->Text().find(row.expected), std::string::npos)
        << call->backward_skip->Text();
    EXPECT_LE(call->input_bytes, 128u);
  }
  const auto plain = Prepare("Torch.add.0", Forward(with));
  EXPECT_FALSE(plain->grads || plain->backward_skip);
}

}  // namespace
}  // namespace plumbline::precheck::preparation_test

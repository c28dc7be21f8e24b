#include "match/expand.h"

#include <gtest/gtest.h>

namespace plumbline::match {

namespace {

// Expected texts are what CPython 3.11 prints for str(value).
TEST(PythonText, ScalarsAsPythonPrintsThem) {
  EXPECT_EQ(PythonText(Value()), "None");
  EXPECT_EQ(PythonText(Value(true)), "True");
  EXPECT_EQ(PythonText(Value(int64_t{-7})), "-7");
  EXPECT_EQ(PythonText(Value(1e-5)), "1e-05");
  EXPECT_EQ(PythonText(Value(2.0)), "2.0");
  EXPECT_EQ(PythonText(Value(BigInt{"123456789012345678901"})), "123456789012345678901");
  EXPECT_EQ(PythonText(Value(std::string("mean"))), "mean");
}

TEST(PythonText, ListsQuoteTheirTexts) {
  const Value list(
      ValueList{Value(int64_t{1}), Value(std::string("it's")), Value(std::string("a\n"))});
  EXPECT_EQ(PythonText(list), "[1, \"it's\", 'a\\n']");
  EXPECT_EQ(ListText({"a'b\"c", "back\\slash"}), "['a\\'b\"c', 'back\\\\slash']");
}

TEST(PythonText, MapsAndTypes) {
  EXPECT_EQ(PythonText(Value(ValueMap{{"k", Value(int64_t{2})}})), "{'k': 2}");
  EXPECT_EQ(PythonTypeText(Value(1.0)), "<class 'float'>");
  EXPECT_EQ(PythonTypeText(Value()), "<class 'NoneType'>");
  EXPECT_EQ(PythonTypeText(Value(ValueList{})), "<class 'list'>");
}

TEST(PythonText, ShapesAndTuples) {
  EXPECT_EQ(ShapeText(Shape{}), "[]");
  EXPECT_EQ(ShapeText(Shape{2, 8}), "[2, 8]");
  EXPECT_EQ(TupleText(Shape{3}), "(3,)");
  EXPECT_EQ(TupleText(Shape{}), "()");
}

Value TensorValue(const std::string& data_name = {}) {
  TensorRecord tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = {2, 3};
  tensor.max = 1.5;
  tensor.min = -1.5;
  if (!data_name.empty()) tensor.data_name = data_name;
  return Value(tensor);
}

Value Typed(const std::string& type, Value value) {
  return Value(ValueMap{{"type", Value(type)}, {"value", std::move(value)}});
}

Call ForwardCall(ValueMap members) {
  return {"Torch.f.0.forward", CallKind::kForward, std::move(members)};
}

TEST(Expand, RowsAreInputsParametersOutputs) {
  const Call call = ForwardCall({{"input_args", Value(ValueList{TensorValue()})},
                                 {"output", Value(ValueList{TensorValue()})},
                                 {"parameters", Value(ValueMap{{"weight", TensorValue()}})}});
  const Result<CallItems> result = Expander().ExpandCall(call);
  ASSERT_TRUE(result);
  ASSERT_EQ(result->items.size(), 3u);
  EXPECT_EQ(result->items[0].name, "Torch.f.0.forward.input.0");
  EXPECT_EQ(result->items[1].name, "Torch.f.0.forward.parameters.weight");
  EXPECT_EQ(result->items[2].name, "Torch.f.0.forward.output.0");
  EXPECT_EQ(*result->items[0].shape_text, "[2, 3]");
}

TEST(Expand, SavedValuesAreNamedAfterTheirPlaces) {
  const std::vector<Call> entries = {
      {"x.0", CallKind::kOther, {{"", TensorValue("x.0.tensor..pt")}}},
      {"forward.0",
       CallKind::kForward,
       {{"a", Value(ValueList{TensorValue("forward.0.tensor.a.0.pt"), Value()})}}},
      {"n.0", CallKind::kOther, {{"type", Value("float")}, {"value", Value(2.5)}}},
      {"none.0", CallKind::kOther, {{"", Value()}}},
      {"empty.0", CallKind::kOther, {}}};
  std::vector<CallItems> expanded;
  for (const Call& entry : entries) {
    const auto items = Expander().ExpandSave(entry);
    ASSERT_TRUE(items) << items.error().message();
    expanded.push_back(*items);
  }
  std::vector<std::string> names;
  for (const CallItems& entry : expanded) {
    EXPECT_EQ(entry.kind, CallKind::kOther);
    for (const Item& item : entry.items) {
      names.push_back(item.name);
      EXPECT_EQ(item.role, ItemRole::kOutput);
    }
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"x.0", "forward.0.a.0", "forward.0.a.1", "n.0", "none.0"}));
  EXPECT_EQ(expanded[0].items[0].data_name, "x.0.tensor..pt");
  EXPECT_EQ(*expanded[2].items[0].statistics.As<double>(0), 2.5);
  EXPECT_FALSE(expanded[3].items[0].dtype);
}

TEST(Expand, OneFormOfSavedNamesIsKept) {
  const auto side = [](const std::string& name) {
    std::vector<CallItems> entries(1);
    entries[0].name = name;
    entries[0].items.emplace_back().name = name + ".list.0";
    return entries;
  };
  auto newer = side("x.debug.0.debug");
  auto older = side("x.debug.0");
  auto same = newer;
  AlignSaveNames(newer, same);
  EXPECT_EQ(newer[0].name, "x.debug.0.debug");
  AlignSaveNames(older, newer);
  EXPECT_EQ(newer[0].name, "x.debug.0");
  EXPECT_EQ(newer[0].items[0].name, "x.debug.0.list.0");
  EXPECT_EQ(older[0].items[0].name, "x.debug.0.list.0");
}

TEST(Expand, KeywordTensorIsNamedAfterItsFile) {
  const Call with_file = ForwardCall(
      {{"input_kwargs", Value(ValueMap{{"k", TensorValue("Torch.f.0.forward.kwargs.k.pt")}})}});
  EXPECT_EQ(Expander().ExpandCall(with_file)->items[0].name, "Torch.f.0.forward.kwargs.k");
  const Call without = ForwardCall({{"input_kwargs", Value(ValueMap{{"k", TensorValue()}})}});
  EXPECT_EQ(Expander().ExpandCall(without)->items[0].name, "Torch.f.0.forward.input.k");
}

TEST(Expand, ScalarsHaveTypeTextAndDigestOfTheirValue) {
  const Call call = ForwardCall(
      {{"input_args",
        Value(ValueList{Typed("float", Value(1e-5)), Typed("bool", Value(false)), Value()})}});
  const std::vector<Item> items = Expander().ExpandCall(call)->items;
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(*items[0].dtype, "<class 'float'>");
  EXPECT_EQ(*items[0].shape_text, "[]");
  EXPECT_EQ(items[0].statistics.array()[3], Recorded(1e-5));
  EXPECT_EQ(items[0].digest, "effb4679");  // zlib.crc32(b"1e-05")
  EXPECT_EQ(items[1].statistics.array()[0], Recorded(false));
  EXPECT_FALSE(items[2].dtype.has_value());
}

TEST(Expand, SpecialTypes) {
  const Value size(ValueList{Value(int64_t{2}), Value(int64_t{3})});
  const Value slice(ValueList{Value(), Value(int64_t{1}), Value()});
  const Value group(ValueMap{{"type", Value(std::string("torch.ProcessGroup"))},
                             {"group_ranks", Value(ValueList{Value(int64_t{0})})}});
  const Call call = ForwardCall(
      {{"input_args", Value(ValueList{Typed("torch.Size", size), Typed("slice", slice),
                                      Typed("ellipsis", Value(std::string("..."))), group})}});
  const std::vector<Item> items = Expander().ExpandCall(call)->items;
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(*items[0].dtype, "torch.Size");
  EXPECT_EQ(*items[0].shape_text, "[2, 3]");
  EXPECT_EQ(*items[1].shape_text, "(3,)");
  EXPECT_EQ(*items[2].dtype, "ellipsis");
  EXPECT_EQ(items[3].statistics.array()[0], Recorded(std::string("[0]")));
  EXPECT_EQ(items[3].digest, "00000000");
}

TEST(Expand, GradientListIndexIsNotPartOfTheName) {
  const Call call{"Module.fc.Linear.parameters_grad",
                  CallKind::kParametersGrad,
                  {{"weight", Value(ValueList{TensorValue()})}}};
  const std::vector<Item> items = Expander().ExpandCall(call)->items;
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].name, "Module.fc.Linear.parameters_grad.weight");
  EXPECT_EQ(items[0].role, ItemRole::kParameterGrad);
}

TEST(Expand, EmptyContainersGiveNoRows) {
  const Call call =
      ForwardCall({{"input_args", Value(ValueList{})}, {"output", Value(ValueMap{})}});
  EXPECT_TRUE(Expander().ExpandCall(call)->items.empty());
}

TEST(Expand, EndlessNestingIsCorrupt) {
  Value nested(ValueList{Value()});
  for (int i = 0; i < 500; ++i) {
    ValueList outer;
    outer.push_back(std::move(nested));
    nested = Value(std::move(outer));
  }
  ValueMap members;
  members.emplace_back("output", std::move(nested));
  EXPECT_EQ(Expander().ExpandCall(ForwardCall(std::move(members))).error().code(),
            ErrorCode::kCorrupt);
}

}  // namespace

}  // namespace plumbline::match

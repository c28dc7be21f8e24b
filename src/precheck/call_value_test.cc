#include "precheck/call_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plumbline::precheck::call_value_test {
namespace {

std::string JsonOf(const CallValue& value) {
  std::string text;
  AppendJson(value, text);
  return text;
}

// What is read back from `text` and written again.
std::string Again(std::string_view text) {
  const Result<CallValue> value = ParseCallValue(text);
  return value ? JsonOf(*value) : "error: " + value.error().message();
}

TEST(CallValue, PlainValuesAreThemselves) {
  EXPECT_EQ(JsonOf(CallValue()), "null");
  EXPECT_EQ(JsonOf(CallValue(true)), "true");
  EXPECT_EQ(JsonOf(CallValue(std::numeric_limits<int64_t>::min())), "-9223372036854775808");
  EXPECT_EQ(JsonOf(CallValue(0.1)), "0.1");
  EXPECT_EQ(JsonOf(CallValue(2.0)), "2.0");  // an integer would be another overload of a call
  EXPECT_EQ(JsonOf(CallValue(std::nan(""))), "NaN");
  EXPECT_EQ(JsonOf(CallValue(-std::numeric_limits<double>::infinity())), "-Infinity");
  EXPECT_EQ(JsonOf(CallValue(std::string("a\"\n\xc3\xa4"))), "\"a\\\"\\n\\u00e4\"");
}

TEST(CallValue, EveryKindIsReadBack) {
  for (const std::string_view text : {
           R"(null)",
           R"(9007199254740993)",
           R"(-Infinity)",
           R"({"list":[1,2.5,"x",null]})",
           R"({"tuple":[]})",
           R"({"size":[2,3]})",
           R"({"slice":[null,4,null]})",
           R"({"dict":[["a",{"list":[true]}],["b",{"dict":[]}]]})",
           R"({"dtype":"torch.float16"})",
           R"({"memory_format":"torch.contiguous_format"})",
           R"({"device":"cpu"})",
           R"({"ellipsis":"..."})",
           R"({"numpy":["float16","0.5"]})",
           R"({"other":"torch.Generator"})",
           R"({"tensor":["bfloat16",[2,0,3],128,true,"float32"]})",
           R"({"tensor":["int64",[],0,false,null]})",
           R"({"tensor":["float32",[4],64,false,null,"torch.nn.parameter.Parameter"]})",
       }) {
    EXPECT_EQ(Again(text), text);
  }
}

TEST(CallValue, KeywordArgumentsAreAListOfPairs) {
  std::string text;
  AppendJson(CallMap{{"dim", CallValue(int64_t{-1})}, {"out", CallValue()}}, text);
  EXPECT_EQ(text, R"([["dim",-1],["out",null]])");
}

TEST(CallValue, AnIntegerBeyond64BitsKeepsItsText) {
  const Result<CallValue> value = ParseCallValue("123456789012345678901234567890");
  ASSERT_TRUE(value);
  ASSERT_NE(value->As<SpecialValue>(), nullptr);
  EXPECT_EQ(value->As<SpecialValue>()->text, "123456789012345678901234567890");
  EXPECT_EQ(value->As<SpecialValue>()->type, "int");
}

TEST(CallValue, WhatNoExecutorMaySendIsRefused) {
  for (const std::string_view text : {
           "",
           "{}",
           "[1]",
           "{\"list\":[1}",
           "{\"list\":[1]} 2",
           R"({"list":[1],"tuple":[2]})",
           R"({"unknown":1})",
           R"({"list":1})",
           R"({"dict":{"a":1}})",
           R"({"dict":[["a"]]})",
           R"({"dict":[["a",1,2]]})",
           R"({"dict":[[1,2]]})",
           R"({"slice":[1,2]})",
           R"({"numpy":["float16"]})",
           R"({"dtype":7})",
           R"({"tensor":[]})",
           R"({"tensor":["float7",[2],0,false,null]})",
           R"({"tensor":["float32",[-1],0,false,null]})",
           R"({"tensor":["float32",[2.0],0,false,null]})",
           R"({"tensor":["float32",[2],-64,false,null]})",
           R"({"tensor":["float32",[2],8,false,null]})",
           R"({"tensor":["float32",[2],18446744073709551616,false,null]})",
           R"({"tensor":["float32",[4294967296,4294967296],0,false,null]})",
           R"({"tensor":["float32",[2],0,0,null]})",
           R"({"tensor":["float32",[2],0,false]})",
           R"({"tensor":["float32",[2],0,false,null,"a","b"]})",
       }) {
    EXPECT_FALSE(ParseCallValue(text)) << text;
  }
}

TEST(CallValue, DepthIsBounded) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"list\":[";
  EXPECT_FALSE(ParseCallValue(deep));
  std::string fair = "1";
  for (int i = 0; i < 30; ++i) fair = "{\"list\":[" + fair + "]}";
  EXPECT_EQ(Again(fair), fair);
}

TEST(CallValue, BytesOfATensor) {
  EXPECT_EQ(BytesOf(TensorPlace{.dtype = DType::kComplex64, .shape = {2, 3}}).value(), 48U);
  EXPECT_EQ(BytesOf(TensorPlace{.dtype = DType::kFloat32, .shape = {5, 0}}).value(), 0U);
  const int64_t huge = int64_t{1} << 62;
  EXPECT_FALSE(BytesOf(TensorPlace{.dtype = DType::kComplex128, .shape = {huge}}));
  EXPECT_FALSE(BytesOf(TensorPlace{.dtype = DType::kFloat32, .shape = {-1}}));
}

}  // namespace
}  // namespace plumbline::precheck::call_value_test

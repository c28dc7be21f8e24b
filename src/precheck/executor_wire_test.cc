#include "precheck/executor_wire.h"

#include <gtest/gtest.h>

namespace plumbline::precheck::executor_wire_test {
namespace {

TEST(ExecutorWire, AnAnswerHasBothDirections) {
  const auto answer = ParseAnswer(
      R"({"id":12,"forward":{"value":{"tensor":["float32",[2],64,false,null]}},)"
      R"("backward":{"value":{"list":[{"tensor":["float32",[2],128,false,null]},null]}}})");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->id, 12U);
  ASSERT_TRUE(answer->result.forward);
  EXPECT_EQ(answer->result.forward->As<TensorPlace>()->offset, 64U);
  ASSERT_TRUE(answer->result.backward && *answer->result.backward);
  EXPECT_EQ((*answer->result.backward)->As<CallSequence>()->items.size(), 2U);
  EXPECT_TRUE(CheckPlaces(answer->result, 136));
  EXPECT_FALSE(CheckPlaces(answer->result, 135));
}

TEST(ExecutorWire, ASkipHasACauseAndAText) {
  const auto answer =
      ParseAnswer(R"({"id":1,"forward":{"skip":["out-of-memory","no 3 GiB"]},"backward":null})");
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->result.forward);
  EXPECT_EQ(answer->result.forward.error().cause, SkipCause::kOutOfMemory);
  EXPECT_EQ(answer->result.forward.error().detail, "no 3 GiB");
  EXPECT_FALSE(answer->result.backward);
}

TEST(ExecutorWire, RemarksAreReadBesideTheResult) {
  const auto answer =
      ParseAnswer(R"({"id":1,"forward":{"value":1,"note":"as int64","overflow":false},)"
                  R"("backward":{"overflow":true,"value":{"list":[]},"later":[1]},"last":true})");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->result.note, "as int64");
  EXPECT_EQ(answer->result.has_overflow, true);
  EXPECT_TRUE(answer->is_last);
  const auto refused = ParseAnswer(R"({"id":3,"error":"the request is malformed"})");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->result.forward.error().Text(), "bad-argument: the request is malformed");
}

TEST(ExecutorWire, ArgumentsThatACallChangedAreReadByPlace) {
  const auto answer =
      ParseAnswer(R"({"id":1,"forward":{"value":null},"arguments":{"changed":{"dict":[["0",null],)"
                  R"(["out",{"tensor":["float32",[2],64,false,null]}]]},"kept":{"dict":[["2",)"
                  R"({"tensor":["int8",[1],128,false,null]}]]},"later":1}})");
  ASSERT_TRUE(answer) << answer.error().message();
  ASSERT_TRUE(answer->result.arguments);
  const ArgumentsAfter& arguments = *answer->result.arguments;
  ASSERT_EQ(arguments.changed.size(), 2U);
  EXPECT_TRUE(arguments.changed[0].second.is_null());
  EXPECT_EQ(arguments.changed[1].first, "out");
  EXPECT_EQ(arguments.kept.at(0).second.As<TensorPlace>()->offset, 128U);
  EXPECT_TRUE(CheckPlaces(answer->result, 129));
  EXPECT_FALSE(CheckPlaces(answer->result, 128));
  EXPECT_FALSE(ParseAnswer(R"({"id":1,"forward":{"value":1}})")->result.arguments);
  EXPECT_TRUE(ParseAnswer(R"({"id":1,"forward":{"value":1},"arguments":{}})")->result.arguments);
}

TEST(ExecutorWire, WhatIsNoAnswerIsRefused) {
  for (const std::string_view line : {
           "",
           "null",
           "{}",
           R"({"id":1})",
           R"({"forward":{"value":1},"backward":null})",
           R"({"id":-1,"forward":{"value":1}})",
           R"({"id":1.5,"forward":{"value":1}})",
           R"({"id":1,"forward":null})",
           R"({"id":1,"forward":{}})",
           R"({"id":1,"forward":{"result":1}})",
           R"({"id":1,"forward":{"value":1,"skip":["a","b"]}})",
           R"({"id":1,"forward":{"value":[1]}})",
           R"({"id":1,"forward":{"skip":["a"]}})",
           R"({"id":1,"forward":{"value":1},"arguments":[]})",
           R"({"id":1,"forward":{"value":1},"arguments":{"changed":[]}})",
           R"({"id":1,"forward":{"value":1},"arguments":{"changed":3}})",
           R"({"id":1,"forward":{"skip":["a","b","c"]}})",
           R"({"id":1,"forward":{"value":1}} 1)",
           R"({"id":1,"forward":{"value":1})",
       }) {
    EXPECT_FALSE(ParseAnswer(line)) << line;
  }
}

TEST(ExecutorWire, NoTensorLiesOutsideItsMemory) {
  const auto lies = [](std::string_view tensor, size_t bytes) {
    std::string line = R"x({"id":1,"forward":{"value":{"dict":[["a",)x";
    line += tensor;
    line += "]]}}}";
    const auto answer = ParseAnswer(line);
    return answer && CheckPlaces(answer->result, bytes).has_value();
  };
  EXPECT_TRUE(lies(R"({"tensor":["int8",[64],64,false,null]})", 128));
  EXPECT_FALSE(lies(R"({"tensor":["int8",[65],64,false,null]})", 128));
  EXPECT_FALSE(lies(R"({"tensor":["int8",[1],9223372036854775744,false,null]})", 128));
  EXPECT_TRUE(lies(R"({"tensor":["int8",[0],128,false,null]})", 128));
  EXPECT_FALSE(lies(R"({"tensor":["int8",[0],192,false,null]})", 128));
  EXPECT_FALSE(lies(R"({"tensor":["int8",[1],0,false,null]})", 0));
}

TEST(ExecutorWire, TheServerSaysWhatItHas) {
  const auto facts = ParseServerFacts(
      R"({"ready":true,"framework_version":"2.7.1","device":"npu","inventory_missing":["a"]})");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->device, "npu");
  EXPECT_EQ(facts->framework_version, "2.7.1");
  EXPECT_EQ(facts->missing, std::vector<std::string>{"a"});
  const auto refused = ParseServerFacts(R"({"error":"no npu here"})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().message(), "no npu here");
  for (const std::string_view line : {"", "[]", "{}", R"({"ready":false,"device":"cpu"})",
                                      R"({"ready":true})", "Traceback (most recent call last):"}) {
    EXPECT_FALSE(ParseServerFacts(line)) << line;
  }
}

TEST(ExecutorWire, EndsAndHellos) {
  const auto end = ParseExecutorEnd("{\"ended\":7,\"how\":\"signal 6 (Aborted)\"}");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->id, 7U);
  EXPECT_EQ(end->how, "signal 6 (Aborted)");
  EXPECT_FALSE(ParseExecutorEnd(R"({"ended":-7})"));
  EXPECT_EQ(ParseHello(R"({"ready":true,"pid":123})")->process, 123);
  EXPECT_FALSE(ParseHello(R"({"ready":true})"));
  EXPECT_EQ(ParseHello(R"({"error":"device 3 is busy"})").error().message(), "device 3 is busy");
}

TEST(ExecutorWire, WhatTheServerIsAsked) {
  EXPECT_EQ(StartLine({"pytorch", "cpu", 8}),
            R"({"op":"start","framework":"pytorch","device":"cpu","slots":8})");
  EXPECT_EQ(ForkLine({7, Role::kDevice, "npu:0", 2}),
            R"({"op":"fork","id":7,"role":"device","device":"npu:0","threads":2})");
}

}  // namespace
}  // namespace plumbline::precheck::executor_wire_test

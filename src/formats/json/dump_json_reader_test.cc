#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "formats/json/dump_json.h"

namespace plumbline::dump_json {
namespace {

std::string Fixture(const std::string& name) {
  return ReadFile(PLUMBLINE_TEST_DATA "/" + name).value();
}

std::string Text(const DumpFile& file) {
  std::string out;
  DumpWriter writer(out);
  writer.Begin(file.header);
  for (const Call& call : file.calls) writer.Add(call);
  writer.End();
  return out;
}

// A dump with one entry "Torch.f.0.forward" whose only argument is `element`.
std::string DumpOf(const std::string& element) {
  return R"({"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null,)"
         R"( "data": {"Torch.f.0.forward": {"input_args": [)" +
         element + "]}}}";
}

// The argument of DumpOf(element) as it was read.
Value ElementOf(const std::string& element) {
  const auto file = ParseDump(DumpOf(element), false);
  if (!file) {
    ADD_FAILURE() << file.error().message();
    return {};
  }
  return file->calls.at(0).Find(kInputArgs)->As<ValueList>()->at(0);
}

TensorRecord TensorOf(const std::string& members) {
  const Value value = ElementOf(
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], )" + members + "}");
  const auto* tensor = value.As<TensorRecord>();
  if (tensor != nullptr) return *tensor;
  ADD_FAILURE() << "no tensor: " << members;
  return {};
}

Error ErrorOf(const std::string& text, bool salvage = false) {
  auto file = ParseDump(text, salvage);
  if (!file) return file.error();
  ADD_FAILURE() << "was read: " << text;
  return Error(ErrorCode::kInternal, "");
}

TEST(DumpJsonReader, Reads262WithItsGroupedStack) {
  const auto file = ParseDump(Fixture("upstream_26.2.0/mix_md5/dump.json"), false);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->header.task, "statistics");
  EXPECT_EQ(file->header.level, "mix");
  const auto* inputs = file->calls.at(0).Find(kInputArgs)->As<ValueList>();
  ASSERT_NE(inputs, nullptr);
  const auto* tensor = inputs->at(0).As<TensorRecord>();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (Shape{2, 4}));
  EXPECT_EQ(tensor->digest->size(), 8U);
  EXPECT_EQ(tensor->requires_grad, false);

  const auto stack = ParseStack(Fixture("upstream_26.2.0/mix_md5/stack.json")).value();
  size_t forward = 0;
  for (const Call& call : file->calls) forward += call.kind == CallKind::kForward;
  EXPECT_EQ(stack.size(), forward);
  for (const auto& [name, frames] : stack) {
    EXPECT_NE(name.find("forward"), std::string::npos);
    ASSERT_FALSE(frames.empty());
    EXPECT_TRUE(frames[0].starts_with("File ")) << frames[0];
  }
  EXPECT_FALSE(ParseCallTree(Fixture("upstream_26.2.0/mix_md5/construct.json"))->rows.empty());
}

TEST(DumpJsonReader, FlatAndGroupedStacksAreTheSameTable) {
  const StackTable flat = ParseStack(R"({"a": ["f", "g"], "b": ["f", "g"], "c": []})").value();
  const StackTable grouped =
      ParseStack(R"({"0": [["a", "b"], ["f", "g"]], "1": [["c"], []]})").value();
  EXPECT_EQ(flat, grouped);
  EXPECT_EQ(ParseStack(R"({"a": ["x"], "a": ["y"]})").value(),
            (StackTable{{"a", std::vector<std::string>{"y"}}}));
}

TEST(DumpJsonReader, StacksThatComeAgainInAnyOrderAreTheirOwn) {
  // Runs of the same lists, as loops over layers write them, with jumps between.
  constexpr size_t kLists = 7, kRows = 500;
  std::string text = "{";
  uint64_t random = 5;
  std::vector<size_t> expected;
  size_t which = 0;
  for (size_t i = 0; i < kRows; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    which = (random >> 60) == 0 ? (random >> 33) % kLists : (which + 1) % kLists;
    expected.push_back(which);
    text += (i == 0 ? "" : ", ") + std::string("\"c") + std::to_string(i) + "\": [";
    for (size_t k = 0; k <= which; ++k)
      text += (k == 0 ? "\"]\\n" : ", \"f") + std::to_string(k) + "\"";
    text += "]";
  }
  const StackTable table = ParseStack(text + "}").value();
  ASSERT_EQ(table.size(), kRows);
  for (size_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(table[i].first, "c" + std::to_string(i));
    ASSERT_EQ(table[i].second.size(), expected[i] + 1) << i;
    EXPECT_EQ(table[i].second.front(), "]\n0");
  }
}

TEST(DumpJsonReader, DamagedStacksNameTheEntry) {
  for (const char* text : {R"({"a": "text"})", R"({"a": [1]})", R"({"a": [["n"]]})",
                           R"({"a": [["n"], ["f"], []]})", R"({"a": [["n"], "f"]})"}) {
    const auto table = ParseStack(text);
    ASSERT_FALSE(table) << text;
    EXPECT_EQ(table.error().code(), ErrorCode::kCorrupt);
    EXPECT_TRUE(table.error().message().starts_with("a: ")) << table.error().message();
  }
  EXPECT_EQ(ParseStack("").error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ParseStack(R"({"a": ["f")").error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(ReadStack("/nonexistent/stack.json").error().code(), ErrorCode::kNotFound);
}

TEST(DumpJsonReader, ConstructTakesMicroSteps) {
  const auto tree = ParseCallTree(
      R"({"a": null, "b": "a", "c": ["b", 1], "d": [null, 0], "megatron_micro_step_number": 1})");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->rows,
            (std::vector<CallTree::Row>{{"a", "", 0}, {"b", "a", 0}, {"c", "b", 1}, {"d", "", 0}}));
  EXPECT_TRUE(tree->has_micro_steps);
  for (const char* text : {R"({"a": ["b"]})", R"({"a": ["b", 1, 2]})", R"({"a": 3})",
                           R"({"a": [3, 1]})", R"({"a": []})", R"({"a": ["b", 1])"}) {
    EXPECT_EQ(ParseCallTree(text).error().code(), ErrorCode::kCorrupt) << text;
  }
}

TEST(DumpJsonReader, StatisticsKeepTheirKind) {
  const TensorRecord tensor =
      TensorOf(R"("Max": 3, "Min": true, "Mean": null, "Norm": -Infinity, "requires_grad": true)");
  EXPECT_EQ(tensor.max, Statistic(int64_t{3}));
  EXPECT_EQ(tensor.min, Statistic(true));
  EXPECT_EQ(tensor.mean, Statistic());
  EXPECT_EQ(tensor.norm, Statistic(-INFINITY));
  EXPECT_EQ(tensor.requires_grad, true);
  EXPECT_FALSE(TensorOf(R"("Max": 1)").requires_grad.has_value());
}

TEST(DumpJsonReader, StatisticsWrittenAsTextAreNumbers) {
  const TensorRecord tensor =
      TensorOf(R"("Max": "3.5", "Min": "nan", "Mean": "-inf", "Norm": "12")");
  EXPECT_EQ(tensor.max, Statistic(3.5));
  EXPECT_TRUE(std::isnan(std::get<double>(tensor.min)));
  EXPECT_EQ(tensor.mean, Statistic(-INFINITY));
  EXPECT_EQ(tensor.norm, Statistic(int64_t{12}));
  EXPECT_EQ(ErrorOf(DumpOf(R"({"type": "t", "dtype": "f", "shape": [], "Max": "many"})")).code(),
            ErrorCode::kCorrupt);
}

TEST(DumpJsonReader, IntegersBeyondInt64AreKeptOrWidened) {
  EXPECT_EQ(std::get<double>(TensorOf(R"("Max": 18446744073709551615)").max), 0x1p64);
  const Value value = ElementOf(R"({"type": "int", "value": 18446744073709551616})");
  ASSERT_NE(value.Find("value"), nullptr);
  EXPECT_EQ(value.Find("value")->As<BigInt>()->digits, "18446744073709551616");
}

TEST(DumpJsonReader, KeysInAnyOrderMakeATensor) {
  const Value value = ElementOf(
      R"({"shape": [3, 4], "Max": 1.5, "dtype": "torch.int8", "extra": {"a": [1]}, "type": "T"})");
  const auto* tensor = value.As<TensorRecord>();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->type, "T");
  EXPECT_EQ(tensor->dtype_text, "torch.int8");
  EXPECT_EQ(tensor->shape, (Shape{3, 4}));
  EXPECT_EQ(tensor->max, Statistic(1.5));
}

// What tensors of a recording have in common is read once: each must be as if it were alone.
TEST(DumpJsonReader, TensorsAmongOthersAreReadAsAlone) {
  const std::string head = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": )";
  std::vector<std::string> elements = {
      head + R"([2], "Max": 1.5, "Min": 1, "Mean": null, "Norm": 2.0})",
      head + R"([2], "Max": null, "requires_grad": true, "dtype": "torch.int8"})",
      head + R"([2], "Max": NaN, "shape": [3, 4], "md5": "00c0ffee"})",
      head + R"([2], "requires_grad": true, "Max": 3, "data_name": "a.pt"})",
      head + R"([2, 2], "Max": 4, "type": "other"})",
      head + R"( [2], "Max" : 5})",
      R"({"type": "torch.Tensor", "dtype": "torch.float64", "shape": [2], "Max": 6})",
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "data_name": "b", "shape": [2], "Max": 7})",
      R"({"dtype": "torch.float32", "type": "torch.Tensor", "shape": [2], "Max": 8})"};
  for (int i = 0; i < 20; ++i) {
    elements.push_back(head + "[" + std::to_string(i % 12) + R"(], "Max": )" + std::to_string(i) +
                       "}");
  }
  for (size_t i = 0; i < 9; ++i) elements.push_back(std::string(elements[i]));
  std::string all;
  for (const std::string& element : elements) all += (all.empty() ? "" : ", ") + element;
  std::string alone;
  for (const std::string& element : elements) {
    alone += Text(ParseDump(DumpOf(element), false).value());
  }
  const auto file = ParseDump(DumpOf(all), false);
  ASSERT_TRUE(file) << file.error().message();
  std::string together;
  for (const Value& value : *file->calls.at(0).Find(kInputArgs)->As<ValueList>()) {
    DumpFile one = *file;
    one.calls[0].members = {{std::string(kInputArgs), ValueList{value}}};
    together += Text(one);
  }
  EXPECT_EQ(together, alone);
}

TEST(DumpJsonReader, ArgumentNamedDTypeMakesNoTensor) {
  const Value value = ElementOf(R"({"dtype": {"type": "torch.dtype", "value": "torch.int8"}})");
  ASSERT_NE(value.Find("dtype"), nullptr);
  EXPECT_EQ(value.As<TensorRecord>(), nullptr);
}

TEST(DumpJsonReader, DigestMayBeXorTextNumberOrNull) {
  EXPECT_EQ(TensorOf(R"("md5": "0x3f60000000800000")").digest, "0x3f60000000800000");
  EXPECT_EQ(TensorOf(R"("md5": 1.0)").digest, "1.0");
  EXPECT_FALSE(TensorOf(R"("md5": null)").digest.has_value());
}

TEST(DumpJsonReader, WrongTypesNameTheEntry) {
  const std::string head = R"({"type": "torch.Tensor", "dtype": "torch.float32", )";
  for (const std::string& element : std::vector<std::string>{
           head + R"("shape": "[2, 3]"})", head + R"("shape": [2.5]})", head + R"("shape": [-1]})",
           head + R"("shape": ["2"]})", head + R"("shape": null})", head + R"("Max": 1.0})",
           head + R"("shape": [], "requires_grad": 1})",
           head + R"("shape": [], "requires_grad": "True"})", head + R"("shape": [], "Max": [1]})",
           head + R"("shape": [], "md5": true})", head + R"("shape": [], "data_name": 7})",
           head + R"("shape": [], "nan_count": 0.5})"}) {
    const Error error = ErrorOf(DumpOf(element));
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << element;
    EXPECT_TRUE(error.message().starts_with("Torch.f.0.forward: ")) << error.message();
    // Such a file is whole, so there is nothing to salvage.
    EXPECT_EQ(ErrorOf(DumpOf(element), true).code(), ErrorCode::kCorrupt);
  }
}

TEST(DumpJsonReader, FilesThatAreNoDumpAreCorrupt) {
  for (const char* text :
       {"", "[]", "{}", "null", R"({"data": 3})", R"({"data": null})", R"({"data": {"a": 3}})",
        R"({"data": {"a": null}})", R"({"task": 3, "data": {}})", R"({"data": {}} x)", "\x89PNG"}) {
    EXPECT_EQ(ErrorOf(text).code(), ErrorCode::kCorrupt) << text;
  }
  EXPECT_EQ(ReadDump("/nonexistent/dump.json", false).error().code(), ErrorCode::kNotFound);
}

TEST(DumpJsonReader, MissingHeaderFieldsAreInferred) {
  const auto tensor =
      ParseDump(R"({"data": {"Module.a.A.forward.0": {"input_args": [{"type": "torch.Tensor",)"
                R"( "dtype": "torch.float32", "shape": [], "data_name": "x.pt"}]}}})",
                false);
  EXPECT_EQ(tensor->header.task, "tensor");
  EXPECT_EQ(tensor->header.level, "L0");
  EXPECT_EQ(tensor->header.framework, "pytorch");
  const auto mindspore =
      ParseDump(R"({"task": null, "data": {"Mint.abs.0.forward": {"output": [[{"type": "x",)"
                R"( "dtype": "Float32", "shape": []}]]}}})",
                false);
  EXPECT_EQ(mindspore->header.task, "statistics");
  EXPECT_EQ(mindspore->header.level, "L1");
  EXPECT_EQ(mindspore->header.framework, "mindspore");
}

TEST(DumpJsonReader, HeaderBehindTheEntriesCountsForThem) {
  const std::string header = R"("task": "statistics", "level": "debug", "framework": "pytorch")";
  const std::string data = R"("data": {"a.0": [null, 1.5], "b.0": {"c": null}})";
  const auto before = ParseDump("{" + header + ", " + data + "}", false);
  const auto behind = ParseDump("{" + data + ", " + header + "}", false);
  ASSERT_TRUE(before) << before.error().message();
  ASSERT_TRUE(behind) << behind.error().message();
  EXPECT_EQ(behind->calls.at(0).members.at(0).first, "");
  EXPECT_EQ(Text(*behind), Text(*before));
  // Cut inside the header behind: the entries alone, read as those of calls.
  const std::string calls = R"({"data": {"b.0": {"c": null}}, "level": "L)";
  EXPECT_EQ(ErrorOf(calls).code(), ErrorCode::kCorrupt);
  const auto cut = ParseDump(calls, true);
  ASSERT_TRUE(cut) << cut.error().message();
  EXPECT_EQ(cut->calls.size(), 1U);
  EXPECT_TRUE(cut->loss.truncated);
}

TEST(DumpJsonReader, UnknownHeaderFieldsAndByteOrderMarkAreAccepted) {
  const auto file = ParseDump(
      "\xEF\xBB\xBF{\"version\": {\"a\": [NaN]}, \"data\": {\"x\": {\"odd\": 1}}}", false);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(*file->calls.at(0).Find("odd")->As<int64_t>(), 1);
}

TEST(DumpJsonReader, LastOfRepeatedEntriesWinsAtTheFirstPlace) {
  const auto file = ParseDump(
      R"({"data": {"a": {"v": 1}, "b": {}, "a": {"v": 2, "w": 0, "v": 3}, "a": {"v": 4}}})", false);
  ASSERT_EQ(file->calls.size(), 2U);
  EXPECT_EQ(file->calls[0].name, "a");
  EXPECT_EQ(*file->calls[0].Find("v")->As<int64_t>(), 4);
  EXPECT_EQ(file->loss.duplicate_names, 2U);
}

// Which one counts would depend on the reader.
TEST(DumpJsonReader, ASecondDataObjectIsCorrupt) {
  const std::string text = R"({"data": {"a.forward": {}}, "data": {"b.forward": {}}})";
  for (const bool salvage : {false, true}) {
    const auto dump = ParseDump(text, salvage);
    ASSERT_FALSE(dump);
    EXPECT_EQ(dump.error().code(), ErrorCode::kCorrupt);
    EXPECT_NE(dump.error().message().find("a second \"data\""), std::string::npos);
  }
  EXPECT_FALSE(ParseNames(text));
}

TEST(DumpJsonReader, RepeatedKeysOfAnObjectKeepTheLast) {
  std::string many = R"({"k": 0)";
  for (int i = 0; i < 20; ++i) many += R"(, "m)" + std::to_string(i) + R"(": 1)";
  const Value large = ElementOf(many + R"(, "k": 9})");
  EXPECT_EQ(large.As<ValueMap>()->size(), 21U);
  EXPECT_EQ(*large.Find("k")->As<int64_t>(), 9);
  const Value small = ElementOf(R"({"k": 0, "l": 1, "k": 2})");
  EXPECT_EQ(*small.Find("k")->As<int64_t>(), 2);
  EXPECT_EQ(small.As<ValueMap>()->at(0).first, "k");
}

TEST(DumpJsonReader, NestingOf403IsReadAnd404IsUnsupported) {
  // The list of DumpOf is the first level.
  const auto nested = [](size_t levels) {
    return DumpOf(std::string(levels - 1, '[') + std::string(levels - 1, ']'));
  };
  EXPECT_TRUE(ParseDump(nested(403), false).has_value());
  const Error error = ErrorOf(nested(404));
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(error.message().starts_with("Torch.f.0.forward: ")) << error.message();
  EXPECT_EQ(ErrorOf(nested(100000), true).code(), ErrorCode::kUnsupported);
}

TEST(DumpJsonReader, SalvageYieldsTheCompleteEntriesOfEveryTruncation) {
  const std::string text = Fixture("upstream_1.2.2/l0_statistics/dump.json");
  const DumpFile whole = ParseDump(text, false).value();
  // An entry ends with the only brace that has two blanks before it.
  constexpr std::string_view kEntryEnd = "\n  }";
  const size_t data = text.find("\"data\": {");
  for (size_t size = 0; size < text.size(); size += 3) {
    const std::string cut = text.substr(0, size);
    const Error error = ErrorOf(cut);
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(error.message().find("byte "), std::string::npos);
    const auto salvaged = ParseDump(cut, true);
    ASSERT_EQ(salvaged.has_value(), size >= data + 9) << size;
    if (!salvaged) continue;
    size_t complete = 0, end = data + 9;
    for (size_t at = cut.find(kEntryEnd); at != std::string::npos;
         at = cut.find(kEntryEnd, at + 1), ++complete) {
      end = at + kEntryEnd.size();
    }
    EXPECT_EQ(salvaged->calls.size(), complete) << size;
    EXPECT_TRUE(salvaged->loss.truncated);
    EXPECT_EQ(salvaged->loss.byte_offset, end);
    for (size_t i = 0; i < complete; ++i) {
      EXPECT_EQ(salvaged->calls[i].name, whole.calls[i].name);
    }
  }
  EXPECT_FALSE(whole.loss.truncated);
}

// A flipped bit may change a digit or a letter, which no JSON reader can notice. What is read must
// still be well formed: writing and reading it again changes nothing.
TEST(DumpJsonReader, EveryFlippedByteIsRefusedOrReadConsistently) {
  const std::string text = Fixture("upstream_1.2.2/l0_statistics/dump.json").substr(0, 1800);
  const std::string closed = text.substr(0, text.rfind("\n  }")) + "\n  }\n }\n}";
  ASSERT_TRUE(ParseDump(closed, false).has_value());
  size_t refused = 0;
  for (size_t i = 0; i < closed.size(); ++i) {
    for (const int mask : {0x01, 0x10, 0x80, 0xff}) {
      std::string damaged = closed;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      const auto file = ParseDump(damaged, false);
      if (!file) {
        EXPECT_TRUE(file.error().code() == ErrorCode::kCorrupt ||
                    file.error().code() == ErrorCode::kUnsupported);
        ++refused;
        continue;
      }
      const std::string again = Text(*file);
      EXPECT_EQ(Text(ParseDump(again, false).value()), again) << i;
    }
  }
  EXPECT_GT(refused, closed.size());
}

TEST(DumpJsonReader, NamelessMemberOfACallIsReadBack) {
  const std::string text = R"({"level": "L1", "data": {"f": {"": false}}})";
  const std::string once = Text(ParseDump(text, false).value());
  EXPECT_EQ(Text(ParseDump(once, false).value()), once);
}

TEST(DumpJsonReader, EntriesAreVisitedInAFileAndReadAgainFromTheirPlaces) {
  const std::string path = PLUMBLINE_TEST_DATA "/upstream_1.2.2/mix_statistics/dump.json";
  const std::string text = ReadFile(path).value();
  const DumpFile whole = ParseDump(text, false).value();
  size_t visits = 0;
  const auto file = VisitDumpFile(path, false, [&](VisitedCall&& visited) {
    const auto again =
        ParseEntry(visited.call.name, text.substr(visited.begin, visited.end - visited.begin));
    ASSERT_TRUE(again.has_value());
    DumpFile one, expected;
    one.calls.push_back(*again);
    expected.calls.push_back(whole.calls.at(visits++));
    EXPECT_EQ(Text(one), Text(expected));
  });
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(visits, whole.calls.size());
  EXPECT_EQ(file->header.task, "statistics");
}

TEST(DumpJsonReader, InAFileAnEntryOfAWrongTypeIsVisitedWithWhatIsWrong) {
  const testing::TestDirectory directory;
  const std::string good = R"({"type": "a", "dtype": "b", "shape": [2], "Max": 1})";
  const std::string bad = R"({"type": "a", "dtype": "b", "shape": "[2]"})";
  const std::string text = fmt::format(
      R"({{"level": "L1", "data": {{"a": {{"x": {0}}}, "b": {{"x": [1, {1}], "y": {0}}}, "c": 3,)"
      R"( "d": {{"x": {0}}}}}, "task": "tensor"}})",
      good, bad);
  // Also where the file is loaded in pieces, a cut in the middle of the entry.
  for (const size_t blanks : {size_t{0}, (size_t{4} << 20) - text.find("[1, {")}) {
    const std::string path = directory.Path("dump.json");
    ASSERT_TRUE(WriteFileAtomically(path, std::string(blanks, ' ') + text, /*durable=*/false));
    std::vector<std::string> told;
    const auto file = VisitDumpFile(path, false, [&](VisitedCall&& visited) {
      told.push_back(visited.call.name + "|" + visited.problem);
      EXPECT_EQ(visited.call.members.empty(), !visited.problem.empty());
    });
    ASSERT_TRUE(file.has_value()) << file.error().message();
    EXPECT_EQ(file->header.task, "tensor");
    ASSERT_EQ(told.size(), 4U);
    EXPECT_EQ(told[0], "a|");
    EXPECT_TRUE(told[1].starts_with(
        "b|b: shape has the wrong type (expected a list, got a text) (before byte"))
        << told[1];
    EXPECT_TRUE(told[2].starts_with("c|c: the entry is no object (byte ")) << told[2];
    EXPECT_EQ(told[3], "d|");
    // Of others it stays an error, and so does damage of the text.
    EXPECT_FALSE(ReadDump(path, false).has_value());
    EXPECT_FALSE(VisitDump(text, false, [](VisitedCall&&) {}).has_value());
  }
  const std::string path = directory.Path("cut.json");
  ASSERT_TRUE(WriteFileAtomically(path, text.substr(0, text.find("[2]\"") + 6), false));
  EXPECT_FALSE(VisitDumpFile(path, false, [](VisitedCall&&) {}).has_value());
}

TEST(DumpJsonReader, AnEntryAloneIsAnObjectAndNothingElse) {
  for (const char* text : {"", "[]", "{", "{} x", R"({"output": [{"type": "a", "dtype": "b"}]})"}) {
    const auto call = ParseEntry("Torch.add.0.forward", text);
    ASSERT_FALSE(call.has_value()) << text;
    EXPECT_NE(call.error().message().find("Torch.add.0.forward"), std::string::npos);
  }
}

}  // namespace
}  // namespace plumbline::dump_json

#include "formats/pytorch/debug_mode_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/file/file.h"
#include "base/file/test_directory.h"

namespace plumbline::debug_mode {
namespace {

// Files of tests/data/make_debug_mode_logs.py.
std::string DataPath(const std::string& name) {
  return std::string(PLUMBLINE_TEST_DATA) + "/debug_mode/" + name;
}

LogFile Read(const std::string& name) {
  Result<LogFile> log = ReadLog(DataPath(name), /*salvage=*/false);
  EXPECT_TRUE(log) << (log ? "" : log.error().message());
  return log ? *std::move(log) : LogFile();
}

LogFile Parse(std::string_view text) {
  Result<LogFile> log = ParseLog(text, LogForm::kText, /*salvage=*/false);
  EXPECT_TRUE(log) << (log ? "" : log.error().message());
  return log ? *std::move(log) : LogFile();
}

std::string ErrorOf(std::string_view text, LogForm form = LogForm::kText) {
  const Result<LogFile> log = ParseLog(text, form, /*salvage=*/false);
  return log ? "none" : log.error().message();
}

const Call& CallOf(const LogFile& log, std::string_view name) {
  static const Call kNone;
  for (const Call& call : log.calls) {
    if (call.name == name) return call;
  }
  ADD_FAILURE() << name;
  return kNone;
}

std::string ParentOf(const LogFile& log, std::string_view name) {
  for (const auto& [call, parent, step] : log.tree.rows) {
    if (call == name) return parent;
  }
  return "none";
}

// The digest of a member's first value, or of the one at `index`.
std::string DigestIn(const Call& call, std::string_view member, size_t index = 0) {
  const Value* const value = call.Find(member);
  if (value == nullptr) return "no member";
  const Value* found = nullptr;
  if (const auto* list = value->As<ValueList>(); list && index < list->size()) {
    found = &(*list)[index];
  } else if (const auto* map = value->As<ValueMap>(); map && index < map->size()) {
    found = &(*map)[index].second;
  }
  const auto* tensor = found == nullptr ? nullptr : found->As<TensorRecord>();
  return tensor == nullptr ? "no tensor" : tensor->digest.value_or("no digest");
}

TEST(DebugModeLog, FormsAreToldByTheirBeginning) {
  const std::map<std::string, LogForm> forms = {
      {"sound.log", LogForm::kText},
      {"functions.log", LogForm::kText},
      {"kernels.log", LogForm::kText},
      {"no_hashes.log", LogForm::kText},
      {"sound.json", LogForm::kJson},
      {"sound_hashes.txt", LogForm::kHashes},
      {"rank_0_activations.log", LogForm::kActivations},
  };
  for (const auto& [name, form] : forms) EXPECT_EQ(FormOfLog(DataPath(name)), form) << name;
  EXPECT_EQ(FormOfText("epoch 1 loss 2.5\n"), std::nullopt);
  EXPECT_EQ(FormOfText(R"({"task": "statistics", "level": "L1"})"), std::nullopt);
  EXPECT_EQ(FormOfText(""), std::nullopt);
  EXPECT_EQ(FormOfLog(PLUMBLINE_TEST_DATA), std::nullopt);
  EXPECT_EQ(FormOfLog(DataPath("missing")), std::nullopt);
}

TEST(DebugModeLog, OperatorsAreForwardCallsInTheirModules) {
  const LogFile log = Read("sound.log");
  EXPECT_EQ(log.header.log_form, "a log of DebugMode");
  EXPECT_EQ(log.header.digest_kind, "norm");
  EXPECT_EQ(log.header.task, "statistics");
  const Call& norm = CallOf(log, "Aten.native_layer_norm.default.0.forward");
  EXPECT_EQ(norm.kind, CallKind::kForward);
  EXPECT_EQ(DigestIn(norm, "input_args"), "45.58976219437318");
  EXPECT_EQ(DigestIn(norm, "input_args", 1), "no tensor");  // [8]
  EXPECT_EQ(DigestIn(norm, "output"), "51.2163165807724");
  EXPECT_EQ(DigestIn(norm, "output", 2), "11.136644959449768");
  const auto& output = (*norm.Find("output")->As<ValueList>())[1];
  EXPECT_EQ(output.As<TensorRecord>()->dtype_text, "torch.float32");
  EXPECT_EQ(output.As<TensorRecord>()->shape, (Shape{2, 4, 1}));
  const Value& eps = norm.Find("input_args")->As<ValueList>()->back();
  EXPECT_EQ(*eps.Find("value")->As<double>(), 1e-5);
  EXPECT_EQ(ParentOf(log, norm.name), "Module.Transformer.layers.0.attention_norm.forward.0");
  EXPECT_EQ(ParentOf(log, "Module.Transformer.layers.0.attention_norm.forward.0"),
            "Module.Transformer.layers.0.forward.0");
  // What the gradients and the optimizer do is in no module.
  EXPECT_EQ(ParentOf(log, "Aten.native_layer_norm_backward.default.0.forward"), "");
  bool has_stack = false;
  for (const auto& [name, frames] : log.stacks) {
    if (name != norm.name) continue;
    has_stack = true;
    EXPECT_EQ(frames->front().find("File /src/make_debug_mode_logs.py, line "), 0u);
    EXPECT_NE(frames->front().find(", in forward, \n q, k, v = self.qkv("), std::string::npos);
  }
  EXPECT_TRUE(has_stack);
}

TEST(DebugModeLog, JsonSaysTheSameAsTheText) {
  const LogFile text = Read("sound.log"), json = Read("sound.json");
  ASSERT_EQ(text.calls.size(), json.calls.size());
  EXPECT_EQ(json.header.digest_kind, "norm");
  for (size_t i = 0; i < text.calls.size(); ++i) {
    const Call &a = text.calls[i], &b = json.calls[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(DigestIn(a, "input_args"), DigestIn(b, "input_args")) << a.name;
    EXPECT_EQ(DigestIn(a, "output"), DigestIn(b, "output")) << a.name;
    EXPECT_EQ(ParentOf(text, a.name), ParentOf(json, b.name));
  }
  const LogFile kernels = Read("kernels.json");
  EXPECT_EQ(DigestIn(CallOf(kernels, "Triton.triton_poi_fused_mul_0.0.forward"), "output", 1),
            "9.990776285529137");
}

TEST(DebugModeLog, HashDumpsHaveNoArguments) {
  const LogFile text = Read("sound.log"), hashes = Read("sound_hashes.txt");
  EXPECT_EQ(hashes.header.log_form, "a DebugMode dump of hashes");
  for (const std::string name :
       {"Aten.native_layer_norm.default.1.forward", "Aten.addmm.default.3.forward"}) {
    EXPECT_EQ(DigestIn(CallOf(text, name), "input_args"),
              DigestIn(CallOf(hashes, name), "input_args"));
    EXPECT_EQ(DigestIn(CallOf(text, name), "output"), DigestIn(CallOf(hashes, name), "output"));
  }
  const Call& norm = CallOf(hashes, "Aten.native_layer_norm.default.0.forward");
  EXPECT_EQ((*norm.Find("input_args")->As<ValueMap>())[1].first, "2");  // [1] is no tensor
  EXPECT_EQ(ParentOf(hashes, norm.name), "Module.Transformer.layers.0.attention_norm.forward.0");
}

TEST(DebugModeLog, TorchtitanHasStatisticsBesideTheHash) {
  const LogFile log = Read("rank_0_activations.log");
  EXPECT_EQ(log.header.digest_kind, "norm of seven digits");
  const Call& norm = CallOf(log, "Aten.native_layer_norm.0.forward");
  const auto* tensor = (*norm.Find("output")->As<ValueMap>())[0].second.As<TensorRecord>();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(*tensor->digest, "5.121632e+01 1.097054e+00 1.113664e+01");
  EXPECT_EQ(std::get<double>(tensor->norm), 7.999906);
  EXPECT_EQ(std::get<double>(tensor->max), 2.060394);
  EXPECT_EQ(tensor->shape, (Shape{2, 4, 8}));
  EXPECT_EQ(DigestIn(norm, "input_args", 2), "0.000000e+00");
  EXPECT_EQ(ParentOf(log, norm.name), "Module.layers.0.attention_norm.forward.0");
  ASSERT_EQ(log.loss.unseen.size(), 1u);
  EXPECT_NE(log.loss.unseen[0].find("_unsafe_view, detach"), std::string::npos);
  // The form of before hashes were written.
  const Result<LogFile> old = ParseLog(
      "Total captured activations: 1\n====\n\n[layers.0/op_0_mm]\n"
      "  Shape: torch.Size([]), Dtype: torch.bfloat16\n  L1 norm:  1.500000e+00\n"
      "  L2 norm:  1.500000e+00\n  Location: a/b.py:7\n  Phase: backward\n\n",
      LogForm::kActivations, false);
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_EQ(DigestIn(CallOf(*old, "Aten.mm.0.forward"), "output"), "1.500000e+00");
  EXPECT_EQ(ParentOf(*old, "Aten.mm.0.forward"), "Module.layers.0.backward.0");
}

TEST(DebugModeLog, KernelsAreToldToBypassTheDispatcher) {
  const LogFile log = Read("kernels.log");
  const Call& kernel = CallOf(log, "Triton.triton_poi_fused_mul_1.0.forward");
  EXPECT_EQ(DigestIn(kernel, "input_kwargs", 1), "9.990776285529137");
  EXPECT_EQ(DigestIn(kernel, "output", 0), "4.995388142764568");
  ASSERT_EQ(log.loss.unseen.size(), 1u);
  EXPECT_EQ(log.loss.unseen[0].find("2 launches of Triton kernels, the first of "
                                    "triton_poi_fused_mul_0, went past the dispatcher"),
            0u);
  const LogFile spread = Read("dtensors.log");
  ASSERT_EQ(spread.loss.unseen.size(), 1u);
  EXPECT_EQ(spread.loss.unseen[0].find("1 call of DTensors and 2 redistributions"), 0u);
  const LogFile lists = Parse(
      "    aten::_foreach_mul_.Tensor(['t: f32[8]'], t: f32[])  # {'input_hash': (([1.5], 0.5), "
      "{}), 'hash': None}\n");
  ASSERT_EQ(lists.loss.unseen.size(), 1u);
  EXPECT_EQ(lists.loss.unseen[0].find("1 operator that works in place and returns nothing"), 0u);
  EXPECT_EQ(DigestIn(CallOf(lists, "Aten._foreach_mul_.Tensor.0.forward"), "input_args", 1), "0.5");
}

TEST(DebugModeLog, FunctionsAboveTheDispatcherAreNoCalls) {
  const LogFile log = Read("functions.log");
  EXPECT_EQ(log.header.digest_kind, "hash_tensor and norm");
  for (const Call& call : log.calls) {
    EXPECT_TRUE(call.name.starts_with("Aten.") || call.name.starts_with("Module.")) << call.name;
  }
  // Both hashes of a tensor are one digest; XORs are spelled as recordings spell them.
  EXPECT_EQ(DigestIn(CallOf(log, "Aten.native_layer_norm.default.0.forward"), "output")
                .find("51.2163165807724 0x"),
            0u);
}

TEST(DebugModeLog, HashesAreNoneThatProvesTooMuch) {
  // Without hashes it is a structure, which nothing compares.
  const LogFile bare = Read("no_hashes.log");
  EXPECT_EQ(bare.header.task, "structure");
  EXPECT_EQ(bare.header.digest_kind, "");
  const LogFile log = Parse(
      "    aten::log(t: f32[2])  ->  t: f32[2]  # {'hash': nan}\n"
      "    aten::empty.memory_format([2], device=cpu)  ->  t: f32[2]\n"
      "    aten::relu(t: bf16[2, 3]{requires_grad=True})  ->  t: bf16[2, 3]\n"
      "    aten::randn([2], generator=<torch._C.Generator object at 0x7f12>)  ->  t: f8e4m3fn[2]  "
      "# {'hash': 1.5}\n");
  const auto output = [&](std::string_view name) {
    return (*CallOf(log, name).Find("output")->As<ValueList>())[0];
  };
  // Equal NaN must not pass as equal.
  EXPECT_TRUE(
      std::isnan(std::get<double>(output("Aten.log.default.0.forward").As<TensorRecord>()->norm)));
  // Memory that nobody wrote has no hash; a hash that is missing elsewhere is a value without data.
  EXPECT_NE(output("Aten.empty.memory_format.0.forward").Find("type"), nullptr);
  const Value relu = output("Aten.relu.default.0.forward");
  ASSERT_NE(relu.As<TensorRecord>(), nullptr);
  EXPECT_EQ(relu.As<TensorRecord>()->digest, std::nullopt);
  EXPECT_EQ(relu.As<TensorRecord>()->dtype_text, "torch.bfloat16");
  const Value random = output("Aten.randn.default.0.forward");
  EXPECT_EQ(random.As<TensorRecord>()->dtype_text, "torch.float8_e4m3fn");
  const auto& keywords = *CallOf(log, "Aten.randn.default.0.forward").Find("input_kwargs");
  EXPECT_EQ(*keywords.Find("generator")->Find("value")->As<std::string>(),
            "<torch._C.Generator object>");
}

TEST(DebugModeLog, TextsAmongTheArgumentsKeepHashesInPlace) {
  const LogFile log = Parse(
      "    aten::einsum(ij,jk->ik, ['t: f32[2, 2]', 't: f32[2, 2]'])  ->  t: f32[2, 2]  # "
      "{'input_hash': ((None, [1.5, 2.5]), {}), 'hash': 3.5}\n"
      "    my::op(t: f32[2], a (b, c)  ->  t: f32[2]  # {'input_hash': ((1.5, None), {}), 'hash': "
      "4.5}\n");
  const auto& arguments = *CallOf(log, "Aten.einsum.default.0.forward").Find("input_args");
  EXPECT_EQ(*(*arguments.As<ValueList>())[0].Find("value")->As<std::string>(), "ij,jk->ik");
  const auto& pair = *(*arguments.As<ValueList>())[1].As<ValueList>();
  EXPECT_EQ(*pair[1].As<TensorRecord>()->digest, "2.5");
  // Arguments that cannot be told apart: their hashes are kept without them.
  const Call& odd = CallOf(log, "Aten.my::op.default.0.forward");
  EXPECT_EQ(DigestIn(odd, "output"), "4.5");
  const auto& both = *odd.Find("input_args")->As<ValueList>();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(*(*both[1].As<ValueList>())[0].As<TensorRecord>()->digest, "1.5");
}

TEST(DebugModeLog, DamageIsNamedWithItsLine) {
  const std::string sound = ReadFile(DataPath("sound.log")).value();
  EXPECT_EQ(ErrorOf("loss 2.5\n" + sound).find("line 1: no line of a log of DebugMode"), 0u);
  EXPECT_EQ(ErrorOf(sound.substr(0, 4000) + "\nepoch 2\n").find("line "), 0u);
  EXPECT_EQ(ErrorOf("    aten::mm(t: f32[2, 2], t: f32[2\n"),
            "line 1: a call without its end; the log ends there and may be cut");
  EXPECT_EQ(ErrorOf("    aten::t(t: f32[2])  ->  t: f32[2]  # {'hash': (1.5\n"
                    "    aten::t(t: f32[2])  ->  t: f32[2]  # {'hash': 1.5}\n"),
            "line 1: character 14: a bracket is left open");
  EXPECT_EQ(ErrorOf("    # pre-kernel hashes: {a: 1.5}\n").find("line 1: hashes of a kernel"), 0u);
  const std::string hashes = ReadFile(DataPath("sound_hashes.txt")).value();
  const std::string cut = ErrorOf(hashes.substr(0, hashes.size() / 2), LogForm::kHashes);
  EXPECT_NE(cut.find("line "), std::string::npos) << cut;
  EXPECT_EQ(ErrorOf("Total captured tensor hash ops: 2\n===\n\n[a/op_0_aten::t]\n"
                    "  Output hashes: <root>=1.5\n\n",
                    LogForm::kHashes),
            "line 6: 1 blocks, but the first line says 2; the dump may be cut");
  EXPECT_EQ(ErrorOf("Total captured activations: 1\n===\n\n[a/op_0_t]\n  Min: x\n",
                    LogForm::kActivations),
            "line 5: x is no number");
  const std::string json = ReadFile(DataPath("sound.json")).value();
  EXPECT_NE(ErrorOf(json.substr(0, json.size() / 2), LogForm::kJson).find("the log may be cut"),
            std::string::npos);
  EXPECT_NE(ErrorOf(R"({"format": "x", "version": 7, "logs": []})", LogForm::kJson).find("version"),
            std::string::npos);
}

TEST(DebugModeLog, EveryCutIsAnErrorOrAPrefix) {
  for (const auto& [name, form] : {std::pair{"kernels.log", LogForm::kText},
                                   {"kernels.json", LogForm::kJson},
                                   {"sound_hashes.txt", LogForm::kHashes}}) {
    const std::string whole = ReadFile(DataPath(name)).value();
    const size_t step = std::max<size_t>(1, whole.size() / 500);
    const size_t all = ParseLog(whole, form, false)->calls.size();
    for (size_t size = 0; size < whole.size(); size += step) {
      const std::string cut = whole.substr(0, size);
      const Result<LogFile> log = ParseLog(cut, form, false);
      if (log && form != LogForm::kText) {
        EXPECT_EQ(log->calls.size(), all) << name << ' ' << size;
      }
      if (form != LogForm::kJson && FormOfText(cut) != form) continue;
      const Result<LogFile> saved = ParseLog(cut, form, true);
      ASSERT_TRUE(saved) << name << ' ' << size << ' ' << saved.error().message();
      EXPECT_LE(saved->calls.size(), all);
      EXPECT_EQ(saved->loss.truncated, !log) << name << ' ' << size;
    }
  }
}

TEST(DebugModeLog, LinksAreRefused) {
  const plumbline::testing::TestDirectory directory;
  const std::string link = directory.path() + "/link.log";
  std::filesystem::create_symlink(DataPath("sound.log"), link);
  EXPECT_EQ(ReadLog(link, false).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ReadLog(directory.path() + "/none", false).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::debug_mode

// The library as other programs see it: through c_api.h and nothing else.

#include "plumbline/c_api.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file/test_directory.h"

namespace {

class CApiTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string Path(const std::string& name) const { return root_.Path(name); }

  // Two calls of a step, the second of which gives `scale` times what it should.
  void Record(const std::string& directory, float scale) {
    plumb_recorder_options options = PLUMB_RECORDER_OPTIONS_INIT;
    const std::string path = Path(directory);
    options.dump_path = path.c_str();
    options.task = "tensor";
    options.rank = 0;
    plumb_recorder* recorder = nullptr;
    ASSERT_EQ(plumb_recorder_begin(&options, &recorder, &error_), PLUMB_OK) << error_.message;
    int32_t is_recorded = 0;
    ASSERT_EQ(plumb_step_begin(recorder, &is_recorded, &error_), PLUMB_OK) << error_.message;
    EXPECT_EQ(is_recorded, 1);
    Tell(recorder, "Functional.relu", 1);
    Tell(recorder, "Functional.linear", scale);
    EXPECT_EQ(plumb_step_end(recorder, &error_), PLUMB_OK) << error_.message;
    plumb_recorder_finish(recorder);
  }

  void Tell(plumb_recorder* recorder, const char* name, float scale) {
    std::array<float, 64> values{};
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    std::array<int64_t, 2> shape = {8, 8};
    plumb_dltensor tensor{values.data(), {1, 0}, 2, {2, 32, 1}, shape.data(), nullptr, 0};
    plumb_call* call = nullptr;
    ASSERT_EQ(plumb_call_begin(recorder, name, nullptr, &call, &error_), PLUMB_OK)
        << error_.message;
    EXPECT_EQ(plumb_call_add(call, PLUMB_INPUT, nullptr, &tensor, &error_), PLUMB_OK) << error_.message;
    for (float& value : values) value = scale * std::exp(value);
    EXPECT_EQ(plumb_call_add(call, PLUMB_OUTPUT, nullptr, &tensor, &error_), PLUMB_OK) << error_.message;
    EXPECT_EQ(plumb_call_end(call, &error_), PLUMB_OK) << error_.message;
  }

  plumbline::testing::TestDirectory root_;
  plumb_error error_ = PLUMB_ERROR_INIT;
};

TEST_F(CApiTest, ARecordingIsReadBackWithItsElements) {
  Record("run", 1);
  plumb_run* run = nullptr;
  ASSERT_EQ(plumb_run_open(Path("run").c_str(), &run, &error_), PLUMB_OK) << error_.message;
  plumb_run_info info{};
  info.size = sizeof(info);
  ASSERT_EQ(plumb_run_describe(run, &info, &error_), PLUMB_OK) << error_.message;
  EXPECT_EQ(info.path, Path("run/step0/rank0/dump.json"));
  EXPECT_STREQ(info.task, "tensor");
  EXPECT_EQ(info.call_count, 2U);
  EXPECT_EQ(info.is_complete, 1);
  uint64_t call = 0;
  ASSERT_EQ(plumb_run_find(run, "Functional.linear.0.forward", &call, &error_), PLUMB_OK);
  EXPECT_EQ(call, 1U);
  plumb_call_info facts{};
  facts.size = sizeof(facts);
  ASSERT_EQ(plumb_run_call(run, call, &facts, &error_), PLUMB_OK) << error_.message;
  EXPECT_EQ(facts.kind, PLUMB_FORWARD);
  plumb_slot slot{};
  slot.size = sizeof(slot);
  ASSERT_EQ(plumb_run_slot(run, call, 1, &slot, &error_), PLUMB_OK) << error_.message;
  EXPECT_STREQ(slot.name, "Functional.linear.0.forward.output.0");
  EXPECT_EQ(slot.role, PLUMB_OUTPUT);
  EXPECT_STREQ(slot.dtype, "torch.float32");
  ASSERT_EQ(slot.ndim, 2U);
  EXPECT_EQ(slot.shape[1], 8);
  EXPECT_EQ(slot.min.kind, PLUMB_REAL);

  plumb_tensor* tensor = nullptr;
  ASSERT_EQ(plumb_run_read(run, call, 1, &tensor, &error_), PLUMB_OK) << error_.message;
  plumb_run_close(run);
  plumb_dltensor view{};
  ASSERT_EQ(plumb_tensor_view(tensor, &view, &error_), PLUMB_OK) << error_.message;
  ASSERT_EQ(view.ndim, 2);
  EXPECT_EQ(view.dtype.bits, 32);
  float third = 0;
  std::memcpy(&third, static_cast<char*>(view.data) + 3 * sizeof(third), sizeof(third));
  EXPECT_EQ(third, std::exp(std::sin(3.0F)));
  plumb_tensor_close(tensor);
}

TEST_F(CApiTest, TheVerdictNamesTheFirstWrongCall) {
  Record("golden", 1);
  Record("target", 1.25F);
  plumb_comparison* comparison = nullptr;
  ASSERT_EQ(plumb_compare(Path("target").c_str(), Path("golden").c_str(), nullptr, &comparison,
                          &error_),
            PLUMB_OK)
      << error_.message;
  plumb_verdict verdict{};
  verdict.size = sizeof(verdict);
  ASSERT_EQ(plumb_comparison_verdict(comparison, &verdict, &error_), PLUMB_OK) << error_.message;
  EXPECT_EQ(verdict.exit_state, 1);
  EXPECT_EQ(verdict.is_complete, 1);
  EXPECT_STREQ(verdict.first_wrong, "Functional.linear.0.forward");
  EXPECT_STREQ(verdict.first_item, "Functional.linear.0.forward.output.0");
  EXPECT_STREQ(verdict.cause, "scale");
  EXPECT_EQ(verdict.calls, 2U);
  EXPECT_EQ(verdict.rows[0] + verdict.rows[3], 4U);
  const std::string text = plumb_comparison_text(comparison);
  EXPECT_EQ(text.substr(0, std::strlen(verdict.answer) + 1), std::string(verdict.answer) + "\n");
  EXPECT_EQ(plumb_comparison_json(comparison)[0], '{');
  EXPECT_EQ(plumb_comparison_write(comparison, Path("out").c_str(), "csv", &error_), PLUMB_OK);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("out")), {}), 1);
  plumb_comparison_close(comparison);
}

TEST_F(CApiTest, EqualRecordingsHaveNoWrongCall) {
  Record("a", 1);
  Record("b", 1);
  plumb_compare_options options = PLUMB_COMPARE_OPTIONS_INIT;
  options.fail_on = "any";
  plumb_comparison* comparison = nullptr;
  ASSERT_EQ(
      plumb_compare(Path("a").c_str(), Path("b").c_str(), &options, &comparison, &error_),
      PLUMB_OK)
      << error_.message;
  plumb_verdict verdict{};
  verdict.size = sizeof(verdict);
  ASSERT_EQ(plumb_comparison_verdict(comparison, &verdict, &error_), PLUMB_OK);
  EXPECT_EQ(verdict.exit_state, 0);
  EXPECT_EQ(verdict.first_wrong, nullptr);
  EXPECT_EQ(verdict.rows[0], 4U);
  plumb_comparison_close(comparison);
}

TEST_F(CApiTest, ErrorsHaveACodeAndAMessageThatFits) {
  plumb_run* run = reinterpret_cast<plumb_run*>(this);
  EXPECT_EQ(plumb_run_open(Path("missing").c_str(), &run, &error_), PLUMB_NOT_FOUND);
  EXPECT_EQ(run, nullptr);
  EXPECT_EQ(error_.code, PLUMB_NOT_FOUND);
  EXPECT_NE(std::string(error_.message).find("missing"), std::string::npos);
  EXPECT_EQ(plumb_run_open(nullptr, &run, nullptr), PLUMB_INVALID_ARGUMENT);
  // A caller that was compiled when messages were shorter.
  struct {
    plumb_error error;
    char canary = 'c';
  } small;
  small.error.size = offsetof(plumb_error, message) + 8;
  std::memset(small.error.message, 'x', sizeof(small.error.message));
  EXPECT_EQ(plumb_run_open(Path("missing").c_str(), &run, &small.error), PLUMB_NOT_FOUND);
  EXPECT_EQ(std::strlen(small.error.message), 7U);
  EXPECT_EQ(small.error.message[8], 'x');
  std::ofstream(Path("dump.json")) << "{\"task\": ";
  EXPECT_EQ(plumb_run_open(Path("dump.json").c_str(), &run, &error_), PLUMB_CORRUPT);
}

TEST_F(CApiTest, OlderStructsAreFilledAsFarAsTheyGo) {
  Record("run", 1);
  plumb_run* run = nullptr;
  ASSERT_EQ(plumb_run_open(Path("run").c_str(), &run, &error_), PLUMB_OK);
  plumb_run_info info{};
  EXPECT_EQ(plumb_run_describe(run, &info, &error_), PLUMB_INVALID_ARGUMENT);  // no size
  info.size = offsetof(plumb_run_info, level);
  EXPECT_EQ(plumb_run_describe(run, &info, &error_), PLUMB_OK);
  EXPECT_STREQ(info.task, "tensor");
  EXPECT_EQ(info.level, nullptr);
  EXPECT_EQ(info.size, offsetof(plumb_run_info, level));
  uint64_t call = 0;
  EXPECT_EQ(plumb_run_find(run, "no such call", &call, &error_), PLUMB_NOT_FOUND);
  plumb_slot slot{};
  slot.size = sizeof(slot);
  EXPECT_EQ(plumb_run_slot(run, 0, 2, &slot, &error_), PLUMB_NOT_FOUND);
  EXPECT_EQ(plumb_run_slot(run, 2, 0, &slot, &error_), PLUMB_NOT_FOUND);
  plumb_run_close(run);
}

TEST_F(CApiTest, TensorsThatCannotBeReadAreErrorsAndStillReleased) {
  plumb_recorder_options options = PLUMB_RECORDER_OPTIONS_INIT;
  const std::string path = Path("run");
  options.dump_path = path.c_str();
  plumb_recorder* recorder = nullptr;
  ASSERT_EQ(plumb_recorder_begin(&options, &recorder, &error_), PLUMB_OK) << error_.message;
  ASSERT_EQ(plumb_step_begin(recorder, nullptr, &error_), PLUMB_OK);
  plumb_call* call = nullptr;
  ASSERT_EQ(plumb_call_begin(recorder, "Functional.relu", nullptr, &call, &error_), PLUMB_OK);
  std::array<int64_t, 1> shape = {4};
  float values[4] = {};
  plumb_dltensor good{values, {1, 0}, 1, {2, 32, 1}, shape.data(), nullptr, 0};
  const auto code_of = [&](auto change, int32_t role = PLUMB_INPUT) {
    plumb_dltensor wrong = good;
    change(wrong);
    return plumb_call_add(call, role, nullptr, &wrong, &error_);
  };
  EXPECT_EQ(code_of([](auto& t) { t.device.device_type = 2; }), PLUMB_UNSUPPORTED);
  EXPECT_EQ(code_of([](auto& t) { t.dtype.bits = 7; }), PLUMB_UNSUPPORTED);
  EXPECT_EQ(code_of([](auto& t) { t.ndim = 65; }), PLUMB_UNSUPPORTED);
  EXPECT_EQ(code_of([](auto& t) { t.data = nullptr; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([](auto& t) { t.shape = nullptr; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([](auto&) {}, PLUMB_GRADIENT), PLUMB_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("role"), std::string::npos);
  shape[0] = -1;
  EXPECT_EQ(code_of([](auto&) {}), PLUMB_INVALID_ARGUMENT);
  int released = 0;
  plumb_dlmanaged managed{good, &released, [](plumb_dlmanaged* self) {
                            ++*static_cast<int*>(self->manager_ctx);
                          }};
  EXPECT_EQ(plumb_call_take(call, PLUMB_INPUT, nullptr, &managed, &error_), PLUMB_INVALID_ARGUMENT);
  shape[0] = 4;
  EXPECT_EQ(plumb_call_take(call, PLUMB_INPUT, nullptr, &managed, &error_), PLUMB_OK) << error_.message;
  EXPECT_EQ(plumb_call_take(nullptr, PLUMB_INPUT, nullptr, &managed, &error_), PLUMB_OK);
  EXPECT_EQ(released, 3);
  plumb_recorder_finish(recorder);
  EXPECT_EQ(plumb_call_end(call, &error_), PLUMB_OK);  // behind its recorder
}

}  // namespace

#include "config/graph_dump/dump_plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file/test_directory.h"

namespace plumbline::graph_dump {
namespace {

using Json = nlohmann::ordered_json;

class DumpPlanOf : public ::testing::Test {
 protected:
  Result<DumpPlan> Plan(Json config, const PlanContext& context) {
    if (!config.contains("dump_path")) config["dump_path"] = "/data/graphs";
    if (!config.contains("level")) config["level"] = "L2";
    const std::string path = root_.Path("config.json");
    std::ofstream(path) << config.dump();
    return PlanDump(path, {}, context);
  }
  std::string ErrorOf(const Json& config, const PlanContext& context) {
    const auto plan = Plan(config, context);
    return plan ? "none" : plan.error().message();
  }
  // The sections, as one line of JSON.
  std::string SectionsOf(const Json& config, const PlanContext& context) {
    const auto plan = Plan(config, context);
    return plan ? Json::parse(DumpSettingsText(plan->settings)).dump() : plan.error().message();
  }

  plumbline::testing::TestDirectory root_;
  const PlanContext by_kernel_{ExecutionMode::kKernelByKernel, DeviceKind::kAscend};
  const PlanContext engine_{ExecutionMode::kGraphEngine, DeviceKind::kAscend};
  const PlanContext pynative_{ExecutionMode::kPyNative, DeviceKind::kAscend};
  const PlanContext cpu_{ExecutionMode::kKernelByKernel, DeviceKind::kCpu};
};

constexpr const char* kFront =
    "{\"common_dump_settings\":{\"dump_mode\":0,\"path\":\"/data/graphs\",\"net_name\":\"Net\",";

TEST_F(DumpPlanOf, KernelByKernelIsAsUpstreamWritesIt) {
  const Json tensor = {
      {"task", "tensor"},
      {"step", {0, "5-6"}},
      {"rank", {1}},
      {"tensor", {{"list", {"name-regex(Default/.+)"}}, {"data_mode", {"output"}}}}};
  EXPECT_EQ(SectionsOf(tensor, by_kernel_),
            "{\"common_dump_settings\":{\"dump_mode\":1,\"path\":\"/data/graphs\",\"net_name\":"
            "\"Net\",\"iteration\":\"0|5|6\",\"saved_data\":\"tensor\",\"input_output\":2,"
            "\"kernels\":[\"name-regex(Default/.+)\"],\"support_device\":[1]},"
            "\"e2e_dump_settings\":{\"enable\":true,\"trans_flag\":true}}");
  const Json statistics = {{"task", "statistics"},
                           {"statistics", {{"summary_mode", {"mean", "max", "mean"}}}}};
  EXPECT_EQ(SectionsOf(statistics, by_kernel_),
            std::string(kFront) +
                "\"iteration\":\"all\",\"saved_data\":\"statistic\",\"input_output\":0,"
                "\"kernels\":[],\"support_device\":[0,1,2,3,4,5,6,7],\"statistic_category\":["
                "\"avg\",\"max\"]},\"e2e_dump_settings\":{\"enable\":true,\"trans_flag\":true}}");
  EXPECT_EQ(Plan(statistics, by_kernel_)->file_name, "kernel_kbyk_dump.json");
}

TEST_F(DumpPlanOf, GraphEngineIsAsUpstreamWritesIt) {
  const Json tensor = {{"task", "tensor"}, {"tensor", {{"file_format", "bin"}}}};
  EXPECT_EQ(
      SectionsOf(tensor, engine_),
      std::string(kFront) +
          "\"iteration\":\"all\",\"saved_data\":\"tensor\",\"input_output\":0,\"kernels\":[],"
          "\"support_device\":[0,1,2,3,4,5,6,7],\"op_debug_mode\":0,\"file_format\":\"bin\"}}");
  const auto plan = Plan({{"task", "statistics"}}, engine_);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->file_name, "kernel_graph_dump.json");
  EXPECT_EQ(plan->settings.saved_data, "statistic");
  EXPECT_EQ(plan->settings.file_format, "npy");
  EXPECT_TRUE(plan->sets_acl);
  const Json listed = {{"task", "tensor"}, {"tensor", {{"list", {"Default/Add-op0"}}}}};
  EXPECT_FALSE(Plan(listed, engine_)->sets_acl);
}

TEST_F(DumpPlanOf, OverflowAndExceptionsAreAsUpstreamWritesThem) {
  const Json overflow = {
      {"task", "overflow_check"}, {"step", {3}}, {"overflow_check", {{"check_mode", "all"}}}};
  EXPECT_EQ(
      SectionsOf(overflow, engine_),
      std::string(kFront) +
          "\"iteration\":\"all\",\"saved_data\":\"full\",\"input_output\":0,\"kernels\":[],"
          "\"support_device\":[0,1,2,3,4,5,6,7],\"op_debug_mode\":3,\"file_format\":\"npy\"}}");
  EXPECT_EQ(Plan(overflow, engine_)->file_name, "kernel_graph_overflow_check.json");
  EXPECT_NE(Plan(overflow, engine_)->warnings.at(0).find("step: has no effect"), std::string::npos);
  const auto mode = [&](const char* name) {
    return *Plan({{"task", "overflow_check"}, {"overflow_check", {{"check_mode", name}}}}, engine_)
                ->settings.op_debug_mode;
  };
  EXPECT_EQ(mode("aicore"), 1);
  EXPECT_EQ(mode("atomic"), 2);
  const auto exception = Plan({{"task", "exception_dump"}}, by_kernel_);
  ASSERT_TRUE(exception) << exception.error().message();
  EXPECT_EQ(exception->file_name, "kernel_graph_exception_check.json");
  EXPECT_EQ(exception->settings.op_debug_mode, 4);
  EXPECT_TRUE(exception->settings.sync);
}

TEST_F(DumpPlanOf, OnCpuStatisticsAreMadeFromTensors) {
  const auto statistics = Plan({{"task", "statistics"}}, cpu_);
  ASSERT_TRUE(statistics) << statistics.error().message();
  EXPECT_EQ(statistics->settings.saved_data, "tensor");
  EXPECT_EQ(statistics->finish_items, (std::vector<std::string>{"max", "min", "avg", "l2norm"}));
  EXPECT_FALSE(statistics->keeps_tensors);
  const auto tensor = Plan({{"task", "tensor"}}, cpu_);
  EXPECT_TRUE(tensor->finish_items.empty());
  const auto full = Plan({{"task", "tensor"}, {"tensor", {{"saved_data", "full"}}}}, cpu_);
  EXPECT_EQ(full->finish_items.size(), 4U);
  EXPECT_TRUE(full->keeps_tensors);
  EXPECT_EQ(full->settings.saved_data, "tensor");
}

TEST_F(DumpPlanOf, RanksAreFilteredWhereTheyAreKnown) {
  PlanContext context = by_kernel_;
  context.rank = 9;
  const auto mine = Plan({{"task", "tensor"}, {"rank", {9}}}, context);
  EXPECT_TRUE(mine->is_on);
  EXPECT_EQ(mine->settings.support_device.size(), 8U);
  EXPECT_FALSE(Plan({{"task", "tensor"}, {"rank", {1}}}, context)->is_on);
}

TEST_F(DumpPlanOf, ADumpThatIsThereIsAWarning) {
  const Json config = {{"task", "tensor"}, {"dump_path", root_.path()}};
  const size_t before = Plan(config, cpu_)->warnings.size();
  const auto plan = Plan(config, cpu_);
  const auto written = WriteDumpPlan(*plan);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(*written, root_.Path("kernel_kbyk_dump.json"));
  EXPECT_EQ(EnvironmentOf(*plan, *written).set[0].first, "MINDSPORE_DUMP_CONFIG");
  EXPECT_EQ(EnvironmentOf(*plan, *written).unset.size(), 1U);
  std::filesystem::create_directories(root_.Path("rank_0/Net"));
  EXPECT_EQ(Plan(config, cpu_)->warnings.size(), before + 1);
}

TEST_F(DumpPlanOf, KernelsBelowAnApiAreUpstreamsErrorsAndAWarning) {
  const Json one = {"Mint.add.0.forward"};
  const auto has = [&](const Json& config, const char* words) {
    return ErrorOf(config, pynative_).find(words) != std::string::npos;
  };
  EXPECT_TRUE(has({{"task", "statistics"}, {"statistics", {{"list", one}}}},
                  "the task must be set to tensor"));
  EXPECT_TRUE(has({{"task", "tensor"}, {"tensor", {{"list", one}, {"scope", one}}}},
                  "the scope cannot be configured"));
  EXPECT_TRUE(has({{"task", "tensor"}, {"tensor", {{"list", {"Mint.add.0", "Mint.abs.0"}}}}},
                  "the list must be configured as a list with one api name"));
  const auto plan = Plan({{"task", "tensor"}, {"tensor", {{"list", one}}}}, pynative_);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_FALSE(plan->is_on);
  ASSERT_FALSE(plan->warnings.empty());
  EXPECT_NE(plan->warnings.back().find("kernel dump cannot be used"), std::string::npos);
}

TEST_F(DumpPlanOf, WrongEntriesAreNamed) {
  const auto names = [&](const Json& config, const PlanContext& context, const char* entry) {
    return ErrorOf(config, context).find(entry) != std::string::npos;
  };
  EXPECT_TRUE(names({{"task", "tensor"}, {"level", "L1"}}, by_kernel_, "level: is \"L1\""));
  EXPECT_TRUE(names({{"task", "tensor"}, {"tensor", {{"data_mode", {"input", "output"}}}}},
                    by_kernel_, "tensor.data_mode"));
  EXPECT_TRUE(names({{"task", "overflow_check"}, {"overflow_check", {{"check_mode", "x"}}}},
                    engine_, "overflow_check.check_mode"));
  EXPECT_TRUE(names({{"task", "overflow_check"}}, by_kernel_, "task: is \"overflow_check\""));
  EXPECT_TRUE(names({{"task", "exception_dump"}}, engine_, "task: is \"exception_dump\""));
  EXPECT_TRUE(names({{"task", "statistics"}, {"statistics", {{"summary_mode", "sum"}}}}, by_kernel_,
                    "statistics.summary_mode"));
  EXPECT_TRUE(names({{"task", "tensor"}, {"tensor", {{"list", {"name-regex([)"}}}}}, by_kernel_,
                    "kernels[0]"));
  ::setenv("GRAPH_OP_RUN", "1", 1);
  EXPECT_TRUE(names({{"task", "tensor"}}, engine_, "GRAPH_OP_RUN"));
  ::unsetenv("GRAPH_OP_RUN");
}

}  // namespace
}  // namespace plumbline::graph_dump

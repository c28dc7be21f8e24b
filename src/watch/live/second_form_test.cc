#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "watch/live/monitor.h"
#include "watch/live/step_files.h"

namespace plumbline::watch {
namespace {

Result<MonitorConfig> Parsed(const std::string& text, std::string_view framework = "") {
  return ParseSecondForm(text, "c.json", framework);
}

TEST(SecondForm, ReadsWhatIsGiven) {
  const auto config = Parsed(R"({"framework": "MS", "rank": 1, "start_step": 2, "stop_step": 8,
      "monitors": {"module": {"targets": ["fc"], "ops": "max"},
                   "weight_grad": {"enabled": true, "grad_acc_steps": 4, "monitor_mbs_grad": true},
                   "optimizer": {"enabled": false}, "param": {},
                   "cc": {"enabled": true, "cc_distribution": {"cc_pre_hook": true}}}})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->warnings.empty()) << config->warnings.front();
  EXPECT_EQ(config->second->framework, "mindspore");
  EXPECT_EQ(config->ranks, std::vector<int64_t>{1});
  EXPECT_EQ(config->stop_step, 8);
  EXPECT_TRUE(config->activations && config->gradients && config->micro_batch_gradients);
  EXPECT_FALSE(config->moments || config->parameters || config->watches_all_modules);
  EXPECT_EQ(config->second->micro_batches, 4);
  EXPECT_EQ(config->second->ops[0], std::vector<Op>{Op::kMax});
  EXPECT_EQ(config->second->ops[1].size(), 5U);
  EXPECT_TRUE(config->communication.enable && config->communication.before);
}

TEST(SecondForm, WrongNumbersHaveTheirDefaultsWithAWarning) {
  const auto config = Parsed(R"({"start_step": -1, "collect_times": 0, "step_interval": "2",
      "rank": "0", "stepinterval": 3, "monitors": {"module": {"ops": ["zeros"]}, "modul": {}}})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->start_step, 0);
  EXPECT_EQ(config->step_interval, 1);
  EXPECT_EQ(config->second->ops[0].size(), 5U);
  EXPECT_EQ(config->warnings.size(), 7U);
  EXPECT_EQ(Parsed("{}")->warnings.size(), 1U);  // nothing is watched
}

TEST(SecondForm, AnotherFrameworkOrFormatIsAFault) {
  const auto config = Parsed(R"({"format": "tensorboard", "output_dir": 3, "framework": "jax"})");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message().find("3 faults"), std::string::npos);
  EXPECT_TRUE(Parsed(R"({"framework": "jax"})", "pt"));
  EXPECT_FALSE(Parsed("[]"));
}

TEST(SecondForm, WritesTheFilesOfUpstream) {
  const testing::TestDirectory root;
  MonitorConfig config = *Parsed(R"({"start_step": 1, "step_count_per_record": 2, "monitors": {
      "module": {"ops": ["max", "nans"]}, "weight_grad": {"enabled": true, "ops": ["norm"]},
      "optimizer": {"enabled": true, "ops": ["mean"]}}})");
  config.second->micro_batches = 2;
  std::string warning;
  const std::string directory = *MakeSecondDirectory(root.path(), 3, &warning);
  EXPECT_EQ(directory, root.path() + "/rank_3");
  Monitor monitor(config, {}, NewSecondSink(directory, config, 3), "", 0);
  const WatchedName* weight = monitor.Name("fc.weight", 0, 2);
  for (int64_t step = 1; step < 4; ++step) {
    monitor.Add(MonitorKind::kActivationGradient, monitor.Name("fc.grad_input.0", -1, 1), 1,
                ValuesOfNumber(2));
    monitor.Add(MonitorKind::kActivation, monitor.Name("fc.input.0", -1, 1), 0, NoValues());
    monitor.Add(MonitorKind::kReducedGradient, weight, 0, ValuesOfNumber(0.1F));
    monitor.Add(MonitorKind::kMomentum, weight, 0, ValuesOfNumber(1e-9));
    monitor.Commit(step);
  }
  monitor.Close();
  const std::string rows =
      "-1,1,fc.input.0,forward,1,nan,nan\r\n-1,1,fc.grad_input.0,backward,2,2.0,0.0\r\n";
  const std::string text = *ReadFile(directory + "/module_step1-2.csv");
  EXPECT_TRUE(text.starts_with("vpp_stage,step,module_name,scope,micro_step,max,nans\r\n" + rows))
      << text;
  EXPECT_EQ(*ReadFile(directory + "/weight_grad_step3-4.csv"),
            "vpp_stage,step,module_name,scope,micro_step,norm\r\n"
            "0,3,0:fc.weight,reduced,2,0.10000000149011612\r\n");
  EXPECT_EQ(*ReadFile(directory + "/optimizer_step3-4.csv"),
            "vpp_stage,step,module_name,scope,mean\r\n0,3,0:fc.weight.exp_avg,exp_avg,1e-09\r\n");
  EXPECT_EQ(*MakeSecondDirectory(root.path(), 3, &warning), root.path() + "/rank_3_2");
  EXPECT_NE(warning.find("holds the files of another run"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::watch

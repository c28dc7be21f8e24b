#include "watch/live/monitor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "base/file/file.h"
#include "base/file/test_directory.h"
#include "base/text/number_text.h"
#include "watch/live/step_files.h"

namespace plumbline::watch {
namespace {

MonitorConfig ConfigOf(const std::string& text) { return *ParseMonitorConfig(text, "c.json"); }

TEST(Monitor, WritesTheFilesOfUpstream) {
  const testing::TestDirectory directory;
  const MonitorConfig config = ConfigOf(R"({"ops": ["norm", "max", "shape"]})");
  CsvForm form{config.ops, config.digits, 2};
  Monitor monitor(config, {}, NewCsvSink(directory.path(), form), "", 0);
  const WatchedName* second = monitor.Name("fc2.output", 0, 2);
  const WatchedName* first = monitor.Name("fc1.input", 0, 1);
  for (int64_t step = 0; step < 3; ++step) {
    monitor.Add(MonitorKind::kActivation, first, 0, ValuesOfNumber(1.23456789));
    monitor.Add(MonitorKind::kActivation, second, 0, ValuesOfNumber(-2));
    monitor.Add(MonitorKind::kActivation, first, 1, NoValues());
    monitor.Commit(step);
  }
  monitor.Commit(3);  // nothing was added
  monitor.Close();
  EXPECT_EQ(*ReadFile(directory.path() + "/actv_0-1.csv"),
            "vpp_stage,name,step,micro_step,norm,max,shape\n"
            "0,fc1.input,0,0,1.234568,1.234568,\"[]\"\n"
            "0,fc1.input,0,1,nan,nan,nan\n"
            "0,fc2.output,0,0,2.0,-2.0,\"[]\"\n"
            "0,fc1.input,1,0,1.234568,1.234568,\"[]\"\n"
            "0,fc1.input,1,1,nan,nan,nan\n"
            "0,fc2.output,1,0,2.0,-2.0,\"[]\"\n");
  EXPECT_TRUE(ReadFile(directory.path() + "/actv_2-3.csv"));
  EXPECT_EQ(ListDirectory(directory.path())->size(), 2U);
}

TEST(MonitorProgress, IsOneSentence) {
  EXPECT_EQ(ProgressText({120, 3, 0, 1, 999}, "./out/a\nb"),
            "monitor: step 120, 3 alerts, 1 row, 1.0 kB in ./out/a_b");
  EXPECT_EQ(ProgressText({0, 1, 2, 1234567, 2'340'000}, "out"),
            "monitor: step 0, 1 alert, 2 hits, 1,234,567 rows, 2.3 MB in out");
  EXPECT_EQ(ProgressText({7, 0, 0, 123, 0}, ""), "monitor: step 7, 0 alerts, 123 rows");
}

TEST(Monitor, KeepsTheLastStepsAndTheRowsUnderWay) {
  Monitor monitor(ConfigOf("{}"), {}, nullptr, "", 2);
  const WatchedName* name = monitor.Name("w", 0, 0);
  for (int64_t step = 0; step < 5; ++step) {
    monitor.Add(MonitorKind::kParameter, name, 0, ValuesOfNumber(static_cast<double>(step)));
    EXPECT_DOUBLE_EQ(monitor.Latest(MonitorKind::kParameter).at(0).values.of(Op::kMax),
                     static_cast<double>(step));
    monitor.Commit(step);
  }
  EXPECT_DOUBLE_EQ(monitor.Latest(MonitorKind::kParameter).at(0).values.of(Op::kMax), 4);
  ASSERT_EQ(monitor.Ring().size(), 2U);
  EXPECT_EQ(monitor.Ring().front()->step, 3);
  EXPECT_EQ(monitor.Name("w", 0, 0), name);
}

TEST(Monitor, TellsWhatCouldNotBeWritten) {
  Monitor monitor(ConfigOf("{}"), {}, NewCsvSink("/nonexistent/monitor", {{Op::kNorm}}), "", 0);
  monitor.Add(MonitorKind::kParameter, monitor.Name("w", 0, 0), 0, ValuesOfNumber(1));
  monitor.Commit(0);
  monitor.Close();
  const auto problem = monitor.TakeProblem();
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->find("param_0-0.csv"), std::string::npos) << *problem;
}

TEST(StepFiles, CellsAreRoundedAsPythonDoes) {
  const auto cell = [](double value, std::optional<int> digits) {
    std::string text;
    AppendCell(value, digits, text);
    return text;
  };
  EXPECT_EQ(cell(0.5, 6), "0.5");
  EXPECT_EQ(cell(-1e-9, 6), "-0.0");
  EXPECT_EQ(cell(0.0000024, 6), "2e-06");
  EXPECT_EQ(cell(123456789.1234567, 6), "123456789.123457");
  EXPECT_EQ(cell(NAN, 6), "nan");
  EXPECT_EQ(cell(-INFINITY, 6), "-inf");
  EXPECT_EQ(cell(1.23456789012e-12, std::nullopt), "1.23456789e-12");
}

TEST(StepFiles, TrimmedToTheStepsBefore) {
  const testing::TestDirectory directory;
  const std::string path = directory.path() + "/param_0-9.csv";
  ASSERT_TRUE(WriteFileAtomically(
      path, "vpp_stage,name,step,norm\n0,w,1,1.0\n0,w,2,1.0\n0,w,3,1.0\n0,w", false));
  ASSERT_TRUE(TrimSteps(directory.path(), 2));
  EXPECT_EQ(*ReadFile(path), "vpp_stage,name,step,norm\n0,w,1,1.0\n");
}

TEST(AppendCell, RoundsAsPythonDoes) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-60, 70);
  for (int i = 0; i < 200'000; ++i) {
    double value = std::ldexp(mantissa(random), exponent(random));
    const int digits = 1 + i % 20;
    if (i % 3 == 0) value = std::round(value * 1e3) / 1e3;                     // few digits
    if (i % 5 == 0) value = std::ldexp(std::round(std::ldexp(value, 9)), -9);  // halves
    std::string text;
    AppendCell(value, digits, text);
    const double rounded = std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
    ASSERT_EQ(text, PythonFloat(rounded)) << fmt::format("{:.17g} to {}", value, digits);
  }
}

}  // namespace
}  // namespace plumbline::watch

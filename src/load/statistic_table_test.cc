#include "load/statistic_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file/test_directory.h"
#include "load/graph_dump.h"

namespace plumbline::load {
namespace {

class StatisticCounting : public ::testing::Test {
 protected:
  std::string Table(const std::string& directory, const std::vector<std::string>& rows) {
    std::filesystem::create_directories(root_.Path(directory));
    std::ofstream file(root_.Path(directory) + "/statistic.csv");
    file << "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max "
            "Value\n";
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t comma = rows[i].find(',');
      file << "Mul," << rows[i].substr(0, comma) << ",0,0," << 100 + i << rows[i].substr(comma)
           << ",4,float32,\"(1)\",3,\n";
    }
    return root_.Path(directory);
  }
  static void ExpectSame(const std::vector<std::string>& directories, uint64_t kernels,
                         uint64_t values) {
    const auto counts = CountStatistics(directories);
    ASSERT_TRUE(counts) << counts.error().message();
    EXPECT_EQ(counts->kernels, kernels);
    EXPECT_EQ(counts->values, values);
    const auto records = ReadGraphDump(directories);
    ASSERT_TRUE(records) << records.error().message();
    EXPECT_EQ(records->calls.size(), kernels);
  }

  plumbline::testing::TestDirectory root_;
};

TEST_F(StatisticCounting, IsWhatReadingEverythingFinds) {
  const std::string first = Table("0", {"a/b,input,0", "a/b,input,1", "a/b,output,0", "c,output,0",
                                        "a_b,input,0", "c,input,7"});
  ExpectSame({first}, 3, 6);
  // The same kernel in another graph is one more run of it.
  const std::string second = Table("1", {"c,output,0", "c,output,0", "d,input,0"});
  ExpectSame({second}, 3, 3);
  ExpectSame({first, second}, 6, 9);
}

TEST_F(StatisticCounting, DamageIsAnError) {
  const std::string directory = Table("0", {"a,input,0"});
  std::ofstream(directory + "/statistic.csv", std::ios::app) << "Mul,b,0\n";
  EXPECT_EQ(CountStatistics({directory}).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(CountStatistics({root_.Path("none")}).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace plumbline::load

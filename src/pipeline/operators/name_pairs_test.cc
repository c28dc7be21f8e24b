#include "pipeline/operators/name_pairs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plumbline::pipeline {
namespace {

load::OperatorDump Dump(const std::string& name, const std::string& path) {
  load::OperatorDump dump;
  dump.op_type = "Op";
  dump.op_name = name;
  dump.path = path;
  dump.file_name = "file of " + path;
  return dump;
}

// Target path, golden path and index of each pair.
std::vector<std::string> Texts(const std::vector<PairedOperator>& pairs) {
  std::vector<std::string> texts;
  for (const PairedOperator& pair : pairs) {
    texts.push_back(std::to_string(pair.index) + " " + pair.target_path + " " + pair.golden_path);
    EXPECT_EQ(pair.reason.empty(), !pair.target_path.empty() && !pair.golden_path.empty());
    if (!pair.target_path.empty()) {
      EXPECT_EQ(pair.target_file_name, "file of " + pair.target_path);
    }
    if (!pair.golden_path.empty()) {
      EXPECT_EQ(pair.golden_file_name, "file of " + pair.golden_path);
    }
  }
  return texts;
}

TEST(NamePairs, ExecutionsPairInTheirOrderAndTheRestComesLast) {
  load::OperatorDumps target, golden;
  target.files = {Dump("a", "a1"), Dump("b", "b1"), Dump("a", "a2"), Dump("only", "o1"),
                  Dump("a", "a3")};
  golden.files = {Dump("theirs", "T1"), Dump("b", "B1"), Dump("a", "A1"),
                  Dump("b", "B2"),      Dump("a", "A2"), Dump("b", "B3")};
  const auto pairs = PairByName(target, golden);
  EXPECT_EQ(Texts(pairs), (std::vector<std::string>{"0 a1 A1", "1 b1 B1", "2 a2 A2", "3 o1 ",
                                                    "4 a3 ", "5  T1", "6  B2", "7  B3"}));
  EXPECT_EQ(pairs[3].reason, "There is no the ground truth dump file for the op only.");
  EXPECT_EQ(pairs[3].target_name, "only");
  EXPECT_EQ(pairs[3].golden_name, "*");
  EXPECT_EQ(pairs[5].reason, "There is no the my output dump file for the op theirs.");
  EXPECT_EQ(pairs[5].golden_name, "theirs");
  EXPECT_EQ(pairs[5].op_type, "Op");
}

TEST(NamePairs, ThreadsAndOutputsAreTensorsOfTheirOwn) {
  load::OperatorDumps target, golden;
  for (const int64_t number : {0, 1, 2}) {
    load::OperatorDump of_thread = Dump("a", "t" + std::to_string(number));
    of_thread.thread_id = number;
    load::OperatorDump of_output = Dump("a", "o" + std::to_string(number));
    of_output.output = number;
    target.files.insert(target.files.end(), {of_thread, of_output});
    golden.files.insert(golden.files.begin(), {of_thread, of_output});
  }
  for (const PairedOperator& pair : PairByName(target, golden)) {
    EXPECT_EQ(pair.target_path, pair.golden_path);
  }
  EXPECT_TRUE(PairByName({}, {}).empty());
}

}  // namespace
}  // namespace plumbline::pipeline

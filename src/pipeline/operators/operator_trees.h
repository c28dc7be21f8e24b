// Finds the directories of device dumps in trees whose depth depends on who recorded.

#ifndef PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TREES_H_
#define PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TREES_H_

#include <string>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::pipeline {

// Two directories whose files are compared. One of them is empty where a side has no counterpart.
struct OperatorTree {
  std::string name;  // path below the tree without times; empty: the tree itself
  std::string target, golden;
};

struct OperatorTrees {
  std::vector<OperatorTree> pairs;
  // Without pairs: the side that has dumps where the other has none; empty: neither has any.
  std::string one_sided;
};

// Directories with dumps, paired by their paths below the two trees; times (14 digits) do not
// count, the newest wins where they leave two of a name. Where each side has one directory, these
// two are a pair whatever their paths are. No pairs: a side has no device dumps, and may be
// anything. kIo: both have some, and a directory between them cannot be read.
Result<OperatorTrees> FindOperatorTrees(const std::string& target, const std::string& golden);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_OPERATORS_OPERATOR_TREES_H_

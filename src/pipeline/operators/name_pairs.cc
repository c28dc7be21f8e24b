#include "pipeline/operators/name_pairs.h"

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace plumbline::pipeline {
namespace {

// Name, thread and, of arrays, the output.
using Key = std::tuple<std::string, int64_t, int64_t>;

Key KeyOf(const load::OperatorDump& dump) {
  return {dump.op_name, dump.thread_id.value_or(-1), dump.output.value_or(-1)};
}

}  // namespace

std::vector<PairedOperator> PairByName(const load::OperatorDumps& target,
                                       const load::OperatorDumps& golden) {
  std::map<Key, std::deque<const load::OperatorDump*>> waiting;
  for (const load::OperatorDump& dump : golden.files) waiting[KeyOf(dump)].push_back(&dump);
  std::vector<PairedOperator> pairs;
  for (const load::OperatorDump& mine : target.files) {
    PairedOperator pair;
    pair.index = pairs.size();
    pair.op_type = mine.op_type;
    pair.target_name = mine.op_name;
    pair.target_path = mine.path;
    pair.target_slices = mine.slices;
    pair.target_file_name = mine.file_name;
    const auto found = waiting.find(KeyOf(mine));
    if (found == waiting.end() || found->second.empty()) {
      pair.reason = "There is no the ground truth dump file for the op " + mine.op_name + ".";
    } else {
      pair.golden_name = mine.op_name;
      pair.golden_path = found->second.front()->path;
      pair.golden_slices = found->second.front()->slices;
      pair.golden_file_name = found->second.front()->file_name;
      found->second.pop_front();
    }
    pairs.push_back(std::move(pair));
  }
  for (const load::OperatorDump& theirs : golden.files) {
    std::deque<const load::OperatorDump*>& left = waiting[KeyOf(theirs)];
    if (left.empty() || left.front() != &theirs) continue;
    left.pop_front();
    PairedOperator pair;
    pair.index = pairs.size();
    pair.op_type = theirs.op_type;
    pair.golden_name = theirs.op_name;
    pair.golden_path = theirs.path;
    pair.golden_slices = theirs.slices;
    pair.golden_file_name = theirs.file_name;
    pair.reason = "There is no the my output dump file for the op " + theirs.op_name + ".";
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace plumbline::pipeline

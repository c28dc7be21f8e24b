// Two .npy files side by side.

#ifndef PLUMBLINE_OPERATORS_ARRAY_PAIR_H_
#define PLUMBLINE_OPERATORS_ARRAY_PAIR_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/array_verdict.h"
#include "measure/dump_algorithms.h"
#include "operators/user_code.h"

namespace plumbline::operators {

struct ArrayPair {
  std::vector<std::pair<std::string, measure::AlgorithmText>> values;  // by algorithm
  measure::ArrayVerdict verdict;
};

// kInvalidArgument: the shapes differ. Errors of npy::NpyFile::Open().
Result<ArrayPair> CompareArrayFiles(const std::string& target, const std::string& golden,
                                    std::span<const measure::DumpAlgorithm> algorithms,
                                    const OwnFunctions& own = {});

// "{name}: {value}" per algorithm, then the verdict.
std::string ArrayPairText(const ArrayPair& pair);

// file_result_{time}.txt in `directory` with that text; its path.
Result<std::string> WriteArrayPair(const ArrayPair& pair, const std::string& directory);

}  // namespace plumbline::operators

#endif  // PLUMBLINE_OPERATORS_ARRAY_PAIR_H_

#include "pipeline/operators/input_parts.h"

#include <algorithm>
#include <cstring>

#include "measure/verdict.h"

namespace plumbline::pipeline {
namespace {

using acl::DumpedTensor;

struct PartOfInput {
  const DumpedTensor* tensor;
  int64_t number;
};

bool AreSame(const DumpedTensor& a, const DumpedTensor& b) {
  return a.data_type == b.data_type && a.format == b.format && a.sub_format == b.sub_format &&
         a.shape == b.shape && a.original_shape == b.original_shape && a.size == b.size &&
         a.data.size() == b.data.size() &&
         (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size()) == 0);
}

bool AreAllSame(const std::vector<PartOfInput>& parts) {
  return std::ranges::all_of(
      parts, [&](const PartOfInput& one) { return AreSame(*one.tensor, *parts.front().tensor); });
}

// With `takes_whole` one that was put together is one. `is_whole` becomes false where a part lacks
// the input.
std::vector<PartOfInput> PartsOf(const OperatorTensors& tensors, size_t index, bool takes_whole,
                                 bool& is_whole) {
  if (tensors.parts().empty() || (takes_whole && tensors.IsInputWhole(index))) {
    return {{&tensors.message().inputs[index], 0}};
  }
  std::vector<PartOfInput> parts;
  for (size_t i = 0; i < tensors.parts().size(); ++i) {
    const std::vector<DumpedTensor>& inputs = tensors.parts()[i].inputs;
    if (index < inputs.size()) parts.push_back({&inputs[index], tensors.numbers()[i]});
  }
  is_whole = is_whole && parts.size() == tensors.parts().size();
  return parts;
}

int Severity(const measure::ArrayVerdict& verdict) {
  const bool is_nothing = verdict.verdict == Verdict::kNotComparable &&
                          (verdict.reason == "zero-both" || verdict.reason == "empty");
  return is_nothing ? -1 : measure::Severity(verdict.verdict);
}

}  // namespace

InputPairs PairInputs(const OperatorTensors& target, const OperatorTensors& golden, size_t index) {
  InputPairs found;
  std::vector<PartOfInput> mine = PartsOf(target, index, true, found.is_whole);
  std::vector<PartOfInput> theirs = PartsOf(golden, index, true, found.is_whole);
  bool is_mine_one = AreAllSame(mine), is_theirs_one = AreAllSame(theirs);
  if (is_mine_one != is_theirs_one) {  // parts meet parts, where both sides have them
    mine = PartsOf(target, index, false, found.is_whole);
    theirs = PartsOf(golden, index, false, found.is_whole);
    is_mine_one = AreAllSame(mine);
    is_theirs_one = AreAllSame(theirs);
  }
  if (is_mine_one) mine.resize(1);
  if (is_theirs_one) theirs.resize(1);
  for (const PartOfInput& one : mine) {
    for (const PartOfInput& other : theirs) {
      if (!is_mine_one && !is_theirs_one && one.number != other.number) continue;
      found.pairs.push_back({one.tensor, other.tensor, is_mine_one ? other.number : one.number});
    }
  }
  const bool is_cut = found.pairs.size() != 1;
  const size_t most = std::max(mine.size(), theirs.size());
  found.is_whole = found.is_whole && found.pairs.size() == most &&
                   (!is_cut || (target.is_whole() && golden.is_whole()));
  return found;
}

InputPairs PairInputs(const OperatorTensors& target, size_t index) {
  InputPairs found;
  std::vector<PartOfInput> mine = PartsOf(target, index, true, found.is_whole);
  if (AreAllSame(mine)) mine.resize(1);
  for (const PartOfInput& one : mine) found.pairs.push_back({one.tensor, nullptr, one.number});
  found.is_whole = found.is_whole && (mine.size() == 1 || target.is_whole());
  return found;
}

bool IsWorse(const measure::ArrayVerdict& one, const measure::ArrayVerdict& other) {
  const int a = Severity(one), b = Severity(other);
  return a != b ? a > b : one.error > other.error;
}

}  // namespace plumbline::pipeline

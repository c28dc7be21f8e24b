// Trees of ranks made of a few lines, for tests.

#ifndef PLUMBLINE_VIEW_MERGE_TREES_FOR_TEST_H_
#define PLUMBLINE_VIEW_MERGE_TREES_FOR_TEST_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/json/dump_json.h"
#include "view/merge/merged_values.h"
#include "view/merge/rank_tree.h"

namespace plumbline::view {

struct Numbers {
  double max = 0, min = 0, mean = 0, norm = 0;
};
inline TensorRecord TensorOf(const Numbers& numbers) {
  TensorRecord tensor;
  tensor.type = "torch.Tensor";
  tensor.dtype_text = "torch.float32";
  tensor.shape = {2, 2};
  tensor.max = numbers.max;
  tensor.min = numbers.min;
  tensor.mean = numbers.mean;
  tensor.norm = numbers.norm;
  return tensor;
}
// All four statistics are the number.
inline TensorRecord TensorOf(double number) {
  return TensorOf(Numbers{number, number, number, number});
}

// A call with one tensor that goes in and one that comes out.
struct TestCall {
  std::string name, parent;  // an empty parent: the root
  double in = 0, out = 0;
};

inline RankTree TreeOf(int64_t rank, const std::vector<TestCall>& calls) {
  RankTree tree;
  tree.rank = rank;
  tree.parts.emplace_back().name = kRootName;
  tree.Index();
  for (const TestCall& call : calls) {
    Part& part = tree.parts.emplace_back();
    part.name = call.name;
    part.type = NodeTypeOf(call.name);
    part.rank = rank;
    const bool is_backward = call.name.find("backward") != call.name.npos;
    const std::string_view in = is_backward ? dump_json::kInput : dump_json::kInputArgs;
    part.members.emplace_back(in, ValueList{TensorOf(call.in)});
    part.members.emplace_back(dump_json::kOutput, ValueList{TensorOf(call.out)});
    Part& parent = call.parent.empty() ? tree.root() : *tree.Find(call.parent);
    AttachAt(part, parent, parent.children.size());
    tree.by_name.emplace(part.name, &part);
  }
  return tree;
}

inline std::vector<std::string> NamesBelow(const Part& part) {
  std::vector<std::string> names;
  for (const Part* const child : part.children) names.push_back(child->name);
  return names;
}

// Max of the tensor at a place of a call; -1 where there is none.
inline double MaxAt(Part& part, std::string_view place) {
  for (const PlacedValue& value : PlacedValuesOf(part)) {
    if (value.place == place && value.tensor != nullptr) return std::get<double>(value.tensor->max);
  }
  return -1;
}

inline std::vector<RankTree*> PointersTo(std::vector<RankTree>& trees) {
  std::vector<RankTree*> pointers;
  for (RankTree& tree : trees) pointers.push_back(&tree);
  return pointers;
}

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_MERGE_TREES_FOR_TEST_H_

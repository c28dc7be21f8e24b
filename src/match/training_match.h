// Which module of a training stands against which of an inference that runs the same model with
// fused modules (docs/reference/compare-training.md).

#ifndef PLUMBLINE_MATCH_TRAINING_MATCH_H_
#define PLUMBLINE_MATCH_TRAINING_MATCH_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "match/mapping_file.h"
#include "match/name_match.h"

namespace plumbline::match {

enum class TrainingBackend : uint8_t { kFsdp, kMegatron };

struct TrainingRules {
  TrainingBackend backend = TrainingBackend::kFsdp;
  TextPairs modules;  // field of a path of the training, what the inference calls it
};
// Upstream's table of the backend, behind what the user gives: the first entry of a name counts.
TrainingRules RulesOfBackend(TrainingBackend backend, TextPairs user);

// Where a module stands, without what differs between the two sides.
struct ModulePlace {
  int64_t layer = -1;  // number in `layers.<n>`; -1: in no layer
  std::string module;  // "qkv_proj"; empty: the layer itself
  friend auto operator<=>(const ModulePlace&, const ModulePlace&) = default;
};
// Of a module's path and class: wrappers and `layers.<n>.` are cut off, then the first field of
// several; the others are mapped. Of the model itself `module` is its class.
ModulePlace PlaceOfModule(std::string_view path, std::string_view class_name,
                          const TrainingRules& rules);

// The paths of the modules that wrap another one (FSDP, torch.compile, checkpointing), as the paths
// of what is inside show them.
std::set<std::string, std::less<>> WrapperPaths(const std::vector<CallItems>& calls);

struct TrainingMatch {
  std::vector<CallPair> pairs;
  uint64_t backward = 0;    // calls of the training that inference has none of
  uint64_t recomputed = 0;  // forward calls that a backward pass ran again
  uint64_t other = 0;       // calls on either side that are no modules, or wrap one
  // Names of calls and items that stand for several, and what to show for them.
  std::vector<std::pair<std::string, std::string>> shown_names;
};

// Pairs the forward calls of modules. Several modules of one side that are one on the other become
// one call whose tensors are put together (load/derived_tensor.h); so do an input or result and the
// residual that the other side has added to it. The two lists are replaced by the calls so made, in
// the order of the training. An item pairs with that of the same place if its shape, without
// dimensions of size 1, is the same; others are alone.
TrainingMatch MatchTraining(const TrainingRules& rules, std::vector<CallItems>& training,
                            std::vector<CallItems>& inference);

// The name that stood for several before they were shown: the first of a name to show.
std::string_view FirstOfShown(std::string_view shown);

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_TRAINING_MATCH_H_

// Names of parameters of two checkpoints that mean the same under different wrappers.

#ifndef PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_NAMES_H_
#define PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_NAMES_H_

#include <string>
#include <vector>

namespace plumbline {

struct AlignedNames {
  std::vector<std::string> target, golden;  // in the order given, unique on each side
  std::vector<std::string> notes;           // what was left out, one sentence each
};

// Leaves out wrappers ("module.", "_orig_mod.", ...) and the longest common beginning that one side
// has in addition ("state_dict.model."), each only where more names agree without it. Pure. Names
// are unique on each side.
AlignedNames AlignNames(std::vector<std::string> target, std::vector<std::string> golden);

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_ARRAYS_CHECKPOINT_NAMES_H_

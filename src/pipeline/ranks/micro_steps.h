// Which micro step of a training step an entry belongs to, and its number inside it.

#ifndef PLUMBLINE_PIPELINE_RANKS_MICRO_STEPS_H_
#define PLUMBLINE_PIPELINE_RANKS_MICRO_STEPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/dump_json.h"
#include "plumbline/result.h"

namespace plumbline {

// Names of the roots with call number 0, in order of their first call. A root is an outermost
// module; one that another root holds by its name (computed again for its gradient, or called
// alone) is none. A micro step can be told by its root only where there is one.
std::vector<std::string> RootNames(const dump_json::CallTree& tree);

// The micro steps of one rank in one step directory. They are those that Megatron counted, else a
// new one starts at every call of the first root. An entry below a root has the micro step of the
// root, gradients that of the forward call, any other entry that of the entry before it.
// Immutable; without a root everything is in micro step 0 and keeps its number.
class MicroSteps {
 public:
  // `names`: the entries of dump.json in file order. kCorrupt: a micro step is no count.
  static Result<MicroSteps> Derive(const dump_json::CallTree& tree,
                                   const std::vector<std::string>& names);

  // How many there are, at least 1.
  [[nodiscard]] int64_t count() const { return count_; }

  struct Place {
    int64_t micro_step = 0;
    std::string name;  // with the number that counts from 0 in every micro step
  };
  // Requires: `name` was among the names given to Derive().
  [[nodiscard]] Place Of(std::string_view name) const;

 private:
  struct Entry {
    int64_t micro_step = 0;
    uint64_t number = 0;
  };

  Status TakeCounted(const dump_json::CallTree& tree);
  void FollowRoots(const dump_json::CallTree& tree);
  void PlaceOthers(const std::vector<std::string>& names);
  void Renumber();

  std::unordered_map<std::string, Entry> entries_;  // by name of the forward call
  int64_t count_ = 1;
  bool renumbers_ = false;
};

}  // namespace plumbline

#endif  // PLUMBLINE_PIPELINE_RANKS_MICRO_STEPS_H_

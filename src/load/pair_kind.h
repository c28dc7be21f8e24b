// What two paths that are to be compared hold.

#ifndef PLUMBLINE_LOAD_PAIR_KIND_H_
#define PLUMBLINE_LOAD_PAIR_KIND_H_

#include <string>
#include <string_view>

namespace plumbline::load {

enum class PairKind {
  kRecording,    // of one rank and step: anything that is nothing below
  kRanks,        // recordings or static graphs of several ranks or steps
  kCheckpoints,  // or arrays
  kAtb,
  kHdf5,
  kTorchair,
  kDeviceDumps,
  kMixed,  // calls and static graphs of MindSpore side by side
};

// As `plumb compare` takes them without an option. A path that is missing is a recording, whose
// reader says so. `has_data_mapping`: a static graph may stand against recorded calls.
PairKind KindOfPair(const std::string& target, const std::string& golden, bool has_data_mapping);

// What such a side holds, in words: "dumps of ATB".
std::string_view PairKindText(PairKind kind);

}  // namespace plumbline::load

#endif  // PLUMBLINE_LOAD_PAIR_KIND_H_

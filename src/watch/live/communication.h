// What a monitor says of communication: the values of the tensors of all calls of a step, in one.

#ifndef PLUMBLINE_WATCH_LIVE_COMMUNICATION_H_
#define PLUMBLINE_WATCH_LIVE_COMMUNICATION_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "watch/live/tensor_values.h"

namespace plumbline::watch {

// Below, an element counts as zero, whatever the configuration says.
inline constexpr double kCommunicationZero = 1e-8;

// Several tensors as if they stood one behind the other; NoValues() of none.
TensorValues Joined(std::span<const TensorValues> parts);

// One step. Over the calls: the smallest min, the largest max, sums of norms and counts, means of
// means and of shares of zeros. NaN in one of them stays.
class CommunicationValues {
 public:
  void Add(const std::string& name, const TensorValues& values);
  // By name, in the order in which they came first; nothing is left.
  std::vector<std::pair<std::string, TensorValues>> Take();

 private:
  struct Sum {
    TensorValues values;
    uint64_t calls = 0;
  };
  std::vector<std::pair<std::string, Sum>> sums_;
  std::map<std::string, size_t, std::less<>> places_;
};

}  // namespace plumbline::watch

#endif  // PLUMBLINE_WATCH_LIVE_COMMUNICATION_H_

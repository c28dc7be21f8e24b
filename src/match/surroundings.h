// Where a call stands among calls that are paired already.

#ifndef PLUMBLINE_MATCH_SURROUNDINGS_H_
#define PLUMBLINE_MATCH_SURROUNDINGS_H_

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "match/call_align.h"
#include "match/expand.h"

namespace plumbline::match {

// Follows the pairs of a match as they change; what it is given must outlive it.
class Surroundings {
 public:
  // `partner`: golden index per target call, `counterpart`: target index per golden call;
  // static_cast<size_t>(-1) without.
  Surroundings(const std::vector<CallItems>& target, const std::vector<CallItems>& golden,
               const std::vector<size_t>& partner, const std::vector<size_t>& counterpart);

  // Fills the pair_... of both sequences.
  void Describe(std::vector<AlignedCall>& target, std::vector<AlignedCall>& golden) const;

 private:
  using ByName = std::unordered_map<std::string, size_t>;

  // The nearest paired call before or after, as golden's index + 1; 0: none near.
  [[nodiscard]] uint32_t Anchor(size_t index, bool is_target, int step) const;

  const std::vector<CallItems>& target_;
  const std::vector<CallItems>& golden_;
  const std::vector<size_t>& partner_;
  const std::vector<size_t>& counterpart_;
  ByName forward_target_, forward_golden_;
};

}  // namespace plumbline::match

#endif  // PLUMBLINE_MATCH_SURROUNDINGS_H_

// Calls that are the same under other names, in another order or in another number: forms of a
// name, and the alignment of two sequences.

#ifndef PLUMBLINE_MATCH_CALL_ALIGN_H_
#define PLUMBLINE_MATCH_CALL_ALIGN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "match/expand.h"

namespace plumbline::match {

// Parts of a call's name, and the forms of it under which two calls can be found to be the same.

// "Functional.linear.3.forward" -> "Functional.linear.forward";
// "Module.fc.Linear.forward.3" -> "Module.fc.Linear.forward"; the number behind "parameters_grad",
// which releases after 1.2.2 write, goes too. A name without number stays as it is.
std::string WithoutCallNumber(std::string_view call_name);

// The name as a model without wrappers would give it: segments that DDP, FSDP, torch.compile and
// activation checkpointing put into module paths are left out, FSDP2's class names lose their
// prefix, and MindSpore's "Cell" is "Module". Names of APIs stay as they are.
// "Module.module._orig_mod.fc.Linear.forward.0" -> "Module.fc.Linear.forward.0".
std::string UnwrappedName(std::string_view call_name);

// What a call does, whatever it is called: class and direction of a module's call, API and
// direction of another one without its owner ("Tensor.__add__.3.forward", "Torch.add.0.forward" and
// "Aten.add.Tensor.1.forward" -> "add.forward"). For calls at the same place of two recordings.
std::string KindName(std::string_view call_name);

// Whether the name belongs to a module (or MindSpore cell) or its parameters' gradients.
bool IsModuleCall(std::string_view call_name);

// Whether the name says forward, backward or parameters_grad, as every name of a call does.
bool HasDirection(std::string_view call_name);

// What `item_name` says beyond the name of its call: "input.0", "kwargs.dim" as "input.dim".
// Empty for an item with the name of the call, nothing where it is not named after the call.
std::optional<std::string_view> ItemPart(std::string_view item_name, std::string_view call_name);
// Equal parts, keyword tensors spelled either way.
bool SamePart(std::string_view a, std::string_view b);

// Sums over ranks that the two sides make in another order, as other bucket sizes do.

// Calls to pair anew (target, golden), given the golden partner of every target call (kNoPartner:
// none). Collectives of one name whose inputs disagree with their partner's, but agree with those
// of another such pair, and after them the calls that take their results. Each partner that is
// taken away finds another call, so that no call loses its pair. Messages between two ranks keep
// their order: it is part of what they mean. Calls whose inputs agree are never touched.
std::vector<std::pair<size_t, size_t>> PairsInAnotherOrder(const std::vector<CallItems>& target,
                                                           const std::vector<CallItems>& golden,
                                                           const std::vector<size_t>& partner);

// Aligning two sequences of calls that are called the same but differ in number.

// What is known about a call of the sequence; equal numbers mean equal things.
struct AlignedCall {
  size_t index = 0;        // the caller's
  uint32_t structure = 0;  // only calls of one structure pair
  uint32_t site = 0;       // module and line of code; 0: unknown
  uint32_t before = 0;     // what is called before
  uint32_t after = 0;      // and after
  uint32_t name = 0;       // the whole name with its number
  uint32_t arguments = 0;  // the values of its scalar arguments; 0: it has none
  // The golden calls that stand where these do, as far as they are paired already; 0: unknown.
  uint32_t pair_before = 0, pair_after = 0;  // next to it
  uint32_t pair_forward = 0;                 // of a gradient: its forward call
};

// Pairs that keep the order of both sequences: as many as possible, and among those the ones that
// agree best in site, neighbours, arguments and name. Sequences whose product exceeds 16 million
// pair by position as far as their structures agree.
std::vector<std::pair<size_t, size_t>> AlignCalls(const std::vector<AlignedCall>& a,
                                                  const std::vector<AlignedCall>& b);

// Where a call stands among calls that are paired already.

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

#endif  // PLUMBLINE_MATCH_CALL_ALIGN_H_

#include "match/surroundings.h"

#include <string_view>

namespace plumbline::match {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr size_t kNear = 16;  // calls
constexpr std::string_view kForward = "forward";
constexpr std::string_view kBackward = "backward";

bool IsForward(std::string_view name) { return name.rfind(kForward) != name.npos; }

// "Torch.f.0.forward" of "Torch.f.0.backward", "Module.m.M.forward.0" of "Module.m.M.backward.0";
// empty for other names.
std::string ForwardOf(std::string_view name) {
  const size_t at = name.rfind(kBackward);
  if (at == name.npos) return {};
  std::string forward(name);
  return forward.replace(at, kBackward.size(), kForward);
}

size_t Find(const std::unordered_map<std::string, size_t>& by_name, std::string_view backward) {
  const auto found = by_name.find(ForwardOf(backward));
  return found == by_name.end() ? kNone : found->second;
}

uint32_t Id(size_t golden) { return golden == kNone ? 0 : static_cast<uint32_t>(golden + 1); }

}  // namespace

Surroundings::Surroundings(const std::vector<CallItems>& target,
                           const std::vector<CallItems>& golden, const std::vector<size_t>& partner,
                           const std::vector<size_t>& counterpart)
    : target_(target), golden_(golden), partner_(partner), counterpart_(counterpart) {
  for (size_t i = 0; i < target.size(); ++i) {
    if (IsForward(target[i].name)) forward_target_.emplace(target[i].name, i);
  }
  for (size_t j = 0; j < golden.size(); ++j) {
    if (IsForward(golden[j].name)) forward_golden_.emplace(golden[j].name, j);
  }
}

uint32_t Surroundings::Anchor(size_t index, bool is_target, int step) const {
  const std::vector<size_t>& pairs = is_target ? partner_ : counterpart_;
  for (size_t k = 0; k < kNear; ++k) {
    if (step < 0 && index == 0) return 0;
    index = step < 0 ? index - 1 : index + 1;
    if (index >= pairs.size()) return 0;
    if (pairs[index] != kNone) return Id(is_target ? pairs[index] : index);
  }
  return 0;
}

void Surroundings::Describe(std::vector<AlignedCall>& target,
                            std::vector<AlignedCall>& golden) const {
  for (AlignedCall& call : target) {
    call.pair_before = Anchor(call.index, true, -1);
    call.pair_after = Anchor(call.index, true, 1);
    const size_t forward = Find(forward_target_, target_[call.index].name);
    call.pair_forward = forward == kNone ? 0 : Id(partner_[forward]);
  }
  for (AlignedCall& call : golden) {
    call.pair_before = Anchor(call.index, false, -1);
    call.pair_after = Anchor(call.index, false, 1);
    call.pair_forward = Id(Find(forward_golden_, golden_[call.index].name));
  }
}

}  // namespace plumbline::match

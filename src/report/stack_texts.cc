#include "report/stack_texts.h"

namespace plumbline::report {
namespace {

constexpr size_t kMostKept = 4096;

}  // namespace

StackTexts::StackTexts(const Comparison& comparison, std::string (*spell)(const Frames&))
    : comparison_(comparison), spell_(spell) {
  for (const Shared<Frames>& stack : comparison.stacks) {
    if (texts_.size() == kMostKept) return;
    if (stack.empty()) continue;
    const auto [at, is_new] = texts_.try_emplace(&*stack);
    if (is_new) at->second = spell(*stack);
  }
}

const std::string* StackTexts::Find(size_t call) const {
  if (call >= comparison_.stacks.size()) return nullptr;
  const auto found = texts_.find(&*comparison_.stacks[call]);
  return found == texts_.end() ? nullptr : &found->second;
}

std::string StackTexts::Of(size_t call) const {
  if (const std::string* kept = Find(call)) return *kept;
  const bool has_stack = call < comparison_.stacks.size() && !comparison_.stacks[call].empty();
  return has_stack ? spell_(*comparison_.stacks[call]) : std::string();
}

}  // namespace plumbline::report

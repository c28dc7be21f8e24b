// The texts of call stacks in a result: many calls come from one line of code and share one.

#ifndef PLUMBLINE_REPORT_STACK_TEXTS_H_
#define PLUMBLINE_REPORT_STACK_TEXTS_H_

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "plumbline/compare.h"

namespace plumbline::report {

// Spells every distinct stack once, up to a number beyond which they would be a good part of the
// memory. `comparison` must outlive this. Thread-safe.
class StackTexts {
 public:
  using Frames = std::vector<std::string>;

  StackTexts(const Comparison& comparison, std::string (*spell)(const Frames&));

  // The text of a call's stack, or null: it has none, or it is not kept.
  [[nodiscard]] const std::string* Find(size_t call) const;
  // The same, spelled where it is not kept; empty: no stack.
  [[nodiscard]] std::string Of(size_t call) const;

 private:
  const Comparison& comparison_;
  std::string (*spell_)(const Frames&);
  std::unordered_map<const Frames*, std::string> texts_;
};

}  // namespace plumbline::report

#endif  // PLUMBLINE_REPORT_STACK_TEXTS_H_

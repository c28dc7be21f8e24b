// Whether an overflow is one that the numbers ask for, or the device's own.

#ifndef PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_JUDGE_H_
#define PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "precheck/call_flow.h"
#include "precheck/call_value.h"
#include "precheck/outcome.h"

namespace plumbline::precheck {

// A tree of values, looked through for NaN and infinities. Truth values and integers have none.
class OverflowSearch {
 public:
  // Tensors of the trees lie in `memory`.
  explicit OverflowSearch(std::span<const std::byte> memory) : memory_(memory) {}

  // `path` names the value: "output". `other`: what the other side has in this place, to whose
  // narrower types tensors are rounded; null: nothing is rounded.
  void Look(const CallValue& value, const std::string& path, const CallValue* other = nullptr);

  bool has_overflow = false;
  bool has_truth_value = false;  // a Python bool is there
  bool was_rounded = false;
  std::string first;    // path of the first overflow
  std::string unknown;  // type of a value that cannot be looked into; empty: there is none

 private:
  void Found(const std::string& path);
  void LookAtTensor(const TensorPlace& place, const std::string& path, const CallValue* other);
  void LookAtSpecial(const SpecialValue& special, const std::string& path);
  void LookAtSequence(const CallSequence& sequence, const std::string& path,
                      const CallValue* other);
  void LookAtMap(const CallMap& map, const std::string& path, const CallValue* other);

  std::span<const std::byte> memory_;
};

// What an overflow is. kNormal: both sides have one; kAbnormal: one side alone; kNotReproduced:
// neither (upstream calls that normal, too); kSkip: not run, or nothing to look at; kError: a side
// failed.
enum class OverflowResult : uint8_t { kNormal, kAbnormal, kNotReproduced, kSkip, kError };
inline constexpr size_t kOverflowResults = 5;
// "normal", "abnormal", "not_reproduced", "skip", "error".
std::string_view OverflowWord(OverflowResult result);

// One call: a row of the result file.
struct OverflowRow {
  std::string name;                        // "Torch.exp.0"
  std::optional<bool> input, cpu, device;  // whether NaN or Inf is there; absent: not known
  OverflowResult result = OverflowResult::kSkip;
  std::string message;
};

// Judges a call that was run. An output of a tensor type overflows where an element is NaN or
// infinite, a float where it is, a list where a member does; truth values and integers never do.
// What the CPU computed in a wider type than the device counts as rounded to the device's, so that
// a range that is too small still shows. None from both sides, or a bare truth value, is a kSkip.
// Requires: ran.device is there.
OverflowRow ClassifyOverflow(const RanCall& ran);

// A call that was not run, and why.
OverflowRow SkippedRow(std::string name, const Skip& skip);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_OVERFLOW_OVERFLOW_JUDGE_H_

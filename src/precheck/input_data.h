// The contents of input tensors: drawn from recorded statistics, or read from recorded files.
//
// Drawn elements come from a counter-based generator: element i of a tensor depends on the seed,
// the full name of the call, the direction, the path of the argument and i, and on nothing else.
// They are equal to the bit on every machine, for every number of threads and workers, in every
// order and after a resume.

#ifndef PLUMBLINE_PRECHECK_INPUT_DATA_H_
#define PLUMBLINE_PRECHECK_INPUT_DATA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "plumbline/record.h"
#include "precheck/outcome.h"
#include "precheck/prepared_call.h"

namespace plumbline::precheck {

// What a stream of random numbers is keyed by.
struct StreamName {
  std::string_view call;       // "Functional.conv2d.0"
  std::string_view direction;  // "forward", "backward"
  std::string_view path;       // "input_args.0.1", "input_kwargs.weight"
};
// FNV-1a (64 bits) of the parts, each closed by a zero byte, mixed with the seed by SplitMix64's
// finaliser.
uint64_t StreamKey(uint64_t seed, const StreamName& name);

// Number `index` of the stream: SplitMix64 (Steele, Lea and Flood 2014) started at the key, whose
// n-th output needs none of those before.
constexpr uint64_t StreamNumber(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The range that a tensor's statistics name, or why its elements cannot be drawn: Max or Min is
// absent, or an integer tensor's is NaN.
OrSkip<ValueRange> RangeOf(const TensorRecord& record, DType dtype);

// Whether `end` of the range of a floating tensor is what a program writes where a value must not
// count, as before a softmax, rather than a value: at least 1000 times the other end (at least
// 1000), and -10000 or below (-9984 as bfloat16 has it), 1e30 or more in magnitude, or at least
// nine tenths of the largest number of the type.
bool IsMask(DType dtype, double end, double other);
inline constexpr uint64_t kMaskedEvery = 32;

// Fills `out` with the elements of a tensor of `dtype` and `shape`. With u uniform in [0, 1), in
// double and rounded once to the type:
//   floating   low (1 - u) + high u, within [low, high]; then the ends are planted: the first
//              element is low, the last one high, and one element each stands for the infinite or
//              NaN end of a raw range. All NaN where high is NaN; where no element was finite all
//              are high, and the last slice of the first dimension is low
//   integers   uniform in [low, high], both truncated; the ends planted
//   bool       true where an integer drawn from [low, high] is above 0
//   complex    magnitude as of floating types, phase uniform
// A floating range of which one end alone is a mask (IsMask()) is drawn without it, from the other
// end to its mirror image, at least 1 away; every kMaskedEvery-th element on average, by numbers of
// the same key, and the one planted take the mask.
// A floating type that has no infinity takes its largest finite value instead.
// Requires: out.size() == elements x size of one; shape without negative sizes.
void Generate(const TensorFill& fill, const GeneratedData& data, std::span<std::byte> out);

// Writes every input of `call` into `memory`. Thread-safe and deterministic; uses the threads of
// the surrounding RunWithThreads() for large tensors. Skips with kMissingData where a recorded file
// is no longer what Prepare() saw. Requires: memory.size() >= call.input_bytes.
OrSkip<void> FillInputs(const PreparedCall& call, std::span<std::byte> memory);

}  // namespace plumbline::precheck

#endif  // PLUMBLINE_PRECHECK_INPUT_DATA_H_

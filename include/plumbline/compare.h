// Compare two runs: options, rows, verdicts, the first wrong call.

#ifndef PLUMBLINE_COMPARE_H_
#define PLUMBLINE_COMPARE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plumbline/run.h"

namespace plumbline {

// Which information the two dumps share.
enum class CompareMode : uint8_t {
  kStatistics,  // max, min, mean, norm of both sides
  kDigest,      // CRC-32 (or xor) texts
  kTensor,      // the tensors themselves
};
std::string_view CompareModeName(CompareMode mode);  // "statistics", "md5", "tensor"

// plumbline's own judgement of one row, call or run. Ordered from good to bad, then "cannot say".
enum class Verdict : uint8_t { kSame, kWithinNoise, kSuspicious, kBroken, kNotComparable };
std::string_view VerdictName(Verdict verdict);  // "same", "within noise", ...

// Why a metric has no value.
enum class Absent : uint8_t {
  kEmpty,             // no elements
  kScalar,            // not defined for one element
  kDTypeUnsupported,  // no arithmetic for this element type
  kShapeMismatch,
  kNoCounterpart,     // the other side has no such value
  kUnreadable,        // the file is missing or damaged
  kZeroNorm,          // one side is all zeros
  kNotRecorded,       // the dump does not hold what the metric needs
  kNonFinite,         // NaN or Inf at differing positions
};
std::string_view AbsentName(Absent reason);

// A number, or the reason why there is none.
using Metric = std::variant<double, Absent>;

struct CompareOptions {
  std::string output_dir = "./output";
  bool write_xlsx = true;
  bool write_csv = true;
  bool write_json = true;
  bool fuzzy_match = false;  // ignore call numbers when names do not pair exactly
  bool salvage = false;      // compare the complete records of a truncated dump
  int threads = 0;           // 0: one per core
};

// The public types of rows, calls and the answer follow the engine: see Comparison below.
}  // namespace plumbline

#endif  // PLUMBLINE_COMPARE_H_

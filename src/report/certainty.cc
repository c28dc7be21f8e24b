#include "report/certainty.h"

#include <fmt/format.h>

#include "measure/statistic_choice.h"

namespace plumbline::report {

Certainty CertaintyOf(CompareMode mode, bool of_xor) {
  switch (mode) {
    case CompareMode::kStatistics:
      return {"medium",
              "only max, min, mean and norm were compared: elements in another order (a permuted "
              "batch) and errors that keep all four are not seen"};
    case CompareMode::kDigest:
      if (of_xor) {
        return {"low",
                "only XORs of words were compared: equal words cancel in pairs, so that other "
                "contents may have the same XOR, and NaN is not seen"};
      }
      return {"medium",
              "only digests were compared: equal is sure, but a difference may be rounding"};
    case CompareMode::kTensor:
      break;
  }
  return {"high", "every element was compared"};
}

Certainty CertaintyOf(const Comparison& comparison) {
  const bool of_xor =
      comparison.mode == CompareMode::kDigest && measure::AreXorDigests(comparison.rows);
  return CertaintyOf(comparison.mode, of_xor);
}

std::string CertaintyLine(const Certainty& certainty) {
  if (certainty.level == "high") return {};
  return fmt::format("  certainty: {}: {}\n", certainty.level, certainty.text);
}

}  // namespace plumbline::report

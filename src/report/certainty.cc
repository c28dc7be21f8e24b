#include "report/certainty.h"

#include <fmt/format.h>

namespace plumbline::report {

Certainty CertaintyOf(CompareMode mode) {
  switch (mode) {
    case CompareMode::kStatistics:
      return {"medium",
              "only max, min, mean and norm were compared: elements in another order (a permuted "
              "batch) and errors that keep all four are not seen"};
    case CompareMode::kDigest:
      return {"medium",
              "only digests were compared: equal is sure, but a difference may be rounding"};
    case CompareMode::kTensor:
      break;
  }
  return {"high", "every element was compared"};
}

std::string CertaintyLine(CompareMode mode) {
  const Certainty certainty = CertaintyOf(mode);
  if (mode == CompareMode::kTensor) return {};
  return fmt::format("  certainty: {}: {}\n", certainty.level, certainty.text);
}

}  // namespace plumbline::report

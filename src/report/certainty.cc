#include "report/certainty.h"

#include <fmt/format.h>

#include <cmath>

#include "measure/statistic_choice.h"

namespace plumbline::report {
namespace {

constexpr std::string_view kLevelOfAll = "high";

Certainty CertaintyOfMode(CompareMode mode, bool of_xor) {
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
  return {kLevelOfAll, "every element was compared"};
}

// "0.0021 %", with two digits, rounded up: below it nothing is told.
std::string Percent(double ratio) {
  const double percent = ratio * 100;
  const double unit = std::pow(10, std::floor(std::log10(percent)) - 1);
  constexpr double kRounding = 1e-9;  // 2.0000000001 units are 2
  return fmt::format("{:.2g} %", std::ceil(percent / unit - kRounding) * unit);
}

}  // namespace

Certainty CertaintyOf(CompareMode mode, bool of_xor, const DetectionLimit& limit) {
  Certainty certainty = CertaintyOfMode(mode, of_xor);
  if (!limit.lacks_last_update) return certainty;
  if (certainty.level == kLevelOfAll) certainty.level = "medium";
  certainty.text += "; what the optimizer made of the last gradients was not recorded";
  return certainty;
}

Certainty CertaintyOf(const Comparison& comparison) {
  const bool of_xor =
      comparison.mode == CompareMode::kDigest && measure::AreXorDigests(comparison.rows);
  return CertaintyOf(comparison.mode, of_xor, comparison.limit);
}

std::string CertaintyLine(const Certainty& certainty) {
  if (certainty.level == kLevelOfAll) return {};
  return fmt::format("  certainty: {}: {}\n", certainty.level, certainty.text);
}

std::string LimitText(const DetectionLimit& limit) {
  std::string kinds;
  const auto add = [&](std::string_view what, double allowed) {
    if (!(allowed > 0)) return;
    kinds +=
        fmt::format("{}of a {} below {}", kinds.empty() ? "" : " and ", what, Percent(allowed));
  };
  add("result", limit.result);
  add("gradient", limit.gradient);
  std::string text = "no difference of a recorded value is taken for noise";
  if (!kinds.empty()) text = fmt::format("differences {} cannot be told from noise here", kinds);
  if (limit.roundings == 0) return text;
  return fmt::format("{}; {} {} rounding alone, of which nothing is told", text, limit.roundings,
                     limit.roundings == 1 ? "value is" : "values are");
}

std::string LimitLine(const DetectionLimit& limit) {
  return fmt::format("  limit: {}\n", LimitText(limit));
}

}  // namespace plumbline::report

#include "report/certainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text/number_text.h"
#include "record/gathered_name.h"

namespace plumbline::report {

namespace {

constexpr std::string_view kLevelOfAll = "high";

using measure::DigestKind;

Certainty CertaintyOfDigests(DigestKind digests) {
  switch (digests) {
    case DigestKind::kXor:
      return {"low",
              "only XORs of words were compared: equal words cancel in pairs, so that other "
              "contents may have the same XOR, and NaN is not seen"};
    case DigestKind::kLogged:
      return {"low",
              "only the hashes of a log were compared: other contents may have the same, as "
              "elements in another order or of other signs have the same norm"};
    case DigestKind::kChecksum:
      break;
  }
  return {"medium", "only digests were compared: equal is sure, but a difference may be rounding"};
}

Certainty CertaintyOfMode(CompareMode mode, DigestKind digests) {
  switch (mode) {
    case CompareMode::kStatistics:
      return {"medium",
              "only max, min, mean and norm were compared: elements in another order (a permuted "
              "batch) and errors that keep all four are not seen"};
    case CompareMode::kDigest:
      return CertaintyOfDigests(digests);
    case CompareMode::kTensor:
      break;
  }
  return {kLevelOfAll, "every element was compared"};
}

// "0.0021 %", with two digits, rounded up: below it nothing is told.
std::string PercentText(double ratio) {
  const double percent = ratio * 100;
  const double unit = std::pow(10, std::floor(std::log10(percent)) - 1);
  constexpr double kRounding = 1e-9;  // 2.0000000001 units are 2
  return fmt::format("{:.2g} %", std::ceil(percent / unit - kRounding) * unit);
}

}  // namespace

Certainty CertaintyOf(CompareMode mode, DigestKind digests, const DetectionLimit& limit) {
  Certainty certainty = CertaintyOfMode(mode, digests);
  if (!limit.lacks_last_update) return certainty;
  if (certainty.level == kLevelOfAll) certainty.level = "medium";
  certainty.text += "; what the optimizer made of the last gradients was not recorded";
  return certainty;
}

Certainty CertaintyOf(const Comparison& comparison) {
  const DigestKind digests = comparison.mode == CompareMode::kDigest
                                 ? measure::DigestKindOf(comparison.rows)
                                 : DigestKind::kChecksum;
  Certainty certainty = CertaintyOf(comparison.mode, digests, comparison.limit);
  const auto by_size = std::ranges::count_if(comparison.rows, [](const ComparedRow& row) {
    return row.target && row.golden && IsInOrderOfSize(row.target->data_name);
  });
  if (by_size == 0) return certainty;
  if (certainty.level == kLevelOfAll) certainty.level = "medium";
  certainty.text += fmt::format(
      "; {} in order of size, as nothing shows the order of their elements: elements that changed "
      "places are not seen there",
      CountText(static_cast<uint64_t>(by_size), "value"));
  return certainty;
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
        fmt::format("{}of a {} below {}", kinds.empty() ? "" : " and ", what, PercentText(allowed));
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

namespace {

constexpr std::pair<std::string_view, bool MetConditions::*> kMembers[] = {
    {"wrong", &MetConditions::wrong},   {"unjudged", &MetConditions::unjudged},
    {"any", &MetConditions::differs},   {"suspicious", &MetConditions::suspicious},
    {"broken", &MetConditions::broken}, {"unmatched", &MetConditions::unmatched},
};
static_assert(std::size(kMembers) == kFailConditions.size());

bool IsMet(const MetConditions& met, std::string_view condition) {
  return std::ranges::any_of(kMembers, [&](const auto& member) {
    return (condition == "any" || condition == member.first) && met.*member.second;
  });
}

}  // namespace

void AddCondition(std::string_view name, MetConditions& met) {
  for (const auto& [known, member] : kMembers) {
    if (known == name) met.*member = true;
  }
}

Result<bool> MeetsAny(const MetConditions& met, const std::vector<std::string>& asked) {
  bool meets = false;
  for (const std::string& condition : asked) {
    if (std::ranges::find(kFailConditions, condition) == kFailConditions.end()) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("fail_on: unknown condition \"{}\" (expected wrong, unjudged, any, "
                               "suspicious, broken or unmatched)",
                               condition));
    }
    meets = meets || IsMet(met, condition);
  }
  return meets;
}

namespace {

using CodeAndText = std::pair<std::string_view, std::string_view>;
constexpr std::array<CodeAndText, 25> kTexts = {{
    {"zero-both", "equal: zero throughout on both sides, which proves little"},
    {"nonfinite-both", "equal as far as seen: NaN or infinity at the same places of both sides"},
    {"empty", "no elements"},
    {"both-null", "equal: nothing on either side"},
    {"no-golden", "no counterpart: golden has no such call"},
    {"no-target", "no counterpart: the target has no such call"},
    {"recomputed", "no counterpart: only this side runs the call again"},
    {"shape-differs", "no counterpart: other shapes"},
    {"dtype-differs", "no counterpart: other data types"},
    {"structure-differs", "no counterpart: other arguments or results"},
    {"default-unknown", "only one side passes the argument; the other leaves it to its default"},
    {"namesake", "no counterpart: the call of this name does something else"},
    {"other-way", "no counterpart: another way to results that agree"},
    {"other-batch", "another part of the batch than the other side's calls see"},
    {"unreadable", "a tensor file is missing or damaged"},
    {"no-data", "one side recorded no values"},
    {"uninitialised", "memory that the call leaves unwritten"},
    {"overwritten", "the call writes over it before anything reads it"},
    {"flip", "each side chose or rounded what it read, which differs by noise alone"},
    {"follows-flip", "follows from a choice that noise alone flipped"},
    {"subnormal", "differs by less than the smallest normal number, or by one unit below it"},
    {"fill-differs", "masks that mean the same, with other numbers"},
    {"operands-exchanged", "equal: the operands stand in another order on the other side"},
    {"digest-basis", "checksums taken from other bytes"},
    {"other-node", "a gradient that is summed at another place"},
}};

}  // namespace

std::string_view ReasonText(std::string_view code) {
  for (const auto& [known, text] : kTexts) {
    if (known == code) return text;
  }
  return {};
}

}  // namespace plumbline::report

#include "report/reason_text.h"

#include <array>
#include <utility>

namespace plumbline::report {
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

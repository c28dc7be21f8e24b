// Values as Python prints them: what a log of torch's DebugMode says of arguments, results and
// hashes (docs/formats/debug_mode_log.md).

#ifndef PLUMBLINE_FORMATS_PYTORCH_PRINTED_VALUE_H_
#define PLUMBLINE_FORMATS_PYTORCH_PRINTED_VALUE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::debug_mode {

// One value. A plain value type.
struct Printed {
  enum class Kind : uint8_t {
    kWord,  // anything else: a number, None, "t$3: f32[2, 8]", "<Generator>"
    kText,  // in quotes
    kList,
    kTuple,
    kDict,
  };
  Kind kind = Kind::kWord;
  std::string text;                    // of a word as it stands, of a text what is in the quotes
  std::vector<Printed> items = {};     // of a dict its values
  std::vector<std::string> keys = {};  // of a dict

  [[nodiscard]] bool is_none() const { return kind == Kind::kWord && text == "None"; }
  [[nodiscard]] bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  // The value of a dict's key, or null pointer.
  [[nodiscard]] const Printed* Find(std::string_view key) const;
};

// Containers in each other, at most: a log has a few.
inline constexpr int kMostNested = 100;

// All of `text`. kCorrupt: a bracket or quote is left open or closes nothing, or something stands
// behind the value; kUnsupported: nested deeper than kMostNested.
Result<Printed> ParsePrinted(std::string_view text);

// One argument of a call; without a keyword it stands at its place.
struct Argument {
  std::string keyword;
  Printed value;
};
// What stands between the parentheses of a call, as "t: f32[2], [1, 0], dtype=torch.bfloat16".
// Texts are not quoted there: a comma without a blank behind it is part of one. Errors as
// ParsePrinted().
Result<std::vector<Argument>> ParseArguments(std::string_view text);

// "t$3: f32[2, 8]": a tensor, by its type and shape.
struct PrintedTensor {
  std::string dtype;  // "torch.float32"; as it stands where the abbreviation is unknown
  Shape shape;
  bool is_plain = false;  // no DTensor, whose shape is that of all ranks, and no fake tensor
};
std::optional<PrintedTensor> TensorIn(const Printed& value);

}  // namespace plumbline::debug_mode

#endif  // PLUMBLINE_FORMATS_PYTORCH_PRINTED_VALUE_H_

// The values of a node of a file for viewers, which are texts there, as typed values again.

#ifndef PLUMBLINE_VIEW_IMPORTED_VALUES_H_
#define PLUMBLINE_VIEW_IMPORTED_VALUES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/json/vis_source.h"
#include "plumbline/result.h"

namespace plumbline::view {

// One value as the file has it: its members in their order. What is no text there is its JSON.
struct FileValue {
  std::string name;
  bool is_output = false;
  std::vector<std::pair<std::string, std::string>> members;

  [[nodiscard]] std::string_view Find(std::string_view key) const;  // empty: none
};

// Inputs, then outputs. kCorrupt: no JSON.
Result<std::vector<FileValue>> ValuesIn(const vis::NodeTexts& texts);
// The texts of a JSON list; empty for anything else.
std::vector<std::string> TextsIn(std::string_view json);

// Relative errors of values as ratios, NaN without any.
struct ValueErrors {
  double of_inputs, of_outputs;
  bool are_inputs_bad = false;  // one of them is not as it should be, as far as the file tells
};
ValueErrors ErrorsOf(const std::vector<FileValue>& values);

// What "Err_message" of a file of our own says in numbers; NaN: not said.
struct SaidErrors {
  std::string_view reason;  // code; empty: none
  double error, explained;
};
SaidErrors SaidIn(std::string_view message);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_IMPORTED_VALUES_H_

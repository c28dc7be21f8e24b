// Inputs and outputs of a call as the texts that files for viewers of graphs hold.

#ifndef PLUMBLINE_VIEW_NODE_VALUES_H_
#define PLUMBLINE_VIEW_NODE_VALUES_H_

#include <string>
#include <string_view>

#include "plumbline/record.h"
#include "plumbline/result.h"
#include "tree/node_values.h"

namespace plumbline::view {

using tree::NodeValues;

// Whose texts: those of .vis files have six decimals and checksums, those of .vis.db all digits.
struct ValueForm {
  bool is_vis = false;
  bool has_digests = false;  // always in .vis
};

// What a viewer shows of `call`. kCorrupt when arguments nest deeper than a recorder can write.
Result<NodeValues> ValuesOf(const Call& call, const ValueForm& form);

// Appends `, "key": "text"`, without the comma in front if `fields` ends the name of a parameter.
void AppendField(std::string_view key, std::string_view text, bool is_first, std::string& fields);

// A text as these files have it: without ' and with null for the word None; a decimal number of
// more than six decimals with six (of .vis also within the text).
std::string ShownValue(std::string_view text, const ValueForm& form);
// The same of a number: as Python spells it; of .vis with six decimals.
std::string ShownNumber(double number, const ValueForm& form);

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_NODE_VALUES_H_

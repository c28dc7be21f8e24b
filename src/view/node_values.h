// Inputs and outputs of a call as the texts that files for viewers of graphs hold.

#ifndef PLUMBLINE_VIEW_NODE_VALUES_H_
#define PLUMBLINE_VIEW_NODE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/record.h"
#include "plumbline/result.h"

namespace plumbline::view {

// Whose texts: those of .vis files have six decimals and checksums, those of .vis.db all digits.
struct ValueForm {
  bool is_vis = false;
  bool has_digests = false;  // always in .vis
};

// The inputs, parameters and outputs of one call, in the order of the file. A plain value.
class NodeValues {
 public:
  struct Parameter {
    std::string_view name;    // "Module.fc.Linear.forward.0.input.0"
    std::string_view fields;  // members of a JSON object: "\"type\": \"torch.Tensor\", ..."
    bool is_output = false;
  };

  [[nodiscard]] size_t size() const { return ends_.size(); }
  // Valid while this lives and nothing is added.
  [[nodiscard]] Parameter operator[](size_t i) const;
  // To text() first the name is appended, then BeginFields() called, then the fields appended.
  std::string& text() { return text_; }
  void BeginFields() { name_end_ = text_.size(); }
  void Finish(bool is_output) { ends_.push_back({name_end_, text_.size(), is_output}); }
  void Shrink();

 private:
  struct Ends {
    size_t name, fields;
    bool is_output;
  };
  std::string text_;
  size_t name_end_ = 0;
  std::vector<Ends> ends_;
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

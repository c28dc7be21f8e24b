// Inputs and outputs of a node as the texts that files for viewers of graphs hold.

#ifndef PLUMBLINE_TREE_NODE_VALUES_H_
#define PLUMBLINE_TREE_NODE_VALUES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::tree {

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

}  // namespace plumbline::tree

#endif  // PLUMBLINE_TREE_NODE_VALUES_H_

#include "tree/node_values.h"

namespace plumbline::tree {

NodeValues::Parameter NodeValues::operator[](size_t i) const {
  const size_t begin = i == 0 ? 0 : ends_[i - 1].fields;
  const std::string_view text = text_;
  return {text.substr(begin, ends_[i].name - begin),
          text.substr(ends_[i].name, ends_[i].fields - ends_[i].name), ends_[i].is_output};
}

void NodeValues::Shrink() {
  text_.shrink_to_fit();
  ends_.shrink_to_fit();
}

}  // namespace plumbline::tree

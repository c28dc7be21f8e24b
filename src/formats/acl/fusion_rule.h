// The file in which a graph compiler says what became of a framework's operators: which of them one
// operator of the device stands for (docs/formats/fusion_rule.md).

#ifndef PLUMBLINE_FORMATS_ACL_FUSION_RULE_H_
#define PLUMBLINE_FORMATS_ACL_FUSION_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumbline/result.h"

namespace plumbline::fusion {

// "name:index", the output that an input comes from.
struct InputRef {
  std::string producer;
  size_t index = 0;
};

// One output, and the original output that it is.
struct OutputDesc {
  std::string dtype;                       // "DT_FLOAT16"
  std::optional<std::string> origin_name;  // operator of the framework
  size_t origin_index = 0;                 // its position where the file says nothing
  std::string origin_format;               // "NCHW"; empty: not said
  std::vector<int64_t> origin_shape;
};

struct Operator {
  std::string name, type;
  int64_t id = 0;                // execution sequence
  std::vector<InputRef> inputs;  // without control edges
  // Operators of the framework that it stands for. None: itself. One empty name: nothing.
  std::optional<std::vector<std::string>> original_names;
  std::string l1_group;        // number of its L1 fusion; empty: none
  bool is_multi_part = false;  // part of a group of many operators for many
  std::vector<OutputDesc> outputs;
};

struct Rule {
  std::string graph_name;           // of the first graph
  std::vector<Operator> operators;  // of all graphs, in the order of the file
};

// kCorrupt: no JSON, or an element that is missing or of another type; the message names the
// operator and the byte.
Result<Rule> Parse(std::string_view text);
// The same of a file; the message names it.
Result<Rule> Read(const std::string& path);

}  // namespace plumbline::fusion

#endif  // PLUMBLINE_FORMATS_ACL_FUSION_RULE_H_

// Values and types inside a compiled graph of MindSpore: ValueProto and TypeProto.

#ifndef PLUMBLINE_FORMATS_GRAPH_PB_VALUE_H_
#define PLUMBLINE_FORMATS_GRAPH_PB_VALUE_H_

#include <optional>
#include <string>
#include <vector>

#include "base/protobuf_wire.h"
#include "plumbline/result.h"
#include "plumbline/tensor.h"

namespace plumbline::graph_pb {

// A tensor or a number; of a tensor with a shape, where sizes of -1 are not known.
struct TensorType {
  std::string dtype;  // "float32", "tuple"; "type 99" for numbers without a name; empty: none
  std::optional<Shape> shape;
};

// What a TypeProto says: the parts of a tuple, otherwise one; none for no value.
Result<std::vector<TensorType>> ReadType(protobuf::MessageReader in);

struct Value {
  // As Python prints it: "1.5", "('x', 2)", "'float32'"; "NONE" without a type, "TENSOR".
  std::string text;
  std::optional<TensorType> tensor;
};

// What a ValueProto says. kCorrupt also for values that are nested more than 32 times.
Result<Value> ReadValue(protobuf::MessageReader in);

}  // namespace plumbline::graph_pb

#endif  // PLUMBLINE_FORMATS_GRAPH_PB_VALUE_H_
